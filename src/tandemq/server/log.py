"""The log of the server process: one line an event, for people, as JSON or as logfmt.

Values beside the message come from ``extra`` and are cut short; bytes and containers are named,
not shown, so that no payload reaches the log by accident.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from math import isfinite
from typing import IO, Any

ROOT = "tandemq"
LONGEST_VALUE = 500

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_LEVEL_COLOURS = {"WARNING": "33", "ERROR": "31", "CRITICAL": "31;1", "DEBUG": "2"}
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_CONTROLS |= {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x2028: "\\u2028", 0x2029: "\\u2029"}


def set_up(
    level: str,
    shape: str,
    stream: IO[str] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> None:
    """Write the log of everything under ``tandemq`` to ``stream`` (standard error).

    A second call replaces the first one's choices.
    """
    stream = stream or sys.stderr
    output = logging.StreamHandler(stream)
    output.setFormatter(_SHAPES[shape](coloured(stream, environ)))
    output.addFilter(RepeatedErrors())
    logger = logging.getLogger(ROOT)
    logger.handlers = [output]
    logger.propagate = False
    set_level(level)


def set_level(level: str) -> None:
    """Change the least severe level that is written, while running."""
    logging.getLogger(ROOT).setLevel(level.upper())


def coloured(stream: IO[str], environ: Mapping[str, str]) -> bool:
    """Colour on a terminal only; NO_COLOR and FORCE_COLOR decide otherwise."""
    if environ.get("NO_COLOR"):
        return False
    return bool(environ.get("FORCE_COLOR")) or stream.isatty()


def fields(record: logging.LogRecord) -> dict[str, Any]:
    """What a line says, by key: ts, level, logger, msg, event, then the extras and the error."""
    told: dict[str, Any] = {
        "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "msg": record.getMessage(),
    }
    told["ts"] = told["ts"].replace("+00:00", "Z")
    extras = {k: v for k, v in vars(record).items() if k not in _STANDARD and k not in told}
    if "event" in extras:
        told["event"] = _plain(extras.pop("event"))
    told |= {key: _plain(value) for key, value in extras.items()}
    if record.exc_info:
        told["error"] = logging.Formatter().formatException(record.exc_info)
    return told


def _plain(value: object) -> str | int | float | bool | None:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return f"<{len(value)} bytes>"
    if isinstance(value, list | tuple | set | frozenset | dict):
        return f"<{type(value).__name__} of {len(value)}>"
    text = str(value)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + "…"


class Json(logging.Formatter):
    """One JSON object a line."""

    def __init__(self, _coloured: bool = False) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(fields(record))


class Logfmt(logging.Formatter):
    """``key=value`` pairs; a value is quoted where it has to be."""

    def __init__(self, _coloured: bool = False) -> None:
        super().__init__()

    def format(self, record: logging.LogRecord) -> str:
        return " ".join(_pair(key, value) for key, value in fields(record).items())


class Console(logging.Formatter):
    """Local time, level, message, then what else is known. Tracebacks keep their lines."""

    def __init__(self, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        told = fields(record)
        moment = datetime.fromtimestamp(record.created).strftime("%H:%M:%S.%f")[:-3]
        shown = {
            k: v for k, v in told.items() if k not in ("ts", "level", "logger", "msg", "error")
        }
        parts = [moment, self._level(record.levelname), told["msg"].translate(_CONTROLS)]
        parts += [_pair(key, value) for key, value in shown.items() if key != "event"]
        return "\n".join([" ".join(parts), *str(told.get("error", "")).splitlines()])

    def _level(self, name: str) -> str:
        padded = f"{name.lower():7}"
        colour = _LEVEL_COLOURS.get(name) if self._coloured else None
        return f"\x1b[{colour}m{padded}\x1b[0m" if colour else padded


def _pair(key: str, value: object) -> str:
    text = "" if value is None else str(value)
    if isinstance(value, bool):
        text = text.lower()
    bare = text and text.isprintable() and not set(text) & set(' ="\\')
    return f"{key}={text if bare else json.dumps(text, ensure_ascii=not text.isprintable())}"


_SHAPES = {"console": Console, "json": Json, "logfmt": Logfmt}


class RepeatedErrors(logging.Filter):
    """Lets an error through once in ``every`` seconds; the next one says how many were left out.

    Two records are the same when logger and unformatted text are.
    """

    MOST_KEPT = 1_000

    def __init__(self, every: float = 5.0) -> None:
        super().__init__()
        self._every = every
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        key = record.name, str(record.msg)
        since, left_out = self._seen.get(key, (float("-inf"), 0))
        if 0 <= record.created - since < self._every:
            self._seen[key] = since, left_out + 1
            return False
        if len(self._seen) >= self.MOST_KEPT:
            self._seen.clear()
        self._seen[key] = record.created, 0
        if left_out:
            record.repeated = left_out
        return True
