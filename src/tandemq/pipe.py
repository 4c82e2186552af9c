"""Two ends of a connection inside one process: bytes written to one arrive at the other.

The ends may belong to loops of different threads. Each keeps its state in its own loop and hands
over to the other's; order is kept, and a reader that pauses slows its writer down, as with sockets.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

HIGH_WATER = 1 << 16  # bytes that the other end has not taken yet, before its writer is paused


class End(asyncio.Transport):
    """One end, as its protocol sees it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, protocol: asyncio.Protocol) -> None:
        """``connect`` makes it usable."""
        super().__init__()
        self._loop, self._protocol = loop, protocol
        self._thread = threading.get_ident()
        self._other: End
        self._arrived: deque[bytes] = deque()
        self._reading = self._open = True
        self._due = self._ended = self._paused = False
        self._unread, self._high = 0, HIGH_WATER

    # -- for the protocol ----------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._open and data:
            self._unread += len(data)
            self._other._post(self._other._arrive, bytes(data))
            if self._unread > self._high and not self._paused:
                self._paused = True
                self._protocol.pause_writing()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._other._post(self._other._hang_up)
            self._loop.call_soon(self._lost)

    def abort(self) -> None:
        self._arrived.clear()
        self.close()

    def is_closing(self) -> bool:
        return not self._open

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        self._reading = True
        self._deliver_soon()

    def is_reading(self) -> bool:
        return self._reading

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = HIGH_WATER if high is None else high

    def get_write_buffer_size(self) -> int:
        return self._unread

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    # -- for the other end ---------------------------------------------------------------------

    def _post(self, what: Callable[..., None], *given: Any) -> None:
        """Do something in the loop of this end, after what was posted before."""
        if threading.get_ident() == self._thread:
            what(*given)
            return
        with suppress(RuntimeError):  # its loop was closed, and with it this end
            self._loop.call_soon_threadsafe(what, *given)

    def _arrive(self, data: bytes) -> None:
        self._arrived.append(data)
        self._deliver_soon()

    def _hang_up(self) -> None:
        self._ended = True
        self._deliver_soon()

    def _taken(self, size: int) -> None:
        self._unread -= size
        if self._paused and self._unread <= self._high // 4:
            self._paused = False
            self._protocol.resume_writing()

    # -- in this loop --------------------------------------------------------------------------

    def _deliver_soon(self) -> None:
        if not self._due and not self._loop.is_closed():
            self._due = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._due = False
        if self._arrived and self._reading and self._open:
            data = b"".join(self._arrived)
            self._arrived.clear()
            self._other._post(self._other._taken, len(data))
            self._protocol.data_received(data)
        if self._ended and self._open and not self._arrived:
            self._open = False
            self._lost()

    def _lost(self) -> None:
        self._protocol.connection_lost(None)


def connect(
    ours: tuple[asyncio.AbstractEventLoop, asyncio.Protocol],
    make: Callable[[], asyncio.Protocol],
    loop: asyncio.AbstractEventLoop,
) -> None:
    """Connect a protocol of this thread's loop with one that is made in ``loop``."""
    near = End(*ours)

    def accept() -> None:
        far = End(loop, make())
        near._other, far._other = far, near
        far._protocol.connection_made(far)

    if loop is ours[0]:
        accept()
    else:
        done = threading.Event()

        def accept_there() -> None:
            accept()
            done.set()

        loop.call_soon_threadsafe(accept_there)
        done.wait()
    ours[1].connection_made(near)
