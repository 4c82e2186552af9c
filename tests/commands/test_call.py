"""The shapes of answers."""

from __future__ import annotations

from tandemq.commands.call import LATER, NOT_APPLIED, Call, Data, Found, Later
from tandemq.model.message import Message


def test_an_answer_that_comes_later_is_one_object() -> None:
    assert isinstance(LATER, Later)


def test_what_was_settled_before_is_told_with_its_reason() -> None:
    assert Data({"applied": False, "reason": "already-finalized"}) == NOT_APPLIED


def test_a_reader_sees_the_state_unless_told_otherwise() -> None:
    assert Found(Message("i", "q", "n", b"", 1, 0, 0)).with_state


def test_a_call_begins_without_a_request_and_can_be_used_again() -> None:
    call = Call(None, None, None)  # type: ignore[arg-type]
    assert (call.now, call.req) == (0, None)
