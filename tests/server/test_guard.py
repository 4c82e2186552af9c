"""Tokens, request windows, failed logins, the gate before a request, the number of connections."""

from __future__ import annotations

import hmac
import resource
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.commands.access import Auth, Hello, Ping
from tandemq.commands.all import BROKER, COMMANDS
from tandemq.commands.table import ABSENT, BrokerRequest, Command, Permission
from tandemq.model.errors import (
    FrameTooLarge,
    Malformed,
    RateLimited,
    TandemqError,
    Unauthenticated,
    UnknownCommand,
)
from tandemq.server import guard
from tandemq.server.guard import (
    ADDRESSES,
    FAILURES,
    FAILURES_SPAN,
    Arrivals,
    Failures,
    Tokens,
    Window,
    affordable,
    gate,
    origin_of,
)
from tandemq.wires.bunqueue.session import Refusal

ROWS = (*COMMANDS.values(), *BROKER.values())
ASKED: dict[str, dict[str, Any]] = {
    "PUSH": {"queue": "q"},
    "PUSHB": {"queue": "q", "jobs": []},
    "PUSHF": {"jobs": []},
    "PULL": {"queue": "q"},
    "PULLB": {"queue": "q"},
    "ACK": {"id": "x"},
    "ACKB": {"ids": []},
    "FAIL": {"id": "x"},
}
"""Fields without which a request cannot be made."""


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
    limiter = Window(limit, 1000) if limit else None
    return SimpleNamespace(trusted=trusted, user=None, limiter=limiter)


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


NAMES = {
    "queue": "q",
    "id": "m",
    "message": "m",
    "messages": ["m"],
}  # what no command can do without


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_only_what_anybody_may_ask_is_answered_before_a_login(row: Command) -> None:
    names = NAMES if issubclass(row.request, BrokerRequest) else {}
    request = msgspec.convert({**names, **ASKED.get(row.name, {})}, row.request, strict=False)
    refused = raised(request, connection(trusted=False))
    assert (refused is None) is (row.permission is Permission.ANYBODY)
    assert refused in (None, Unauthenticated)
    assert raised(request, connection()) is None


# -- failed logins ---------------------------------------------------------------------------------


def test_an_address_is_slowed_down_from_its_twentieth_failure_within_a_minute() -> None:
    failures = Failures()
    for i in range(FAILURES - 1):
        failures.note("a", i)
        assert not failures.too_many("a", i)
    failures.note("a", 1000)
    assert failures.too_many("a", 1000)
    assert not failures.too_many("b", 1000)
    assert failures.too_many("a", FAILURES_SPAN - 1)
    assert not failures.too_many("a", FAILURES_SPAN)


@given(st.lists(st.integers(0, 5_000), max_size=120))
def test_too_many_are_as_many_as_a_recount_finds(gaps: list[int]) -> None:
    failures, moments, now = Failures(), [], 0
    for gap in gaps:
        now += gap
        failures.note("a", now)
        moments.append(now)
        recount = sum(at > now - FAILURES_SPAN for at in moments)
        assert failures.too_many("a", now) is (recount >= FAILURES)


def test_addresses_that_fail_once_do_not_fill_the_memory() -> None:
    failures = Failures()
    for i in range(2 * ADDRESSES):
        if not i % 1000:
            for _ in range(FAILURES):
                failures.note("stubborn", i)
        failures.note(f"a{i}", i)
    assert len(failures._moments) == ADDRESSES
    assert failures.too_many("stubborn", 2 * ADDRESSES)


@pytest.mark.parametrize(
    ("peer", "origin"),
    [
        (("10.1.2.3", 4711), "10.1.2.3"),
        (("::ffff:10.1.2.3", 4711, 0, 0), "10.1.2.3"),
        (("2001:db8:1:2:3::4", 1, 0, 0), "20010db800010002"),
        (("2001:db8:1:2:ffff::9", 1, 0, 0), "20010db800010002"),
        (("fe80::1%eth0", 1, 0, 2), "fe80000000000000"),
        (("", 1), ""),
        ("/run/socket", ""),
        ("", ""),
        (None, ""),
        ((), ""),
    ],
)
def test_an_address_stands_for_all_that_its_owner_has(peer: Any, origin: str) -> None:
    assert origin_of(peer) == origin


# -- new connections -------------------------------------------------------------------------------


def test_an_address_may_connect_so_often_in_any_minute() -> None:
    arrivals = Arrivals(3)
    assert [arrivals.admit("a", now) for now in (0, 1, 2, 3, 59_999)] == [True] * 3 + [False] * 2
    assert arrivals.admit("b", 4)
    assert arrivals.admit("a", 60_000)
    assert not arrivals.admit("a", 60_000)
    assert arrivals.admit("a", 60_001)


def test_without_a_limit_an_address_may_connect_as_often_as_it_likes() -> None:
    arrivals = Arrivals(0)
    assert all(arrivals.admit("a", 0) for _ in range(10_000))


def test_addresses_that_come_once_do_not_fill_the_memory() -> None:
    arrivals = Arrivals(1)
    for i in range(2 * ADDRESSES):
        arrivals.admit("stubborn", 0)
        assert arrivals.admit(f"a{i}", 0)
    assert len(arrivals._windows) == ADDRESSES
    assert not arrivals.admit("stubborn", 0)


def test_connections_leave_some_descriptors_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.update(now=given))
    assert affordable(10_000) == 4096 * 8 // 10
    assert limits["now"] == (4096, 4096)
    assert affordable(100) == 100
    limits["now"] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    assert affordable(10_000) == 10_000
