"""Finding a text in a message: in its strings and keys, as one of its numbers, in its error."""

from __future__ import annotations

import json
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model import matching
from tandemq.model.matching import Text
from tandemq.model.message import Letter, Message, Run


def job(body: bytes, error: str | None = None) -> Message:
    run = None if error is None else Run(error=error)
    return Message("id", "q", "job", body, 1, 1, 1, run=run)


def letter(text: str) -> Message:
    return Message("id", "q", "job", text.encode(), 1, 1, 1, letter=Letter("m1"))


def both(value: Any) -> list[Message]:
    """The same data as a job and as a letter, spelled as briefly as it goes and in ASCII."""
    packed = job(msgpack.packb(value))
    plain = letter(json.dumps(value, ensure_ascii=False))
    return [packed, plain, letter(json.dumps(value, ensure_ascii=True))]


def found(text: str, value: Any) -> set[bool]:
    return {Text(text).occurs_in(m) for m in both(value)}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("order", "my order"),
        ("ORDER", {"to": ["an order"]}),
        ("order", {"Order": 1}),
        ("grün", {"colour": "grünes"}),
        ('"x"\n', 'say "x"\n'),
        ("1042", {"order": 1042}),
        ("1042", "no. 1042-7"),
        ("-1042", [-1042]),
        ("1042.5", [[1042.5]]),
        ("0.25", {"share": 0.25}),
        ("1042", [1042.0]),
        ("5000000000", {"n": 5_000_000_000}),
        ("\U0001f600", ["\U0001f600"]),
    ],
)
def test_what_is_there_is_found_in_jobs_and_letters(text: str, value: Any) -> None:
    assert found(text, value) == {True}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("order", "ordinary"),
        ("104", {"order": 1042}),
        ("1042", {"order": 1043}),
        ("a", [0x61, {"x": 97}]),  # the byte of a number is no letter
        ("true", True),
        ("1", True),
        ("n", None),
        ("GRÜN", "grün"),  # only the case of ASCII letters does not matter
    ],
)
def test_what_is_not_there_is_not_found(text: str, value: Any) -> None:
    assert found(text, value) == {False}


def test_a_large_body_is_judged_by_its_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "LOOKED_AT", 10)
    assert Text("needle").occurs_in(job(msgpack.packb("hay needle hay")))
    assert not Text("pin").occurs_in(job(msgpack.packb("hay needle hay")))


@pytest.mark.parametrize(
    "body", [b"\xc1 broken", b"\xa9\xff\xfe broken", b"\x91" * 5_000 + b"broken"]
)
def test_a_body_that_cannot_be_decoded_is_judged_by_its_bytes(body: bytes) -> None:
    assert Text("broken").occurs_in(job(body))
    assert not Text("whole").occurs_in(job(body))


def test_the_last_error_is_looked_at() -> None:
    m = job(b"\xc0", error="Connection REFUSED")
    assert Text("refused").occurs_in(m)
    assert not Text("reset").occurs_in(m)


def test_no_body_holds_nothing() -> None:
    assert not Text("x").occurs_in(letter(""))
    assert not Text("x").occurs_in(job(b"\xd4\x00\x00"))  # undefined


leaves = st.none() | st.booleans() | st.integers(-(2**31), 2**32) | st.text(max_size=8)
values = st.recursive(leaves, lambda v: st.lists(v) | st.dictionaries(st.text(max_size=4), v))


def texts_in(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [*value, *(t for v in value.values() for t in texts_in(v))]
    if isinstance(value, list):
        return [t for v in value for t in texts_in(v)]
    return [value] if isinstance(value, str) else []


@given(values, st.text(min_size=1, max_size=3).filter(lambda t: not t.lstrip("-").isdigit()))
def test_it_is_found_exactly_where_a_text_or_key_holds_it(value: Any, text: str) -> None:
    lowered = text.encode().lower()
    expected = any(lowered in t.encode().lower() for t in texts_in(value))
    assert found(text, value) == {expected}
