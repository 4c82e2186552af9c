"""Output: tables for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence

import click


def as_json(value: object) -> str:
    """One JSON document, indented."""
    return json.dumps(value, indent=2)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as their longest cell, the last one as long as it is."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("  ".join(padded).rstrip())
