"""Checks of single fields."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.msgpack import Ext

from tandemq.commands import fields as check
from tandemq.model.errors import BadRequest
from tandemq.model.values import WideInteger


def refusal(*arguments: Any, **options: Any) -> str:
    with pytest.raises(BadRequest) as refused:
        check.number(*arguments, **options)
    return str(refused.value)


@pytest.mark.parametrize("name", ["a", "A-Za-z0-9_.:-", "x" * 256, "..", "__proto__", "1"])
def test_queue_names_of_the_allowed_letters_are_taken(name: str) -> None:
    assert check.queue_name(name) == name
    check.good_queue(name)
    check.good_queue(name)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (None, "Queue name is required"),
        ("", "Queue name is required"),
        (0, "Queue name is required"),
        (math.nan, "Queue name is required"),
        (True, "Queue name is required"),
        (["q"], "Queue name is required"),
        (b"q", "Queue name is required"),
        ("x" * 257, "Queue name too long (max 256 characters)"),
        ("é" * 257, "Queue name too long (max 256 characters)"),
        ("a b", "Queue name contains invalid characters"),
        ("a\n", "Queue name contains invalid characters"),
        ("a/b", "Queue name contains invalid characters"),
        ("é", "Queue name contains invalid characters"),
        ("a\0", "Queue name contains invalid characters"),
        (math.inf * -1, None),
        (1e21, "Queue name contains invalid characters"),
    ],
)
def test_other_queue_names_are_refused(name: Any, words: str | None) -> None:
    if words is None:
        assert check.queue_name(name) == "-Infinity"
        return
    for look in (check.queue_name, check.good_queue):
        if look is check.queue_name or isinstance(name, str):
            with pytest.raises(BadRequest) as refused:
                look(name)
            assert str(refused.value) == words


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (5, "5"),
        (12_345_678, "12345678"),
        (1.5, "1.5"),
        (-3, "-3"),
        (WideInteger(2**40), str(2**40)),
    ],
)
def test_a_number_is_taken_as_a_name_in_its_digits(number: float, name: str) -> None:
    assert check.queue_name(number) == name
    assert check.identifier(number) == name


def test_good_names_are_remembered_within_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "_good", set())
    monkeypatch.setattr(check, "QUEUES_KNOWN", 3)
    for n in range(10):
        check.good_queue(f"q{n}")
    assert check._good == {"q0", "q1", "q2"}


@pytest.mark.parametrize("value", ["5", True, False, [], {}, b"5", WideInteger(5)])
def test_what_is_no_number_is_told_so(value: Any) -> None:
    assert refusal({"x": value}, "x", 0, 9, 3) == "x must be a number"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_number_must_be_finite(value: float) -> None:
    assert refusal({"x": value}, "x", 0, 9, 3) == "x must be a finite number"


def test_a_number_must_be_whole_where_it_counts() -> None:
    assert refusal({"x": 1.5}, "x", 0, 9, 3, whole=True) == "x must be an integer"
    assert refusal({"x": 99.5}, "x", 0, 9, 3, whole=True) == "x must be an integer"
    assert check.number({"x": 1.5}, "x", 0, 9, 3) == 1.5
    found = check.number({"x": 2.0}, "x", 0, 9, 3, whole=True)
    assert (type(found), found) == (int, 2)


def test_a_number_has_bounds_which_are_allowed() -> None:
    assert refusal({"x": -1}, "x", 0, 9, 3) == "x must be at least 0"
    assert refusal({"x": 9.001}, "x", 0, 9, 3, label="y") == "y must be at most 9"
    assert [check.number({"x": n}, "x", 0, 9, 3) for n in (0, 9)] == [0, 9]


def test_an_absent_number_and_null_are_the_default() -> None:
    assert check.number({}, "x", 0, 9, 3) == check.number({"x": None}, "x", 0, 9, 3) == 3


@pytest.mark.parametrize("name", [None, "", "x" * 257, 5, True, []])
def test_a_job_name_is_a_text_of_reasonable_length(name: Any) -> None:
    with pytest.raises(BadRequest, match="non-empty string of at most 256 characters"):
        check.job_name(name)
    assert check.job_name("x" * 256) == "x" * 256


@given(st.floats() | st.integers() | st.booleans() | st.text(max_size=3) | st.none())
def test_numbers_that_nobody_checks_are_finite_or_absent(value: Any) -> None:
    found = check.loose_number(value)
    assert found is None or math.isfinite(found)
    whole = check.whole(value)
    assert (whole is None) == (found is None)
    assert whole is None or (type(whole) is int and abs(whole) <= 2**53)


def test_a_number_beyond_what_a_float_can_hold_counts_as_absent_or_clamped() -> None:
    assert check.whole(1e308) == 2**53
    assert check.whole(-1e308) == -(2**53)
    assert check.whole(5.9) == 5


def test_an_error_calls_nothing_by_the_name_that_python_has_for_it() -> None:
    assert (check.shown("j"), check.shown(5), check.shown(2.0)) == ("j", "5", "2")
    assert {check.shown(odd) for odd in (None, True, [], {}, b"j", Ext(5, b""))} == {"undefined"}


def test_lists_and_texts_that_nobody_checks() -> None:
    assert check.texts(["a", 1, None, "b"]) == ("a", "b")
    assert check.texts("ab") == check.texts(None) == ()
    assert (check.text("a"), check.text(5), check.text(None)) == ("a", None, None)
    assert (check.identifier(True), check.identifier(None), check.identifier([])) == (None,) * 3
    assert check.listed({"x": [1]}, "x") == [1]
    for value in (None, "ab", {"a": 1}):
        with pytest.raises(BadRequest, match=r"^x must be a list$"):
            check.listed({"x": value}, "x")


@pytest.mark.parametrize(
    ("wire", "attribute"),
    [("maxAttempts", "max_attempts"), ("data", "data"), ("removeOnFail", "remove_on_fail")],
)
def test_a_wire_name_becomes_the_attribute_it_is_read_into(wire: str, attribute: str) -> None:
    assert check.snake(wire) == attribute


def test_any_queue_checks_the_type_alone() -> None:
    assert check.any_queue("no name, really") == "no name, really"
    assert check.any_queue("") == ""
    with pytest.raises(BadRequest, match="Queue name is required"):
        check.any_queue(None)
