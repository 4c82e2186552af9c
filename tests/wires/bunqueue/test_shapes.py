"""The job object: its keys, its values, and the shortcut for jobs on their first run."""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.wire import UNDEFINED

from tandemq.engine import consume, settle
from tandemq.engine.core import Engine
from tandemq.engine.ids import Uuid7
from tandemq.engine.publish import draft, publish
from tandemq.model.body import holds_wide_integer
from tandemq.model.message import Lease, Links, Message, Options, Run, State, Step
from tandemq.wires.bunqueue import codec, shapes

KEYS = [
    "id",
    "queue",
    "name",
    "data",
    "createdAt",
    "runAt",
    "startedAt",
    "completedAt",
    "attempts",
    "backoff",
    "backoffConfig",
    "dependsOn",
    "childrenIds",
    "childrenCompleted",
    "tags",
    "progress",
    "progressMessage",
    "stacktrace",
    "repeat",
    "durable",
    "lastHeartbeat",
    "stallCount",
    "priority",
    "lifo",
    "maxAttempts",
    "removeOnComplete",
    "removeOnFail",
    "ttl",
    "timeout",
    "uniqueKey",
    "customId",
    "parentId",
    "groupId",
    "stallTimeout",
    "stackTraceLimit",
    "keepLogs",
    "sizeLimit",
    "failParentOnFailure",
    "removeDependencyOnFailure",
    "continueParentOnFailure",
    "ignoreDependencyOnFailure",
    "deduplicationTtl",
    "deduplicationExtend",
    "deduplicationReplace",
    "debounceId",
    "debounceTtl",
    "timeline",
]
MOMENTS = ("createdAt", "runAt", "startedAt", "completedAt", "lastHeartbeat")

NUMBERS = st.integers(0, 2**40) | st.floats(0, 1e15) | st.floats(-1e308, 1e308)
OPTIONS = st.builds(
    Options,
    max_attempts=st.integers(1, 1000),
    backoff=st.integers(0, 86_400_000) | st.floats(0, 86_400_000),
    backoff_type=st.sampled_from([None, "fixed", "exponential"]),
    ttl=st.none() | st.floats(0, 1e10),
    timeout=st.none() | st.integers(0, 86_400_000),
    lifo=st.booleans(),
    durable=st.booleans(),
    remove_on_complete=st.booleans(),
    remove_on_fail=st.booleans(),
    custom_id=st.booleans(),
    stall_timeout=st.none() | NUMBERS,
    stack_trace_limit=st.integers(-(2**53), 2**53),
    keep_logs=st.none() | NUMBERS,
    size_limit=st.none() | NUMBERS,
    tags=st.lists(st.text(max_size=5), max_size=20).map(tuple),
)
TEXTS = st.text(max_size=10) | st.integers(1, 70_000).map(lambda n: "x" * n)
MS = st.integers(1, 2**53)
BODIES = st.one_of(st.none(), st.integers(-9, 9), st.text(max_size=5), st.lists(st.none())).map(
    msgpack.packb
) | st.just(b"\xd4\x00\x00")


@st.composite
def messages(draw: st.DrawFn, low: int = -1_000_000, high: int = 1_000_000) -> Message:
    """A message that was just published: nothing has happened to it."""
    state = draw(st.sampled_from([State.READY, State.DELAYED]))
    return Message(
        draw(TEXTS),
        draw(st.text(min_size=1, max_size=256)),
        draw(st.text(min_size=1, max_size=256)),
        draw(BODIES),
        draw(st.integers(1, 2**40)),
        draw(st.integers(-(2**53), 2**53)),
        draw(MS),
        draw(st.integers(low, high)),
        draw(OPTIONS),
        state=state,
        born=state,
    )


STEPS = st.lists(
    st.builds(
        Step,
        st.sampled_from([State.LEASED, State.READY, State.DEAD, State.DELAYED]),
        MS,
        st.none() | st.text(max_size=5),
        st.integers(0, 5),
    ),
    max_size=25,
)
RUNS = st.builds(
    Run,
    started=st.integers(0, 2**53),
    finished=st.integers(0, 2**53),
    heartbeat=st.integers(0, 2**53),
    progress=st.integers(0, 100) | st.floats(0, 100),
    progress_message=st.none() | st.text(max_size=9),
    stack=st.none() | st.lists(st.text(max_size=5), min_size=1, max_size=20).map(tuple),
    error=st.none() | st.text(max_size=9),
    result=st.none() | BODIES,
    stalls=st.integers(0, 5),
    history=STEPS,
)


