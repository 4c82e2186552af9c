"""``tandemq config``: which settings hold, where they come from, and a file to begin with."""

from __future__ import annotations

import click

from tandemq.cli.exits import Misconfigured
from tandemq.cli.groups import Verbs
from tandemq.cli.options import configured, setting_options
from tandemq.cli.output import Column, Done, Rows, Shown, Text
from tandemq.cli.verb import verb
from tandemq.config import BadSetting
from tandemq.config.report import rows, template

LISTED = (
    Column("SETTING", "name"),
    Column("VALUE", "value"),
    Column("UNIT", "unit"),
    Column("FROM", "origin"),
)


@click.group(cls=Verbs)
def config() -> None:
    """Show, check or write settings."""


@verb(config, link=None)
@setting_options
def show(file: str | None, compat_env: bool, **flags: object) -> Shown:
    """Print every setting with its value and where it comes from; secrets stay hidden.

    Example: tandemq config show --config ./tandemq.toml
    """
    found = rows(configured(file, compat_env, flags))
    return Rows(LISTED, [row._asdict() for row in found])


@verb(config, link=None)
@setting_options
def check(file: str | None, compat_env: bool, **flags: object) -> Shown:
    """Say whether a server could start with these settings; 78 is the exit code if not.

    Example: tandemq config check --config ./tandemq.toml
    """
    settings = configured(file, compat_env, flags).settings

    from tandemq.server.tls import ServerCertificate

    try:
        ServerCertificate.of(settings)
    except BadSetting as problem:
        raise Misconfigured(str(problem)) from None
    return Done("The settings can be used.", {"ok": True})


@verb(config, link=None)
def init() -> Shown:
    """Print a TOML file with every setting as a comment.

    Example: tandemq config init > tandemq.toml
    """
    return Text(template(), "file")
