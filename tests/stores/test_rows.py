"""Messages survive as rows, and rows of other versions are understood."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tandemq.model.message import DEFAULTS, Lease, Message, Options, Run, State, Step
from tandemq.stores import rows
from tandemq.stores.base import Row, StoreFailed

MOMENTS = st.integers(0, 2**53)
SMALL = st.integers(0, 2**31)
SPANS = st.none() | st.integers(0, 2**53) | st.floats(allow_nan=False)
TEXT = st.text(max_size=8)
STATES = st.sampled_from(State)

OPTIONS = st.builds(
    Options,
    max_attempts=SMALL,
    backoff=SPANS.filter(lambda span: span is not None),
    backoff_type=st.none() | TEXT,
    ttl=SPANS,
    timeout=SPANS,
    lifo=st.booleans(),
    durable=st.booleans(),
    remove_on_complete=st.booleans(),
    remove_on_fail=st.booleans(),
    custom_id=st.booleans(),
    stall_timeout=SPANS,
    stack_trace_limit=SMALL,
    keep_logs=SPANS,
    size_limit=SPANS,
    max_stalls=st.none() | SMALL,
    max_interruptions=st.none() | SMALL,
    tags=st.lists(TEXT, max_size=3).map(tuple),
)
LEASES = st.builds(
    Lease,
    token=st.none() | TEXT,
    until=MOMENTS,
    span=SMALL,
    conn=st.none() | SMALL,
    renewals=SMALL,
)
RUNS = st.builds(
    Run,
    started=MOMENTS,
    finished=MOMENTS,
    heartbeat=MOMENTS,
    progress=SPANS.filter(lambda progress: progress is not None),
    progress_message=st.none() | TEXT,
    stack=st.none() | st.lists(TEXT, max_size=3).map(tuple),
    error=st.none() | TEXT,
    cause=st.none() | TEXT,
    result=st.none() | st.binary(max_size=8),
    stalls=SMALL,
    interruptions=SMALL,
    retired=st.none() | TEXT,
    history=st.lists(st.builds(Step, STATES, MOMENTS, st.none() | TEXT, SMALL), max_size=3),
)
MESSAGES = st.builds(
    Message,
    id=TEXT,
    queue=TEXT,
    name=TEXT,
    body=st.binary(max_size=8),
    seq=st.integers(-(2**63), 2**63 - 1),
    created=MOMENTS,
    due=MOMENTS,
    priority=st.integers(-(2**31), 2**31),
    options=st.just(DEFAULTS) | st.just(Options()) | OPTIONS,
    state=STATES,
    born=STATES,
    attempts=SMALL,
    leases=SMALL,
    lease=st.none() | LEASES,
    run=st.none() | RUNS,
    gen=SMALL,
    stored=st.booleans(),
)
PLAIN = Message("id", "queue", "name", b"body", 7, 1000, 1000)


def again(m: Message) -> Message:
    return rows.decode(Row(m.seq, rows.encode_head(m), m.body))


def kept(m: Message) -> Message:
    """The message as it comes back: stored, and without what lives in memory only."""
    return replace(m, gen=0, stored=True)


@settings(deadline=None)
@given(MESSAGES)
def test_a_message_comes_back_as_it_was(m: Message) -> None:
    assert again(m) == kept(m)


@pytest.mark.parametrize("state", State)
def test_a_message_comes_back_in_its_state(state: State) -> None:
    m = again(replace(PLAIN, state=state, run=Run(history=[Step(state, 5)])))
    assert m.state is state
    assert m.run is not None
    assert m.run.history[0].state is state


@pytest.mark.parametrize(
    ("stored", "model"),
    [(rows._Options, Options), (rows._Lease, Lease), (rows._Run, Run), (rows._Head, Message)],
)
def test_every_field_is_stored_but_those_that_live_in_memory(
    stored: type[msgspec.Struct], model: type[msgspec.Struct]
) -> None:
    elsewhere = {"gen", "stored", "rebodied", "body", "seq"} if model is Message else set()
    assert set(stored.__struct_fields__) == set(model.__struct_fields__) - elsewhere


def test_numbers_come_back_with_the_type_they_had() -> None:
    m = again(replace(PLAIN, options=Options(backoff=5, ttl=2.0), run=Run(progress=3)))
    assert m.run is not None
    numbers = (m.options.backoff, m.options.ttl, m.run.progress)
    assert [type(number) for number in numbers] == [int, float, int]


def test_equal_options_and_names_are_one_object() -> None:
    first = again(replace(PLAIN, options=Options(max_attempts=9)))
    other = again(replace(PLAIN, options=Options(max_attempts=9)))
    assert first.options is other.options
    assert first.queue is other.queue
    assert first.name is other.name
    assert again(replace(PLAIN, options=Options())).options is DEFAULTS


def test_long_options_are_not_kept_for_others() -> None:
    rows._shared.cache_clear()
    for length in (10, rows.SHARED_LENGTH * 2):
        m = replace(PLAIN, options=Options(tags=("x" * length,)))
        assert again(m).options == again(m).options == m.options
    assert rows._shared.cache_info().currsize == 1


def test_a_row_that_ends_early_has_defaults_for_the_rest() -> None:
    head = msgspec.msgpack.encode(("id", "queue", "name", 1000, 1000))
    assert rows.decode(Row(7, head, b"body")) == kept(PLAIN)


def test_a_run_and_a_lease_that_end_early_have_defaults_for_the_rest() -> None:
    values = msgspec.msgpack.decode(rows.encode_head(PLAIN))
    values[-2:] = [("token", 5, 6, None), (1, 2)]
    m = rows.decode(Row(7, msgspec.msgpack.encode(values), b"body"))
    assert m.lease == Lease("token", 5, 6, None)
    assert m.run == Run(started=1, finished=2)


def test_fields_of_a_later_version_are_passed_over() -> None:
    values = msgspec.msgpack.decode(rows.encode_head(PLAIN))
    values += [None] * (len(rows._Head.__struct_fields__) - len(values))  # a plain row ends early
    head = msgspec.msgpack.encode([*values, "later", {"more": 1}])
    assert rows.decode(Row(7, head, b"body")) == kept(PLAIN)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"\xff",
        msgspec.msgpack.encode({"id": "id"}),
        msgspec.msgpack.encode(("id", "queue")),
        msgspec.msgpack.encode(("id", "queue", "name", 1, 1, 0, 99)),
    ],
)
def test_a_damaged_head_is_a_failure_that_names_the_message(head: bytes) -> None:
    with pytest.raises(StoreFailed, match="message 7 "):
        rows.decode(Row(7, head, b"body"))


def test_a_plain_message_needs_few_bytes() -> None:
    assert len(rows.encode_head(replace(PLAIN, id="i" * 36))) < 80
