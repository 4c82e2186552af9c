"""What the Admin commands need: in the reference's words where something is missing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tandemq.model.errors import BadPayload
from tandemq.wires.vibemq import users

READERS: dict[str, tuple[Callable[[bytes | None], Any], dict[str, Any], str]] = {
    "create": (
        users.new_login,
        {"username": "bob", "password": "pw"},
        "username and password are required.",
    ),
    "change": (
        lambda payload: users.login(payload, "newPassword"),
        {"username": "bob", "newPassword": "pw"},
        "username and newPassword are required.",
    ),
    "one": (users.one, {"username": "bob"}, "username is required."),
    "revoke": (
        users.pattern,
        {"username": "bob", "queuePattern": "a.*"},
        "username and queuePattern are required.",
    ),
    "grant": (
        users.grant,
        {"username": "bob", "queuePattern": "a.*", "operations": ["Publish"]},
        "username, queuePattern, and operations are required.",
    ),
}
EACH = pytest.mark.parametrize(("read", "full", "words"), READERS.values(), ids=READERS)


def refused(read: Callable[[bytes | None], Any], payload: bytes | None) -> str:
    with pytest.raises(BadPayload) as caught:
        read(payload)
    return str(caught.value)


def text(**members: Any) -> bytes:
    return json.dumps(members).encode()


@EACH
def test_what_is_there_is_read(read, full, words) -> None:
    found = read(text(**full, extra=[1], Username="x"))
    wanted = tuple(tuple(v) if isinstance(v, list) else v for v in full.values())
    assert (found if isinstance(found, tuple) else (found,)) == wanted


@EACH
@pytest.mark.parametrize("payload", [None, b"null", b"[]", b'"bob"', b"5", b"[[[", b""])
def test_a_payload_that_is_no_object_is_asked_for(read, full, words, payload) -> None:
    assert refused(read, payload) == f"Payload required: {{ {', '.join(full)} }}."


@EACH
@pytest.mark.parametrize("value", [None, "", 5, True, {}, [5], [["x"]]], ids=str)
def test_whatever_is_missing_or_of_another_type_is_asked_for(read, full, words, value) -> None:
    assert refused(read, b"{}") == words
    for name in full:
        assert refused(read, text(**{**full, name: value})) == words
        assert refused(read, text(**{k: v for k, v in full.items() if k != name})) == words


@EACH
def test_the_last_of_repeated_members_counts(read, full, words) -> None:
    body = text(**full)
    assert read(b'{"username":5,' + body[1:]) == read(body)
    assert refused(read, body[:-1] + b',"username":5}') == words


@pytest.mark.parametrize("name", ["bob", "a.b-C_9", "x" * 64, "ключ", "-", "."])
def test_a_new_user_may_have_a_plain_name(name: str) -> None:
    assert users.new_login(text(username=name, password="p")) == (name, "p")


@pytest.mark.parametrize(
    "name", ["bad user", "bad/user", "bad@user", "x" * 65, "a\n", "🚀", " ", "a:b", "bad name!"]
)
def test_a_new_user_may_have_no_other(name: str) -> None:
    assert refused(users.new_login, text(username=name, password="p")) == (
        "Username must be 1-64 characters: alphanumeric, hyphens, underscores, dots."
    )


@pytest.mark.parametrize("name", ["bad user", "x" * 65, "🚀"])
def test_any_name_may_be_asked_for(name: str) -> None:
    assert users.one(text(username=name)) == name


def granted(*operations: Any) -> tuple[str, ...]:
    payload = text(username="eve", queuePattern="e.*", operations=operations)
    return users.grant(payload)[2]


def test_operations_are_read_in_any_letter_case_and_unknown_ones_skipped() -> None:
    assert granted("publish", "Nonsense", "SUBSCRIBE", "Publish") == ("Publish", "Subscribe")
    assert granted(*map(str.lower, users.OPERATIONS)) == users.OPERATIONS


@pytest.mark.parametrize("operations", [[], ["fly"], [""]])
def test_no_known_operation_is_told_so(operations: list[str]) -> None:
    payload = text(username="eve", queuePattern="e.*", operations=operations)
    assert refused(users.grant, payload) == "No valid operations specified."


def test_a_pattern_has_a_longest_length() -> None:
    def payload(size: int) -> bytes:
        return text(username="eve", queuePattern="x" * size, operations=["Publish"])

    assert users.grant(payload(256))[1] == "x" * 256
    assert "256" in refused(users.grant, payload(257))
