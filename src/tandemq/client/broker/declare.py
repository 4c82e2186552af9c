"""Queues that a program declares: made where they are missing, compared where they are not.

A difference of severity INFO changes nothing that was promised. SOFT ones may lose messages
earlier than before, HARD ones send them elsewhere. Only these two conflict. Source: VibeMQ
semantics 15.4.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import IntEnum
from typing import Any, Final

from tandemq.broker.messages import QueueInfo
from tandemq.broker.names import DeliveryMode, OverflowStrategy
from tandemq.broker.options import OnConflict, QueueDeclaration, QueueOptions
from tandemq.client.broker.answers import queue_info
from tandemq.client.broker.way import Ask
from tandemq.client.errors import TandemqError
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.queues import options_text

log = logging.getLogger("tandemq.client")

REDIRECT: Final = OverflowStrategy.REDIRECT_TO_DLQ


class Severity(IntEnum):
    """How much a difference matters."""

    INFO = 0
    SOFT = 1
    HARD = 2


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that is not as it was declared."""

    setting: str  # as in QueueOptions
    existing: Any
    declared: Any
    severity: Severity

    def __str__(self) -> str:
        return f"{self.setting} is {_shown(self.existing)}, declared is {_shown(self.declared)}"


class QueueConflict(TandemqError):
    """A queue exists with other settings than were declared.

    Attributes:
        queue: its name.
        differences: those that conflict.
        severity: of the worst.
    """

    def __init__(self, queue: str, differences: tuple[Difference, ...]) -> None:
        self.queue, self.differences = queue, differences
        self.severity = max(each.severity for each in differences)
        said = "; ".join(map(str, differences))
        super().__init__(
            f"queue {queue!r} exists with other settings: {said}. Declare it as it is, "
            "or with on_conflict=OnConflict.OVERRIDE, which deletes it with its messages"
        )

    def __reduce__(self) -> tuple[type[QueueConflict], tuple[str, tuple[Difference, ...]]]:
        return type(self), (self.queue, self.differences)


def differences(there: QueueInfo, wanted: QueueOptions) -> Iterator[Difference]:
    """Yield what a queue has otherwise than it was declared."""
    for setting, known_as in _SETTINGS.items():
        existing, declared = getattr(there, known_as), getattr(wanted, setting)
        if isinstance(existing, timedelta):
            existing = existing.total_seconds()
        if existing == declared:
            continue
        severity = _SEVERITIES.get(setting, _info)(there, wanted)
        if severity is not None:
            yield Difference(setting, existing, declared, severity)


async def declare(
    queue: str, declared: QueueDeclaration, ask: Ask, on_conflict: OnConflict
) -> None:
    """Let a queue be there as it was declared.

    Raises:
        QueueConflict: it is there otherwise, and that is to fail.
        TandemqError: it could not be asked for, or made.
    """
    wanted = declared.options
    answer = await ask(Kind.QUEUE_INFO, queue)
    if answer.payload is None:
        await ask(Kind.CREATE_QUEUE, queue, options_text(wanted.policy))
        return
    found = tuple(differences(queue_info(answer.payload), wanted))
    conflicts = tuple(each for each in found if each.severity is not Severity.INFO)
    for each in found:
        level = logging.DEBUG
        if on_conflict is OnConflict.IGNORE:
            level = _LEVELS[each.severity]
        log.log(level, "queue %r: %s", queue, each)
    if conflicts and on_conflict is OnConflict.FAIL:
        raise QueueConflict(queue, conflicts)
    if conflicts and on_conflict is OnConflict.OVERRIDE:
        await ask(Kind.DELETE_QUEUE, queue)
        await ask(Kind.CREATE_QUEUE, queue, options_text(wanted.policy))


async def fit(queue: str, mode: DeliveryMode, ask: Ask) -> None:
    """Let a queue be there with a delivery mode, whatever else it is like.

    Raises:
        QueueConflict: it is there with another one.
    """
    wanted = QueueOptions(mode=mode)
    answer = await ask(Kind.QUEUE_INFO, queue)
    if answer.payload is None:
        await ask(Kind.CREATE_QUEUE, queue, options_text(wanted.policy))
        return
    there = differences(queue_info(answer.payload), wanted)
    if found := tuple(each for each in there if each.setting == "mode"):
        raise QueueConflict(queue, found)


async def declare_all(
    declared: Mapping[str, QueueOptions | QueueDeclaration], ask: Ask, *, again: bool
) -> None:
    """Let queues be there, one after the other; after a reconnect no conflict matters.

    Raises:
        QueueConflict, TandemqError: as for one of them.
    """
    for queue, said in declared.items():
        each = said if isinstance(said, QueueDeclaration) else QueueDeclaration(options=said)
        try:
            await declare(queue, each, ask, OnConflict.IGNORE if again else each.on_conflict)
        except QueueConflict:
            raise
        except TandemqError as why:
            if each.fail_on_provisioning_error:
                raise
            log.error("queue %r could not be declared: %s", queue, why)


_LEVELS = {
    Severity.INFO: logging.DEBUG,
    Severity.SOFT: logging.WARNING,
    Severity.HARD: logging.ERROR,
}


_SETTINGS: Final = {  # by the name that QueueInfo has for it
    "mode": "delivery_mode",
    "max_queue_size": "max_size",
    "message_ttl": "message_ttl",
    "enable_dead_letter_queue": "enable_dead_letter_queue",
    "dead_letter_queue_name": "dead_letter_queue_name",
    "overflow_strategy": "overflow_strategy",
    "max_retry_attempts": "max_retry_attempts",
}


# -- severities ----------------------------------------------------------------------------------


def _info(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    return Severity.INFO


def _mode(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    return Severity.HARD


def _ttl(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    before, after = there.message_ttl, wanted.message_ttl
    if after is None:
        return Severity.INFO
    shorter = before is None or timedelta(seconds=float(after)) < before  # type: ignore[arg-type]
    return Severity.SOFT if shorter else Severity.INFO


def _dead_letter_queue(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    return Severity.INFO if wanted.enable_dead_letter_queue else Severity.SOFT


def _dead_letter_name(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    """Of no interest unless both have dead letters."""
    both = there.enable_dead_letter_queue and wanted.enable_dead_letter_queue
    return Severity.HARD if both else None


def _overflow(there: QueueInfo, wanted: QueueOptions) -> Severity | None:
    redirects = wanted.overflow_strategy is REDIRECT
    return Severity.HARD if redirects and not there.enable_dead_letter_queue else Severity.INFO


_SEVERITIES: dict[str, Callable[[QueueInfo, QueueOptions], Severity | None]] = {
    "mode": _mode,
    "message_ttl": _ttl,
    "enable_dead_letter_queue": _dead_letter_queue,
    "dead_letter_queue_name": _dead_letter_name,
    "overflow_strategy": _overflow,
}


def _shown(value: Any) -> str:
    return value.name if isinstance(value, (DeliveryMode, OverflowStrategy)) else repr(value)
