"""What CreateQueue asks for and QueueInfo tells: options of a queue as these wires spell them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from tandemq.model.broker import DEFAULT_POLICY, Mode, Overflow, Policy
from tandemq.model.errors import BadPayload
from tandemq.wires.vibemq.rules import broken_name

if TYPE_CHECKING:
    from tandemq.commands.call import QueueShown

MODES: Final = ("RoundRobin", "FanOutWithAck", "FanOutWithoutAck", "PriorityBased")
STRATEGIES: Final = ("DropOldest", "DropNewest", "BlockPublisher", "RedirectToDlq")
LARGEST: Final = 0x7FFF_FFFF
TICKS: Final = 10_000  # in a millisecond: the finest that a span can tell
LONGEST_SPAN: Final = 0x7FFF_FFFF_FFFF_FFFF // TICKS  # ms


class QueueFacts(Struct, frozen=True, kw_only=True, rename="camel"):
    """The payload of an answer to QueueInfo, members in the reference's order.

    Those with a default were not told by the first releases.
    """

    name: str
    message_count: int
    subscriber_count: int
    delivery_mode: int
    max_size: int
    created_at: str
    message_ttl: str | UnsetType = UNSET
    enable_dead_letter_queue: bool = False
    dead_letter_queue_name: str | UnsetType = UNSET
    overflow_strategy: int = 0
    max_retry_attempts: int = 3


def facts(q: QueueShown) -> QueueFacts:
    """Tell of a queue."""
    policy = q.policy
    ttl, dead_letters = policy.ttl, policy.dead_letter_queue
    return QueueFacts(
        name=q.name,
        message_count=q.waiting,
        subscriber_count=q.subscribers,
        delivery_mode=policy.mode,
        max_size=policy.max_size,
        created_at=moment_text(policy.created),
        message_ttl=UNSET if ttl is None else span_text(ttl),
        enable_dead_letter_queue=policy.dead_letters,
        dead_letter_queue_name=UNSET if dead_letters is None else dead_letters,
        overflow_strategy=policy.overflow,
        max_retry_attempts=policy.max_attempts,
    )


# -- options -------------------------------------------------------------------------------------


class _Options(Struct, rename="camel", omit_defaults=True):
    mode: int | str | None = None
    max_queue_size: int | None = None
    message_ttl: int | float | str | None = None
    enable_dead_letter_queue: bool | None = None
    dead_letter_queue_name: str | None = None
    overflow_strategy: int | str | None = None
    max_retry_attempts: int | None = None
    ack_timeout: int | None = None  # ours, as what follows; spans in ms
    retry_delay: int | None = None
    retry_delay_max: int | None = None
    full_ack_timeout: bool | None = None


_decode = msgspec.json.Decoder(_Options | None).decode
_encode = msgspec.json.Encoder().encode
_NAMES_IN_HEADERS = {
    "deliveryMode": "mode",
    **{field.encode_name: field.encode_name for field in msgspec.structs.fields(_Options)[1:]},
}


def read_options(payload: bytes | None, headers: dict[str, str] | None) -> Policy | None:
    """Return what a CreateQueue asks for; None when it leaves everything to the server.

    What is not said is as in the reference's class, not as a server may have it.

    Raises:
        BadPayload: a value has a wrong type or makes no sense.
    """
    try:
        said = _decode(payload) if payload is not None else _from_headers(headers or {})
    except (msgspec.DecodeError, RecursionError) as exc:
        raise BadPayload(f"Invalid queue options: {exc}.") from exc
    return None if said is None else _checked(said)


def _from_headers(headers: dict[str, str]) -> _Options | None:
    given = {
        member: _value(member, headers[name])
        for name, member in _NAMES_IN_HEADERS.items()
        if name in headers
    }
    return msgspec.convert(given, _Options) if given else None


_whole = re.compile(r"-?\d{1,18}", re.ASCII).fullmatch
_TRUTHS = {"true": True, "false": False}


def _value(member: str, text: str) -> Any:
    """Return the JSON value that a header stands for."""
    if member == "deadLetterQueueName":
        return text
    return int(text) if _whole(text) else _TRUTHS.get(text.lower(), text)


def _checked(said: _Options) -> Policy:
    size = _number("maxQueueSize", said.max_queue_size, 1, DEFAULT_POLICY.max_size)
    most = _number("maxRetryAttempts", said.max_retry_attempts, 0, DEFAULT_POLICY.max_attempts)
    strategy = Overflow(_choice("overflowStrategy", said.overflow_strategy, STRATEGIES))
    if strategy is Overflow.REDIRECT_TO_DLQ and not said.enable_dead_letter_queue:
        raise BadPayload("overflowStrategy RedirectToDlq needs enableDeadLetterQueue.")
    name = said.dead_letter_queue_name or None
    if name is not None and (problem := broken_name(name)):
        raise BadPayload(f"deadLetterQueueName: {problem}")
    usual = DEFAULT_POLICY
    return Policy(
        Mode(_choice("mode", said.mode, MODES)),
        size,
        None if said.message_ttl is None else _ttl(said.message_ttl),
        bool(said.enable_dead_letter_queue),
        name,
        strategy,
        most,
        _number("ackTimeout", said.ack_timeout, 1, usual.ack_wait),
        _number("retryDelay", said.retry_delay, 1, usual.retry_base),
        _number("retryDelayMax", said.retry_delay_max, 1, usual.retry_cap),
        bool(said.full_ack_timeout),
    )


def options_text(policy: Policy) -> bytes:
    """Return the payload of a CreateQueue that asks for this, as the reference's client writes it.

    What only our servers read is said only where it is not as usual.
    """
    usual, ttl = DEFAULT_POLICY, policy.ttl
    return _encode(
        _Options(
            int(policy.mode),
            policy.max_size,
            None if ttl is None else span_text(ttl),
            policy.dead_letters,
            policy.dead_letter_queue,
            int(policy.overflow),
            policy.max_attempts,
            None if policy.ack_wait == usual.ack_wait else policy.ack_wait,
            None if policy.retry_base == usual.retry_base else policy.retry_base,
            None if policy.retry_cap == usual.retry_cap else policy.retry_cap,
            policy.full_wait or None,
        )
    )


def _number(member: str, value: int | None, least: int, default: int) -> int:
    if value is None:
        return default
    if not least <= value <= LARGEST:
        raise BadPayload(f"{member} must be from {least} to {LARGEST}.")
    return value


def _choice(member: str, value: int | str | None, names: Sequence[str]) -> int:
    """Return the number of one of a few names, which may be given as either."""
    if isinstance(value, str):
        for number, name in enumerate(names):
            if value.lower() == name.lower():
                return number
    elif value is None or 0 <= value < len(names):
        return value or 0
    said = ", ".join(f"{number} {name}" for number, name in enumerate(names))
    raise BadPayload(f"{member} must be one of: {said}.")


def _ttl(value: float | str) -> float:
    span = read_span(value) if isinstance(value, str) else value
    if span is None or not 0 < span <= LONGEST_SPAN:
        raise BadPayload("messageTtl must be [d.]hh:mm:ss[.fffffff], or ms, and more than zero.")
    return int(span) if span == int(span) else span


# -- time ----------------------------------------------------------------------------------------

_span = re.compile(
    r"(?P<sign>-?)(?:(?P<days>\d{1,8})\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2})"
    r"(?:\.(?P<fraction>\d{1,7}))?",
    re.ASCII,
).fullmatch
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def read_span(text: str) -> float | None:
    """Read ``[-][d.]hh:mm:ss[.fffffff]`` as ms; None when it is none."""
    found = _span(text)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(found[name] or 0) for name in _PARTS)
    if hours > 23 or minutes > 59 or seconds > 59:
        return None
    whole = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    ticks = whole * 1000 * TICKS + int((found["fraction"] or "").ljust(7, "0"))
    span = ticks // TICKS if ticks % TICKS == 0 else ticks / TICKS
    return -span if found["sign"] else span


_PARTS = ("days", "hours", "minutes", "seconds")


def span_text(ms: float) -> str:
    """Return a span as these wires write it."""
    ticks = round(ms * TICKS)
    seconds, ticks = divmod(ticks, 1000 * TICKS)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours:02}:{minutes:02}:{seconds:02}"
    return (f"{days}." if days else "") + text + (f".{ticks:07}" if ticks else "")


def moment_text(ms: int) -> str:
    """Return a moment in ms as ISO 8601 in UTC."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{ms % 1000:03}Z" if ms % 1000 else "Z")
