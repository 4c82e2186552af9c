"""Every refusal: one tree, one code for each, a sentence that says when."""

from __future__ import annotations

import re

import pytest

from tandemq.model import errors
from tandemq.model.errors import (
    AboutMessage,
    BadPassword,
    BadRequest,
    FrameTooLarge,
    GroupFull,
    Malformed,
    NotLeased,
    Overloaded,
    RateLimited,
    StorageFailed,
    TandemqError,
    TokenRequired,
    Undecodable,
    WrongToken,
    every_error,
)

ERRORS = sorted(every_error(), key=lambda error: error.__name__)
each = pytest.mark.parametrize("error", ERRORS, ids=lambda error: error.__name__)


def test_the_tree_holds_every_error_of_the_module() -> None:
    defined = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, Exception)
    }
    assert every_error() == defined
    assert {TandemqError, WrongToken, FrameTooLarge} <= defined


def test_a_part_of_the_tree_can_be_asked_for() -> None:
    assert {NotLeased, TokenRequired, WrongToken} <= every_error(AboutMessage)
    assert BadRequest not in every_error(AboutMessage)


def test_no_two_errors_have_one_code() -> None:
    own = [error.code for error in ERRORS if "code" in vars(error)]
    assert len(own) == len(set(own))


@each
def test_an_error_says_when_it_is_given(error: type[TandemqError]) -> None:
    assert error.__doc__
    assert re.fullmatch(r"[a-z]+(-[a-z]+)*", error.code)


@each
def test_only_a_leaf_may_do_without_a_code_of_its_own_if_it_groups_others(error) -> None:
    assert "code" in vars(error) or error.__subclasses__()


def test_what_may_succeed_later_says_so() -> None:
    assert all(error.retry for error in (RateLimited, Overloaded, StorageFailed))
    assert not NotLeased.retry


def test_what_ends_a_connection_says_so() -> None:
    assert Overloaded.fatal
    assert FrameTooLarge.fatal
    assert Undecodable.fatal
    assert not Malformed.fatal
    assert not WrongToken.fatal


@pytest.mark.parametrize("id", ["m", None, 5, ["m"]])
def test_a_refusal_about_a_message_names_it_as_it_was_asked_for(id: object) -> None:
    refused = WrongToken(id)
    assert refused.id == id
    assert str(id) in str(refused)


def test_a_frame_that_is_too_large_tells_both_sizes() -> None:
    refused = FrameTooLarge(11, 10)
    assert (refused.size, refused.limit, refused.args) == (11, 10, (11, 10))


@each
def test_an_error_made_afresh_says_the_same_and_holds_nothing_else(error) -> None:
    two = issubclass(error, (FrameTooLarge, GroupFull))
    made = error(11, 10) if two else BadPassword() if error is BadPassword else error("words")
    try:
        try:
            raise ValueError("before")
        except ValueError as cause:
            raise made from cause
    except TandemqError as caught:
        again = caught.afresh()
    assert (type(again), again.args, vars(again)) == (error, made.args, vars(made))
    assert again is not made
    assert (again.__traceback__, again.__cause__, again.__context__) == (None, None, None)
