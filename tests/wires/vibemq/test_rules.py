"""The rules for every frame, in their order and in the reference's words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.rules import BAD_QUEUE, LONG_QUEUE, NO_ID, NO_KEY, broken, broken_name


def frame(id: str = "m", queue: str | None = None, headers: dict[str, str] | None = None) -> Frame:
    return Frame(Kind.PUBLISH, id, queue, None, headers)


def test_the_words_are_those_of_the_reference() -> None:
    assert NO_ID == "Message ID is required."
    assert LONG_QUEUE == "Queue name exceeds maximum length (256)."
    assert BAD_QUEUE.startswith("Queue name contains invalid characters. Allowed: alphanumeric,")
    assert NO_KEY == "Header key cannot be empty."


@pytest.mark.parametrize("id", ["x", " ", "\n", "\0", "é🚀", "x" * 70_000])
def test_any_id_but_an_empty_one_will_do(id: str) -> None:
    assert broken(frame(id)) is None
    assert broken(frame("")) == NO_ID


@pytest.mark.parametrize(
    "queue",
    [
        "a", "A.b-C_9", ".", "-", "_", "..", "x" * 256, "очередь.1", "колонка", "٣digits", "日本語",
        "ǅ", "ʰ", "é", "Ⅎ", "é" * 256,
    ],
)  # fmt: skip
def test_a_name_of_letters_digits_and_three_signs_will_do(queue: str) -> None:
    assert broken(frame(queue=queue)) is None
    assert broken_name(queue) is None


@pytest.mark.parametrize(
    "queue",
    [
        "", " ", "my queue", "a/b", "a:b", "a*", "a\n", "a\0", "q🚀", "𐐀", "①", "²", "Ⅷ", "½",
        "e\u0301", "a\u200d", "a\u200b", "a@b", "a+b", "a,b", "🚀" * 128,
    ],
)  # fmt: skip
def test_a_name_with_anything_else_will_not(queue: str) -> None:
    assert broken(frame(queue=queue)) == BAD_QUEUE
    assert broken_name(queue) == BAD_QUEUE


@pytest.mark.parametrize("queue", ["x" * 257, "é" * 257, "🚀" * 129, " " * 300])
def test_a_name_that_is_too_long_is_told_so_first(queue: str) -> None:
    assert broken(frame(queue=queue)) == LONG_QUEUE


@given(st.characters(exclude_categories=["Cs"]))
def test_a_character_is_a_letter_where_the_reference_says_so(char) -> None:
    letter = ord(char) < 0x10000 and unicodedata.category(char) in [
        "Lu",
        "Ll",
        "Lt",
        "Lm",
        "Lo",
        "Nd",
    ]
    assert (broken_name(char) is None) == (letter or char in "-_.")


def test_fifty_headers_will_do_and_fifty_one_will_not() -> None:
    headers = {f"k{number}": "v" for number in range(50)}
    assert broken(frame(headers=headers)) is None
    assert broken(frame(headers={**headers, "x": "v"})) == "Too many headers (51). Maximum: 50."


@pytest.mark.parametrize("value", ["x" * 4096, "é" * 4096, "🚀" * 2048, ""])
def test_a_header_value_of_the_largest_size_will_do(value: str) -> None:
    assert broken(frame(headers={"k" * 9999: value})) is None


@pytest.mark.parametrize("value", ["x" * 4097, "é" * 4097, "🚀" * 2049, "🚀" * 2048 + "x"])
def test_a_longer_one_is_named_by_its_key(value: str) -> None:
    words = "Header value for 'key' exceeds maximum length (4096)."
    assert broken(frame(headers={"a": "b", "key": value})) == words


def test_a_long_key_is_named_in_part() -> None:
    assert len(broken(frame(headers={"k" * 9999: "v" * 5000})) or "") < 200


def test_a_key_may_not_be_empty() -> None:
    assert broken(frame(headers={"": "v"})) == NO_KEY


def test_the_first_rule_that_is_broken_counts() -> None:
    many = {f"k{number}": "v" * 5000 for number in range(50)} | {"": "v"}
    assert broken(frame("", " " * 300, many)) == NO_ID
    assert broken(frame("m", " " * 300, many)) == LONG_QUEUE
    assert broken(frame("m", " ", many)) == BAD_QUEUE
    assert broken(frame("m", "q", many)) == "Too many headers (51). Maximum: 50."
    assert broken(frame("m", "q", {"k": "v" * 5000, "": "v"})) == NO_KEY
    assert broken(frame()) is None
