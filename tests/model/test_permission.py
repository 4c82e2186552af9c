"""Operations and their names, patterns, and what several entries allow together."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model.permission import (
    KNOWN,
    PATTERN_LENGTH,
    Operation,
    Rights,
    is_user_name,
    matches,
    operations,
)

P, S = Operation.PUBLISH, Operation.SUBSCRIBE

SOME = st.text("ab*", max_size=12)
NAMES = st.text("abA", max_size=20)


def test_the_operations_are_those_of_the_broker_s_wires() -> None:
    assert list(Operation) == [
        "Publish", "Subscribe", "CreateQueue", "DeleteQueue", "PurgeQueue", "GetQueueInfo",
        "ListQueues",
    ]  # fmt: skip


@pytest.mark.parametrize("write", [str, str.lower, str.upper, str.swapcase])
def test_operations_are_read_in_any_letter_case(write) -> None:
    assert operations(map(write, Operation)) == tuple(Operation)


@pytest.mark.parametrize(
    "name",
    ["fly", "", " Publish", "Publish ", "\u017fubscribe", "0", 0, None, True, ["Publish"], {}],
)
def test_what_is_no_operation_is_passed_over(name: object) -> None:
    assert operations([name]) == ()
    assert operations([name, "Publish", name]) == (P,)


def test_operations_keep_the_order_in_which_they_were_named_and_count_once() -> None:
    assert operations(["Subscribe", "Nonsense", "publish", "SUBSCRIBE"]) == (S, P)


@pytest.mark.parametrize("name", ["a", "A", "0", "-", "_", ".", "bob.b-2_x", "x" * 64])
def test_a_user_may_be_called_so(name: str) -> None:
    assert is_user_name(name)


@pytest.mark.parametrize(
    "name",
    ["", "bad user", "bad/user", "bad@user", "x" * 65, "bob\n", "\nbob", "zoë", "zoe\u0308",
     "\uff42ob", "bob\0", "\u0663", "bob:x", "*"],
)  # fmt: skip
def test_a_user_may_not_be_called_so(name: str) -> None:
    assert not is_user_name(name)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("orders.*", ["orders.new", "orders.a.b", "orders."], ["orders", "ORDERS.NEW", "x"]),
        ("*", ["", "a", "a.b:c", "é"], []),
        ("**", ["", "a", "a.b"], []),
        ("q*", ["q", "qq", "q.x"], ["Q", "aq", ""]),
        ("*.x", [".x", "a.x", "x.x"], ["x", "a.x.y", "a.X"]),
        ("a*b*c", ["abc", "a1b2c", "abbcc", "abcbc"], ["ab", "acb", "abcd", "ac"]),
        ("*ab*ab*", ["abab", "xabyabz"], ["ab", "aab", "abxa"]),
        ("aa*aa", ["aaaa", "aaxaa", "aaaaa"], ["aa", "aaa"]),
        ("a+b", ["a+b"], ["aab", "ab", "a++b"]),
        ("a?", ["a?"], ["ab", "a"]),
        ("[ab]", ["[ab]"], ["a", "b"]),
        ("a.b", ["a.b"], ["axb"]),
        ("(a|b)$", ["(a|b)$"], ["a"]),
        ("\\*", ["\\", "\\x"], ["*"]),
        ("orders", ["orders"], ["Orders", "orders ", "ORDERS"]),
        ("e\u0301", ["e\u0301"], ["é"]),
        ("", [""], ["a"]),
    ],
)  # fmt: skip
def test_a_star_is_any_run_and_everything_else_is_itself(
    pattern: str, fitting: list[str], others: list[str]
) -> None:
    assert [name for name in (*fitting, *others) if matches(pattern, name)] == fitting


@given(SOME, NAMES)
def test_patterns_match_as_the_same_regular_expression_does(pattern: str, name: str) -> None:
    same = "".join(".*" if letter == "*" else re.escape(letter) for letter in pattern)
    assert matches(pattern, name) is (re.fullmatch(same, name, re.DOTALL) is not None)


@given(st.text(max_size=20).map(lambda text: text.replace("*", "")), st.text(max_size=20))
def test_without_a_star_a_pattern_is_one_name(plain: str, other: str) -> None:
    assert matches(plain, plain)
    assert matches(plain, other) is (plain == other)


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("*a" * 128, True), ("a*" * 128, True), ("*" * 256, True), ("*aab" * 64, False)],
)
def test_no_pattern_takes_long(pattern: str, fits: bool) -> None:
    """A matcher that tries one way after the other would not be back within a lifetime."""
    assert len(pattern) == PATTERN_LENGTH
    assert matches(pattern, "a" * 256) is fits
    assert not matches(pattern + "c", "a" * 255 + "d")


def test_any_fitting_entry_is_enough() -> None:
    rights = Rights({"a.*": [P], "*.x": [S]})
    assert rights.of("a.x") == {P, S}
    assert rights.of("a.b") == {P}
    assert rights.of("b.x") == {S}
    assert rights.of("b") == rights.of("A.X") == frozenset()


@given(st.dictionaries(SOME, st.sets(st.sampled_from(Operation)), max_size=5), st.lists(NAMES))
def test_what_is_allowed_is_the_union_however_often_it_is_asked(
    entries: dict[str, set[Operation]], names: list[str]
) -> None:
    rights = Rights(entries)
    for name in (*names, *names):
        fitting = [held for pattern, held in entries.items() if matches(pattern, name)]
        assert rights.of(name) == set().union(*fitting)


def test_made_up_names_do_not_fill_the_memory() -> None:
    rights = Rights({"q*": [P]})
    for i in range(3 * KNOWN):
        assert rights.of(f"q{i}") == {P}
        assert rights.of(f"x{i}") == frozenset()
    assert len(rights._known) == KNOWN
