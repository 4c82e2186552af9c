"""How each wire words our errors: one row for each, one column for each wire."""

from __future__ import annotations

import re

from tandemq.model import errors as e

# None: the error's own text is meant for the peer.
BUNQUEUE: dict[type[e.TandemqError], str | None] = {
    e.TandemqError: "Internal server error",
    e.BadRequest: None,
    e.UnknownCommand: None,
    e.QueueRequired: None,
    e.BadPayload: None,
    e.QueueFull: "Queue {queue} is full",
    e.MustWait: "Queue {queue} is full",
    e.MemoryFull: "Server memory is full, nothing was changed: try again later",
    e.NotFound: None,
    e.UserNotFound: None,
    e.UserExists: None,
    e.GroupFull: "Group {group} has reached its maximum size of {size}",
    e.AboutMessage: "Internal server error",
    e.NotLeased: "Job not found or not in processing state: {id}",
    e.TokenRequired: "Lock token required for job {id}",
    e.WrongToken: "Invalid or expired lock token for job {id}",
    e.NotActive: None,
    e.Unauthenticated: "Not authenticated",
    e.CredentialsRequired: None,
    e.BadCredentials: "Invalid token",
    e.BadPassword: "Invalid username or password",
    e.NotAuthorized: None,
    e.AccessDenied: "Access denied: {operation} is not granted for this queue",
    e.Forbidden: None,
    e.Busy: "Too many logins at a time; try again later",
    e.TooManySearches: "Too many searches at a time; try again later",
    e.RateLimited: "Rate limit exceeded",
    e.Overloaded: None,
    e.ShuttingDown: "Server is shutting down; try again later",
    e.TooManyConnections: "Too many connections (max {limit}); try again later",
    e.StorageFailed: "Storage failed, nothing was changed: {}",
    e.Malformed: None,
    e.Undecodable: None,
    e.TooLarge: None,
    e.FrameTooLarge: "Frame too large: {size} bytes exceeds maximum {limit}",
}

INVALID, FAILED = "INVALID_MESSAGE", "SERVER_ERROR"

VIBEMQ: dict[type[e.TandemqError], tuple[str, str | None]] = {
    e.TandemqError: (FAILED, "Internal server error."),
    e.BadRequest: (INVALID, None),
    e.UnknownCommand: ("UNKNOWN_COMMAND", None),
    e.QueueRequired: ("INVALID_QUEUE", None),
    e.BadPayload: ("INVALID_PAYLOAD", None),
    e.QueueFull: ("QUEUE_FULL", "Queue '{queue}' is full."),
    e.MustWait: ("QUEUE_FULL", "Queue '{queue}' is full."),
    e.MemoryFull: ("QUEUE_FULL", "Server memory is full: try again later."),
    e.NotFound: ("QUEUE_NOT_FOUND", "Queue '{}' not found."),
    e.GroupFull: ("QUEUE_FULL", "Group {group} is full ({size})."),
    e.AboutMessage: (FAILED, "Internal server error."),
    e.NotLeased: (INVALID, "Message is not held: {id}"),
    e.TokenRequired: (INVALID, "Message is held by somebody else: {id}"),
    e.WrongToken: (INVALID, "Message is held by somebody else: {id}"),
    e.NotActive: (INVALID, None),
    e.Unauthenticated: ("NOT_AUTHENTICATED", "Please send a Connect command first."),
    e.UserNotFound: ("USER_NOT_FOUND", None),
    e.UserExists: ("USER_EXISTS", None),
    e.CredentialsRequired: ("AUTH_REQUIRED", None),
    e.BadCredentials: ("AUTH_FAILED", "Invalid authentication token."),
    e.BadPassword: ("AUTH_FAILED", "Invalid username or password."),
    e.NotAuthorized: ("NOT_AUTHORIZED", None),
    e.AccessDenied: ("NOT_AUTHORIZED", "Access denied."),
    e.Forbidden: ("FORBIDDEN", None),
    e.Busy: ("RATE_LIMITED", "Too many logins at a time: try again later."),
    e.TooManySearches: ("RATE_LIMITED", "Too many searches at a time: try again later."),
    e.RateLimited: ("RATE_LIMITED", "Message rate limit exceeded."),
    e.Overloaded: ("RATE_LIMITED", None),
    e.ShuttingDown: ("SERVER_SHUTTING_DOWN", "Server is shutting down: try again later."),
    e.TooManyConnections: ("CONNECTION_LIMIT", "Maximum connections reached."),
    e.StorageFailed: (FAILED, "Storage failed, nothing was changed: {}"),
    e.Malformed: (INVALID, None),
    e.Undecodable: (INVALID, None),
    e.TooLarge: (FAILED, None),
    e.FrameTooLarge: (
        INVALID,
        "Frame body size ({size} bytes) exceeds maximum allowed size ({limit} bytes).",
    ),
}


WORD = 300  # characters of a name or an id that an error repeats as a whole
SHOWN = 100  # characters that are left of a longer one
TEXT = 2_000  # characters of an error
LONGEST = 1 << 21  # characters that are looked at for that

_too_long = re.compile(rf"\S{{{WORD + 1},}}")


def in_bunqueue(exc: BaseException) -> str:
    """Return what to say on the bunqueue wire. What is not ours is a bug: say nothing of it."""
    return _worded(exc, BUNQUEUE[_kind(exc)])


def in_vibemq(exc: BaseException) -> tuple[str, str]:
    """Return code and text for the VibeMQ wires. What is not ours is a bug: say nothing of it."""
    code, words = VIBEMQ[_kind(exc)]
    return code, _worded(exc, words)


def _kind(exc: BaseException) -> type[e.TandemqError]:
    return type(exc) if isinstance(exc, e.TandemqError) else e.TandemqError


def _worded(exc: BaseException, words: str | None) -> str:
    text = str(exc) if words is None else words.format(exc, **vars(exc))
    return text if len(text) <= WORD else shortened(text)


def shortened(text: str) -> str:
    """Return a text in which whatever a client sent stands in a few words."""
    text = _too_long.sub(lambda found: found[0][:SHOWN] + "...", text[:LONGEST])
    return text if len(text) <= TEXT else text[:TEXT] + "..."
