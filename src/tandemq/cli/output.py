"""Output: tables and cards for people, JSON for programs.

A verb returns what there is to show, and the flags of the call decide how: ``--json`` is one
document, ``--jsonl`` a line for each row, ``--quiet`` nothing, and people get a table with times
of their own zone. Moments are RFC 3339 in UTC in JSON.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import click

MOMENTS = frozenset(
    (
        "createdAt", "runAt", "startedAt", "completedAt", "lastHeartbeat", "timestamp", "enteredAt",
        "lastRetryAt", "nextRetryAt", "expiresAt", "failedAt", "nextRun", "lastSeen", "since",
        "registeredAt", "lastTriggered", "oldestEntry", "newestEntry", "time", "until", "at", "due",
        "lastRun",
    )
)  # fmt: skip
OPAQUE = frozenset(("data", "returnvalue", "result", "payload", "value", "values", "headers"))
COLOURS = {
    "completed": "green", "active": "yellow", "failed": "red", "delayed": "cyan", "ok": "green",
    "paused": "magenta", "stale": "red", "warning": "yellow", "error": "red",
}  # fmt: skip
WIDEST = 100  # characters of a cell in a table


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, and the field below it."""

    head: str
    key: str


@dataclass(frozen=True, slots=True)
class Rows:
    """Things of one kind."""

    columns: Sequence[Column]
    records: Sequence[Mapping[str, Any]]
    none: str = "Nothing."  # what people read when there are none


@dataclass(frozen=True, slots=True)
class Card:
    """One thing with its fields; what is empty is left out for people."""

    record: Mapping[str, Any]
    first: Sequence[str] = ()  # fields that people read first


@dataclass(frozen=True, slots=True)
class Done:
    """Something was done; a sentence for people, fields for programs."""

    text: str
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Text:
    """Text that is made for a program as it stands, such as a script."""

    text: str
    key: str = "text"


Shown = Rows | Card | Done | Text


def columns(*keys: str) -> list[Column]:
    """Columns with the names of their fields as heads: ``nextRun`` is NEXT RUN."""
    return [Column(spaced(key).upper(), key) for key in keys]


def show(shown: Shown, style: str) -> None:
    """Print a result; ``style`` is people, json, jsonl or quiet."""
    if style == "quiet":
        return
    if style == "people":
        _for_people(shown)
    elif style == "jsonl" and isinstance(shown, Rows):
        for record in shown.records:
            line(record)
    else:
        document = _document(shown)
        click.echo(as_json(document) if style == "json" else compact(document))


def line(record: Mapping[str, Any]) -> None:
    """Print one record as one line of JSON."""
    click.echo(compact(told(record)))


def _document(shown: Shown) -> Any:
    if isinstance(shown, Rows):
        return [told(record) for record in shown.records]
    if isinstance(shown, Text):
        return {shown.key: shown.text}
    return told(shown.record)


def _for_people(shown: Shown) -> None:
    if isinstance(shown, Text):
        click.echo(shown.text, nl=not shown.text.endswith("\n"))
    elif isinstance(shown, Done):
        for text in shown.text.split("\n"):
            click.echo(printable(text))
    elif isinstance(shown, Card):
        card(shown)
    elif not shown.records:
        click.echo(shown.none)
    else:
        cells = [
            [cell(c.key, record.get(c.key)) for c in shown.columns] for record in shown.records
        ]
        table([c.head for c in shown.columns], cells)


def card(shown: Card) -> None:
    """Print the fields of one thing, a line each."""
    keys = [*shown.first, *(key for key in shown.record if key not in shown.first)]
    present = [key for key in keys if not _blank(shown.record.get(key))]
    width = max((len(spaced(key)) for key in present), default=0)
    for key in present:
        text = cell(key, shown.record[key], widest=None)
        click.echo(f"{spaced(key).ljust(width)}  {coloured(text)}")


def _blank(value: Any) -> bool:
    return value is None or value is False or value in ("", [], {})


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print columns as wide as their longest cell, the last one as long as it is."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for n, cells in enumerate(lines):
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        padded[-1] = padded[-1].rstrip()
        shown = (
            [coloured(cell) for cell in padded]
            if n
            else [click.style(c, bold=True) for c in padded]
        )
        text = "  ".join(shown)
        click.echo(text if text.rstrip() == text else "  ".join(padded).rstrip())


# -- values --------------------------------------------------------------------------------------


def cell(key: str, value: Any, widest: int | None = WIDEST) -> str:
    """Return a value as people read it, on one line."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if key in MOMENTS and isinstance(value, (int, float)):
        return local(value)
    if isinstance(value, float):
        return (
            f"{value:.0f}"
            if value == int(value)
            else f"{value:.3g}"
            if value < 1
            else f"{value:.1f}"
        )
    text = value if isinstance(value, str) else compact(told({key: value})[key])
    text = printable(text)
    return text if widest is None or len(text) <= widest else text[: widest - 3] + "..."


def printable(text: str) -> str:
    """Return a text without what could steer a terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def coloured(text: str) -> str:
    """Return a text in the colour of its meaning, if it is a word that has one."""
    colour = COLOURS.get(text.strip())
    return text if colour is None else click.style(text, fg=colour)


def spaced(key: str) -> str:
    """Return the name of a field in words: ``maxAttempts`` is max attempts."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in key).replace("_", " ").strip()


def told(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields as JSON has them: moments as text, users' data as it is."""
    return {key: value if key in OPAQUE else _told(key, value) for key, value in record.items()}


def _told(key: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return told(value)
    if isinstance(value, (list, tuple)):
        return [_told(key, each) for each in value]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return value
    if key in MOMENTS:
        return rfc3339(value)
    return int(value) if isinstance(value, float) and value == int(value) else value


def rfc3339(ms: float) -> str:
    """Return a moment in ms as text in UTC."""
    moment = _moment(ms, UTC)
    if moment is None:
        return str(ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def local(ms: float) -> str:
    """Return a moment in ms as people here write it."""
    moment = _moment(ms, None)
    return str(ms) if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S")


def _moment(ms: float, zone: Any) -> datetime | None:
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).astimezone(zone)
    except (OverflowError, ValueError, OSError):
        return None


def span(ms: float) -> str:
    """Return a span as people write it."""
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        if ms >= size:
            return f"{ms / size:.3g}{unit}"
    return f"{ms:.3g}ms"


def amount(size: float) -> str:
    """Return a number of bytes as people write it."""
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} GiB"


def as_json(value: object) -> str:
    """One JSON document, indented."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_odd)


def compact(value: object) -> str:
    """One JSON document on one line."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_odd)


def _odd(value: object) -> str:
    """Tell of what JSON has no word for: bytes as base64, anything else in its own words."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


# -- terminals -----------------------------------------------------------------------------------


def wants_colour(said: str) -> bool | None:
    """Whether to colour; None leaves it to whether the output is a terminal."""
    if said != "auto":
        return said == "always"
    if os.environ.get("NO_COLOR"):
        return False
    return True if os.environ.get("FORCE_COLOR", "") not in ("", "0") else None


def progress(total: int, label: str) -> Any:
    """A progress bar on standard error, if that is a terminal; ``update(n)`` moves it."""
    return click.progressbar(
        length=total, label=label, file=sys.stderr, hidden=not sys.stderr.isatty()
    )


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return ``1 job`` or ``7 jobs``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
