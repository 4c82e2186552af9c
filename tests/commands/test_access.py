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
    desk.host.token = "12345"
    assert desk.do("Auth", token=12345) == {}
