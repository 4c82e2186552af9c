"""The short way of a letter leaves behind what the long way does, in every history."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.office import A, B, C, Office

from tandemq.engine import control, straight
from tandemq.engine.fanout import Copy
from tandemq.model.broker import Mode, Overflow
from tandemq.model.message import Message, State

CONNS, NAMES = (A, B, C), [f"m{n}" for n in range(4)]
WINDOW = 2


class LongWay(Office):
    """An office in which no letter goes straight."""

    def post(self, *ids: str, **more: Any) -> list[str]:
        self.detour()
        return super().post(*ids, **more)

    def ack(self, conn: int, *ids: str) -> list[bool]:
        self.detour()
        return super().ack(conn, *ids)

    def detour(self) -> None:
        for q in self.engine.queues.values():
            q.straight = False


def play(office: Office, step: str, conn: int, name: str, n: int) -> Any:
    """Take one step, and return what came of it."""
    if step == "post":
        return office.post(name, level=n, headers={"k": "v"} if n else None)
    if step == "ack":
        return office.ack(conn, name, NAMES[n])
    if step == "nack":
        return office.nack(conn, name, n * 1_000)
    if step == "stall":
        return office.stall(conn, n % 2 == 0)
    if step == "later":
        return office.later(n * 15)
    if step == "pause":
        return control.configure(office.engine, office.engine.queue("q"), paused=n < 2)
    return {
        "subscribe": lambda: office.subscribe(conn, window=WINDOW),
        "unsubscribe": lambda: office.unsubscribe(conn),
        "leave": lambda: office.leave(conn, broken=n < 2),
    }[step]()


def what(held: Message | Copy) -> tuple[Any, ...]:
    """Everything about what somebody holds, but ids, which differ from engine to engine."""
    if isinstance(held, Copy):
        return (held.fanout.origin.seq, held.until, held.out, held.attempts)
    return message(held)


def message(m: Message) -> tuple[Any, ...]:
    lease = m.lease and (m.lease.until, m.lease.span, m.lease.conn, m.lease.delivered)
    run = m.run and (m.run.started, m.run.finished, m.run.interruptions, m.run.history)
    life = (m.seq, m.state, m.born, m.attempts, m.leases, m.priority, m.created, m.due, m.options)
    return (*life, lease, run, m.letter, m.body)


def picture(office: Office) -> dict[str, Any]:
    """The state of an engine."""
    engine = office.engine
    for q in engine.queues.values():
        assert q.readers() == [sub.conn for sub in q.subscriptions if not sub.stalled]
    return {
        "messages": sorted(message(m) for m in engine.messages.values()),
        "changed": sorted(m.seq for m in engine.changed.values() if m.state is not State.GONE),
        "queues": {
            name: (q.counts, list(map(message, q.ready)), [(c.conn, c.willing) for c in q.ring])
            for name, q in engine.queues.items()
        },
        "holders": {
            conn: [
                [what(held) for held in who.everything()],
                [
                    (sub.queue, sub.held, sub.held_bytes, list(map(what, sub.mailbox)))
                    for sub in who.subscriptions.values()
                ],
            ]
            for conn, who in engine.subscribers.items()
        },
        "counters": engine.counters,
        "pressure": engine.pressure.used,
        "tallies": {name: engine.tallies.of(name).completed.total for name in engine.queues},
    }


STEPS = st.tuples(
    st.sampled_from(
        ["post"] * 5 + ["ack"] * 4 + ["subscribe"] * 2
        + ["nack", "stall", "later", "unsubscribe", "leave", "pause"]
    ),
    st.sampled_from(CONNS),
    st.sampled_from(NAMES),
    st.integers(0, 3),
)  # fmt: skip


@pytest.mark.parametrize("mode", Mode)
@given(
    overflow=st.sampled_from(Overflow),
    dead_letters=st.booleans(),
    ttl=st.sampled_from([None, 20_000]),
    steps=st.lists(STEPS, max_size=30),
)
def test_both_ways_lead_to_the_same_end(mode, overflow, dead_letters, ttl, steps) -> None:
    offices = Office(), LongWay()
    for office in offices:
        office.make(
            mode=mode, overflow=overflow, dead_letters=dead_letters, ttl=ttl, max_size=2,
            max_attempts=2,
        )  # fmt: skip
        office.subscribe(A, window=WINDOW)
    for step in steps:
        short, long = ((play(office, *step), office.told(), picture(office)) for office in offices)
        assert short == long, step


@pytest.mark.parametrize("mode", Mode)
def test_most_letters_go_straight(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    took: list[bool] = []
    post = straight.post
    monkeypatch.setattr(straight, "post", lambda *a: took.append(post(*a)) or took[-1])
    office = Office()
    office.make(mode=mode)
    office.post("nobody wants it")
    office.subscribe(A, B)
    assert office.told()
    office.post("m1", "m2")
    office.ack(A, "m1", "m2")
    office.post("m3")
    assert took == [False, True, True, True]
    assert len(office.told()) == (6 if mode in (Mode.FAN_OUT_WITH_ACK, Mode(2)) else 3)
