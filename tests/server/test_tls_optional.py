"""S-304: connections with TLS and without on one port; inside of TLS every wire is recognised."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from tests.support.wire import frame

from tandemq.broker import BrokerBuilder, BrokerServer
from tandemq.client.broker import Broker
from tandemq.client.errors import CertificateRefused, Unavailable
from tandemq.config import BadSetting, Settings

BOTH = pytest.mark.parametrize("secure", [False, True], ids=["plain", "tls"])
PING = {"cmd": "Ping", "reqId": "1"}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority: trustme.CA, tmp_path_factory: Any) -> tuple[str, str, str]:
    """Certificate, key, and the certificate of who signed it."""
    folder = tmp_path_factory.mktemp("tls")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    paths = [folder / name for name in ("cert.pem", "key.pem", "ca.pem")]
    paths[0].write_bytes(issued.cert_chain_pems[0].bytes())
    paths[1].write_bytes(issued.private_key_pem.bytes())
    authority.cert_pem.write_to_path(str(paths[2]))
    return str(paths[0]), str(paths[1]), str(paths[2])


@asynccontextmanager
async def serving(files: tuple[str, str, str], **more: Any) -> AsyncIterator[BrokerServer]:
    builder = BrokerBuilder.create().use_port(0).use_memory().configure_from(more)
    async with builder.use_tls(files[0], files[1], optional=True).build() as server:
        yield server


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


async def ask_bunqueue(port: int, context: ssl.SSLContext | None) -> Any:
    """What a client of the job queue's wire gets for a Ping."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(frame(msgspec.msgpack.encode(PING)))
    size = int.from_bytes(await reader.readexactly(4), "big")
    said = msgspec.msgpack.decode(await reader.readexactly(size))
    writer.close()
    await writer.wait_closed()
    return said


@BOTH
async def test_jobs_with_tls_and_without(
    files: tuple[str, str, str], authority: trustme.CA, secure: bool
) -> None:
    async with serving(files) as server:
        said = await ask_bunqueue(server.port, trusting(authority) if secure else None)
        assert said["ok"] is True


@BOTH
@pytest.mark.parametrize("binary", [False, True], ids=["json", "binary"])
async def test_messages_with_tls_and_without(
    files: tuple[str, str, str], secure: bool, binary: bool
) -> None:
    trust = {"use_tls": True, "certificate_authority": files[2]} if secure else {}
    async with serving(files) as server:
        url = f"tandemq://127.0.0.1:{server.port}"
        async with (
            Broker(url, binary=binary, **trust) as broker,
            broker.subscribe("q") as messages,
        ):
            body = "x" * 500_000
            await broker.publish("q", body)
            async with await anext(messages) as message:
                assert message.payload == body
        assert server.metrics.total_errors == 0
        assert server.metrics.total_connections_accepted == 1


@BOTH
async def test_http_gets_its_short_answer(
    files: tuple[str, str, str], authority: trustme.CA, secure: bool
) -> None:
    async with serving(files) as server:
        context = trusting(authority) if secure else None
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await reader.read()).startswith(b"HTTP/1.1 4")
        writer.close()


async def test_a_certificate_that_nobody_signed_is_refused(files: tuple[str, str, str]) -> None:
    async with serving(files) as server:
        with pytest.raises(CertificateRefused):
            await Broker(f"tandemq://127.0.0.1:{server.port}", use_tls=True).connect()
        await gone(server)


async def test_a_handshake_that_fails_leaves_nothing_behind(files: tuple[str, str, str]) -> None:
    async with serving(files) as server:
        for rest in (b"", b"\0" * 600):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            writer.write(b"\x16\x03\x01\x02\x00\x01" + rest)
            if not rest:
                writer.close()
            await reader.read()
            writer.close()
        await gone(server)
        async with Broker(f"tandemq://127.0.0.1:{server.port}"):
            assert server.active_connections == 1


async def test_who_is_one_too_many_is_told_so_inside(files: tuple[str, str, str]) -> None:
    trust = {"use_tls": True, "certificate_authority": files[2]}
    async with serving(files, max_connections=1) as server:
        url = f"tandemq://127.0.0.1:{server.port}"
        async with Broker(url, **trust):
            with pytest.raises(Unavailable, match="Maximum connections"):
                await Broker(url, **trust).connect()


def test_a_server_process_takes_both_on_its_fast_loop(
    files: tuple[str, str, str], authority: trustme.CA, new_server: Any, tmp_path: Path
) -> None:
    pytest.importorskip("uvloop")
    names = ("TANDEMQ_TLS_CERT", "TANDEMQ_TLS_KEY")
    settings = dict(zip(names, files[:2], strict=True))
    server = new_server(
        environment={**settings, "TANDEMQ_TLS_OPTIONAL": "true", "TANDEMQ_LOOP": "uvloop"}
    ).start()
    assert "with or without TLS" in server.log_tail()
    for context in (None, trusting(authority)):
        assert asyncio.run(ask_bunqueue(server.port, context))["ok"] is True


def test_without_a_certificate_there_is_nothing_to_choose() -> None:
    with pytest.raises(BadSetting, match="tls_optional needs"):
        Settings(tls_optional=True)


async def gone(server: BrokerServer) -> None:
    """Wait until nobody is connected."""
    end = asyncio.get_running_loop().time() + 20
    while server.active_connections:
        assert asyncio.get_running_loop().time() < end, "somebody is left"
        await asyncio.sleep(0.001)
