"""The port for probes: what it answers, and whom it cuts."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from tests.model.test_health import FIGURES, OF_THE_SEED, WELL
from tests.server.offline import until

from tandemq.model.health import Status, members
from tandemq.server import healthport
from tandemq.server.healthport import HealthCheckServer

SICK = msgspec.structs.replace(WELL, is_healthy=False, status=Status.UNHEALTHY, reasons=("full",))


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def told(self) -> Any:
        return json.loads(self.body)


def answer_of(said: bytes) -> Answer:
    head, _, body = said.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [\w -]+", line)
    assert found is not None, line
    return Answer(int(found[1]), dict(h.split(": ", 1) for h in lines), body)


async def say(server: HealthCheckServer, *pieces: bytes) -> bytes:
    """Everything that is answered until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        return await reader.read()
    except ConnectionResetError:
        return b""
    finally:
        writer.close()


async def get(server: HealthCheckServer, target: str, method: str = "GET") -> Answer:
    return answer_of(await say(server, f"{method} {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode()))


@pytest.fixture
async def server() -> AsyncIterator[HealthCheckServer]:
    async with HealthCheckServer(lambda: WELL, lambda: FIGURES, port=0) as running:
        yield running


# -- what it answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["/health", "/health/", "/health/?x=1", "http://x/health/"])
async def test_health_is_told_as_the_founding_document_has_it(
    server: HealthCheckServer, target: str
) -> None:
    said = await get(server, target)
    assert (said.status, said.told) == (200, OF_THE_SEED)
    assert said.headers["Content-Type"] == "application/json"
    assert said.headers["Content-Length"] == str(len(said.body))
    assert said.body.startswith(b'{\n  "isHealthy": true,\n'), "for people"


@pytest.mark.parametrize("target", ["/metrics", "/metrics/"])
async def test_metrics_are_told(server: HealthCheckServer, target: str) -> None:
    said = await get(server, target)
    assert (said.status, said.told) == (200, members(FIGURES))


async def test_the_other_spelling_is_given_to_who_asks(server: HealthCheckServer) -> None:
    assert (await get(server, "/health/?naming=snake")).told == members(WELL, snake=True)
    assert (await get(server, "/metrics?naming=snake")).told == members(FIGURES, snake=True)
    assert (await get(server, "/health/?naming=camel")).told == OF_THE_SEED


async def test_who_is_not_well_says_503_with_the_same_body() -> None:
    async with HealthCheckServer(lambda: SICK, port=0) as server:
        said = await get(server, "/health/")
    assert said.status == 503
    assert said.told == {
        **OF_THE_SEED, "isHealthy": False, "status": "unhealthy", "reasons": ["full"],
    }  # fmt: skip


async def test_what_is_told_is_what_is_so_at_the_moment_of_the_question() -> None:
    seen = [SICK, WELL]
    async with HealthCheckServer(lambda: seen.pop(), port=0) as server:
        assert [(await get(server, "/health/")).status for _ in range(2)] == [200, 503]


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
async def test_any_method_may_be_used(server: HealthCheckServer, method: str) -> None:
    assert (await get(server, "/health/", method)).told == OF_THE_SEED


async def test_head_has_the_head_only(server: HealthCheckServer) -> None:
    said = await get(server, "/health/", "HEAD")
    whole = await get(server, "/health/")
    assert (said.status, said.body) == (200, b"")
    assert said.headers == whole.headers


@pytest.mark.parametrize(
    "target", ["/", "/healthy", "/health/x", "/metrics/x", "*", "http://[/health", "/%68ealth/"]
)
async def test_other_paths_are_not_found(server: HealthCheckServer, target: str) -> None:
    assert (await get(server, target)).status == 404


async def test_there_are_no_metrics_where_nobody_provides_them() -> None:
    async with HealthCheckServer(lambda: WELL, port=0) as server:
        assert (await get(server, "/metrics/")).status == 404
        assert (await get(server, "/health/")).status == 200


async def test_a_request_may_come_in_pieces(server: HealthCheckServer) -> None:
    whole = b"GET /health/ HTTP/1.0\r\n\r\n"
    said = await say(server, *(whole[n : n + 1] for n in range(len(whole))))
    assert answer_of(said).status == 200


# -- what it does not put up with ------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /health/\r\n\r\n",
        b"GET /health/ HTTP/2.0\r\n\r\n",
        b"GET  /health/ HTTP/1.1\r\n\r\n",
        b"\x00\xff\xfe\r\n\r\n",
        b"\x16\x03\x01\x02\x00\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_a_bad_one(server: HealthCheckServer, said: bytes) -> None:
    assert answer_of(await say(server, said)).status == 400
    assert (await get(server, "/health/")).status == 200


@pytest.mark.parametrize("size", [healthport.LONGEST * 2, healthport.LONGEST * 100])
async def test_a_request_without_end_is_cut(server: HealthCheckServer, size: int) -> None:
    said = await say(server, b"GET /health/ HTTP/1.1\r\nx: " + b"y" * size)
    assert not said or answer_of(said).status == 431
    assert (await get(server, "/health/")).status == 200


async def test_who_leaves_without_a_word_is_no_trouble(server: HealthCheckServer) -> None:
    for said in (b"", b"GET /he"):
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(said)
        writer.close()
        await writer.wait_closed()
    assert (await get(server, "/health/")).status == 200
    await until(lambda: not server._open, "nothing is left of them")


async def test_who_says_nothing_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(healthport, "WAIT", 0.01)
    async with HealthCheckServer(lambda: WELL, port=0) as server:
        assert await say(server, b"GET /health/ HTTP/1.1\r\n") == b""


async def test_too_many_at_a_time_are_cut(
    server: HealthCheckServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healthport, "MOST", 2)
    held = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(2)]
    await until(lambda: len(server._open) == 2, "both are in")
    assert await say(server, b"GET /health/ HTTP/1.1\r\n\r\n") == b""
    for _, writer in held:
        writer.close()
    await until(lambda: not server._open, "both are out")
    assert (await get(server, "/health/")).status == 200


async def test_a_bug_in_what_is_told_is_500_and_nothing_more(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken() -> Any:
        raise ZeroDivisionError("secret")

    async with HealthCheckServer(broken, port=0) as server:
        said = await get(server, "/health/")
    assert said.status == 500
    assert b"secret" not in said.body
    assert "a bug in what the health port tells" in caplog.text


# -- life ------------------------------------------------------------------------------------------


async def test_it_is_started_and_stopped_by_hand_as_well() -> None:
    server = HealthCheckServer(lambda: WELL, port=0)
    for _ in range(2):
        await server.start()
        port = server.port
        with pytest.raises(RuntimeError):
            await server.start()
        assert (await get(server, "/health/")).status == 200
        await server.stop()
        await server.stop()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(RuntimeError):
        _ = server.port


async def test_a_stop_does_not_wait_for_who_is_connected(server: HealthCheckServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await until(lambda: server._open, "it is in")
    await server.stop()
    assert await _end_of(reader)
    writer.close()


async def _end_of(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True


async def test_it_listens_on_loopback_unless_told_otherwise() -> None:
    async with HealthCheckServer(lambda: WELL, port=0) as server:
        assert server._server is not None
        assert server._server.sockets[0].getsockname()[0] == "127.0.0.1"
