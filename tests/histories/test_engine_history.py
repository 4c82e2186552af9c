"""Any history of the engine, against its promises and against a server written for clarity.

`make histories` plays 2,500 histories of 50 steps; a failure is printed as the steps that lead to
it. The last part shows that the machine would notice: engines with a fault do not get through.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.histories.world import World
from tests.support.server import figure

from tandemq.model.message import Options

QUEUES = st.sampled_from("ab")
CONNS = st.integers(1, 3)
NAMES = st.sampled_from(["", "", "x", "y"])
PICKS = st.integers(0, 40)
SPANS = st.sampled_from([None, None, 1, 1_000, 30_000])
JUMPS = st.sampled_from([0, 1, 200, 799, 800, 801, 1_000, 2_000, 5_001, 10_000, 35_000, 90_000])
OPTIONS = st.builds(
    Options,
    max_attempts=st.integers(1, 4),
    backoff=st.sampled_from([0, 700, 1_000]),
    backoff_type=st.sampled_from([None, "fixed", "exponential"]),
    ttl=st.sampled_from([None, None, None, 0, 900.5, 6_000]),
    timeout=st.sampled_from([None, None, None, 0, 1, 4_000]),
    lifo=st.booleans(),
    durable=st.booleans(),
    remove_on_complete=st.sampled_from([False, False, True]),
    remove_on_fail=st.sampled_from([False, False, True]),
    stall_timeout=st.sampled_from([None, None, 0, 2_500]),
)
PLAIN = st.just(Options(backoff=0))


class History(RuleBasedStateMachine):
    """What clients, operators, time and disks may do."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    def pick(self, kind: list[str], n: int) -> str | None:
        return kind[-1 - n % len(kind)] if kind else None

    def held(self, n: int) -> tuple[str, str | None] | None:
        """A leased message and its token."""
        held = [(m.id, m.lease.token) for m in self.world.engine.messages.values() if m.lease]
        return held[n % len(held)] if held else None

    # -- publishing and pulling

    @rule(
        queue=QUEUES,
        id=NAMES,
        size=st.sampled_from([1, 1, 90]),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([0, 0, 500, 2_000]),
        age=st.sampled_from([0, 0, 0, 5_000, -300]),
        options=OPTIONS | PLAIN,
    )
    def publish(self, **what) -> None:
        self.world.publish(**what)

    @rule(
        queue=QUEUES,
        conn=CONNS,
        count=st.sampled_from([1, 1, 2, 5]),
        span=SPANS,
        detach=st.sampled_from([False, False, True]),
        wait=st.sampled_from([0, 1, 800, 10_000]),
    )
    def take(self, **what) -> None:
        self.world.take(**what)

    # -- settling

    @rule(n=PICKS, result=st.sampled_from([None, b"", b"r" * 40]), remove=st.sampled_from([0, 0, 1]))
    def ack(self, n, result, remove) -> None:
        if held := self.held(n):
            assert self.world.ack(*held, result, bool(remove)) == "held"

    @rule(n=PICKS, unrecoverable=st.sampled_from([0, 0, 0, 1]), remove=st.sampled_from([0, 0, 1]))
    def fail(self, n, unrecoverable, remove) -> None:
        if held := self.held(n):
            assert self.world.fail(*held, bool(unrecoverable), bool(remove)) == "held"

    @rule(n=PICKS, k=PICKS, verb=st.sampled_from(["ack", "fail", "extend", "heartbeat"]))
    def come_with_some_token(self, n, k, verb) -> None:
        """An old one, somebody else's, or the right one by chance."""
        id, token = self.pick(self.world.ids, n), self.pick(self.world.tokens, k)
        getattr(self.world, verb)(id or "nobody", token or "none")

    @rule(n=PICKS, token=st.sampled_from([None, "", "wrong"]), verb=st.sampled_from(["ack", "fail"]))
    def come_with_a_bad_token(self, n, token, verb) -> None:
        getattr(self.world, verb)(self.pick(self.world.ids, n) or "nobody", token)

    @rule(n=PICKS, named=st.booleans(), span=st.sampled_from([None, 1, 900, 60_000]))
    def extend(self, n, named, span) -> None:
        if held := self.held(n):
            self.world.extend(held[0], held[1] if named else None, span)

    @rule(n=PICKS, named=st.booleans())
    def heartbeat(self, n, named) -> None:
        if held := self.held(n):
            self.world.heartbeat(held[0], held[1] if named else None)

    # -- connections, operators, time

    @rule(conn=CONNS)
    def disconnect(self, conn) -> None:
        self.world.disconnect(conn)

    @rule(queue=QUEUES)
    def pause(self, queue) -> None:
        self.world.pause(queue)

    @rule(queue=QUEUES)
    def resume(self, queue) -> None:
        self.world.resume(queue)

    @rule(ms=JUMPS)
    def time_passes(self, ms) -> None:
        self.world.later(ms)

    @rule(step=st.sampled_from([-3_600_000, -2_500, 2_500, 3_600_000]))
    def somebody_sets_the_clock(self, step) -> None:
        self.world.set_clock(step)

    # -- the store

    @rule()
    def commit(self) -> None:
        self.world.commit()

    @precondition(lambda self: self.world.flight is None)
    @rule()
    def fly(self) -> None:
        self.world.fly()

    @precondition(lambda self: self.world.flight is not None)
    @rule()
    def land(self) -> None:
        self.world.land()

    @rule()
    def lose_batch(self) -> None:
        self.world.lose_batch()

    @rule()
    def crash(self) -> None:
        self.world.crash()

    @rule()
    def stop_and_start(self) -> None:
        self.world.stop_and_start()

    @invariant()
    def all_promises_hold(self) -> None:
        self.world.check()


PACE = settings(
    max_examples=figure("TANDEMQ_HISTORIES", short=100, long=2_500),
    stateful_step_count=figure("TANDEMQ_HISTORY_STEPS", short=30, long=50),
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestHistory = History.TestCase
TestHistory.settings = PACE
