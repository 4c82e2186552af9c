"""Every refusal the server can give, as one small tree. Wires choose the words, not the cause.

Anything raised that is not of this tree is a bug, and a bug says nothing of itself to the peer.
"""

from __future__ import annotations

from typing import Self


class TandemqError(Exception):
    """A refusal caused by the request or by the state of the server.

    ``code`` is stable and machine-readable; ``fatal`` means the connection cannot continue;
    ``retry`` means that the same request may succeed later.
    """

    code = "error"
    fatal = False
    retry = False

    def afresh(self) -> Self:
        """Return the same refusal, to be kept or raised without what it was raised in.

        A traceback holds frames, and those hold all that they work on: a request of megabytes.
        """
        kind = type(self)
        fresh = kind.__new__(kind, *self.args)
        fresh.__dict__.update(self.__dict__)
        return fresh


class BadRequest(TandemqError):
    """The request is malformed or out of range; the text names the field and what is allowed."""

    code = "bad-request"


class UnknownCommand(BadRequest):
    """No command has this name (names are case-sensitive)."""

    code = "unknown-command"


class QueueRequired(BadRequest):
    """The command needs the name of a queue and has none."""

    code = "queue-required"


class BadPayload(BadRequest):
    """What a command is to do stands in its payload, and cannot be read there."""

    code = "bad-payload"


class GroupFull(TandemqError):
    """As many messages of a group wait as its publisher allows."""

    code = "group-full"
    retry = True

    def __init__(self, group: str, size: int) -> None:
        super().__init__(group, size)
        self.group, self.size = group, size


class QueueFull(TandemqError):
    """As many messages wait in a queue as it may hold, and none of them is dropped for another."""

    code = "queue-full"
    retry = True

    def __init__(self, queue: str) -> None:
        super().__init__(queue)
        self.queue = queue


class MustWait(QueueFull):
    """The queue is full, and its publishers wait until there is room."""

    code = "must-wait"


class MemoryFull(TandemqError):
    """As much is stored as the memory allows, and what is new was not let in."""

    code = "memory-full"
    retry = True


class NotFound(TandemqError):
    """The named thing does not exist."""

    code = "not-found"


class UserNotFound(NotFound):
    """There is no user of this name (names are case-sensitive)."""

    code = "user-not-found"

    def __init__(self, name: str) -> None:
        super().__init__(f"User '{name}' not found.")


class UserExists(TandemqError):
    """There is a user of this name already."""

    code = "user-exists"

    def __init__(self, name: str) -> None:
        super().__init__(f"User '{name}' already exists.")


class AboutMessage(TandemqError):
    """A refusal that concerns one message."""

    def __init__(self, id: object) -> None:
        super().__init__(id)
        self.id = id


class NotLeased(AboutMessage):
    """The message does not exist, or nobody holds it, so it cannot be settled."""

    code = "not-leased"


class TokenRequired(AboutMessage):
    """The message is held under a lease with a token, and none was given."""

    code = "token-required"


class WrongToken(AboutMessage):
    """The token is not that of the present lease."""

    code = "wrong-token"


class NotActive(TandemqError):
    """The operation needs a leased message; the text names the state it is in."""

    code = "not-active"


class Unauthenticated(TandemqError):
    """The connection has not proved who it is."""

    code = "unauthenticated"


class CredentialsRequired(TandemqError):
    """The connection is to prove who it is and has not begun to; the text names what it takes."""

    code = "auth-required"


class BadCredentials(TandemqError):
    """The token is none of the accepted ones."""

    code = "bad-credentials"


class BadPassword(BadCredentials):
    """There is no such user, or the password is another; it is not told which."""

    code = "bad-password"

    def __init__(self) -> None:
        super().__init__("Invalid username or password.")


class NotAuthorized(TandemqError):
    """It is known who asks, and that one may not do this; the text says what it would take."""

    code = "not-authorized"


class AccessDenied(NotAuthorized):
    """Nothing that was granted to who asks allows this operation with this queue."""

    code = "access-denied"

    def __init__(self, operation: str) -> None:
        super().__init__("Access denied.")
        self.operation = operation


class Forbidden(TandemqError):
    """Nobody may do this."""

    code = "forbidden"


class Busy(TandemqError):
    """Too many passwords wait to be checked."""

    code = "busy"
    retry = True


class TooManySearches(Busy):
    """So many searches are on their way that another one would wait for long."""

    code = "too-many-searches"


class RateLimited(TandemqError):
    """This connection sent more requests than its window allows."""

    code = "rate-limited"
    retry = True


class Overloaded(TandemqError):
    """The server is at a limit of its own."""

    code = "overloaded"
    fatal = True
    retry = True


class ShuttingDown(TandemqError):
    """The server is about to stop and takes nothing new."""

    code = "shutting-down"
    retry = True


class TooManyConnections(Overloaded):
    """As many connections as the server takes are open."""

    code = "too-many-connections"

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self.limit = limit


class StorageFailed(TandemqError):
    """The change could not be stored and was undone; repeat it when writing works again."""

    code = "storage-failed"
    retry = True


class Malformed(TandemqError):
    """The frame holds no command that can be read; the stream itself is intact."""

    code = "malformed"


class Undecodable(Malformed):
    """The frame could not be taken apart, so the peer may have lost its place in the stream."""

    code = "undecodable"
    fatal = True


class TooLarge(TandemqError):
    """The answer is longer than what its reader accepts; ask for less."""

    code = "too-large"


class FrameTooLarge(TandemqError):
    """The peer announced a frame longer than the limit; the stream is unusable."""

    code = "frame-too-large"
    fatal = True

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(size, limit)
        self.size, self.limit = size, limit


def every_error(root: type[TandemqError] = TandemqError) -> set[type[TandemqError]]:
    """Return the whole tree, for tests that want a row for each."""
    return {root}.union(*map(every_error, root.__subclasses__()))
