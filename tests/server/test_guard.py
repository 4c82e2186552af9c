"""Tokens, request windows, the gate before a request, the number of connections."""

from __future__ import annotations

import hmac
import resource
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.commands.access import Auth, Hello, Ping
from tandemq.commands.table import ABSENT
from tandemq.model.errors import (
    FrameTooLarge,
    Malformed,
    RateLimited,
    TandemqError,
    Unauthenticated,
    UnknownCommand,
)
from tandemq.server import guard
from tandemq.server.guard import Tokens, Window, affordable, gate
from tandemq.wires.bunqueue.session import Refusal


def test_without_tokens_nobody_has_to_prove_anything_and_none_is_right() -> None:
    tokens = Tokens([])
    assert not tokens.required
    assert not tokens.accepts("")


@pytest.mark.parametrize("token", ["alpha", "beta", "é☃"])
def test_each_token_is_accepted(token: str) -> None:
    tokens = Tokens(["alpha", "beta", "é☃"])
    assert tokens.required
    assert tokens.accepts(token)


@pytest.mark.parametrize(
    "token", ["", "Alpha", "alpha ", "alph", "alphabeta", "\ud800", "x" * 9999]
)
def test_anything_else_is_not(token: str) -> None:
    assert not Tokens(["alpha", "beta"]).accepts(token)


def test_every_token_is_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []

    def compare(known: bytes, given: bytes) -> bool:
        seen.append(known)
        return hmac.compare_digest(known, given)

    monkeypatch.setattr(guard, "hmac", SimpleNamespace(compare_digest=compare))
    tokens = Tokens(["a", "b", "c"])
    for given_token in ("a", "c", "x"):
        seen.clear()
        tokens.accepts(given_token)
        assert seen == [b"a", b"b", b"c"]


def test_tokens_can_be_replaced() -> None:
    tokens = Tokens(["old"])
    tokens.replace(["new"])
    assert (tokens.accepts("old"), tokens.accepts("new")) == (False, True)
    tokens.replace([])
    assert not tokens.required


def test_a_window_slides() -> None:
    window = Window(2, 100)
    assert [window.admit(now) for now in (0, 50, 60, 99, 100, 101, 149, 150)] == [
        True, True, False, False, True, False, False, True,
    ]  # fmt: skip


@given(st.integers(1, 5), st.integers(1, 50), st.lists(st.integers(0, 30), max_size=60))
def test_no_window_of_time_holds_more_than_the_limit(
    limit: int, span: int, gaps: list[int]
) -> None:
    window, now, admitted = Window(limit, span), 1000, []
    for gap in gaps:
        now += gap
        full = sum(now - span < at for at in admitted) >= limit
        assert window.admit(now) == (not full)
        if not full:
            admitted.append(now)


def connection(*, trusted: bool = True, limit: int = 0) -> Any:
    return SimpleNamespace(trusted=trusted, limiter=Window(limit, 1000) if limit else None)


def raised(item: Any, given: Any) -> type[TandemqError] | None:
    try:
        gate(given, item, 0)
    except TandemqError as error:
        return type(error)
    return None


UNKNOWN = Refusal(UnknownCommand("Unknown command: x"), ABSENT, True)
RUBBISH = Refusal(Malformed("Invalid command"), ABSENT, False)
FATAL = Refusal(FrameTooLarge(5, 4), ABSENT, False)


def test_a_trusted_connection_passes_and_its_refusals_are_told() -> None:
    assert raised(Ping(), connection()) is None
    assert raised(UNKNOWN, connection()) is UnknownCommand
    assert raised(RUBBISH, connection()) is Malformed


def test_before_a_login_everything_that_is_a_command_is_refused_but_auth() -> None:
    stranger = connection(trusted=False)
    for item in (Ping(), Hello(), UNKNOWN):
        assert raised(item, stranger) is Unauthenticated
    assert raised(Auth(token="x"), stranger) is None
    assert raised(RUBBISH, stranger) is Malformed


def test_everything_uses_the_window_but_what_ends_the_connection() -> None:
    for item in (Ping(), UNKNOWN, RUBBISH, Auth()):
        full = connection(limit=1)
        raised(item, full)
        assert raised(item, full) is RateLimited
        assert raised(FATAL, full) is FrameTooLarge


def test_connections_leave_some_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.update(now=given))
    assert affordable(10_000) == 4096 * 8 // 10
    assert limits["now"] == (4096, 4096)
    assert affordable(100) == 100
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert affordable(10_000) == 10_000
