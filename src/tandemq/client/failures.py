"""What a worker says to the server of a handler that raised."""

from __future__ import annotations

import traceback
from typing import Any

from tandemq.client.errors import Cancelled, Unencodable
from tandemq.client.outcomes import Fail, RateLimited, Retry, Skip
from tandemq.client.payload import Misfit
from tandemq.wires.bunqueue.caller import Unwritable

FINAL = Fail, Misfit, Unencodable, Unwritable  # another try would end the same way
STACK_LINES = 100
LINE_LENGTH = 1_000  # characters
TEXT_LENGTH = 10_000  # of what an error says


def failure_of(error: BaseException) -> dict[str, Any] | None:
    """Return the fields of a FAIL for what a handler raised; None: the job is done all the same."""
    match error:
        case Skip():
            return None
        case RateLimited():
            return {"error": _text(error), "retryAfter": error.wait_ms}
        case Retry():
            return {"error": _text(error), "delay": error.after_ms}
        case Fail() | Cancelled():
            text = _text(error) or type(error).__name__
            return {"error": text, "unrecoverable": isinstance(error, Fail)}
    said: dict[str, Any] = {"error": _named(error), "stack": _stack(error)}
    return {**said, "unrecoverable": True} if isinstance(error, FINAL) else said


def _named(error: BaseException) -> str:
    """Return an error as one line: its type, and what it says."""
    text = _text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _text(error: BaseException) -> str:
    """Return what an error says, as text that can travel."""
    try:
        text = str(error)
    except Exception as worse:
        text = f"(its text raised {type(worse).__name__})"
    return _written(text, TEXT_LENGTH)


def _written(text: str, longest: int) -> str:
    """Return text without what UTF-8 cannot say, and not longer than it may be."""
    return text[:longest].encode(errors="backslashreplace").decode()


def _stack(error: BaseException) -> list[str]:
    """Return the lines of a traceback, the innermost last, without our own frames in front."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [n for n, frame in enumerate(frames) if frame.filename.startswith(_HERE)]
    own = ours[-1] + 1 if ours and ours[-1] + 1 < len(frames) else 0
    lines = [
        _written(f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line}", LINE_LENGTH)
        for frame in frames[own:]
    ]
    return lines[-STACK_LINES:]


_HERE = __file__.rpartition("/")[0]
