"""Settings as people read them: a row for each, and a file to begin with."""

from __future__ import annotations

import json
from textwrap import fill
from typing import NamedTuple

from tandemq.config.fields import UNITS, Field
from tandemq.config.read import Configuration
from tandemq.config.settings import FIELDS


class Row(NamedTuple):
    """One setting: its value as text (secrets hidden) and where the value came from."""

    name: str
    value: str
    unit: str
    origin: str


def rows(configuration: Configuration) -> list[Row]:
    """Every setting with its value and its origin."""
    settings, origins = configuration.settings, configuration.origins
    return [
        Row(name, field.shown(getattr(settings, name)), field.unit, origins[name])
        for name, field in FIELDS.items()
    ]


def template() -> str:
    """A ``tandemq.toml`` that says what can be set; every line is a comment until it is wanted."""
    head = (
        "# Settings of a tandemq server. Each line shows a default: remove its '#' to change it.\n"
        '# Flags and TANDEMQ_* variables win over this file. Durations may be written "30s",\n'
        '# "5m", "2h", sizes "64MiB".\n'
    )
    return head + "".join(_lines(field) for field in FIELDS.values())


def _lines(field: Field) -> str:
    unit = f" In {UNITS[field.unit]}." if field.unit else ""
    choices = f" One of {', '.join(field.choices)}." if field.choices else ""
    others = field.env if field.flagless else f"{field.flag}, {field.env}"
    text = f"{field.doc}{unit}{choices} ({others})"
    comment = fill(text, 96, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False)
    return f"\n{comment}\n# {field.name} = {_toml(field.default)}\n"


def _toml(default: object) -> str:
    if isinstance(default, tuple):
        return "[]"
    return '""' if default is None else json.dumps(default)
