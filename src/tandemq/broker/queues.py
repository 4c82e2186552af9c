"""The queues of a server, for the program that it is embedded in (``QueueManager``).

What changes something waits where others wait, and returns when it is kept. It raises
``TandemqError`` for what is refused or could not be kept, ``ConnectionError`` when the server stops
meanwhile, and ``RuntimeError`` where it is not running.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from tandemq.broker.messages import BrokerMessage, QueueInfo
from tandemq.broker.names import MessagePriority
from tandemq.broker.options import QueueOptions
from tandemq.commands.bulk import Drain
from tandemq.commands.call import QueueShown
from tandemq.commands.manage import Cancel
from tandemq.commands.queues import CreateQueue, DeleteQueue, ListQueues
from tandemq.commands.queues import QueueInfo as AskQueueInfo
from tandemq.engine.inspect import pending
from tandemq.model.crossing import Uncarriable, name_of, payload_of
from tandemq.model.errors import BadRequest, NotFound, TooLarge
from tandemq.model.message import Message
from tandemq.server.census import taken
from tandemq.server.inside import Inside
from tandemq.wires.vibemq import requests
from tandemq.wires.vibemq.frames import Frame, fresh_id
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.levels import priority
from tandemq.wires.vibemq.rules import broken_name


class Queues(ABC):
    """Keeps to ``QueueManager`` for whoever has an ``Inside``."""

    @property
    @abstractmethod
    def _inside(self) -> Inside:
        """Who asks; raises ``RuntimeError`` while there is no running server."""

    @property
    def queue_count(self) -> int:
        """How many queues there are."""
        return taken(self._inside.call.engine).named

    def list_queues(self) -> list[str]:
        """Return the names of all queues, sorted."""
        return sorted(self._inside.look(ListQueues()))

    def get_queue_info(self, name: str) -> QueueInfo | None:
        """Return what a queue is like, None where there is none."""
        shown = self._inside.look(AskQueueInfo(queue=name))
        return None if shown is None else _info(shown)

    async def create_queue(self, name: str, options: QueueOptions | None = None) -> None:
        """Make a queue, by default as the settings say; one that exists stays as it is."""
        if problem := broken_name(name):
            raise BadRequest(problem)
        policy = None if options is None else options.policy
        await self._inside.ask(CreateQueue(queue=name, policy=policy))

    async def delete_queue(self, name: str) -> None:
        """Remove a queue with everything in it; who is subscribed stays so, for the next one."""
        await self._inside.ask(DeleteQueue(queue=name))

    async def purge_queue(self, name: str) -> int:
        """Remove what waits in a queue, not what somebody holds; return how many it were."""
        return int((await self._inside.ask(Drain(queue=name)))["count"])

    def pending_messages(
        self, queue: str, *, limit: int = 50, offset: int = 0
    ) -> list[BrokerMessage]:
        """Return messages that wait in a queue, in the order in which they would be delivered."""
        waiting = pending(self._inside.call.engine.queues.get(queue))
        return [_shown(m) for m in islice(waiting, offset, offset + limit)]

    async def remove_message(self, queue: str, id: str) -> bool:
        """Remove the first waiting message of this id; False where there is none."""
        waiting = pending(self._inside.call.engine.queues.get(queue))
        m = next((m for m in waiting if name_of(m) == id), None)
        if m is None:
            return False
        try:
            await self._inside.ask(Cancel(id=m.id))
        except NotFound:  # somebody was sooner
            return False
        return True

    async def publish(
        self,
        queue: str,
        payload: Any,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        priority: MessagePriority = MessagePriority.NORMAL,
    ) -> str:
        """Put a message into a queue, and return its id when it is kept.

        ``payload`` is anything that JSON can carry; None is none.
        """
        said = None if payload is None else msgspec.json.encode(payload)
        most = self._inside.call.host.settings.max_message_size  # type: ignore[attr-defined]
        if said is not None and len(said) > most:
            raise TooLarge(f"The payload has {len(said)} bytes; {most} are allowed.")
        told = dict(headers or {})
        if priority is not MessagePriority.NORMAL:
            told["priority"] = priority.name.lower()
        name = id or fresh_id()
        request = requests.read(Frame(Kind.PUBLISH, name, queue, said, told or None))
        if isinstance(request, requests.Refusal):
            raise request.error
        await self._inside.ask(request)
        return name


def _info(q: QueueShown) -> QueueInfo:
    policy = q.policy
    return QueueInfo(
        name=q.name,
        message_count=q.waiting,
        subscriber_count=q.subscribers,
        delivery_mode=policy.mode,
        max_size=policy.max_size,
        created_at=_moment(policy.created),
        message_ttl=None if policy.ttl is None else timedelta(milliseconds=policy.ttl),
        enable_dead_letter_queue=policy.dead_letters,
        dead_letter_queue_name=policy.dead_letter_queue,
        overflow_strategy=policy.overflow,
        max_retry_attempts=policy.max_attempts,
    )


def _shown(m: Message) -> BrokerMessage:
    """Show a message; data of a job that JSON cannot carry are shown as the bytes they are."""
    headers = (m.letter.headers if m.letter is not None else None) or {}
    level = priority(headers) if headers else max(0, min(3, m.priority + 1))
    try:
        text = payload_of(m)
        payload = msgspec.json.decode(text) if text else None
    except Uncarriable:
        payload = m.body
    return BrokerMessage(
        id=name_of(m),
        queue_name=m.queue,
        payload=payload,
        timestamp=_moment(m.created),
        headers=headers,
        priority=MessagePriority(level),
        delivery_attempts=m.attempts,
    )


def _moment(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1_000, UTC)
