"""A pool of the buffers in which large messages are put together.

A message that arrives in many reads is gathered in a buffer first. Where that is large the system
gives its memory anew each time, page by page, which takes longer than everything else that is done
with the message; so these buffers are used again. Small ones, and records, are cheaper to make than
to use again (docs/decisions/0010-pool-of-buffers.md).
"""

from __future__ import annotations

from typing import Final

LARGE: Final = 128 << 10  # bytes from which on the system gives memory anew
SIZE: Final = (1 << 20) + 64  # bytes of a buffer: a message of a VibeMQ client and its prefix
MOST: Final = 16


class MessageObjectPool:
    """Buffers of one size; so many exist at the most, whether they are rented or free."""

    __slots__ = ("_free", "_most", "_out", "size")

    def __init__(self, most: int = MOST, size: int = SIZE) -> None:
        """``size`` in bytes."""
        self.size = size
        self._most = most
        self._free: list[bytearray] = []
        self._out = 0

    def __len__(self) -> int:
        """Return how many are free."""
        return len(self._free)

    @property
    def rented(self) -> int:
        """How many are in use."""
        return self._out

    def rent(self) -> bytearray | None:
        """Return a buffer with anything in it; None when as many as may be are in use."""
        if self._out >= self._most:
            return None
        self._out += 1
        return self._free.pop() if self._free else bytearray(self.size)

    def give_back(self, buffer: bytearray) -> None:
        """Take back what was rented; who gives it back does not look at it again."""
        assert self._out, "nothing is rented"
        assert len(buffer) == self.size, "it was given another size"
        self._out -= 1
        self._free.append(buffer)


POOL: Final = MessageObjectPool()
"""The one of the process: buffers pass from connection to connection."""
