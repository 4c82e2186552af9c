"""The feed of what happens: numbers, audiences, what is kept, and when it leaves."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.server.offline import GatedStore, Peer, serving, turns, until

from tandemq.engine import users
from tandemq.model.outcome import Event, Remark
from tandemq.model.permission import Operation
from tandemq.server import feed as feeds
from tandemq.server.feed import KEPT, SOCKET, SSE, Full, Wants
from tandemq.server.runtime import Runtime
from tandemq.server.telling import as_message, as_raw, as_sse

ALL = Wants(as_sse)


class Reader:
    """Somebody who is told."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.writes.append(data)

    @property
    def told(self) -> bytes:
        return b"".join(self.writes)

    def names(self) -> list[str]:
        lines = self.told.decode().splitlines()
        return [line.removeprefix("event: ") for line in lines if line.startswith("event: ")]

    async def hears(self, count: int) -> list[str]:
        """Wait for so many events, and return their names."""
        await until(lambda: len(self.names()) >= count, f"{count} events")
        return self.names()


def joined(runtime: Runtime, wants: Wants = ALL) -> Reader:
    reader = Reader()
    runtime.feed.join(reader, wants)
    return reader


async def test_those_who_want_the_same_are_told_the_same_bytes_in_one_write() -> None:
    async with serving() as runtime:
        peer, first, second = Peer(runtime), joined(runtime), joined(runtime)
        peer.send_all({"cmd": "PUSH", "queue": "q", "data": n} for n in range(5))
        await first.hears(5)
        assert first.names()[:5] == ["job:pushed"] * 5
        assert len(first.writes) <= 2  # the counts of the queue come a little later
        assert first.writes[0] is second.writes[0]


async def test_the_more_look_on_the_longer_it_is_collected(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as runtime:
        loop, moments = runtime.loop, []
        peer, reader = Peer(runtime), joined(runtime)
        for _ in range(99):
            joined(runtime)
        await peer.push()
        await reader.hears(1)
        real: Callable[..., object] = loop.call_at

        def call_at(when: float, *rest: object, **named: object) -> object:
            moments.append(when - loop.time())
            return real(when, *rest, **named)

        monkeypatch.setattr(loop, "call_at", call_at)
        await peer.push()
        await reader.hears(2)
    assert any(0 < moment <= 100 * feeds.APIECE for moment in moments)


async def test_numbers_go_up_by_one_whatever_happens() -> None:
    async with serving() as runtime:
        peer, reader = Peer(runtime), joined(runtime)
        await peer.push()
        await peer.do("Pause", queue="q")
        names = await reader.hears(4)
        assert sorted(names) == ["job:paused", "job:pushed", "queue:counts", "queue:paused"]
        numbers = [int(line[4:]) for line in reader.told.splitlines() if line.startswith(b"id: ")]
        assert numbers == [1, 2, 3, 4]


async def test_what_was_missed_is_told_again_as_far_as_it_is_kept() -> None:
    async with serving() as runtime:
        feed, reader = runtime.feed, joined(runtime)
        for n in range(KEPT + 5):
            feed.look(Event("pushed", "q", f"j{n}", n, {}))
        feed.look(Remark("queue:paused", "q", 1, {"queue": "q"}))
        missed = feed.since(KEPT, ALL)
        assert missed.count(b"event: job:pushed") == 5
        assert b"queue:paused" not in missed
        assert feed.since(1, ALL).count(b"id: ") == KEPT
        assert feed.since(KEPT + 6, ALL) == b""
        assert feed.since(1, Wants(as_sse, queue="other")) == b""
        feed.leave(reader, ALL)


async def test_events_are_kept_for_a_while_when_nobody_looks_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(feeds, "LINGERS", 0.05)
    async with serving() as runtime:
        peer, feed, reader = Peer(runtime), runtime.feed, joined(runtime)
        await peer.push()
        await reader.hears(1)
        feed.leave(reader, ALL)
        await peer.push()
        await turns()
        assert len(feed) == 0
        assert feed.since(1, ALL).count(b"id: ") == 1
        await until(lambda: not runtime.engine.listening, "the end of it")
        assert feed.since(1, ALL) == b""
        again = joined(runtime)
        await peer.push()
        assert "job:pushed" in await again.hears(1)


async def test_who_joins_is_told_of_nothing_that_came_before() -> None:
    async with serving() as runtime:
        peer, first = Peer(runtime), joined(runtime)
        await peer.push()
        await turns()
        late = joined(runtime)
        await peer.do("Pause", queue="q")
        assert "job:pushed" in await first.hears(3)
        assert "job:pushed" not in await late.hears(2)


async def test_who_left_is_told_of_nothing_more() -> None:
    async with serving() as runtime:
        peer, gone, other = Peer(runtime), joined(runtime), joined(runtime)
        runtime.feed.leave(gone, ALL)
        runtime.feed.leave(gone, ALL)  # a second time nothing happens
        assert len(runtime.feed) == 1
        await peer.push()
        await other.hears(1)
        assert gone.writes == []


@pytest.mark.parametrize(
    ("wants", "names"),
    [
        (Wants(as_sse, queue="a"), ["job:pushed", "queue:paused"]),
        (Wants(as_sse, queue="b"), ["queue:paused"]),
        (Wants(as_sse, patterns=frozenset(["job:*"])), ["job:pushed"]),
        (Wants(as_sse, patterns=frozenset(["queue:paused"])), ["queue:paused"]),
        (Wants(as_sse, patterns=frozenset(["*"])), ["job:pushed", "queue:paused"]),
        (Wants(as_sse, patterns=frozenset()), []),
        (Wants(as_sse, user="granted"), ["job:pushed", "queue:paused"]),
        (Wants(as_sse, user="stranger"), []),
        (Wants(as_sse, user="nobody"), []),
    ],
)
async def test_everybody_is_told_of_what_it_wants_and_may_hear(
    wants: Wants, names: list[str]
) -> None:
    async with serving() as runtime:
        engine = runtime.engine
        users.create(engine, "root", "hash", 1, superuser=True)
        for name, pattern in (("granted", "a"), ("stranger", "A")):
            users.create(engine, name, "hash", 1)
            users.grant(engine, name, pattern, (Operation.SUBSCRIBE,))
        reader, control = joined(runtime, wants), joined(runtime)
        runtime.feed.look(Event("pushed", "a", "j", 1, {}))
        runtime.feed.look(Remark("queue:paused", "a", 1, {"queue": "a"}))
        runtime.feed.say("stats:snapshot", x=1)
        await control.hears(3)
        told = [name for name in reader.names() if name != "stats:snapshot"]
        assert told == names
        whole = wants.user is None and wants.patterns in (None, frozenset(["*"]))
        assert ("stats:snapshot" in reader.names()) == whole


async def test_each_form_is_told_of_its_own() -> None:
    async with serving() as runtime:
        raw, chosen = joined(runtime, Wants(as_raw)), joined(runtime, Wants(as_message))
        stream = joined(runtime)
        runtime.feed.say("health:status", as_message, ok=True)
        runtime.feed.comment(b":hi\n\n", as_sse)
        runtime.feed.look(Event("pushed", "a", "j", 1, {}))
        await stream.hears(1)
        assert b"health:status" in chosen.told
        assert b"health:status" not in stream.told
        assert stream.told.startswith(b":hi\n\n")
        assert raw.told.count(b"eventType") == 1
        assert b"health" not in raw.told


async def test_places_are_limited_by_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "MOST", 1)
    async with serving() as runtime:
        feed = runtime.feed
        with feed.place(SSE), feed.place(SOCKET):
            assert feed.open == {SSE: 1, SOCKET: 1}
            with pytest.raises(Full), feed.place(SSE):
                raise AssertionError("there was a place")
        with feed.place(SSE):
            assert feed.open == {SSE: 1, SOCKET: 0}


