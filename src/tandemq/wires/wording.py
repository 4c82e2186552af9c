"""How each wire words our errors: one row for each, one column for each wire."""

from __future__ import annotations

from tandemq.model import errors as e

# None: the error's own text is meant for the peer.
BUNQUEUE: dict[type[e.TandemqError], str | None] = {
    e.TandemqError: "Internal server error",
    e.BadRequest: None,
    e.UnknownCommand: None,
    e.InvalidPayload: None,
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
    e.RateLimited: "Rate limit exceeded",
    e.Overloaded: None,
    e.StorageFailed: "Storage failed, nothing was changed: {}",
    e.Malformed: None,
    e.FrameTooLarge: "Frame too large: {size} bytes exceeds maximum {limit}",
}


def in_bunqueue(exc: BaseException) -> str:
    """Return what to say on the bunqueue wire. What is not ours is a bug: say nothing of it."""
    words = BUNQUEUE[type(exc) if isinstance(exc, e.TandemqError) else e.TandemqError]
    if words is None:
        return str(exc)
    return words.format(exc, **vars(exc))
