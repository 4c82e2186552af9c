"""Connecting: from a target to a protocol on its socket, and what a failed attempt means."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from tandemq.client.errors import BadOption, CertificateRefused, ConnectFailed, WrongServer
from tandemq.client.url import Target

L = TypeVar("L", bound=asyncio.Protocol)

KEEP_ALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))  # s, s, probes


async def dial(target: Target, make: Callable[[], L]) -> L:
    """Connect a protocol to a server, and return it.

    Raises:
        Others: see ``explained``.
    """
    if target.dial is not None:
        return await target.dial(make)
    loop, context = asyncio.get_running_loop(), target.context()
    _, protocol = await loop.create_connection(make, target.host, target.port, ssl=context)
    return protocol


def keep_alive(transport: asyncio.BaseTransport) -> None:
    """Ask the system to look for a dead peer too."""
    sock = transport.get_extra_info("socket")
    if sock is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE:
            with suppress(OSError, AttributeError):  # where the system knows it
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def explained(error: BaseException, target: Target, seconds: float) -> BaseException:
    """Return why there is no connection, in words that say what to do; what is ours stays."""
    match error:
        case ssl.SSLCertVerificationError():
            why = error.verify_message or str(error)
            return CertificateRefused(
                f"the certificate of {target} is refused: {why}; name the file to trust as ca=..."
            )
        case ssl.SSLError():
            return WrongServer(
                f"{target} does not speak TLS as we do ({error.reason}): "
                "is tls=1 right for this port?"
            )
        case TimeoutError():
            return ConnectFailed(f"{target} did not answer within {seconds:g} s")
        case socket.gaierror():
            return ConnectFailed(f"cannot connect to {target}: {error.strerror or error}")
        case OSError():
            hint = "it hung up; is tls=1 right for this port" if target.tls else "it hung up"
            why = os.strerror(error.errno) if error.errno else str(error) or hint
            return ConnectFailed(f"cannot connect to {target}: {why}; is the server running?")
        case UnicodeError():
            return BadOption(f"{target.host} cannot be the name of a host: {error}")
    return error
