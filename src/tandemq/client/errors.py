"""What can go wrong for a client, as one small tree; every text says what to do next."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class TandemqError(Exception):
    """Everything that a client of tandemq raises by itself."""


# -- the way to the server -----------------------------------------------------------------------


class LinkError(TandemqError, ConnectionError):
    """There was no way to the server, or it broke."""


class ConnectFailed(LinkError):
    """No connection came about; the text says where to and why."""


class ConnectionLost(LinkError):
    """The connection broke after a call was written: the server may have done it, or not.

    It is not sent again by itself. Give a job an id of your own to make adding it repeatable.
    """


class NotSent(LinkError):
    """A call was never written, so the server knows nothing of it: it is safe to repeat."""


class Timeout(TandemqError, TimeoutError):
    """No answer came in time; the server may have done what was asked, or not."""


class WrongServer(LinkError):
    """Something else than a tandemq or bunqueue server answers there."""


class CertificateRefused(LinkError):
    """The server's certificate is not trusted, expired, or made for another name."""


class WrongUrl(TandemqError, ValueError):
    """A connection string cannot be read; the text says which part, and what is allowed."""


# -- the use of the client -----------------------------------------------------------------------


class Misused(TandemqError, RuntimeError):
    """The client was used in a way that cannot work."""


class Closed(Misused):
    """The client was closed and used again; make another one."""


class WrongLoop(Misused):
    """An asynchronous client belongs to the event loop, and to the process, that first used it."""


class Unencodable(TandemqError, TypeError):
    """A payload cannot be put on the wire; the text names the place in it."""


class BadOption(TandemqError, ValueError):
    """An option has a value that it cannot have; the text says what it takes."""


def no_option(name: str, known: Iterable[str]) -> BadOption:
    """Return the error for an option that does not exist; it names the one that was meant."""
    known = sorted(known)
    close = get_close_matches(name, known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
    return BadOption(f"there is no option {name}; {hint}")


# -- what the server said ------------------------------------------------------------------------


class Refused(TandemqError):
    """The server did not do it.

    Attributes:
        command: the name of the command on the wire.
        text: the words of the server.
    """

    def __init__(self, command: str, text: str) -> None:
        super().__init__(f"{command}: {text}")
        self.command, self.text = command, text

    def __reduce__(self) -> tuple[type[Refused], tuple[str, str]]:
        return type(self), (self.command, self.text)


class NotAuthorized(Refused):
    """Token, user or password are wrong or missing, or do not allow this."""


class NotFound(Refused):
    """There is no such job, schedule, worker or webhook."""


class PayloadTooLarge(Refused):
    """A job, a result or a request is larger than the server takes."""


class LeaseLost(Refused):
    """The job is not held under this token any more: somebody else may have it."""


class Unavailable(Refused):
    """The server cannot do it at present and changed nothing: the same may succeed later."""


class QueueFull(Unavailable):
    """As much waits as may wait."""


class TooManyRequests(Unavailable):
    """A limit on the rate of requests or logins was reached."""


# -- what became of a job ------------------------------------------------------------------------


class JobFailed(TandemqError):
    """The job ended badly.

    Attributes:
        id: the job's id.
        error: what its worker said last, or None where nothing is kept.
    """

    def __init__(self, id: str, error: str | None, stack: tuple[str, ...] = ()) -> None:
        super().__init__(f"job {id} failed: {error or 'the server keeps no cause'}")
        self.id, self.error, self.stack = id, error, stack
        if stack:
            self.add_note("On the worker:\n" + "\n".join(stack))

    def __reduce__(self) -> tuple[type[JobFailed], tuple[str, str | None, tuple[str, ...]]]:
        return type(self), (self.id, self.error, self.stack)


class Cancelled(TandemqError):
    """The job was taken away before it ended."""


_WORDS: tuple[tuple[type[Refused], tuple[str, ...]], ...] = (
    (
        NotAuthorized,
        (
            "Not authenticated",
            "Authentication required",
            "Invalid token",
            "Invalid username or password",
            "Access denied",
            "Superuser access required",
            "token must be a string",
        ),
    ),
    (TooManyRequests, ("Rate limit exceeded", "Too many logins")),
    (LeaseLost, ("Lock token required", "Invalid or expired lock token", "Lock not found")),
    (LeaseLost, ("Job not found or not in processing state",)),
    (PayloadTooLarge, ("Job data too large", "Frame too large", "The request holds too many")),
    (PayloadTooLarge, ("The data in this request", "Data of more than")),
    (QueueFull, ("Server memory is full",)),
    (Unavailable, ("Server is shutting down", "Storage failed", "Too many connections")),
    (NotFound, ("Job not found", "Cron job not found", "Worker not found", "Webhook not found")),
)


def refusal(command: str, text: str) -> Refused:
    """Return the error for what a server said in place of an answer."""
    for kind, beginnings in _WORDS:
        if text.startswith(beginnings):
            return kind(command, text)
    if (text.startswith("Queue ") and text.endswith(" is full")) or text.startswith("Group "):
        return QueueFull(command, text)
    return (PayloadTooLarge if "too large" in text else Refused)(command, text)
