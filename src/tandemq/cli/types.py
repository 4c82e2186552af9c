"""What an argument may be: durations, sizes, JSON, files and standard input."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from tandemq.amounts import size, span_ms

STDIN = "-"


class Duration(click.ParamType[int]):
    """A span, as whole ms: ``500ms``, ``30s``, ``5m``, ``2h``, ``P1D``; a bare number is ms."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if not isinstance(value, str):
            return int(value)
        span = span_ms(value, "ms")
        if span is None or span.denominator != 1:
            self.fail(f"{value!r} is no duration; write one like 500ms, 30s, 5m, 2h or P1D.")
        return int(span)


class Size(click.ParamType[int]):
    """A number of bytes: ``64MiB``, ``1GB``, ``1024``."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if not isinstance(value, str):
            return int(value)
        amount = size(value)
        if amount is None or amount.denominator != 1:
            self.fail(f"{value!r} is no size; write one like 1024, 64KiB, 64MiB or 1GiB.")
        return int(amount)


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


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


def _hint(value: str) -> str:
    return (
        f" A text is written in quotes: '{json.dumps(value)}'. @FILE reads a file, - reads stdin."
    )
