"""Every error has words on every wire, and a bug says nothing of itself."""

from __future__ import annotations

import pytest

from tandemq.model import errors as e
from tandemq.wires.wording import (
    BUNQUEUE,
    SHOWN,
    TEXT,
    VIBEMQ,
    WORD,
    in_bunqueue,
    in_vibemq,
)

ERRORS = sorted(e.every_error(), key=lambda kind: kind.__name__)
EXACT = [
    (e.NotLeased("j"), "Job not found or not in processing state: j"),
    (e.TokenRequired("j"), "Lock token required for job j"),
    (e.WrongToken("j"), "Invalid or expired lock token for job j"),
    (e.ShuttingDown(), "Server is shutting down; try again later"),
    (e.GroupFull("g", 5), "Group g has reached its maximum size of 5"),
    (e.QueueFull("q"), "Queue q is full"),
    (e.MustWait("q"), "Queue q is full"),
    (e.MemoryFull(), "Server memory is full, nothing was changed: try again later"),
    (e.Unauthenticated(), "Not authenticated"),
    (e.BadCredentials("secret"), "Invalid token"),
    (e.RateLimited(), "Rate limit exceeded"),
    (e.StorageFailed("disk full"), "Storage failed, nothing was changed: disk full"),
    (
        e.FrameTooLarge(1_195_725_856, 67_108_864),
        "Frame too large: 1195725856 bytes exceeds maximum 67108864",
    ),
    (e.Malformed("Invalid command"), "Invalid command"),
    (e.UnknownCommand("Unknown command: X"), "Unknown command: X"),
    (e.BadRequest("priority must be a number"), "priority must be a number"),
    (e.NotFound("Job not found"), "Job not found"),
    (e.NotActive("Job is not active (current state: x)"), "Job is not active (current state: x)"),
    (e.Overloaded("Too many failed logins"), "Too many failed logins"),
    (e.TooManyConnections(7), "Too many connections (max 7); try again later"),
    (e.UserNotFound("ghost"), "User 'ghost' not found."),
    (e.UserExists("carol"), "User 'carol' already exists."),
    (
        e.CredentialsRequired("Authentication token is required."),
        "Authentication token is required.",
    ),
    (e.BadPassword(), "Invalid username or password"),
    (e.NotAuthorized("Superuser access required."), "Superuser access required."),
    (e.AccessDenied("Publish"), "Access denied: Publish is not granted for this queue"),
    (e.Forbidden("Cannot delete a superuser account."), "Cannot delete a superuser account."),
    (e.Busy(), "Too many logins at a time; try again later"),
    (e.TooManySearches(), "Too many searches at a time; try again later"),
    (e.QueueRequired("Queue name is required"), "Queue name is required"),
    (e.BadPayload("data must be an object"), "data must be an object"),
    (e.Undecodable("Invalid command format"), "Invalid command format"),
    (e.TooLarge("The answer is too large"), "The answer is too large"),
]
EXACT_ON_VIBEMQ = [
    (e.Unauthenticated(), "NOT_AUTHENTICATED", "Please send a Connect command first."),
    (e.BadCredentials("Invalid token"), "AUTH_FAILED", "Invalid authentication token."),
    (e.BadPassword(), "AUTH_FAILED", "Invalid username or password."),
    (e.CredentialsRequired("Username and password are required."), "AUTH_REQUIRED", None),
    (e.UserNotFound("ghost"), "USER_NOT_FOUND", "User 'ghost' not found."),
    (e.UserExists("carol"), "USER_EXISTS", "User 'carol' already exists."),
    (e.NotAuthorized("Superuser access required."), "NOT_AUTHORIZED", None),
    (e.AccessDenied("Publish"), "NOT_AUTHORIZED", "Access denied."),
    (e.Forbidden("Cannot delete a superuser account."), "FORBIDDEN", None),
    (e.Busy(), "RATE_LIMITED", "Too many logins at a time: try again later."),
    (e.TooManySearches(), "RATE_LIMITED", "Too many searches at a time: try again later."),
    (e.RateLimited(), "RATE_LIMITED", "Message rate limit exceeded."),
    (e.Overloaded("Too many failed logins (5); connect again"), "RATE_LIMITED", None),
    (e.TooManyConnections(7), "CONNECTION_LIMIT", "Maximum connections reached."),
    (e.UnknownCommand("Unknown command type: 77"), "UNKNOWN_COMMAND", None),
    (e.BadRequest("Message ID is required."), "INVALID_MESSAGE", None),
    (e.QueueRequired("Queue name is required for publish."), "INVALID_QUEUE", None),
    (e.BadPayload("username is required."), "INVALID_PAYLOAD", None),
    (e.Malformed("Payload is not valid JSON."), "INVALID_MESSAGE", None),
    (e.Undecodable("Message is not a JSON object."), "INVALID_MESSAGE", None),
    (
        e.FrameTooLarge(1_048_577, 1_048_576),
        "INVALID_MESSAGE",
        "Frame body size (1048577 bytes) exceeds maximum allowed size (1048576 bytes).",
    ),
    (e.NotFound("q"), "QUEUE_NOT_FOUND", "Queue 'q' not found."),
    (e.QueueFull("q"), "QUEUE_FULL", "Queue 'q' is full."),
    (e.MustWait("q"), "QUEUE_FULL", "Queue 'q' is full."),
    (e.MemoryFull(), "QUEUE_FULL", "Server memory is full: try again later."),
    (e.ShuttingDown(), "SERVER_SHUTTING_DOWN", "Server is shutting down: try again later."),
    (e.GroupFull("g", 5), "QUEUE_FULL", "Group g is full (5)."),
    (e.TooLarge("The answer is too large."), "SERVER_ERROR", None),
    (
        e.StorageFailed("disk full"),
        "SERVER_ERROR",
        "Storage failed, nothing was changed: disk full",
    ),
    (e.NotLeased("m"), "INVALID_MESSAGE", "Message is not held: m"),
    (e.TokenRequired("m"), "INVALID_MESSAGE", "Message is held by somebody else: m"),
    (e.WrongToken("m"), "INVALID_MESSAGE", "Message is held by somebody else: m"),
    (e.NotActive("it waits"), "INVALID_MESSAGE", None),
]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_row(kind: type[e.TandemqError]) -> None:
    assert kind in BUNQUEUE
    assert kind in VIBEMQ