async def test_a_server_that_stops_tells_so_at_once() -> None:
    async with serving() as runtime:
        reader = joined(runtime)
        runtime.wind_down()
        assert reader.names() == ["server:shutdown"]


async def test_what_cannot_be_kept_is_not_told() -> None:
    store = GatedStore()
    async with serving(store) as runtime:
        peer, reader = Peer(runtime), joined(runtime)
        store.fail()
        assert not (await peer.ask("PUSH", queue="q", data=1))["ok"]
        assert await reader.hears(1) == ["storage:status"]
        assert b'"diskFull":true' in reader.told
        store.recover()
        await peer.do("Pause", queue="q")
        names = await reader.hears(4)
        assert sorted(names) == ["job:paused", "queue:paused", "storage:status", "storage:status"]
        assert reader.told.count(b'"diskFull":false') == 1


async def test_looking_on_hears_of_lost_workers_failed_logins_and_forgotten_letters() -> None:
    async with serving(tokens=("alpha",)) as runtime:
        reader, peer, other = joined(runtime), Peer(runtime), Peer(runtime)
        for each in (peer, other):
            await each.do("Auth", token="alpha")
        await peer.do("RegisterWorker", name="w", queues=["q"])
        peer.leave()
        assert not (await Peer(runtime).ask("Auth", token="wrong"))["ok"]
        await other.do("SetDlqConfig", queue="q", config={"maxAge": 1})
        id = await other.push()
        await other.pull(owner=None)
        await other.do("FAIL", id=id, error="x", unrecoverable=True)
        await other.do("CompactMemory")
        wanted = {"worker:disconnected", "auth:failed", "dlq:expired", "memory:compacted"}
        await until(lambda: wanted <= set(reader.names()), "all of them")
        assert b'"count":1' in reader.told
