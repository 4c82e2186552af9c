"""From the fields of a frame to the command that it asks for, checked as far as that goes here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from tandemq.commands.all import BROKER
from tandemq.commands.broker import Ack, Nack, Publish, Subscribe, Unsubscribe
from tandemq.commands.greeting import Connect, Disconnect, Ping
from tandemq.commands.queues import CreateQueue, DeleteQueue, ListQueues, QueueInfo
from tandemq.commands.table import BrokerRequest, Command
from tandemq.model.broker import WINDOW
from tandemq.model.errors import BadRequest, QueueRequired, TandemqError, UnknownCommand
from tandemq.wires.vibemq import rules
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES, Kind, shown
from tandemq.wires.vibemq.levels import NORMAL, priority
from tandemq.wires.vibemq.queues import read_options

LONGEST_ADMIN: Final = 1 << 16  # bytes of the payload of a command about users


class Ticket(Struct, frozen=True, gc=False):
    """What the answer to a frame repeats, and what a Connect offers besides."""

    id: str | None  # None: none could be read
    reply: Kind | None = None  # the type of a good answer, None where there is none
    queue: str | None = None
    compressions: str | None = None
    extensions: str | None = None


class Refusal(NamedTuple):
    """A frame that holds no request we could run.

    Attributes:
        req_id: whom to tell.
        formed: it was a command, though perhaps an unknown one or without what it needs; a peer
            that has not logged in is told that instead.
        row: of the command that it would have been; whoever may not give it is told that instead.
    """

    error: TandemqError
    req_id: Ticket
    formed: bool = False
    row: Command | None = None


def read(frame: Frame, *, nack: bool = False) -> BrokerRequest | Refusal:
    """Return what a frame asks for; ``nack`` says whether both sides know that command."""
    kind = frame.kind
    if problem := rules.broken(frame):
        return Refusal(BadRequest(problem), Ticket(frame.id or None))
    if isinstance(kind, str):
        return Refusal(unknown(kind), Ticket(frame.id))  # the reference cannot even read it
    make = _MAKE.get(kind) if kind != Kind.NACK or nack else None
    if make is None:
        return Refusal(unknown(kind), Ticket(frame.id), True)
    try:
        return make(frame)
    except TandemqError as error:
        return Refusal(error, Ticket(frame.id), True, BROKER[NAMES[kind]])


def unknown(kind: int | str) -> UnknownCommand:
    """Return the refusal of a type that is none, or none here."""
    return UnknownCommand(f"Unknown command type: {shown(kind)}")


# -- from fields to requests ---------------------------------------------------------------------


def _connect(f: Frame) -> Connect:
    said = (f.headers or {}).get
    offer = said("supported-compression"), said("supported-extensions")
    return Connect(
        token=said("authToken") or None,
        username=said("authUsername") or None,
        password=said("authPassword") or None,
        req_id=Ticket(f.id, Kind.CONNECT_ACK, None, *offer),
    )


def _publish(f: Frame) -> Publish:
    queue, headers = _queue(f, "publish"), f.headers
    return Publish(
        queue=queue,
        id=f.id,
        payload=f.payload or b"",
        headers=headers,
        level=NORMAL if headers is None else priority(headers),
        req_id=Ticket(f.id, Kind.PUBLISH_ACK, queue),
    )


_prefetch = re.compile(r"\d{1,9}", re.ASCII).fullmatch


def _subscribe(f: Frame) -> Subscribe:
    queue, said = _queue(f, "subscribe"), (f.headers or {}).get("prefetch")
    if said is not None and not (_prefetch(said) and int(said)):
        raise BadRequest("prefetch must be a whole number, 1 or more.")
    window = WINDOW if said is None else min(int(said), WINDOW)
    return Subscribe(queue=queue, window=window, req_id=Ticket(f.id, Kind.SUBSCRIBE_ACK, queue))


def _message(f: Frame) -> str:
    """Return the id of the message that is settled, in the manner of code or of documents."""
    return (f.headers or {}).get("messageId") or f.id


_delay = re.compile(r"\d{1,15}", re.ASCII).fullmatch


def _nack(f: Frame) -> Nack:
    delay = (f.headers or {}).get("delay", "0")
    if not _delay(delay):
        raise BadRequest("delay must be a whole number of milliseconds.")
    return Nack(message=_message(f), delay=int(delay), req_id=Ticket(f.id))


def _queue(f: Frame, command: str) -> str:
    if f.queue is None:
        raise QueueRequired(f"Queue name is required for {command}.")
    return f.queue


def _about_queue(
    make: Callable[..., BrokerRequest], command: str, reply: Kind
) -> Callable[[Frame], BrokerRequest]:
    """Return what reads a command that says no more than which queue it is about."""

    def read_it(f: Frame) -> BrokerRequest:
        queue = _queue(f, command)
        return make(queue=queue, req_id=Ticket(f.id, reply, queue))

    return read_it


def _create(f: Frame) -> CreateQueue:
    queue = _queue(f, "CreateQueue")
    policy = read_options(f.payload, f.headers)
    return CreateQueue(queue=queue, policy=policy, req_id=Ticket(f.id, Kind.CREATE_QUEUE, queue))


def _admin(kind: Kind) -> Callable[[Frame], BrokerRequest]:
    """Return what reads a command about users, which looks into its payload itself."""
    make: Any = BROKER[NAMES[kind]].request

    def read_it(f: Frame) -> BrokerRequest:
        request: BrokerRequest = make(payload=_value(f.payload), req_id=Ticket(f.id, kind))
        return request

    return read_it


def _value(payload: bytes | None) -> Any:
    """Return what a payload says; None where it says nothing, or nothing that can be read.

    Nobody's name and rights are as long as messages are: a long one is not looked into.
    """
    if payload is None or len(payload) > LONGEST_ADMIN:
        return None
    try:
        return msgspec.json.decode(payload)
    except (msgspec.MsgspecError, RecursionError):
        return None


_MAKE: dict[int, Callable[[Frame], BrokerRequest]] = {
    Kind.CONNECT: _connect,
    Kind.DISCONNECT: lambda f: Disconnect(req_id=Ticket(f.id)),
    Kind.PING: lambda f: Ping(req_id=Ticket(f.id, Kind.PONG)),
    Kind.PUBLISH: _publish,
    Kind.SUBSCRIBE: _subscribe,
    Kind.UNSUBSCRIBE: _about_queue(Unsubscribe, "unsubscribe", Kind.UNSUBSCRIBE_ACK),
    Kind.ACK: lambda f: Ack(messages=[_message(f)], req_id=Ticket(f.id)),
    Kind.NACK: _nack,
    Kind.CREATE_QUEUE: _create,
    Kind.DELETE_QUEUE: _about_queue(DeleteQueue, "DeleteQueue", Kind.DELETE_QUEUE),
    Kind.QUEUE_INFO: _about_queue(QueueInfo, "QueueInfo", Kind.QUEUE_INFO),
    Kind.LIST_QUEUES: lambda f: ListQueues(req_id=Ticket(f.id, Kind.LIST_QUEUES)),
    **{kind: _admin(kind) for kind in Kind if 50 <= kind <= 56 and NAMES[kind] in BROKER},
}
