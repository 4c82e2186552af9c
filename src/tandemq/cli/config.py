"""``tandemq config``: which settings hold, where they come from, and a file to begin with."""

from __future__ import annotations

import click

from tandemq.cli.exits import Misconfigured
from tandemq.cli.options import configured, setting_options
from tandemq.cli.output import as_json, table
from tandemq.config import BadSetting
from tandemq.config.report import rows, template


@click.group()
def config() -> None:
    """Show, check or write settings."""


@config.command()
@setting_options
@click.option("--json", "json_wanted", is_flag=True, help="Print one JSON document.")
def show(file: str | None, compat_env: bool, json_wanted: bool, **flags: object) -> None:
    """Print every setting with its value and where it comes from; secrets stay hidden.

    Example: tandemq config show --config ./tandemq.toml
    """
    found = rows(configured(file, compat_env, flags))
    if json_wanted:
        click.echo(as_json([row._asdict() for row in found]))
    else:
        table(("SETTING", "VALUE", "UNIT", "FROM"), found)


@config.command()
@setting_options
def check(file: str | None, compat_env: bool, **flags: object) -> None:
    """Say whether a server could start with these settings; 78 is the exit code if not.

    Example: tandemq config check --config ./tandemq.toml
    """
    settings = configured(file, compat_env, flags).settings

    from tandemq.server.tls import ServerCertificate

    try:
        ServerCertificate.of(settings)
    except BadSetting as problem:
        raise Misconfigured(str(problem)) from None
    click.echo("The settings can be used.")


@config.command()
def init() -> None:
    """Print a TOML file with every setting as a comment.

    Example: tandemq config init > tandemq.toml
    """
    click.echo(template(), nl=False)