def test_no_row_is_left_over() -> None:
    assert set(BUNQUEUE) == set(VIBEMQ) == set(ERRORS)


def test_codes_are_unique_and_readable() -> None:
    codes = [kind.code for kind in ERRORS if "code" in vars(kind)]
    assert len(set(codes)) == len(codes)
    assert all(code == code.lower() and " " not in code for code in codes)


def test_every_error_that_is_raised_has_a_code_of_its_own() -> None:
    assert {kind for kind in ERRORS if "code" not in vars(kind)} <= {e.AboutMessage}


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_says_what_it_is_for(kind: type[e.TandemqError]) -> None:
    assert kind.__doc__


@pytest.mark.parametrize(("error", "words"), EXACT, ids=lambda row: type(row).__name__)
def test_the_words_are_those_that_clients_match(error: e.TandemqError, words: str) -> None:
    assert in_bunqueue(error) == words


@pytest.mark.parametrize(
    ("error", "code", "words"), EXACT_ON_VIBEMQ, ids=lambda row: type(row).__name__
)
def test_the_other_wire_has_a_code_beside_the_words(
    error: e.TandemqError, code: str, words: str | None
) -> None:
    assert in_vibemq(error) == (code, str(error) if words is None else words)


def test_each_error_is_among_the_exact_ones() -> None:
    for told in ({type(row[0]) for row in EXACT}, {type(row[0]) for row in EXACT_ON_VIBEMQ}):
        assert set(ERRORS) - told <= {e.TandemqError, e.AboutMessage}


@pytest.mark.parametrize("text", ["{id}", "{", "{0.__class__}", "%s", "a {} b", "é☃"])
def test_words_of_a_client_are_never_taken_for_a_pattern(text: str) -> None:
    assert in_bunqueue(e.NotLeased(text)).endswith(": " + text)
    assert in_bunqueue(e.BadRequest(text)) == text
    assert in_bunqueue(e.StorageFailed(text)).endswith(": " + text)
    assert in_vibemq(e.NotLeased(text))[1].endswith(": " + text)
    for kind in (e.NotFound, e.QueueFull, e.MustWait):
        assert f" '{text}' " in in_vibemq(kind(text))[1]
    assert in_vibemq(e.BadRequest(text))[1] == text


def long_kinds(client: str) -> list[e.TandemqError]:
    """Every error that may repeat what a client sent."""
    by_id = [kind(client) for kind in (e.NotLeased, e.TokenRequired, e.WrongToken)]
    kinds = [kind for kind, words in BUNQUEUE.items() if words is None]
    by_text = [kind(f"Job {client} is not here") for kind in kinds]
    return [*by_id, *by_text, e.GroupFull(client, 5), e.StorageFailed(client)]


def test_what_a_client_sent_is_repeated_in_a_few_words() -> None:
    for client in ("x" * 1_000_000, "☃" * (WORD + 1), "x" * 100_000 + " " + "y" * 100_000):
        for error in long_kinds(client):
            said = in_bunqueue(error)
            assert client[:SHOWN] + "..." in said
            assert len(said) < WORD
            if isinstance(error, e.BadRequest):
                assert said.endswith("... is not here")


def test_many_short_words_of_a_client_are_cut_too() -> None:
    for error in long_kinds("a b " * 1_000_000):
        assert len(in_bunqueue(error)) == TEXT + len("...")


def test_what_is_not_too_long_is_repeated_as_it_is() -> None:
    for client in ("", "x" * WORD, " ".join(["y" * WORD] * 2)):
        for error in long_kinds(client):
            assert client in in_bunqueue(error)


@pytest.mark.parametrize(
    "bug",
    [
        KeyError("secret"),
        ZeroDivisionError("/home/secret.py"),
        AssertionError(),
        RuntimeError("{}"),
        KeyboardInterrupt("secret"),
        e.TandemqError("secret"),
    ],
)
def test_a_bug_leaks_nothing(bug: BaseException) -> None:
    assert in_bunqueue(bug) == "Internal server error"
    assert in_vibemq(bug) == ("SERVER_ERROR", "Internal server error.")
