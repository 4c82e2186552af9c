"""Tells from the first bytes of a connection which wire its peer speaks (ruling 8 and 9).

No frame of any wire is longer than 64 MiB, so a first byte above 4 begins no frame: it is TLS,
HTTP, or nobody's. Behind the length, the first byte of a body or its flag decides between the
wires: MessagePack maps, JSON texts and flags have none in common. What is nobody's goes to the
bunqueue wire, which has an answer for everything; so nothing is refused here.

``sniff`` looks and takes nothing away: give it all bytes so far, and once it has decided, give the
same bytes to the session of that wire. What it said of a beginning it says of the whole. Inside TLS
it starts anew. The deadline, which runs from the first byte to the decision, is the server's.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

LONGEST_FRAME: Final = 64 << 20  # bytes, of any wire
NEEDED: Final = 6  # bytes that always suffice


class Wire(Enum):
    """What a peer speaks."""

    BUNQUEUE = "bunqueue"
    JSON = "vibemq-json"
    BINARY = "vibemq-binary-1.1"
    BINARY_1_0 = "vibemq-binary-1.0"
    TLS = "tls"
    HTTP = "http"


_VERBS = (
    b"GET ", b"PUT ", b"POST", b"HEAD", b"PATC", b"DELE", b"OPTI", b"CONN", b"TRAC",
    b"PRI ",  # HTTP/2
)  # fmt: skip
_TLS_VERSIONS = range(5)  # second half; the first is 3
_JSON_BEGINNINGS = frozenset(b"{ \t\n\r")
_PLAIN, _GZIP, _BROTLI = range(3)  # flags
_GZIP_MAGIC = 0x1F  # no command has that number, so it tells a flag from a version


def sniff(first: bytes) -> Wire | None:
    """Return the wire that begins with these bytes; None as long as more are needed."""
    if not first:
        return None
    if first[0] > LONGEST_FRAME >> 24:
        return _other(first)
    if len(first) < 4:
        return None
    if not 0 < int.from_bytes(first[:4], "big") <= LONGEST_FRAME:
        return Wire.BUNQUEUE
    return _framed(first[4:6])


def _framed(body: bytes) -> Wire | None:
    """Decide by what stands behind a length."""
    if not body:
        return None
    if body[0] in _JSON_BEGINNINGS:
        return Wire.JSON
    if body[0] in (_PLAIN, _BROTLI):
        return Wire.BINARY
    if body[0] != _GZIP:
        return Wire.BUNQUEUE
    if len(body) < 2:
        return None
    return Wire.BINARY if body[1] == _GZIP_MAGIC else Wire.BINARY_1_0


def _other(first: bytes) -> Wire | None:
    """Decide where the first byte begins no frame."""
    if first[0] == 0x16:
        return _tls(first)
    if not any(verb.startswith(first[:4]) for verb in _VERBS):
        return Wire.BUNQUEUE
    return Wire.HTTP if len(first) > 4 else None


def _tls(first: bytes) -> Wire | None:
    """Look for a record that holds a ClientHello."""
    expected = ((1, (3,)), (2, _TLS_VERSIONS), (5, (1,)))
    if any(at < len(first) and first[at] not in allowed for at, allowed in expected):
        return Wire.BUNQUEUE
    return Wire.TLS if len(first) >= NEEDED else None


def http_answer(http_port: int | None) -> bytes:
    """Return what to say to an HTTP client on a port for frames; then close.

    ``http_port`` is where HTTP is served, None where it is not.
    """
    where = f"HTTP is served on port {http_port}" if http_port else "HTTP is not served here"
    text = f"This port is for queue clients. {where}.\n".encode()
    return (
        b"HTTP/1.1 400 Bad Request\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Length: %d\r\n"
        b"Connection: close\r\n\r\n%b"
    ) % (len(text), text)
