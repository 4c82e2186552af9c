"""The server's certificate: checked at start, exchanged on SIGHUP without cutting anybody.

asyncio keeps one ``SSLContext`` for as long as it listens, so a new certificate has to arrive
through that one. Loading the new files into it is not enough: OpenSSL keeps one certificate for
each kind of key and would go on offering an old ECDSA one beside a new RSA one. Instead the
context that listens points each new connection, in the handshake, to the newest context.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from asyncio.sslproto import SSLProtocol
from pathlib import Path

from tandemq.config import BadSetting, Settings

log = logging.getLogger("tandemq.server.tls")


HANDSHAKE = 10  # s a TLS handshake may take


def secure(
    transport: asyncio.Transport, inner: asyncio.Protocol, context: ssl.SSLContext, first: bytes
) -> None:
    """Go on inside of TLS on a connection whose first bytes have been read already.

    ``inner`` is told of a new connection when the handshake is done, and of the end in any case.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def shaken(done: asyncio.Future[None]) -> None:
        if not done.cancelled() and (problem := done.exception()) is not None:
            log.info("closing a connection without a TLS handshake: %s", problem)
            inner.connection_lost(problem if isinstance(problem, Exception) else None)

    done.add_done_callback(shaken)
    outer = SSLProtocol(
        loop, inner, context, done, server_side=True, ssl_handshake_timeout=HANDSHAKE
    )
    transport.set_protocol(outer)
    outer.connection_made(transport)
    while first:
        room = memoryview(outer.get_buffer(len(first)))
        count = min(len(room), len(first))
        room[:count] = first[:count]
        first = first[count:]
        outer.buffer_updated(count)


class ServerCertificate:
    """A certificate chain with its key; ``context`` is what a listener is given."""

    def __init__(self, certificate: str, key: str) -> None:
        """Read both files.

        Raises:
            BadSetting: one of them cannot be read or used, or they do not belong together.
        """
        self._files = certificate, key
        self._newest = _loaded(certificate, key)
        self.context = self._newest
        self.context.sni_callback = self._offer_newest

    @classmethod
    def of(cls, settings: Settings) -> ServerCertificate | None:
        """The certificate that the settings name; None when they name none."""
        if settings.tls_cert is None or settings.tls_key is None:
            return None
        return cls(settings.tls_cert, settings.tls_key)

    def reload(self) -> bool:
        """Read the files again; later handshakes use them. Bad files change nothing: False."""
        try:
            self._newest = _loaded(*self._files)
        except BadSetting as problem:
            log.error(
                "certificate not reloaded, the old one stays: %s",
                problem,
                extra={"event": "tls_reload_failed"},
            )
            return False
        log.info("certificate reloaded", extra={"event": "tls_reloaded"})
        return True

    def _offer_newest(
        self, connection: ssl.SSLSocket | ssl.SSLObject, _name: str | None, _context: ssl.SSLContext
    ) -> None:
        connection.context = self._newest


def _loaded(certificate: str, key: str) -> ssl.SSLContext:
    _check_file("tls_cert", certificate, b"-----BEGIN CERTIFICATE-----")
    _check_file("tls_key", key, b"PRIVATE KEY-----")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key, password=_no_password)
    except (ssl.SSLError, OSError) as problem:
        raise BadSetting(_reason(problem, certificate, key), "tls_cert", "tls_key") from None
    return context


def _no_password() -> bytes:
    """Without this OpenSSL would ask on the terminal, and a service would hang."""
    return b""


def _check_file(setting: str, path: str, mark: bytes) -> None:
    try:
        content = Path(path).read_bytes()
    except OSError as problem:
        text = f"{setting} {path} cannot be read: {problem.strerror}"
        raise BadSetting(text, setting) from None
    if mark not in content:
        raise BadSetting(
            f"{setting} {path} is no PEM file with {mark.decode().strip('-')}", setting
        )
    if b"ENCRYPTED" in content:
        text = f"{setting} {path} is encrypted: give an unencrypted key that only we can read"
        raise BadSetting(text, setting)


def _reason(problem: OSError, certificate: str, key: str) -> str:
    if getattr(problem, "reason", None) == "KEY_VALUES_MISMATCH":
        return f"tls_key {key} does not belong to tls_cert {certificate}"
    return f"tls_cert {certificate} and tls_key {key} cannot be used: {problem}"
