"""Every error has words on every wire, and a bug says nothing of itself."""

from __future__ import annotations

import pytest

from tandemq.model import errors as e
from tandemq.wires.wording import BUNQUEUE, in_bunqueue

ERRORS = sorted(e.every_error(), key=lambda kind: kind.__name__)
EXACT = [
    (e.NotLeased("j"), "Job not found or not in processing state: j"),
    (e.TokenRequired("j"), "Lock token required for job j"),
    (e.WrongToken("j"), "Invalid or expired lock token for job j"),
    (e.GroupFull("g", 5), "Group g has reached its maximum size of 5"),
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
    (e.Overloaded("Too many connections"), "Too many connections"),
    (e.BadPayload("username is required."), "username is required."),
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
]


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_every_error_has_a_row(kind: type[e.TandemqError]) -> None:
    assert kind in BUNQUEUE


def test_no_row_is_left_over() -> None:
    assert set(BUNQUEUE) == set(ERRORS)


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


def test_each_error_is_among_the_exact_ones() -> None:
    told = {type(error) for error, _ in EXACT}
    assert set(ERRORS) - told <= {e.TandemqError, e.AboutMessage}


@pytest.mark.parametrize("text", ["{id}", "{", "{0.__class__}", "%s", "a {} b", "é☃"])
def test_words_of_a_client_are_never_taken_for_a_pattern(text: str) -> None:
    assert in_bunqueue(e.NotLeased(text)).endswith(": " + text)
    assert in_bunqueue(e.BadRequest(text)) == text
    assert in_bunqueue(e.StorageFailed(text)).endswith(": " + text)


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
