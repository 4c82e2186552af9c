"""The short way of a usual job leaves behind what the long way does, in every history."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import Raw
from tests.engine.making import NOW, make_engine, pass_time, token_of, wait

from tandemq.commands.call import Call
from tandemq.commands.finish import Ack, ack_together
from tandemq.commands.pull import Pull, pull_together
from tandemq.engine import clock, consume, control, limits, publish, settle, usual, watches
from tandemq.engine.core import Engine
from tandemq.model.errors import NotLeased, WrongToken
from tandemq.model.message import DEFAULTS, Links, Message, Options, Repeat, State

KINDS: list[dict[str, Any]] = [
    {}, {}, {}, {"priority": 1}, {"priority": -1}, {"lifo": True}, {"ttl": 40_000}, {"delay": 20},
    {"timeout": 1_000}, {"group": "g"}, {"remove_on_complete": True}, {"created": NOW - 50},
]  # fmt: skip
KEPT = 3


class Shop:
    """An engine and its clock, and what its workers hold."""

    def __init__(self, *, short: bool) -> None:
        self.engine = make_engine(keep_done=KEPT, keep_results=2)
        self.short, self.now = short, NOW
        self.held: list[Message] = []

    def play(self, step: str, conn: int, n: int) -> Any:
        """Take one step; with all short ways shut, or open."""
        with pytest.MonkeyPatch.context() as patch:
            if not self.short:
                patch.setattr(usual, "lease", lambda *given: [])
                patch.setattr(usual, "complete", lambda *given: 0)
                patch.setattr(usual, "forget", lambda *given: False)
            found = getattr(self, step)(conn, n)
            told = self.engine.take()
        return found, len(told.effects), told.events, sorted(told.changed)

    def push(self, conn: int, n: int) -> None:
        for kind in (KINDS[n], KINDS[(n * conn) % len(KINDS)]):
            self.put("q" if n % 5 else "other", **kind)

    def put(
        self, queue: str, priority: int = 0, delay: int = 0, created: int | None = None, **more: Any
    ) -> Message:
        options = Options(**more) if more else DEFAULTS  # the usual ones are one object
        m = publish.draft(queue, "n", b"x", self.now, priority, delay, options, "", created)
        return publish.publish(self.engine, m, self.now)

    def child(self, conn: int, n: int) -> None:
        m = self.put("q")
        m.links = Links(parent=f"p{n}")
        m.repeat = Repeat(every=5) if n % 2 else None

    def pull(self, conn: int, n: int) -> list[int]:
        pulls = [Pull(queue="q", owner=n % 2 or None, lock_ttl=n * 900.0) for _ in range(n)]
        if not pulls:
            return []
        taken = [m for reply in pull_together(pulls, self.call(conn)) for m in reply.messages]
        self.held += taken
        return [m.seq for m in taken]

    def ack(self, conn: int, n: int) -> int:
        some, self.held = self.held[:n], self.held[n:]
        acks = [
            Ack(
                id=m.id,
                token=token_of(m) if m.lease else "late",
                result=Raw(b"\x05") if m.seq % 2 else Raw(b"\xd4\x00\x00"),
                remove_on_complete=m.seq % 7 == 0,
            )
            for m in (*some, *some[:1])  # one of them twice
        ]
        return len(ack_together(acks, self.call(conn))) if acks else 0

    def call(self, conn: int) -> Call:
        caller: Any = SimpleNamespace(id=conn)
        return Call(self.engine, caller, caller, self.now)

    def fail(self, conn: int, n: int) -> None:
        for m in self.held[:1]:
            with suppress(NotLeased, WrongToken):
                settle.fail(self.engine, m.id, token_of(m) if m.lease else None, self.now)

    def leave(self, conn: int, n: int) -> None:
        consume.disconnect(self.engine, conn, self.now)

    def later(self, conn: int, n: int) -> None:
        self.now += n * n * 100
        pass_time(self.engine, self.now)

    def waits(self, conn: int, n: int) -> None:
        wait(self.engine, "r", conn=conn, count=n or 1, until=self.now + 500)

    def listen(self, conn: int, n: int) -> None:
        self.engine.watched = self.engine.listening = n % 2 == 0

    def look(self, conn: int, n: int) -> None:
        for m in self.held[:1]:
            until = self.now + 1_000
            w = watches.Watch(conn, "w", m.id, until, True, lambda _, well: well)
            watches.wait(self.engine, w)

    def limit(self, conn: int, n: int) -> None:
        limits.set_concurrency(self.engine, "q", n or None, self.now)

    def pause(self, conn: int, n: int) -> None:
        control.configure(self.engine, self.engine.queue("q"), paused=n % 2 == 0)

    def log(self, conn: int, n: int) -> None:
        for m in self.held[:1]:
            self.engine.logs.add(self.engine, m.id, b"a line")


def message(m: Message) -> tuple[Any, ...]:
    lease = m.lease and (m.lease.token, m.lease.until, m.lease.span, m.lease.conn)
    life = (m.seq, m.id, m.state, m.born, m.attempts, m.leases, m.priority, m.created, m.due, m.gen)
    return (*life, m.options, lease, m.run, m.links)


def picture(engine: Engine) -> dict[str, Any]:
    """The state of an engine."""
    return {
        "messages": [message(m) for m in engine.messages.values()],
        "queues": {
            name: (q.counts, list(map(message, q.ready)), q.prioritized, len(q.ring))
            for name, q in engine.queues.items()
        },
        "members": {
            name: [[m.seq for m in q.members[state].values()] for state in State]
            for name, q in engine.queues.items()
        },
        "leased": {conn: list(held) for conn, held in engine.leased_by.items()},
        "kept": (engine.finished.count, engine.finished.results, engine.finished.size_bytes),
        "counters": engine.counters,
        "pressure": engine.pressure.used,
        "logs": engine.logs.ids(),
        "tallies": {name: engine.tallies.of(name).completed.total for name in engine.queues},
        "wakes": clock.next_wake(engine),
    }


STEPS = st.tuples(
    st.sampled_from(
        ["push"] * 6 + ["pull"] * 5 + ["ack"] * 4 + ["later"] * 2
        + ["child", "fail", "leave", "waits", "listen", "look", "limit", "pause", "log"]
    ),
    st.integers(1, 3),
    st.integers(0, len(KINDS) - 1),
)  # fmt: skip


ONE, SOME = ("pull", 1, 1), [("push", 1, 1)] * 4
WAITED = [("limit", 1, 1), ("waits", 2, 1), ("push", 1, 1)]


@settings(max_examples=200)
@example([*SOME[:1], ("pull", 1, 2), *WAITED, ("ack", 1, 1), ("ack", 1, 1)])
@example([*SOME, ONE, ("look", 2, 1), ("ack", 1, 1)])
@example([*SOME, ("listen", 1, 2), ("pull", 1, 2), ("ack", 1, 2)])
@example([("child", 1, 1), ONE, ("ack", 1, 1)])
@example([*SOME, ("pull", 1, 8), ("log", 1, 1), ("ack", 1, 5)])
@example([*SOME, ("push", 1, 9), ("pull", 1, 2), ("pull", 1, 8)])
@given(st.lists(STEPS, max_size=40))
def test_both_ways_lead_to_the_same_end(steps: Any) -> None:
    shops = Shop(short=True), Shop(short=False)
    for step in steps:
        short, long = ((shop.play(*step), picture(shop.engine)) for shop in shops)
        assert short == long, step


def test_usual_jobs_take_the_short_way(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: dict[str, int] = dict.fromkeys(("lease", "complete", "forget"), 0)

    def spy(name: str, real: Any) -> None:
        def spied(*given: Any) -> Any:
            found = real(*given)
            counts[name] += len(found) if isinstance(found, list) else found
            return found

        monkeypatch.setattr(usual, name, spied)

    for name in counts:
        spy(name, getattr(usual, name))
    shop = Shop(short=True)
    for _ in range(4):
        shop.push(1, 1)
    shop.pull(1, 8)
    assert shop.ack(1, 7) == 7  # but the seventh is to be removed
    shop.engine.take()
    assert counts == {"lease": 8, "complete": 6, "forget": 3}
