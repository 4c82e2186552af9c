"""Any history of the engine, against its promises and against a server written for clarity.

`make histories` plays 2,500 histories of 50 steps; a failure is printed as the steps that lead to
it. The last part shows that the machine would notice: engines with a fault do not get through.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.histories.world import World
from tests.support.server import figure

from tandemq.engine import clock, consume, recovery, settle
from tandemq.engine.core import Engine
from tandemq.engine.ready import Ready
from tandemq.engine.timers import Timers
from tandemq.model.message import DEFAULTS, Message, Options, State

ROOT = Path(__file__).parents[2]
QUEUES = st.sampled_from("aaab")
CONNS = st.integers(1, 2)
NAMES = st.sampled_from(["", "", "x", "y"])
PICKS = st.integers(0, 7)
RARELY = st.sampled_from([False, False, False, True])
SPANS = st.sampled_from([None, None, 1, 1_000, 30_000])
JUMPS = st.sampled_from([0, 1, 200, 800, 2_000, 5_001, 10_000, 35_000, 90_000])
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


class History(RuleBasedStateMachine):
    """What clients, operators, time and disks may do."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()

    @initialize(several=st.integers(0, 4), taken=st.integers(0, 3), span=SPANS)
    def begin(self, several, taken, span) -> None:
        """Begin in the middle of some work, not in an empty server."""
        for _ in range(several):
            self.world.publish()
        if taken:
            self.world.take("a", 1, taken, span)

    def leased(self) -> list[tuple[str, str | None]]:
        return [(m.id, m.lease.token) for m in self.world.engine.messages.values() if m.lease]

    def held(self, n: int) -> tuple[str, str | None]:
        """A leased message and its token."""
        held = self.leased()
        return held[n % len(held)]

    # -- publishing and pulling

    @rule(
        queue=QUEUES,
        id=NAMES,
        size=st.sampled_from([1, 1, 90]),
        priority=st.integers(-1, 1),
        delay=st.sampled_from([0, 0, 500, 2_000]),
        age=st.sampled_from([0, 0, 0, 5_000, -300]),
        options=OPTIONS,
    )
    def publish(self, **what) -> None:
        self.world.publish(**what)

    @rule(lifo=st.booleans(), backoff=st.sampled_from([0, 700]))
    def publish_plainly(self, lifo, backoff) -> None:
        self.world.publish(options=Options(lifo=lifo, backoff=backoff, backoff_type="fixed"))

    @rule(
        queue=QUEUES,
        conn=CONNS,
        count=st.sampled_from([1, 1, 2, 5]),
        span=SPANS,
        detach=st.sampled_from([False, False, False, True]),
        wait=st.sampled_from([0, 1, 800, 10_000]),
    )
    def take(self, **what) -> None:
        self.world.take(**what)

    @rule(conn=CONNS, wait=st.sampled_from([0, 60_000]))
    def take_one_with_a_token(self, conn, wait) -> None:
        self.world.take("a", conn, 1, 30_000, wait=wait)

    # -- settling

    @precondition(leased)
    @rule(n=PICKS, result=st.sampled_from([None, b"", b"r" * 40]), remove=RARELY)
    def ack(self, n, result, remove) -> None:
        assert self.world.ack(*self.held(n), result, remove) == "held"

    @precondition(leased)
    @rule(n=PICKS, unrecoverable=RARELY, remove=RARELY)
    def fail(self, n, unrecoverable, remove) -> None:
        assert self.world.fail(*self.held(n), unrecoverable, remove) == "held"

    @precondition(leased)
    @rule(n=PICKS, named=st.booleans(), span=st.sampled_from([None, 1, 900, 60_000]))
    def extend(self, n, named, span) -> None:
        id, token = self.held(n)
        self.world.extend(id, token if named else None, span)

    @precondition(leased)
    @rule(n=PICKS, named=st.booleans())
    def heartbeat(self, n, named) -> None:
        id, token = self.held(n)
        self.world.heartbeat(id, token if named else None)

    @precondition(lambda self: self.world.tokens)
    @rule(n=PICKS, k=PICKS, verb=st.sampled_from(["ack", "fail", "extend", "heartbeat"]))
    def come_with_some_token(self, n, k, verb) -> None:
        """An old one, somebody else's, or the right one by chance."""
        ids, tokens = self.world.ids, self.world.tokens
        getattr(self.world, verb)(ids[-1 - n % len(ids)], tokens[-1 - k % len(tokens)])

    @precondition(lambda self: self.world.ids)
    @rule(
        n=PICKS, token=st.sampled_from([None, "", "wrong"]), verb=st.sampled_from(["ack", "fail"])
    )
    def come_with_a_bad_token(self, n, token, verb) -> None:
        ids = self.world.ids
        getattr(self.world, verb)(ids[-1 - n % len(ids)], token)

    # -- connections, operators, time

    @rule(conn=CONNS)
    def disconnect(self, conn) -> None:
        self.world.disconnect(conn)

    @rule(queue=QUEUES)
    def pause_or_resume(self, queue) -> None:
        (self.world.resume if queue in self.world.plain.paused else self.world.pause)(queue)

    @rule(ms=JUMPS)
    def time_passes(self, ms) -> None:
        self.world.later(ms)

    @precondition(lambda self: list(self.world.moments()))
    @rule(late=st.sampled_from([-1, 0, 0, 1]))
    def time_passes_until_something_is_due(self, late) -> None:
        self.world.later(max(0, min(self.world.moments()) - self.world.now + late))

    @rule(step=st.sampled_from([-3_600_000, -2_500, 2_500, 3_600_000]))
    def somebody_sets_the_clock(self, step) -> None:
        self.world.set_clock(step)

    # -- the store

    @rule()
    def write(self) -> None:
        """Let the batch in the air land, or send one off."""
        (self.world.land if self.world.flight else self.world.fly)()

    @rule(end=st.sampled_from(["commit", "lose_batch", "lose_batch", "crash", "stop_and_start"]))
    def end_something(self, end) -> None:
        getattr(self.world, end)()

    @invariant()
    def all_promises_hold(self) -> None:
        self.world.check()


