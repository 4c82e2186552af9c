"""What is done to many messages of a queue at once."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, hold, make_engine, pass_time, put, where

from tandemq.engine import bulk, control, settle, sweeps
from tandemq.engine.bulk import Wanted
from tandemq.engine.core import Engine
from tandemq.engine.sweeps import Sweep
from tandemq.model.message import State
from tandemq.model.policy import Burial

READY, LEASED, DONE, DEAD = State.READY, State.LEASED, State.DONE, State.DEAD


def go(engine: Engine, sweep: Sweep, now: int = NOW) -> int:
    """Let a sweep run to its end; return how many counted."""
    while not sweep.done and not sweeps.begin(engine, sweep, now):
        pass_time(engine, now + 1_000)
    return sweep.count


def full(engine: Engine, now: int = NOW) -> None:
    """One message in each state: done, dead, leased, ready and delayed."""
    put(engine, "done", now=now)
    hold(engine, span=None, now=now)
    settle.ack(engine, "done", None, now)
    put(engine, "dead", max_attempts=1, now=now)
    hold(engine, span=None, now=now)
    settle.fail(engine, "dead", None, now)
    put(engine, "leased", now=now)
    hold(engine, now=now)
    put(engine, "ready", now=now)
    put(engine, "first", priority=1, now=now)
    put(engine, "late", delay=60_000, now=now)


@pytest.fixture(params=[sweeps.SLICE, 1], ids=["whole", "sliced"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setattr(sweeps, "SLICE", request.param)
    return make_engine()


def test_draining_takes_what_is_ready_or_delayed(engine: Engine) -> None:
    full(engine)
    assert go(engine, bulk.drain(engine, "q")) == 3
    assert where(engine) == {"LEASED": 1, "DONE": 1, "DEAD": 1}
    assert go(engine, bulk.drain(engine, "nowhere")) == 0


def test_draining_spares_what_comes_while_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 2)
    engine = make_engine()
    for n in range(6):
        put(engine, f"old{n}")
    sweep = bulk.drain(engine, "q")
    assert not sweeps.begin(engine, sweep, NOW)
    put(engine, "new", priority=9)
    taken = [hold(engine, span=None).id for _ in range(2)]
    pass_time(engine, NOW + 100)
    assert sweep.count == 5
    assert taken[0] == "new"
    assert sorted(engine.messages) == sorted(taken)


def test_draining_many_leaves_nothing_stale_behind() -> None:
    engine = make_engine()
    for n in range(3_000):
        put(engine, priority=n % 3, lifo=n % 5 == 0)
    put(engine, "other", queue="other")
    assert go(engine, bulk.drain(engine, "q")) == 3_000
    assert list(engine.messages) == ["other"]


def test_cleaning_takes_the_oldest_of_what_waits(engine: Engine) -> None:
    for n, id in enumerate("abc"):
        put(engine, id, now=NOW + n, priority=n)
    put(engine, "late", delay=5, now=NOW - 1)
    sweep = bulk.clean(engine, "q", READY, NOW + 1, 10)
    assert go(engine, sweep, NOW + 2) == 3
    assert sweep.ids == ["a", "b", "late"]
    assert list(engine.messages) == ["c"]


@pytest.mark.parametrize(("state", "id"), [(DONE, "done"), (DEAD, "dead")])
def test_cleaning_counts_the_age_of_an_end(engine: Engine, state: State, id: str) -> None:
    full(engine)
    assert go(engine, bulk.clean(engine, "q", state, NOW - 1, 10)) == 0
    sweep = bulk.clean(engine, "q", state, NOW, 10)
    assert go(engine, sweep) == 1
    assert sweep.ids == [id]
    assert id not in engine.messages


def test_cleaning_stops_at_its_limit(engine: Engine) -> None:
    for n in range(5):
        put(engine, f"m{n}")
    sweep = bulk.clean(engine, "q", READY, NOW, 2)
    go(engine, sweep)
    assert sweep.ids == ["m0", "m1"]
    assert go(engine, bulk.clean(engine, "q", READY, NOW, 0)) == 0


def test_obliterating_leaves_nothing(engine: Engine) -> None:
    full(engine)
    control.pause(engine, "q")
    go(engine, bulk.obliterate(engine, "q"))
    assert where(engine) == {}
    engine.take()
    bulk.wipe(engine, "q", NOW)
    assert engine.queues == {}
    assert engine.messages == {}
    assert engine.leased_by == {}
    assert engine.take().facts["queue/q"] is None


def test_obliterating_finds_what_moves_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "SLICE", 1)
    engine = make_engine()
    full(engine)
    sweep = bulk.obliterate(engine, "q")
    sweeps.begin(engine, sweep, NOW)
    hold(engine, span=None)  # out of the states that are still to come
    put(engine, "new")
    pass_time(engine, NOW + 100)
    assert list(engine.messages) == ["new"]


def test_a_queue_that_does_not_exist_can_be_obliterated(engine: Engine) -> None:
    assert go(engine, bulk.obliterate(engine, "nowhere")) == 0
    bulk.wipe(engine, "nowhere", NOW)
    assert engine.queues == {}


@pytest.mark.parametrize(("limit", "left"), [(None, {"READY": 3}), (2, {"READY": 2, "DELAYED": 1})])
def test_promoting_takes_first_what_is_due_first(engine: Engine, limit, left) -> None:
    put(engine, "late", delay=30_000)
    put(engine, "soon", delay=10_000)
    put(engine, "then", delay=20_000)
    go(engine, bulk.promote(engine, "q", limit))
    assert where(engine) == left


def test_completed_messages_run_again_oldest_first(engine: Engine) -> None:
    for n, id in enumerate("abc"):
        put(engine, id, now=NOW + n)
        hold(engine, span=None, now=NOW + n)
        settle.ack(engine, id, None, NOW + n)
    assert go(engine, bulk.retry_completed(engine, "q", None, 1)) == 1
    assert engine.messages["a"].state is READY
    assert go(engine, bulk.retry_completed(engine, "q", NOW + 2, None)) == 1
    assert engine.messages["b"].state is READY
    assert engine.messages["c"].state is DONE


# -- dead letters ----------------------------------------------------------------------------------


def bury(engine: Engine, *ids: str) -> None:
    """Dead letters, one a millisecond; the ones in capitals were stalled."""
    for n, id in enumerate(ids):
        put(engine, id, max_attempts=1, now=NOW + n)
        m = hold(engine, span=None, now=NOW + n)
        m.attempts = 1
        settle.bury(engine, m, NOW + n, "stalled" if id.isupper() else "timeout")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (Wanted(), "aBcD"),
        (Wanted(cause="stalled"), "BD"),
        (Wanted(before=NOW + 2), "aB"),
        (Wanted(after=NOW + 1), "cD"),
        (Wanted(retried=False), "aBcD"),
        (Wanted(retried=True), ""),
        (Wanted(expired=False), "aBcD"),
        (Wanted(expired=True), ""),
        (Wanted(offset=1, limit=2), "Bc"),
        (Wanted(cause="stalled", offset=1), "D"),
    ],
)
def test_letters_are_chosen(engine: Engine, wanted: Wanted, found: str) -> None:
    bury(engine, *"aBcD")
    sweep = bulk.retry_dead(engine, "q", wanted, dry=True)
    assert go(engine, sweep, NOW + 10) == len(found)
    assert where(engine) == {"DEAD": 4}
    go(engine, bulk.retry_dead(engine, "q", wanted), NOW + 10)
    assert "".join(id for id, m in engine.messages.items() if m.state is READY) == found


def test_letters_that_return_by_themselves_are_told_apart(engine: Engine) -> None:
    bury(engine, *"ab")
    engine.messages["b"].run.retries = 9
    control.configure(engine, engine.queue("q"), burial=Burial(auto_retry=True))
    assert go(engine, bulk.retry_dead(engine, "q", Wanted(retried=True), dry=True)) == 1


@pytest.mark.parametrize("dry", [True, False])
def test_letters_are_purged_or_only_counted(engine: Engine, dry: bool) -> None:
    bury(engine, *"aB")
    assert go(engine, bulk.purge_dead(engine, "q", Wanted(cause="stalled"), dry=dry)) == 1
    assert sorted(engine.messages) == (["B", "a"] if dry else ["a"])
    assert go(engine, bulk.purge_dead(engine, "nowhere", Wanted(), dry=dry)) == 0
