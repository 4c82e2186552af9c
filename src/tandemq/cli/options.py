"""Every setting as a flag, for the commands that read settings."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from tandemq.cli.exits import Misconfigured
from tandemq.config import FIELDS, BadSetting, Configuration, Field, read
from tandemq.config.fields import UNITS

F = TypeVar("F", bound=Callable[..., Any])


def setting_options(command: F) -> F:
    """Add ``--config``, ``--compat-env`` and a flag for each setting."""
    for field in reversed(FIELDS.values()):
        if not field.flagless:
            command = _option(field)(command)
    command = click.option(
        "--compat-env",
        is_flag=True,
        envvar="TANDEMQ_COMPAT_ENV",
        help="Also read the variables of the reference server, such as TCP_PORT and AUTH_TOKENS.",
    )(command)
    return click.option(
        "--config",
        "file",
        metavar="FILE",
        envvar="TANDEMQ_CONFIG",
        help="Read settings from this TOML file instead of ./tandemq.toml.",
    )(command)


def configured(file: str | None, compat_env: bool, flags: dict[str, object]) -> Configuration:
    """Read all sources of settings; a bad one ends the process with code 78."""
    given = {name: raw for name, raw in flags.items() if raw is not None and raw != ()}
    try:
        return read(given, os.environ, file=file or None, compat_env=compat_env)
    except BadSetting as problem:
        raise Misconfigured(str(problem)) from None


def _option(field: Field) -> Callable[[F], F]:
    if field.switch:
        names = f"{field.flag}/--no-{field.flag.removeprefix('--')}"
        return click.option(names, field.name, default=None, help=_help(field))
    return click.option(
        field.flag, field.name, metavar=_metavar(field), multiple=field.many, help=_help(field)
    )


def _metavar(field: Field) -> str:
    if field.choices:
        return "|".join(field.choices)
    if field.unit in ("ms", "s"):
        return "DURATION"
    if field.unit == "bytes":
        return "SIZE"
    if field.name.endswith(("_file", "_cert", "_key")) or field.name == "data":
        return "FILE"
    return "TEXT" if field.bounds is None else "NUMBER"


def _help(field: Field) -> str:
    default = "" if field.default in (None, (), False) and not field.bounds else field.default
    if default == "":
        return field.doc
    unit = f" {UNITS[field.unit]}" if field.unit else ""
    return f"{field.doc} [default: {field.shown(default)}{unit}]"
