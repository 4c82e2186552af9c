"""Sizes in answers: never less than what is written, seldom much more."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.message import Letter, Links, Message, Options, Repeat, Run, State, Step
from tandemq.model.size import MESSAGE, message_bytes, short_options, text_bytes, texts_bytes
from tandemq.wires.bunqueue import codec, shapes

NOW = 1_700_000_000_000
TEXTS = st.builds(lambda letter, n: letter * n, st.sampled_from("aé☃😀"), st.integers(0, 3_000))
SOME = st.none() | TEXTS
BYTES = st.builds(lambda n: b"\x91" * n + b"\x01", st.integers(0, 5_000))
NUMBERS = st.none() | st.sampled_from([0.5, 1e300])
STEPS = st.lists(
    st.builds(Step, st.just(State.DEAD), st.just(NOW), SOME, st.just(70_000)), max_size=20
)
RUNS = st.builds(
    Run, started=st.just(NOW), finished=st.just(NOW), heartbeat=st.just(NOW), progress=st.just(0.5),
    progress_message=SOME, stack=st.none() | st.tuples(TEXTS, TEXTS), error=SOME,
    result=st.none() | BYTES, history=STEPS,
)  # fmt: skip
OPTIONS = st.builds(
    Options, max_attempts=st.just(1_000), backoff=st.just(0.5),
    backoff_type=st.sampled_from([None, "exponential"]), ttl=NUMBERS, timeout=NUMBERS,
    custom_id=st.booleans(), stall_timeout=NUMBERS, stack_trace_limit=st.just(10_000),
    keep_logs=NUMBERS, size_limit=NUMBERS, dedup_ttl=NUMBERS, debounce_ttl=NUMBERS,
    tags=st.just(()) | st.tuples(TEXTS, TEXTS), group=SOME, unique_key=SOME, debounce_id=SOME,
)  # fmt: skip
LINKS = st.builds(
    Links, parent=SOME, children=st.just(()) | st.tuples(TEXTS, TEXTS),
    depends_on=st.just(()) | st.tuples(TEXTS, TEXTS),
)  # fmt: skip
REPEATS = st.builds(
    Repeat, every=NUMBERS, pattern=SOME, tz=SOME, limit=NUMBERS, count=st.just(70_000),
    start=NUMBERS, end=NUMBERS, previous=NUMBERS, offset=NUMBERS, job_id=SOME,
)  # fmt: skip
MESSAGES = st.builds(
    Message, id=TEXTS, queue=TEXTS, name=TEXTS, body=BYTES, seq=st.just(1), created=st.just(NOW),
    due=st.just(NOW), priority=st.just(-1_000_000), options=st.just(Options()) | OPTIONS,
    state=st.just(State.DONE), born=st.just(State.READY), attempts=st.just(1_000),
    run=st.none() | RUNS, links=st.none() | LINKS, repeat=st.none() | REPEATS,
)  # fmt: skip


JSON = st.builds(
    lambda item, n: b"[" + b",".join([item] * n) + b"]",
    st.sampled_from([b"0.5", b"1e5", b"5000000000", b'""', b"null", '"é"'.encode()]),
    st.integers(0, 3_000),
)
HEADERS = st.none() | st.dictionaries(TEXTS, TEXTS, max_size=20)


@given(TEXTS)
def test_a_text_is_as_long_as_it_is_written(text: str) -> None:
    assert text_bytes(text) <= len(codec.text(text)) <= texts_bytes([text])
    assert text_bytes(None) == 0


@given(MESSAGES)
def test_a_message_is_never_longer_than_it_is_thought(m: Message) -> None:
    written = len(shapes.job_read(m))
    assert written <= message_bytes(m) <= written + 5_000


@given(MESSAGES)
def test_what_surely_is_short_adds_little_to_a_body(m: Message) -> None:
    m.run = m.links = m.repeat = None
    if short_options(m):
        names = text_bytes(m.queue) + text_bytes(m.name)
        assert message_bytes(m) <= len(m.body) + names + 10 * MESSAGE


@given(MESSAGES, JSON | st.just(b""), TEXTS, HEADERS)
def test_a_letter_is_counted_with_its_headers_and_as_what_it_is_shown(
    m: Message, body: bytes, id: str, headers: dict[str, str] | None
) -> None:
    m.body, m.letter = body, Letter(id, headers)
    assert len(shapes.job_read(m)) <= message_bytes(m)