PACE = settings(
    max_examples=figure("TANDEMQ_HISTORIES", short=300, long=2_500),
    stateful_step_count=figure("TANDEMQ_HISTORY_STEPS", short=30, long=50),
    derandomize=bool(os.environ.get("CI")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)

TestHistory = History.TestCase
TestHistory.settings = PACE


# -- the machine itself ----------------------------------------------------------------------------


def leases_keep_their_token(patch: pytest.MonkeyPatch) -> None:
    """A message that is handed out again gets the token it had."""
    lease, first = Engine.lease, {}

    def reusing(engine, m, conn, span, now):
        lease(engine, m, conn, span, now)
        if m.lease.token is not None:
            m.lease.token = first.setdefault(m.id, m.lease.token)

    patch.setattr(Engine, "lease", reusing)


def nobody_is_told_of_what_comes_back(patch: pytest.MonkeyPatch) -> None:
    """Messages become due without a look at who waits for them."""

    def shifted_only(engine, m, now):
        if m.state is State.DELAYED and m.due <= now:
            engine.shift(m, "due", State.READY)
        else:
            looked_after(engine, m, now)

    looked_after = clock.ON_TIME[Message]
    patch.setitem(clock.ON_TIME, Message, shifted_only)


def any_token_will_do(patch: pytest.MonkeyPatch) -> None:
    """Whoever knows the id may fail the message."""
    claim = settle.claim

    def trusting(engine, id, token):
        m = engine.messages.get(id)
        return (m, settle.HELD) if m is not None and m.lease else claim(engine, id, token)

    patch.setattr(settle, "claim", trusting)


def renewals_are_not_written(patch: pytest.MonkeyPatch) -> None:
    """A heartbeat changes the message in memory only."""
    patch.setattr(Engine, "touched", lambda *_: None)


def the_alarm_is_late(patch: pytest.MonkeyPatch) -> None:
    """Timers ring one millisecond after the deadline."""
    set_timer = Timers.set
    patch.setattr(Timers, "set", lambda timers, who, when: set_timer(timers, who, when + 1))


def one_attempt_too_many(patch: pytest.MonkeyPatch) -> None:
    """The budget is looked at before the attempt is charged."""
    end_attempt = settle.end_attempt

    def generous(engine, m, now, error, **how):
        m.attempts -= m.attempts == m.options.max_attempts - 1 and not how.get("final")
        end_attempt(engine, m, now, error, **how)

    patch.setattr(settle, "end_attempt", generous)


def interruptions_cost_an_attempt(patch: pytest.MonkeyPatch) -> None:
    """A broken connection is charged like a failure."""
    release = consume.release

    def charging(engine, m, now):
        m.attempts += 1
        release(engine, m, now)

    patch.setattr(consume, "release", charging)


def the_newest_are_not_first(patch: pytest.MonkeyPatch) -> None:
    """Messages that asked for lifo stand with all others."""
    push = Ready.push

    def level(ready, m):
        options, m.options = m.options, DEFAULTS
        push(ready, m)
        m.options = options

    patch.setattr(Ready, "push", level)


def undone_messages_stay(patch: pytest.MonkeyPatch) -> None:
    """What a lost batch had made is still there afterwards."""
    patch.setattr(recovery, "roll_back", lambda engine, touched, stored, now: None)


@pytest.mark.parametrize(
    "fault",
    [
        leases_keep_their_token,
        nobody_is_told_of_what_comes_back,
        any_token_will_do,
        renewals_are_not_written,
        the_alarm_is_late,
        one_attempt_too_many,
        interruptions_cost_an_attempt,
        the_newest_are_not_first,
        undone_messages_stay,
    ],
)
def test_the_machine_finds(fault: Callable[[pytest.MonkeyPatch], None], monkeypatch) -> None:
    fault(monkeypatch)
    quick = settings(
        max_examples=2_000,
        stateful_step_count=30,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        deadline=None,
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    with pytest.raises(AssertionError):
        run_state_machine_as_test(History, settings=quick)


# -- equal histories -------------------------------------------------------------------------------

SEED = """
from tests.histories.test_engine_history import played
print(played(7))
"""


def played(seed: int, steps: int = 400) -> str:
    """Play a history by the dice and return a digest of all that was said and changed."""
    dice = Random(seed)
    world = World()
    names = ["", "", "x", "y"]
    for _ in range(steps):
        held = [(m.id, m.lease.token) for m in world.engine.messages.values() if m.lease]
        match dice.randrange(10):
            case 0 | 1 | 2:
                world.publish(
                    dice.choice("ab"),
                    id=dice.choice(names),
                    priority=dice.randrange(2),
                    delay=dice.choice([0, 700]),
                    options=Options(backoff=dice.choice([0, 500]), lifo=dice.random() < 0.3),
                )
            case 3 | 4:
                span, wait = dice.choice([None, 900]), dice.choice([0, 2_000])
                world.take(dice.choice("ab"), dice.randrange(3), 2, span, wait=wait)
            case 5 if held:
                world.ack(*dice.choice(held))
            case 6 if held:
                world.fail(*dice.choice(held))
            case 7:
                world.disconnect(dice.randrange(3))
            case 8:
                dice.choice([world.commit, world.lose_batch, world.crash])()
            case _:
                world.later(dice.choice([1, 500, 6_000]))
    return sha256(repr(world.log).encode()).hexdigest()


def test_equal_histories_have_equal_outcomes() -> None:
    assert played(1) == played(1)
    assert played(1) != played(2)


def test_outcomes_do_not_depend_on_the_order_of_a_set() -> None:
    """Each process hashes strings its own way."""
    ends = {
        subprocess.run(
            [sys.executable, "-c", SEED],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "123"
    }
    assert len(ends) == 1
