"""The words of a broker: its errors as ours, its names of commands, and what it tells of queues."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import msgspec

from tandemq.broker.messages import QueueInfo
from tandemq.broker.names import DeliveryMode, OverflowStrategy
from tandemq.client.errors import (
    NotAuthorized,
    NotFound,
    QueueFull,
    Refused,
    TooManyRequests,
    Unavailable,
    WrongServer,
)
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import NAMES, Kind
from tandemq.wires.vibemq.queues import QueueFacts, read_span

_KINDS: Final[dict[str, type[Refused]]] = {
    "NOT_AUTHENTICATED": NotAuthorized,
    "AUTH_REQUIRED": NotAuthorized,
    "AUTH_FAILED": NotAuthorized,
    "NOT_AUTHORIZED": NotAuthorized,
    "FORBIDDEN": NotAuthorized,
    "QUEUE_NOT_FOUND": NotFound,
    "USER_NOT_FOUND": NotFound,
    "QUEUE_FULL": QueueFull,
    "RATE_LIMITED": TooManyRequests,
    "CONNECTION_LIMIT": Unavailable,
    "SERVER_SHUTTING_DOWN": Unavailable,
}

_facts = msgspec.json.Decoder(QueueFacts).decode
_names = msgspec.json.Decoder(list[str]).decode


def word(kind: Kind) -> str:
    """Return the name of a command as errors tell it."""
    return NAMES[kind].removeprefix("Admin")


def refusal(kind: Kind, answer: Frame) -> Refused:
    """Return the error for an Error that answers a command."""
    made = _KINDS.get(answer.code or "", Refused)
    return made(word(kind), answer.text or answer.code or "the broker gives no reason")


def queue_info(payload: bytes) -> QueueInfo:
    """Return what a broker tells of a queue.

    Raises:
        WrongServer: it makes no sense.
    """
    try:
        return _info(_facts(payload))
    except (msgspec.MsgspecError, ValueError) as why:
        raise WrongServer(f"the broker tells of a queue what cannot be read: {why}") from None


def _info(said: QueueFacts) -> QueueInfo:
    ttl = said.message_ttl if isinstance(said.message_ttl, str) else None
    name = said.dead_letter_queue_name
    return QueueInfo(
        name=said.name,
        message_count=said.message_count,
        subscriber_count=said.subscriber_count,
        delivery_mode=DeliveryMode(said.delivery_mode),
        max_size=said.max_size,
        created_at=datetime.fromisoformat(said.created_at),
        message_ttl=None if ttl is None else timedelta(milliseconds=read_span(ttl) or 0),
        enable_dead_letter_queue=said.enable_dead_letter_queue,
        dead_letter_queue_name=name if isinstance(name, str) else None,
        overflow_strategy=OverflowStrategy(said.overflow_strategy),
        max_retry_attempts=said.max_retry_attempts,
    )


def names(payload: bytes | None) -> list[str]:
    """Return the names that a broker lists.

    Raises:
        WrongServer: they make no sense.
    """
    try:
        return _names(payload or b"[]")
    except msgspec.MsgspecError as why:
        raise WrongServer(f"the broker lists queues in a way that cannot be read: {why}") from None
