"""The typed requests of a client: what each command asks for, checked as far as that goes here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from tandemq.model.errors import BadRequest, QueueRequired, TandemqError, UnknownCommand
from tandemq.wires.vibemq import rules, users
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind, shown
from tandemq.wires.vibemq.queues import QueueOptions, read_options

LOW, NORMAL, HIGH, CRITICAL = range(4)
PRIORITIES: Final = {
    "0": LOW, "1": NORMAL, "2": HIGH, "3": CRITICAL,
    "low": LOW, "normal": NORMAL, "high": HIGH, "critical": CRITICAL,
}  # fmt: skip


class Request(Struct, gc=False):
    """What every request has. ``reply`` is the type of a good answer, None where there is none."""

    kind: ClassVar[Kind]
    reply: ClassVar[Kind | None]

    id: str


class Connect(Request):
    """Say who is asking, and what the client can do."""

    kind, reply = Kind.CONNECT, Kind.CONNECT_ACK
    token: str | None = None
    username: str | None = None
    password: str | None = None
    compressions: str | None = None  # names, as they were offered
    extensions: str | None = None  # likewise


class Disconnect(Request):
    """Go; nothing is answered."""

    kind, reply = Kind.DISCONNECT, None


class Ping(Request):
    """Ask for a sign of life."""

    kind, reply = Kind.PING, Kind.PONG


class Publish(Request):
    """Put a message into a queue; its id is that of the request."""

    kind, reply = Kind.PUBLISH, Kind.PUBLISH_ACK
    queue: str
    payload: bytes | None = None  # JSON text, as it came
    headers: dict[str, str] | None = None  # all of them, as they came
    priority: int = NORMAL  # LOW to CRITICAL


class Subscribe(Request):
    """Want the messages of a queue."""

    kind, reply = Kind.SUBSCRIBE, Kind.SUBSCRIBE_ACK
    queue: str


class Unsubscribe(Request):
    """Want them no more."""

    kind, reply = Kind.UNSUBSCRIBE, Kind.UNSUBSCRIBE_ACK
    queue: str


class Ack(Request):
    """A message is done."""

    kind, reply = Kind.ACK, None
    message: str  # its id


class Nack(Request):
    """Give a message back."""

    kind, reply = Kind.NACK, None
    message: str
    delay: int = 0  # ms until it comes again


class CreateQueue(Request):
    """Make a queue, unless there is one of that name."""

    kind = reply = Kind.CREATE_QUEUE
    queue: str
    options: QueueOptions | None = None  # None: the server's defaults


class DeleteQueue(Request):
    """Remove a queue and what waits in it."""

    kind = reply = Kind.DELETE_QUEUE
    queue: str


class QueueInfo(Request):
    """Ask what a queue is like."""

    kind = reply = Kind.QUEUE_INFO
    queue: str


class ListQueues(Request):
    """Ask for the names of all queues."""

    kind = reply = Kind.LIST_QUEUES


class AdminCreateUser(Request):
    """Make a user."""

    kind = reply = Kind.ADMIN_CREATE_USER
    username: str
    password: str


class AdminDeleteUser(Request):
    """Remove a user."""

    kind = reply = Kind.ADMIN_DELETE_USER
    username: str


class AdminChangePassword(Request):
    """Give a user another password."""

    kind = reply = Kind.ADMIN_CHANGE_PASSWORD
    username: str
    new_password: str


class AdminGrantPermission(Request):
    """Allow a user something in the queues that match a pattern, and nothing else there."""

    kind = reply = Kind.ADMIN_GRANT_PERMISSION
    username: str
    queue_pattern: str
    operations: tuple[str, ...]  # of users.OPERATIONS, at least one


class AdminRevokePermission(Request):
    """Take back what was allowed for a pattern."""

    kind = reply = Kind.ADMIN_REVOKE_PERMISSION
    username: str
    queue_pattern: str


class AdminListUsers(Request):
    """Ask for all users."""

    kind = reply = Kind.ADMIN_LIST_USERS


class AdminGetUserPermissions(Request):
    """Ask what a user may do."""

    kind = reply = Kind.ADMIN_GET_USER_PERMISSIONS
    username: str


class Refusal(NamedTuple):
    """A frame that holds no request we could run.

    Attributes:
        id: whom to tell, None when no id could be read.
        formed: it was a command, though perhaps an unknown one or without what it needs; a peer
            that has not logged in is told that instead.
        of: the request that it would have been; whoever may not make it is told that instead.
    """

    error: TandemqError
    id: str | None
    formed: bool = False
    of: type[Request] | None = None


def read(frame: Frame, *, nack: bool = False) -> Request | Refusal:
    """Return what a frame asks for; ``nack`` says whether both sides know that command."""
    if problem := rules.broken(frame):
        return Refusal(BadRequest(problem), frame.id or None)
    kind = frame.kind
    if isinstance(kind, str):
        return Refusal(unknown(kind), frame.id)  # the reference cannot read such a frame at all
    make = _MAKE.get(kind) if kind != Kind.NACK or nack else None
    if make is None:
        return Refusal(unknown(kind), frame.id, True)
    try:
        return make(frame)
    except TandemqError as error:
        return Refusal(error, frame.id, True, BY_KIND[kind])


def unknown(kind: int | str) -> UnknownCommand:
    """Return the refusal of a type that is none, or none here."""
    return UnknownCommand(f"Unknown command type: {shown(kind)}")


# -- from fields to requests ---------------------------------------------------------------------


def _connect(f: Frame) -> Connect:
    said = (f.headers or {}).get
    return Connect(
        f.id,
        said("authToken") or None,
        said("authUsername") or None,
        said("authPassword") or None,
        said("supported-compression"),
        said("supported-extensions"),
    )


def _publish(f: Frame) -> Publish:
    headers = f.headers
    if headers is None:
        return Publish(f.id, _queue(f, "publish"), f.payload)
    return Publish(f.id, _queue(f, "publish"), f.payload, headers, priority(headers))


def priority(headers: dict[str, str]) -> int:
    """Return the level that a message asks for; what is none is normal."""
    said = headers.get("priority")
    return NORMAL if said is None else PRIORITIES.get(said.strip().lower(), NORMAL)


def _message(f: Frame) -> str:
    """Return the id of the message that is settled, in the manner of code or of documents."""
    return (f.headers or {}).get("messageId") or f.id


_delay = re.compile(r"\d{1,15}", re.ASCII).fullmatch


def _nack(f: Frame) -> Nack:
    delay = (f.headers or {}).get("delay", "0")
    if not _delay(delay):
        raise BadRequest("delay must be a whole number of milliseconds.")
    return Nack(f.id, _message(f), int(delay))


def _queue(f: Frame, command: str) -> str:
    if f.queue is None:
        raise QueueRequired(f"Queue name is required for {command}.")
    return f.queue


_MAKE: dict[int, Callable[[Frame], Request]] = {
    Kind.CONNECT: _connect,
    Kind.DISCONNECT: lambda f: Disconnect(f.id),
    Kind.PING: lambda f: Ping(f.id),
    Kind.PUBLISH: _publish,
    Kind.SUBSCRIBE: lambda f: Subscribe(f.id, _queue(f, "subscribe")),
    Kind.UNSUBSCRIBE: lambda f: Unsubscribe(f.id, _queue(f, "unsubscribe")),
    Kind.ACK: lambda f: Ack(f.id, _message(f)),
    Kind.NACK: _nack,
    Kind.CREATE_QUEUE: lambda f: CreateQueue(
        f.id, _queue(f, "CreateQueue"), read_options(f.payload, f.headers)
    ),
    Kind.DELETE_QUEUE: lambda f: DeleteQueue(f.id, _queue(f, "DeleteQueue")),
    Kind.QUEUE_INFO: lambda f: QueueInfo(f.id, _queue(f, "QueueInfo")),
    Kind.LIST_QUEUES: lambda f: ListQueues(f.id),
    Kind.ADMIN_CREATE_USER: lambda f: AdminCreateUser(f.id, *users.new_login(f.payload)),
    Kind.ADMIN_DELETE_USER: lambda f: AdminDeleteUser(f.id, users.one(f.payload)),
    Kind.ADMIN_CHANGE_PASSWORD: lambda f: AdminChangePassword(
        f.id, *users.login(f.payload, "newPassword")
    ),
    Kind.ADMIN_GRANT_PERMISSION: lambda f: AdminGrantPermission(f.id, *users.grant(f.payload)),
    Kind.ADMIN_REVOKE_PERMISSION: lambda f: AdminRevokePermission(f.id, *users.pattern(f.payload)),
    Kind.ADMIN_LIST_USERS: lambda f: AdminListUsers(f.id),
    Kind.ADMIN_GET_USER_PERMISSIONS: lambda f: AdminGetUserPermissions(f.id, users.one(f.payload)),
}

BY_KIND: Final[dict[int, type[Request]]] = {r.kind: r for r in Request.__subclasses__()}
