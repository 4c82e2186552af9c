"""How connections come about, TLS included, and how they come back."""

from __future__ import annotations

import asyncio
import datetime
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trustme
from tests.support.peer import Peer, until

from tandemq import AsyncClient, errors
from tandemq.client.line import State
from tandemq.client.pool import Pool


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: Path) -> str:
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    return str(tmp_path / "ca.pem")


def server_side(
    authority: trustme.CA, *names: str, not_after: datetime.datetime | None = None
) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert(*names, not_after=not_after).configure_cert(context)
    return context


@pytest.fixture
async def secure(authority: trustme.CA) -> AsyncIterator[Peer]:
    async with Peer(tls=server_side(authority, "127.0.0.1")) as peer:
        yield peer


async def test_a_trusted_certificate_lets_the_client_in(secure: Peer, ca: str) -> None:
    async with AsyncClient(f"{secure.url}/?tls=1&ca={ca}") as client:
        assert await client.call("Ping") == {"ok": True}
    async with AsyncClient(f"{secure.url}/?tls=1&verify=0") as client:
        assert await client.call("Ping") == {"ok": True}


async def test_a_certificate_that_nobody_vouches_for_is_refused(secure: Peer) -> None:
    async with AsyncClient(f"{secure.url}/?tls=1") as client:
        with pytest.raises(errors.CertificateRefused, match="name the file to trust as ca="):
            await client.call("Ping")


async def test_an_expired_certificate_is_refused_at_once(authority: trustme.CA, ca: str) -> None:
    past = datetime.datetime(2020, 1, 2, tzinfo=datetime.UTC)
    async with (
        Peer(tls=server_side(authority, "127.0.0.1", not_after=past)) as peer,
        AsyncClient(f"{peer.url}/?tls=1&ca={ca}") as client,
    ):
        with pytest.raises(errors.CertificateRefused, match="expired"):
            await client.call("Ping")


async def test_a_certificate_of_another_name_is_refused(authority: trustme.CA, ca: str) -> None:
    async with (
        Peer(tls=server_side(authority, "example.org")) as peer,
        AsyncClient(f"{peer.url}/?tls=1&ca={ca}") as client,
    ):
        with pytest.raises(errors.CertificateRefused, match=r"127\.0\.0\.1"):
            await client.call("Ping")


async def test_a_server_without_tls_is_named_as_one() -> None:
    async with (
        Peer(greeting=b"\0\0\0\x08plain...") as peer,
        AsyncClient(f"{peer.url}/?tls=1") as client,
    ):
        with pytest.raises(errors.WrongServer, match="is tls=1 right for this port"):
            await client.call("Ping")


async def test_the_states_of_a_line() -> None:
    async with Peer() as peer:
        pool = Pool(peer.url, pool_size=1, reconnect_delay=0.02)
        assert pool.state is State.DISCONNECTED
        waiting = asyncio.create_task(pool.call("Ping"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert pool.state is State.CONNECTING
        await waiting
        assert pool.state is State.CONNECTED
        await peer.stop()
        await until(lambda: pool.state is State.RECONNECTING, "it tries again")
        await peer.listen()
        await until(lambda: pool.state is State.CONNECTED, "it is back")
        await pool.close()
        assert pool.state is State.DISCONNECTED
