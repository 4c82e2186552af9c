"""Length-prefixed frames: four bytes of big-endian length, then the body (wire-commands 1)."""

from __future__ import annotations

from struct import Struct

from tandemq.wires.buffers import LARGE, POOL

PREFIX = 4

_LENGTH = Struct(">I")
_length_at = _LENGTH.unpack_from


class FrameDecoder:
    """Cuts a byte stream into frames. Holds no socket, never waits and never raises.

    Attributes:
        refused: the announced length that exceeded the limit, or was below ``least``, or None.
            Once it is set the stream is unusable: later reads return nothing.
    """

    __slots__ = ("_buffer", "_head", "_least", "_limit", "_rented", "_wanted", "refused")

    def __init__(self, limit: int, least: int = 0, uncounted: int = 0) -> None:
        """``uncounted`` bytes between length and body belong to a frame, but not to its length."""
        self.refused: int | None = None
        self._limit = limit
        self._least = least
        self._head = PREFIX + uncounted
        self._buffer = bytearray()
        self._rented = 0  # bytes that are filled of a buffer of the pool; 0: it is our own
        self._wanted = PREFIX  # bytes the buffer needs before anything new can be told

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes from the network; return the frames they complete, in order.

        A length above the limit is refused as soon as its four bytes are known. Frames that were
        complete before it are still returned; whether to answer them is up to the caller.
        """
        if self.refused is not None:
            return []
        buffer = self._buffer
        if not buffer:
            return self._cut(data)
        if self._rented:
            return self._fill(data)
        missing = self._wanted - len(buffer)
        if len(data) < missing:  # a large frame arrives in many reads: only append
            buffer += data
            return []
        if self._wanted == PREFIX:
            data = bytes(buffer) + data
            buffer.clear()
            return self._cut(data)
        with memoryview(buffer) as held:
            first = b"".join((held[PREFIX:], data[:missing]))
        self._buffer = bytearray()  # gives the memory of a large frame back
        return [first, *self._cut(data[missing:])]

    def _fill(self, data: bytes) -> list[bytes]:
        """Put bytes into a buffer of the pool; return the frames they complete, in order."""
        buffer, filled = self._buffer, self._rented
        missing = self._wanted - filled
        if len(data) < missing:
            self._rented = filled + len(data)
            memoryview(buffer)[filled : self._rented] = data  # the buffer itself would copy twice
            return []
        with memoryview(buffer) as held:
            first = b"".join((held[PREFIX:filled], data[:missing]))
        self._give_back()
        return [first, *self._cut(data[missing:])]

    def _give_back(self) -> None:
        POOL.give_back(self._buffer)
        self._buffer, self._rented = bytearray(), 0

    def __del__(self) -> None:
        if self._rented:
            self._give_back()

    def _cut(self, data: bytes) -> list[bytes]:
        """Slice the whole frames off `data` and keep the rest."""
        frames: list[bytes] = []
        start, end = 0, len(data)
        wanted, head, least, limit = PREFIX, self._head, self._least, self._limit
        while end - start >= PREFIX:
            (size,) = _length_at(data, start)
            if not least <= size <= limit:
                self.refused = size
                return frames
            stop = start + head + size
            if stop > end:
                wanted = head + size
                break
            frames.append(data[start + PREFIX : stop])
            start = stop
        if start < end:
            self._wanted = wanted
            if wanted < LARGE or not self._rent(data[start:]):
                self._buffer += data[start:]
        return frames

    def _rent(self, data: bytes) -> bool:
        """Begin a large frame in a buffer of the pool; False where it does not fit, or is none."""
        if self._wanted > POOL.size or (buffer := POOL.rent()) is None:
            return False
        memoryview(buffer)[: len(data)] = data
        self._buffer, self._rented = buffer, len(data)
        return True

    @property
    def mid_frame(self) -> bool:
        """True while part of a frame has arrived (the idle timeout runs only then)."""
        return bool(self._buffer)

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an unfinished frame are held, its prefix included."""
        return self._rented or len(self._buffer)


def frame(body: bytes) -> bytes:
    """Put the length in front of a body."""
    return _LENGTH.pack(len(body)) + body
