"""How long an answer may be: no peer reads a longer frame, and others wait while it is made.

A page ends early where what is on it is large; who wants more asks for the next one. What is asked
for as a whole is refused where it is too long, in words that say how to ask for less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TypeVar

from tandemq.commands import fields as check
from tandemq.model.errors import BadRequest
from tandemq.model.policy import ANSWER_BYTES

T = TypeVar("T")


class Page:
    """An answer that is being filled, with lists that may end early."""

    def __init__(self, used: int = 0) -> None:
        """``used`` bytes of it are taken already."""
        self._room = ANSWER_BYTES - used
        self._empty = not used

    def take(self, found: Iterable[T], size: Callable[[T], int]) -> list[T]:
        """Return what still fits; the first thing of all does in any case."""
        taken: list[T] = []
        for item in found:
            self._room -= size(item)
            if self._room < 0 and not self._empty:
                break
            self._empty = False
            taken.append(item)
        return taken


def check_length(size: int, instead: str = "ask for less") -> None:
    """Refuse an answer that is too long; ``instead`` says what to do.

    Raises:
        BadRequest
    """
    if size > ANSWER_BYTES:
        raise BadRequest(f"The answer is too large (max {ANSWER_BYTES} bytes); {instead}")


def whole(found: Iterable[T], size: Callable[[T], int], instead: str = "ask for less") -> list[T]:
    """Return everything that was found, unless it is too long.

    Raises:
        BadRequest
    """
    taken: list[T] = []
    total = 0
    for item in found:
        check_length(total := total + size(item), instead)
        taken.append(item)
    return taken


def part(found: Iterable[T], size: Callable[[T], int], offset: Any, limit: Any) -> list[T]:
    """Return what a request asks for: a page where it names a limit, else everything.

    Raises:
        BadRequest: everything is too long.
    """
    first, most = max(0, check.whole(offset) or 0), check.whole(limit)
    if most is None:
        return whole(islice(found, first, None), size, "ask for a part with offset and limit")
    return Page().take(islice(found, first, first + max(0, most)), size)