@st.composite
def lived(draw: st.DrawFn) -> Message:
    """A message in any state, to which anything may have happened."""
    m = draw(messages())
    m.state = draw(st.sampled_from([s for s in State if s not in (State.NEW, State.GONE)]))
    m.attempts = draw(st.integers(0, 1000))
    m.run = draw(st.none() | RUNS)
    return m


@st.composite
def handed_out(draw: st.DrawFn) -> Message:
    """A message on its first run."""
    m = draw(messages())
    at = draw(MS)
    m.run = Run(started=at, heartbeat=draw(st.just(at) | MS))
    m.state, m.lease, m.leases = State.LEASED, Lease("t", at + 1, 1, 1), 1
    return m


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    assert len(found) == len(pairs), "a key occurs twice"
    return found


def decoded(raw: bytes) -> dict[str, Any]:
    assert not holds_wide_integer(raw)
    found: dict[str, Any] = msgpack.unpackb(raw, strict_map_key=False, object_pairs_hook=once)
    return found


def job_of(m: Message) -> bytes:
    return codec.spliced(shapes.job(m))[4:]


def general(m: Message) -> dict[str, Any]:
    return decoded(shapes._HEAD + shapes._fields(m))


@given(handed_out())
def test_the_shortcut_says_what_the_general_way_says(m: Message) -> None:
    assert len(shapes.job(m)) > 2, "it took the shortcut"
    assert decoded(job_of(m)) == general(m)


@given(lived() | handed_out() | messages())
def test_a_job_for_workers_has_exactly_its_keys(m: Message) -> None:
    if m.state is State.LEASED and m.run is not None and not (m.run.started and m.run.heartbeat):
        m.run.started = m.run.heartbeat = 1  # what is leased has begun
    job = decoded(job_of(m))
    assert sorted(job) == sorted(KEYS)
    for key in MOMENTS:
        assert type(job[key]) is float or (job[key] is None and key in MOMENTS[2:4])


@given(lived() | handed_out() | messages())
def test_a_reader_sees_three_keys_more_or_two(m: Message) -> None:
    assert sorted(decoded(shapes.job_read(m))) == sorted(
        [*KEYS, "state", "returnvalue", "failedReason"]
    )
    assert sorted(decoded(shapes.job_without_state(m))) == sorted(
        [*KEYS, "returnvalue", "failedReason"]
    )


@given(lived())
def test_values_are_those_of_the_message(m: Message) -> None:
    job, run, o = decoded(shapes.job_read(m)), m.run or Run(), m.options
    assert (job["id"], job["queue"], job["name"]) == (m.id, m.queue, m.name)
    assert msgpack.packb(job["data"]) == m.body or job["data"] == UNDEFINED
    assert (job["createdAt"], job["runAt"]) == (m.created, m.due)
    assert job["startedAt"] == (run.started or None)
    assert job["completedAt"] == (run.finished or None if m.state is State.DONE else None)
    assert job["attempts"] == m.attempts
    assert job["priority"] == m.priority
    assert job["stallCount"] == run.stalls
    assert job["lastHeartbeat"] == (run.heartbeat or m.created)
    assert (job["progress"], job["progressMessage"]) == (run.progress, run.progress_message)
    assert job["stacktrace"] == (None if run.stack is None else list(run.stack))
    assert job["customId"] == (m.id if o.custom_id else None)
    assert job["failedReason"] == (UNDEFINED if run.error is None else run.error)
    assert (job["returnvalue"] == UNDEFINED) == (run.result in (None, b"\xd4\x00\x00"))


@given(lived())
def test_options_are_those_of_the_publisher(m: Message) -> None:
    job, o = (
        decoded(job_of(m) if m.state is not State.LEASED else shapes.job_read(m)),
        m.options,
    )
    typed = o.backoff_type and {"type": o.backoff_type, "delay": o.backoff}
    assert (job["backoff"], job["backoffConfig"]) == (o.backoff, typed)
    assert job["tags"] == list(o.tags)
    for key, value in (
        ("durable", o.durable),
        ("lifo", o.lifo),
        ("maxAttempts", o.max_attempts),
        ("removeOnComplete", o.remove_on_complete),
        ("removeOnFail", o.remove_on_fail),
        ("ttl", o.ttl),
        ("timeout", o.timeout),
        ("stallTimeout", o.stall_timeout),
        ("stackTraceLimit", o.stack_trace_limit),
        ("keepLogs", o.keep_logs),
        ("sizeLimit", o.size_limit),
    ):
        assert job[key] == value
    for key in ("uniqueKey", "parentId", "groupId", "repeat", "deduplicationTtl", "debounceId"):
        assert job[key] is None
    assert job["dependsOn"] == job["childrenIds"] == []


