"""What an argument may be: durations, sizes, JSON, files and standard input."""

from __future__ import annotations

import json
import re
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import click

_SPANS = {"": 1, "ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SIZES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}
_SIZES |= {"kib": 2**10, "mib": 2**20, "gib": 2**30}
_AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?) *([A-Za-z]*)", re.ASCII)
_ISO = re.compile(
    r"P(?:(?P<weeks>\d{1,9})W)?(?:(?P<days>\d{1,9})D)?"
    r"(?:T(?:(?P<hours>\d{1,9})H)?(?:(?P<minutes>\d{1,9})M)?(?:(?P<seconds>\d{1,9}(?:\.\d+)?)S)?)?",
    re.ASCII,
)
STDIN = "-"


class Duration(click.ParamType[int]):
    """A span, as whole ms: ``500ms``, ``30s``, ``5m``, ``2h``, ``P1D``; a bare number is ms."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if not isinstance(value, str):
            return int(value)
        span = duration(value)
        if span is None:
            self.fail(f"{value!r} is no duration; write one like 500ms, 30s, 5m, 2h or P1D.")
        return span


class Size(click.ParamType[int]):
    """A number of bytes: ``64MiB``, ``1GB``, ``1024``."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if not isinstance(value, str):
            return int(value)
        amount = _scaled(value.lower(), _SIZES)
        if amount is None:
            self.fail(f"{value!r} is no size; write one like 1024, 64KiB, 64MiB or 1GiB.")
        return amount


class Payload(click.ParamType[Any]):
    """JSON: the argument itself, ``@FILE``, or ``-`` for standard input."""

    name = "json"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        text, place = self._text(value)
        try:
            return json.loads(text, parse_constant=_no_number)
        except RecursionError:
            self.fail(f"{place} is nested too deeply.")
        except ValueError as problem:
            hint = "" if place != "This" or value[:1] in '{["' else _hint(value)
            self.fail(f"{place} is no JSON ({problem}).{hint}")

    def _text(self, value: str) -> tuple[str, str]:
        """Return the JSON, and what to call the place that it comes from."""
        if value == STDIN:
            return self._decoded(sys.stdin.buffer.read(), "standard input"), "Standard input"
        if not value.startswith("@"):
            return value, "This"
        name = value[1:]
        try:
            return self._decoded(Path(name).read_bytes(), name), name
        except OSError as problem:
            self.fail(f"{name!r} cannot be read: {problem.strerror}.")

    def _decoded(self, raw: bytes, place: str) -> str:
        try:
            return raw.decode()
        except UnicodeDecodeError:
            self.fail(f"{place} is no UTF-8 text.")


DURATION = Duration()
SIZE = Size()
PAYLOAD = Payload()


def duration(text: str) -> int | None:
    """Return the ms of a span as people write it; None when it is none."""
    iso = _ISO.fullmatch(text)
    if iso is not None and text[-1] not in "PT":
        parts = {unit: float(said) for unit, said in iso.groupdict().items() if said}
        return _milliseconds(parts)
    return _scaled(text, _SPANS)


def _milliseconds(parts: dict[str, float]) -> int | None:
    try:
        return round(timedelta(**parts) / timedelta(milliseconds=1))
    except OverflowError:
        return None


def _scaled(text: str, units: dict[str, int]) -> int | None:
    """Return a number times its unit; None for what is no whole number of the smallest."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or match[2] not in units:
        return None
    scaled = float(match[1]) * units[match[2]]
    return int(scaled) if scaled == int(scaled) else None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _hint(value: str) -> str:
    return (
        f" A text is written in quotes: '{json.dumps(value)}'. @FILE reads a file, - reads stdin."
    )
