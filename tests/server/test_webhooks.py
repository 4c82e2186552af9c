"""Deliveries over HTTP to a real receiver, and where they must not go."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple

import pytest
from tests.server.offline import GatedStore, Peer, serving, turns, until

from tandemq.server import webhooks
from tandemq.server.runtime import Runtime

HERE = "hook.test"  # resolved by the tests alone
OPEN = {"webhook_allow": ("127.0.0.0/8",), "webhook_retry_delay_ms": 1}


class Hit(NamedTuple):
    """One request that a receiver got."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A small HTTP server that answers with what it was told to, then with 200."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.answers: list[bytes] = []
        self.silent = False
        self._over = asyncio.Event()
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                method, path, _ = head[0].split(" ")
                fields = dict(line.split(": ", 1) for line in head[1:] if line)
                headers = {name.lower(): value for name, value in fields.items()}
                body = await reader.readexactly(int(headers.get("content-length", 0)))
                self.hits.append(Hit(method, path, headers, body))
                if self.silent:
                    await self._over.wait()
                    return
                answer = self.answers.pop(0) if self.answers else b"200 OK"
                writer.write(b"HTTP/1.1 " + answer + b"\r\nContent-Length: 0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def close(self) -> None:
        self._over.set()
        for writer in self._writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()


@asynccontextmanager
async def receiving() -> AsyncIterator[tuple[Receiver, str]]:
    """A receiver and its URL."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        try:
            yield receiver, f"http://{HERE}:{port}"
        finally:
            server.close()
            await receiver.close()


@pytest.fixture(autouse=True)
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """What names stand for in these tests; no resolver is asked."""
    found = {HERE: ["127.0.0.1"]}

    async def addresses(self: Any, host: str, port: int) -> list[str]:
        return found[host]

    monkeypatch.setattr("tandemq.server.outward.Outward._addresses", addresses)
    return found


async def add(peer: Peer, url: str, *events: str, **fields: Any) -> str:
    answer = await peer.do("AddWebhook", url=url, events=events or ("job.pushed",), **fields)
    return str(answer["data"]["webhookId"])


async def figures(peer: Peer) -> list[tuple[int, int]]:
    """Successes and failures of every webhook."""
    shown = (await peer.do("ListWebhooks"))["data"]["webhooks"]
    return [(hook["successCount"], hook["failureCount"]) for hook in shown]


async def ended(runtime: Runtime) -> None:
    hooks = runtime.engine.webhooks
    await until(lambda: any(hook.last for hook in hooks.listed()), "the end of a delivery")


async def test_an_event_is_posted_as_signed_json() -> None:
    async with serving(**OPEN) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url + "/hook?x=1", secret="shh")
        id = await peer.push()
        await ended(runtime)
        [hit] = receiver.hits
        assert (hit.method, hit.path) == ("POST", "/hook?x=1")
        assert json.loads(hit.body)["jobId"] == id
        assert hit.headers["content-type"] == "application/json"
        assert hit.headers["x-webhook-event"] == "job.pushed"
        assert len(hit.headers["x-webhook-timestamp"]) == 13
        assert hit.headers["host"].startswith(HERE + ":")
        signature = hmac.new(b"shh", hit.body, hashlib.sha256).hexdigest()
        assert hit.headers["x-webhook-signature"] == signature
        assert await figures(peer) == [(1, 0)]


async def test_without_a_secret_nothing_is_signed_and_a_login_is_sent() -> None:
    async with serving(**OPEN) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url.replace("//", "//user:pw@"))
        await peer.push()
        await ended(runtime)
        [hit] = receiver.hits
        assert "x-webhook-signature" not in hit.headers
        assert hit.headers["authorization"] == "Basic dXNlcjpwdw=="


async def test_what_is_refused_is_tried_again_until_it_is_taken() -> None:
    async with serving(**OPEN) as runtime, receiving() as (receiver, url):
        receiver.answers = [b"500 No", b"404 No"]
        peer = Peer(runtime)
        await add(peer, url)
        await peer.push()
        await ended(runtime)
        assert len(receiver.hits) == 3
        assert len({hit.body for hit in receiver.hits}) == 1
        assert await figures(peer) == [(1, 0)]


async def test_after_the_last_try_it_is_given_up() -> None:
    async with serving(**OPEN, webhook_max_retries=2) as runtime, receiving() as (receiver, url):
        receiver.answers = [b"500 No"] * 2
        peer = Peer(runtime)
        await add(peer, url)
        await peer.push()
        await ended(runtime)
        assert len(receiver.hits) == 2
        assert await figures(peer) == [(0, 1)]


async def test_a_target_that_does_not_answer_is_left_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhooks, "TIMEOUT", 0.02)
    async with serving(**OPEN, webhook_max_retries=1) as runtime, receiving() as (receiver, url):
        receiver.silent = True
        peer = Peer(runtime)
        await add(peer, url)
        await peer.push()
        await ended(runtime)
        assert await figures(peer) == [(0, 1)]


async def test_a_redirect_is_followed_with_its_body_or_without() -> None:
    async with serving(**OPEN) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url)
        moved = b"307 Moved\r\nLocation: /second"
        receiver.answers = [moved, b"303 See\r\nLocation: " + url.encode() + b"/third"]
        await peer.push()
        await ended(runtime)
        told = [(hit.method, hit.path, bool(hit.body)) for hit in receiver.hits]
        assert told == [("POST", "/", True), ("POST", "/second", True), ("GET", "/third", False)]


@pytest.mark.parametrize("where", [b"http://127.0.0.1/", b"http://inside.test/", b"file:///x"])
async def test_a_redirect_that_leads_inward_is_not_followed(
    where: bytes, names: dict[str, list[str]]
) -> None:
    names["inside.test"] = ["10.0.0.1"]
    async with serving(**OPEN, webhook_max_retries=1) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url)
        receiver.answers = [b"307 Moved\r\nLocation: " + where]
        await peer.push()
        await ended(runtime)
        assert len(receiver.hits) == 1
        assert await figures(peer) == [(0, 1)]


async def test_redirects_in_a_circle_come_to_an_end() -> None:
    async with serving(**OPEN, webhook_max_retries=1) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url)
        receiver.answers = [b"308 Moved\r\nLocation: /"] * 50
        await peer.push()
        await ended(runtime)
        assert len(receiver.hits) == webhooks.REDIRECTS + 1


async def test_a_name_that_leads_inward_is_not_connected_to() -> None:
    async with serving(webhook_max_retries=1) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        await add(peer, url)
        await peer.push()
        await ended(runtime)
        assert receiver.hits == []
        assert await figures(peer) == [(0, 1)]


async def test_a_webhook_that_was_removed_gets_nothing_more() -> None:
    async with serving(**OPEN) as runtime, receiving() as (receiver, url):
        peer = Peer(runtime)
        id = await add(peer, url)
        await peer.do("RemoveWebhook", webhookId=id)
        await peer.push()
        await turns(20)
        assert receiver.hits == []
        assert not runtime.engine.listening


async def test_a_slow_target_delays_only_itself_and_its_line_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhooks, "GRACE", 0.01)
    settings = {**OPEN, "webhook_max_waiting": 30}
    async with serving(**settings) as runtime, receiving() as (slow, a), receiving() as (quick, b):
        slow.silent = True
        peer = Peer(runtime)
        await add(peer, a)
        await add(peer, b, queue="few")
        for _ in range(20):
            await peer.push("many")
        await peer.push("few")
        await until(lambda: len(quick.hits) == 1, "the quick delivery")
        assert len(slow.hits) <= webhooks.SENDERS
        deliveries = runtime.observers.deliveries
        assert deliveries.waiting <= 3
        assert deliveries.dropped >= 20 - webhooks.SENDERS - 3


async def test_what_deliveries_hold_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "GRACE", 0.01)
    async with serving(**OPEN, webhook_max_bytes=5_000) as runtime, receiving() as (slow, url):
        slow.silent = True
        peer = Peer(runtime)
        id = await add(peer, url, "job.completed")
        deliveries = runtime.observers.deliveries
        for size in (9_000, *[1_000] * 10):  # the first one may be larger than all
            job = await peer.push()
            token = (await peer.pull())["token"]
            await peer.do("ACK", id=job, token=token, result="x" * size)
            await turns()
            assert deliveries.held_bytes < 9_100
        assert deliveries.dropped == 10
        await peer.do("RemoveWebhook", webhookId=id)


async def test_registrations_survive_a_restart_and_go_on_delivering() -> None:
    store = GatedStore()
    async with receiving() as (receiver, url):
        async with serving(store, **OPEN) as runtime:
            await add(Peer(runtime), url, secret="s")
        async with serving(store, **OPEN) as runtime:
            peer = Peer(runtime)
            assert await figures(peer) == [(0, 0)]
            await peer.push()
            await ended(runtime)
            assert "x-webhook-signature" in receiver.hits[0].headers


async def test_a_missing_client_is_told_of_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(webhooks, "find_spec", lambda name: None)
    async with serving(**OPEN) as runtime:
        peer = Peer(runtime)
        await add(peer, f"http://{HERE}/")
        assert "pip install 'tandemq[webhooks]'" in caplog.text
        await peer.push()
        await ended(runtime)
        assert await figures(peer) == [(0, 1)]
