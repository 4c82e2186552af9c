"""Compressed bodies of the binary wire: gzip always, brotli where it is installed.

What comes from a peer is inflated step by step and dropped as soon as it is longer than allowed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

try:
    import brotli
except ImportError:
    brotli = None

GZIP, BROTLI = "gzip", "brotli"
FLAGS: Final = {GZIP: 1, BROTLI: 2}  # the byte before the body
AVAILABLE: Final = (GZIP,) if brotli is None else (GZIP, BROTLI)

THRESHOLD: Final = 1024  # bytes of a body from which on compressing is worth it, by default
GZIP_CONTAINER: Final = 31  # window bits of zlib: the largest window, with the gzip frame around
FASTEST: Final = 1
MEMBERS: Final = 64  # of one gzip body; each costs the memory of a window while it is read


class Damaged(Exception):
    """The bytes are not what their flag says, or grow beyond the limit."""


def agreed(offer: str | None, ours: Collection[str]) -> str | None:
    """Return the first name of a client's offer that is also ours."""
    names = (name.strip().lower() for name in (offer or "").split(","))
    return next((name for name in names if name in ours and name in AVAILABLE), None)


def deflate(algorithm: str, body: bytes) -> bytes:
    """Compress a body, at the fastest level."""
    return _DEFLATE[algorithm](body)


def inflate(flag: int, packed: bytes, limit: int) -> bytes:
    """Return the body that was compressed, of at most ``limit`` bytes.

    Raises:
        Damaged: it is longer, cut, or nothing of that kind.
    """
    pieces: list[bytes] = []
    size = 0
    for piece in _INFLATE[flag](packed, limit + 1):
        pieces.append(piece)
        size += len(piece)
        if size > limit:
            raise Damaged(f"Decompressed body exceeds maximum allowed size ({limit} bytes).")
    return b"".join(pieces)


def _gzip(body: bytes) -> bytes:
    compressor = zlib.compressobj(FASTEST, zlib.DEFLATED, GZIP_CONTAINER)
    return compressor.compress(body) + compressor.flush()


def _gunzip(packed: bytes, most: int) -> Iterable[bytes]:
    """Yield what one or more gzip members hold; what follows them is ignored."""
    for _ in range(MEMBERS):
        member = zlib.decompressobj(GZIP_CONTAINER)
        try:
            yield member.decompress(packed, most)
        except zlib.error as exc:
            raise Damaged(f"Body is not gzip data: {exc}.") from exc
        if not member.eof:
            raise Damaged("Body is not gzip data: it is cut.")
        packed = member.unused_data
        if not packed.startswith(b"\x1f\x8b"):
            return
    raise Damaged(f"Body has more than {MEMBERS} gzip members.")


def _brotli(body: bytes) -> bytes:
    packed: bytes = brotli.compress(body, quality=FASTEST)
    return packed


def _unbrotli(packed: bytes, most: int) -> Iterable[bytes]:
    if brotli is None:
        raise Damaged("This server reads no brotli (pip install 'tandemq[brotli]').")
    stream: Any = brotli.Decompressor()
    try:
        while not stream.is_finished():
            yield (piece := stream.process(packed, output_buffer_limit=most))
            if not piece and not packed:
                raise Damaged("Body is not brotli data: it is cut.")
            packed = b""
    except brotli.error as exc:
        raise Damaged("Body is not brotli data.") from exc


_DEFLATE: dict[str, Callable[[bytes], bytes]] = {GZIP: _gzip, BROTLI: _brotli}
_INFLATE: dict[int, Callable[[bytes, int], Iterable[bytes]]] = {1: _gunzip, 2: _unbrotli}