@given(lived())
def test_a_timeline_has_at_most_twenty_entries(m: Message) -> None:
    timeline = decoded(shapes.job_read(m))["timeline"]
    assert 1 <= len(timeline) <= 20
    for step in timeline:
        assert list(step)[:2] == ["state", "timestamp"]
        assert type(step["timestamp"]) is float
        assert set(step) <= {"state", "timestamp", "error", "attempt"}


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_in_a_life_on_the_engine_both_ways_say_the_same(seed: int, steps: int) -> None:
    random = Random(seed)
    engine = Engine(new_id=Uuid7(random.randbytes), uniform=random.random)
    now = 1_700_000_000_000
    for _ in range(steps):
        now += random.randrange(50)
        if random.random() < 0.4:
            options = Options(backoff=0, lifo=random.random() < 0.3)
            publish(
                engine,
                draft("q", "n", b"\x01", now, random.choice([0, 0, 1, -1, 200]), 0, options),
                now,
            )
        for m in consume.take(
            engine, "q", 1, random.randrange(3), random.choice([None, 1000]), now
        ):
            assert decoded(job_of(m)) == general(m)
        held = list(engine.leased_by.get(1, {}).values())
        for m in held:
            assert decoded(job_of(m)) == general(m)
            token = m.lease.token if m.lease is not None else None
            match random.randrange(4):
                case 0:
                    settle.ack(engine, m.id, token, now)
                case 1:
                    settle.fail(engine, m.id, token, now, error="e")
                case 2:
                    consume.release(engine, m, now)
                case _:
                    settle.heartbeat(engine, m.id, token, now + 1)


def test_a_fresh_job_says_what_the_reference_says() -> None:
    m = Message("i", "q", "n", b"\x01", 1, 5, 7, born=State.READY, state=State.READY)
    job = decoded(job_of(m))
    assert job["timeline"] == [{"state": "waiting", "timestamp": 5.0}]
    assert (job["startedAt"], job["completedAt"], job["lastHeartbeat"]) == (None, None, 5.0)
    assert (job["maxAttempts"], job["backoff"], job["stackTraceLimit"]) == (3, 1000, 10)


def test_a_failure_stands_in_the_timeline_with_its_error_and_its_number() -> None:
    m = Message("i", "q", "n", b"\x01", 1, 5, 7, born=State.READY, state=State.DEAD)
    m.run = Run(history=[Step(State.LEASED, 6), Step(State.DEAD, 7, "boom", 1)])
    steps = decoded(job_of(m))["timeline"]
    assert [step["state"] for step in steps] == ["waiting", "active", "failed"]
    assert (steps[2]["error"], steps[2]["attempt"]) == ("boom", 1)
    m.run.history[1] = Step(State.DEAD, 7, None, 1)
    assert decoded(job_of(m))["timeline"][2]["error"] == UNDEFINED


def test_encoded_options_are_kept_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_tails", {})
    monkeypatch.setattr(shapes, "TAILS", 3)
    for n in range(10):
        m = Message("i", f"q{n}", f"n{n}", b"\x01", 1, 5, 7, options=Options(ttl=n))
        m.run, m.state = Run(started=6, heartbeat=6), State.LEASED
        assert decoded(job_of(m))["ttl"] == n
    assert len(shapes._tails) == 3


def test_what_is_long_is_encoded_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "_tails", {})
    monkeypatch.setattr(shapes, "_siblings", {})
    long = "x" * (shapes.KEPT_LENGTH + 1)
    for text in (long, "short"):
        m = Message("i", "q", "n", b"\x01", 1, 5, 7, options=Options(tags=(text,)))
        m.run, m.state = Run(started=6, heartbeat=6), State.LEASED
        child = Message("i", "q", "n", b"\x01", 1, 5, 7, links=Links(parent=text))
        for _ in range(2):
            assert decoded(job_of(m))["tags"] == [text]
            assert decoded(shapes.job_at_rest(child))["parentId"] == text
    assert (len(shapes._tails), len(shapes._siblings)) == (1, 1)


def test_options_that_took_over_a_place_in_memory_are_not_mistaken() -> None:
    for n in range(5000):
        m = Message("i", "q", "n", b"\x01", 1, 5, 7, options=Options(keep_logs=n))
        assert decoded(job_of(m))["keepLogs"] == n
