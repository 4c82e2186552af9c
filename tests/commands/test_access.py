"""Hello, Auth and Ping."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

GREETING = {
    "protocolVersion": 3,
    "capabilities": ["pipelining", "separate-job-name"],
    "server": "bunqueue",
    "version": "2.9.5",
}


@pytest.mark.parametrize("version", [1, 2, 3, 99, "x", None, [1]])
def test_hello_says_the_same_to_every_client(desk: Desk, version: Any) -> None:
    assert desk.do("Hello", protocolVersion=version, capabilities=7) == GREETING


def test_hello_needs_nothing_and_may_be_repeated(desk: Desk) -> None:
    assert desk.do("Hello") == desk.do("Hello") == GREETING


def test_ping_tells_the_time_as_a_float(desk: Desk) -> None:
    assert desk.do("Ping") == {"data": {"pong": True, "time": float(NOW)}}
    assert type(desk.do("Ping")["data"]["time"]) is float


def test_a_right_token_makes_the_caller_trusted(desk: Desk) -> None:
    desk.caller(1).trusted = False
    assert desk.do("Auth", token="open sesame") == {}
    assert desk.caller(1).trusted


@pytest.mark.parametrize("token", ["", "open", "open sesame ", "OPEN SESAME", 5, 1.5])
def test_a_wrong_token_is_refused_and_takes_nothing_away(desk: Desk, token: Any) -> None:
    assert desk.refused("Auth", token=token) == "Invalid token"
    assert desk.caller(1).trusted


@pytest.mark.parametrize("token", [None, [], {}, b"open sesame"])
def test_a_token_that_is_no_text_is_refused(desk: Desk, token: Any) -> None:
    desk.caller(1).trusted = False
    assert desk.refused("Auth", token=token) == "token must be a string"
    assert desk.refused("Auth") == "token must be a string"
    assert not desk.caller(1).trusted


def test_a_numeric_token_is_compared_as_text(desk: Desk) -> None:
    desk.host.accounts.token = "12345"
    assert desk.do("Auth", token=12345) == {}


def test_a_user_and_a_password_make_the_caller_that_user(desk: Desk) -> None:
    desk.caller(1).trusted = False
    assert desk.do("Auth", user="ali", password="baba") == {}
    assert (desk.caller(1).user, desk.caller(1).trusted) == ("ali", False)


@pytest.mark.parametrize(
    ("user", "password"), [("ali", "Baba"), ("Ali", "baba"), ("", ""), ("ali", ""), ("x", "baba")]
)
def test_a_wrong_one_of_both_is_refused_alike(desk: Desk, user: str, password: str) -> None:
    assert desk.refused("Auth", user=user, password=password) == "Invalid username or password"
    assert desk.caller(1).user is None


@pytest.mark.parametrize("wrong", [5, [], {}, b"ali", True])
def test_a_user_or_password_that_is_no_text_is_refused(desk: Desk, wrong: Any) -> None:
    says = "user and password must be strings"
    assert desk.refused("Auth", user="ali", password=wrong) == says
    assert desk.refused("Auth", user=wrong, password="baba") == says
    assert desk.refused("Auth", user="ali") == says


def test_a_token_goes_first_as_clients_of_the_reference_expect(desk: Desk) -> None:
    assert desk.do("Auth", token="open sesame", user="ali", password="x") == {}
    assert desk.refused("Auth", token="x", user="ali", password="baba") == "Invalid token"
