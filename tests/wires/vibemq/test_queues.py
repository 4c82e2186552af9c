"""Options of a queue in each of their spellings, what is told of one, and spans of time."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tandemq.commands.call import QueueShown
from tandemq.model.broker import JOBS, Mode, Overflow, Policy
from tandemq.model.errors import BadPayload
from tandemq.wires.vibemq.queues import (
    LARGEST,
    LONGEST_SPAN,
    MODES,
    STRATEGIES,
    facts,
    moment_text,
    options_text,
    read_options,
    read_span,
    span_text,
)


def asked(**members: Any) -> Policy | None:
    return read_options(json.dumps(members).encode(), None)


def refused(payload: bytes | None, headers: dict[str, str] | None = None) -> str:
    with pytest.raises(BadPayload) as caught:
        read_options(payload, headers)
    return str(caught.value)


FULL = Policy(Mode.FAN_OUT_WITH_ACK, 5000, 1_800_000, True, "my-dlq", Overflow.DROP_NEWEST, 5)


# -- options -------------------------------------------------------------------------------------


def test_every_option_is_read() -> None:
    assert (
        asked(
            mode=1,
            maxQueueSize=5000,
            messageTtl="00:30:00",
            enableDeadLetterQueue=True,
            deadLetterQueueName="my-dlq",
            overflowStrategy=1,
            maxRetryAttempts=5,
        )
        == FULL
    )


@pytest.mark.parametrize("payload", [None, b"null", b" null "])
def test_who_asks_for_nothing_leaves_it_to_the_server(payload: bytes | None) -> None:
    assert read_options(payload, None) is None
    assert read_options(payload, {"correlationId": "x"}) is None


MEMBERS = [
    "mode", "maxQueueSize", "messageTtl", "enableDeadLetterQueue", "deadLetterQueueName",
    "overflowStrategy", "maxRetryAttempts",
]  # fmt: skip


def test_what_is_left_out_takes_the_default_of_the_class() -> None:
    default = Policy(Mode.ROUND_ROBIN, 10_000, None, False, None, Overflow.DROP_OLDEST, 3)
    assert asked() == Policy() == default
    assert asked(**dict.fromkeys(MEMBERS)) == default
    assert asked(Mode=3, MAXQUEUESIZE=1, x={}) == default
    assert asked(deadLetterQueueName="") == default


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("spell", [str, str.lower, str.upper])
def test_modes_and_strategies_have_numbers_and_names(number, spell) -> None:
    for mode in (number, spell(MODES[number])):
        assert asked(mode=mode) == Policy(mode=Mode(number))
    for strategy in (number, spell(STRATEGIES[number])):
        found = asked(overflowStrategy=strategy, enableDeadLetterQueue=True)
        assert found == Policy(overflow=Overflow(number), dead_letters=True)


NONSENSE: list[tuple[str, list[Any]]] = [
    ("mode", [9, -1, 4, 1.5, "Fan", "", True, [], {}]),
    ("maxQueueSize", [0, -1, 2**31, 2**70, 1.5, "10", True, []]),
    ("messageTtl", ["soon", "", "0", "00:00:00", "-00:00:01", "24:00:00", 0, -1, 1e30, True, []]),
    ("enableDeadLetterQueue", [0, 1, "true", [], {}]),
    ("deadLetterQueueName", ["a b", "x" * 257, 5, [], "a/b"]),
    ("overflowStrategy", [9, -1, 1.5, "Drop", [], True]),
    ("maxRetryAttempts", [-1, 2**31, 1.5, "3", []]),
]


@pytest.mark.parametrize(
    ("member", "value"), [(member, value) for member, values in NONSENSE for value in values]
)
def test_nonsense_is_refused_and_named(member: str, value: Any) -> None:
    assert member in refused(json.dumps({member: value}).encode())


@pytest.mark.parametrize("payload", [b'"text"', b"5", b"[]", b"true", b'[{"mode":1}]'])
def test_options_are_an_object(payload: bytes) -> None:
    assert "queue options" in refused(payload)


def test_redirecting_needs_a_place_to_redirect_to() -> None:
    assert "RedirectToDlq" in refused(b'{"overflowStrategy":3}')
    assert "RedirectToDlq" in refused(None, {"overflowStrategy": "redirecttodlq"})


def test_the_bounds_themselves_are_fine() -> None:
    assert asked(maxQueueSize=1, maxRetryAttempts=0) == Policy(max_size=1, max_attempts=0)
    assert asked(maxQueueSize=LARGEST, maxRetryAttempts=LARGEST) is not None


@pytest.mark.parametrize(
    ("said", "ms"),
    [
        (1, 1),
        (1.0, 1),
        (1.5, 1.5),
        (0.001, 0.001),
        ("00:00:01", 1000),
        ("00:00:00.0015000", 1.5),
        ("00:00:00.0000001", 0.0001),
        (LONGEST_SPAN, LONGEST_SPAN),
    ],
)
def test_a_time_to_live_keeps_its_fraction_if_it_has_one(said, ms) -> None:
    found = asked(messageTtl=said)
    assert found == Policy(ttl=ms)
    assert type(found.ttl) is type(ms)


HEADERS = {
    "deliveryMode": "fanoutwithack",
    "maxQueueSize": "5000",
    "messageTtl": "1800000",
    "enableDeadLetterQueue": "True",
    "deadLetterQueueName": "my-dlq",
    "overflowStrategy": "1",
    "maxRetryAttempts": "5",
}


def test_options_may_come_as_headers() -> None:
    assert read_options(None, HEADERS) == FULL
    assert read_options(None, {"maxQueueSize": "7"}) == Policy(max_size=7)
    assert read_options(None, {"deadLetterQueueName": "123"}) == Policy(dead_letter_queue="123")
    assert read_options(None, {"messageTtl": "00:30:00"}) == Policy(ttl=1_800_000)


def test_a_payload_counts_and_headers_beside_it_do_not() -> None:
    assert read_options(b"{}", HEADERS) == Policy()


@pytest.mark.parametrize("name", HEADERS)
@pytest.mark.parametrize("value", ["", "x y", "-1", "\u0663", "1_0", "9" * 30, "1.5", "null"])
def test_headers_that_make_no_sense_are_refused(name: str, value: str) -> None:
    if (name, value) == ("deadLetterQueueName", ""):
        assert read_options(None, {name: value}) == Policy()
    elif name == "deadLetterQueueName" and value != "x y":
        assert read_options(None, {name: value}) == Policy(dead_letter_queue=value)
    else:
        refused(None, {name: value})


# The first text of a fresh checkout takes seconds: tables of all characters are made for it.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.dictionaries(
        st.sampled_from(MEMBERS),
        st.none()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.lists(st.none(), max_size=1),
    )
)
def test_options_are_read_or_refused(members) -> None:
    try:
        found = asked(**members)
    except BadPayload:
        return
    assert found is not None
    assert (type(found.mode), type(found.overflow)) == (Mode, Overflow)
    assert 0 < found.max_size <= LARGEST
    assert found.ttl is None or 0 < found.ttl <= LONGEST_SPAN


# -- what is told --------------------------------------------------------------------------------


def test_a_queue_is_told_of_in_the_order_of_the_reference() -> None:
    policy = msgspec.structs.replace(FULL, created=1_771_408_800_000)
    text = msgspec.json.encode(facts(QueueShown("jobs", 7, 2, policy))).decode()
    assert text == (
        '{"name":"jobs","messageCount":7,"subscriberCount":2,"deliveryMode":1,"maxSize":5000,'
        '"createdAt":"2026-02-18T10:00:00Z","messageTtl":"00:30:00","enableDeadLetterQueue":true,'
        '"deadLetterQueueName":"my-dlq","overflowStrategy":1,"maxRetryAttempts":5}'
    )


def told(policy: Policy) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(msgspec.json.encode(facts(QueueShown("q", 0, 0, policy))))
    return found


def test_a_job_queue_is_told_of_as_one_without_a_bound() -> None:
    said = told(JOBS)
    assert (said["maxSize"], said["enableDeadLetterQueue"]) == (2_147_483_647, True)
    assert "deadLetterQueueName" not in said


def test_what_a_queue_does_not_have_is_left_out() -> None:
    said = told(Policy())
    assert "messageTtl" not in said
    assert "deadLetterQueueName" not in said
    assert len(said) == 9


# -- time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("00:00:00", 0),
        ("00:00:01", 1000),
        ("00:00:00.25", 250),
        ("00:00:00.2500000", 250),
        ("00:00:00.0000001", 0.0001),
        ("23:59:59.9999999", 86_399_999.9999),
        ("1.01:01:01.0015000", 90_061_001.5),
        ("10675199.02:48:05", 922_337_203_685_000),
        ("0.1:00:00", 3_600_000),
        ("-00:00:01", -1000),
    ],
)
def test_a_span_is_read(text: str, ms: float) -> None:
    assert read_span(text) == ms


@pytest.mark.parametrize(
    "text",
    [
        "", "soon", "1", "00:00", "24:00:00", "00:60:00", "00:00:60", "00:00:00.",
        "00:00:00.12345678", "1:00:00:00", "1 00:00:00", " 00:00:01", "00:00:01\n", "+00:00:01",
        "\u0660\u0660:00:00", "123456789.00:00:00",
    ],
)  # fmt: skip
def test_what_is_no_span_is_none(text: str) -> None:
    assert read_span(text) is None


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (250, "00:00:00.2500000"),
        (60_000, "00:01:00"),
        (90_061_001.5, "1.01:01:01.0015000"),
        (0.0001, "00:00:00.0000001"),
    ],
)
def test_a_span_is_written_as_the_reference_writes_it(ms: float, text: str) -> None:
    assert span_text(ms) == text


@given(st.integers(1, LONGEST_SPAN) | st.integers(1, 10**15).map(lambda ticks: ticks / 10_000))
def test_a_span_comes_back_as_it_was_written(ms) -> None:
    assert read_span(span_text(ms)) == ms


@given(st.integers(0, 253_402_300_799_999))
def test_a_moment_is_written_in_utc(ms) -> None:
    text = moment_text(ms)
    assert text.endswith("Z")
    assert ("." in text) == (ms % 1000 > 0)


def test_moments_are_written_to_the_millisecond() -> None:
    assert moment_text(1_771_408_800_000) == "2026-02-18T10:00:00Z"
    assert moment_text(1_771_408_800_007) == "2026-02-18T10:00:00.007Z"


# -- options that are asked for --------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.builds(
        Policy,
        mode=st.sampled_from(Mode),
        max_size=st.integers(1, LARGEST),
        ttl=st.none() | st.integers(1, 10**12),
        dead_letters=st.just(True),
        dead_letter_queue=st.none() | st.just("dead"),
        overflow=st.sampled_from(Overflow),
        max_attempts=st.integers(0, LARGEST),
        ack_wait=st.integers(1, 10**9),
        retry_base=st.integers(1, 10**9),
        retry_cap=st.integers(1, 10**9),
        full_wait=st.booleans(),
    )
)
def test_options_are_read_as_they_were_written(policy: Policy) -> None:
    assert read_options(options_text(policy), None) == policy


def test_options_are_written_as_the_reference_writes_them() -> None:
    assert options_text(Policy(max_size=50)) == (
        b'{"mode":0,"maxQueueSize":50,"enableDeadLetterQueue":false,'
        b'"overflowStrategy":0,"maxRetryAttempts":3}'
    )


@pytest.mark.parametrize("member", ["ackTimeout", "retryDelay", "retryDelayMax"])
@pytest.mark.parametrize("value", [0, -1, 2**31, "1", 1.5])
def test_waits_that_make_no_sense_are_refused(member: str, value: Any) -> None:
    with pytest.raises(BadPayload, match=member if isinstance(value, int) else "Invalid"):
        read_options(json.dumps({member: value}).encode(), None)
