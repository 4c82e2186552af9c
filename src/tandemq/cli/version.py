"""``tandemq version``: the three numbers that can be compatible or not."""

from __future__ import annotations

import click

from tandemq import __version__
from tandemq.cli.output import as_json


@click.command()
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON document.")
def version(json_wanted: bool) -> None:
    """Print the versions of program, wires and file.

    Example: tandemq version --json
    """
    from tandemq.commands.access import PROTOCOL
    from tandemq.stores.sqlite.migrate import steps

    numbers = {
        "tandemq": __version__,
        "protocols": {"bunqueue": PROTOCOL},
        "data_file": max(steps()),
    }
    if json_wanted:
        click.echo(as_json(numbers))
        return
    click.echo(f"tandemq   {__version__}")
    click.echo(f"bunqueue  protocol version {PROTOCOL}")
    click.echo(f"data file schema version {numbers['data_file']}")
