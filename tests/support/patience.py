"""Waiting for something to become true, instead of for a fixed time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(look: Callable[[], T], what: str, *, within: float = 10.0, every: float = 0.02) -> T:
    """Call `look` until it returns something true and return that.

    Raises AssertionError naming `what` and the last value after `within` seconds.
    """
    deadline = time.monotonic() + within
    while True:
        value = look()
        if value:
            return value
        if time.monotonic() >= deadline:
            raise AssertionError(f"{what}: not within {within:g} s, last seen {value!r}")
        time.sleep(every)
