"""``tandemq version``: the three numbers that can be compatible or not."""

from __future__ import annotations

from tandemq import __version__
from tandemq.cli.groups import Verbs
from tandemq.cli.output import Done, Shown
from tandemq.cli.verb import verb

_group = Verbs()


@verb(_group, link=None)
def version() -> Shown:
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
    lines = (
        f"tandemq   {__version__}",
        f"bunqueue  protocol version {PROTOCOL}",
        f"data file schema version {numbers['data_file']}",
    )
    return Done("\n".join(lines), numbers)
