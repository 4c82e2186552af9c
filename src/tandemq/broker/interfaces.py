"""The interfaces of the second founding document, as protocols.

``MessageStore``: where messages survive the process; ``BrokerBuilder.use_storage`` takes anything
that keeps to it. ``AuthenticationService``: who is who, and who may do what. Both are the protocols
that the server itself rests on. ``QueueManager`` and ``BrokerMetrics`` are what ``BrokerServer``
and its ``metrics`` keep to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from tandemq.broker.messages import BrokerMessage, QueueInfo
from tandemq.broker.names import MessagePriority
from tandemq.broker.options import QueueOptions
from tandemq.commands.call import Accounts as AuthenticationService
from tandemq.stores.base import Store as MessageStore

__all__ = ["AuthenticationService", "BrokerMetrics", "MessageStore", "QueueManager"]


class QueueManager(Protocol):
    """The queues of a broker. What changes something returns when that is kept."""

    @property
    def queue_count(self) -> int: ...

    def list_queues(self) -> list[str]:
        """Return the names of all queues, sorted."""

    def get_queue_info(self, name: str) -> QueueInfo | None:
        """Return what a queue is like, None where there is none."""

    async def create_queue(self, name: str, options: QueueOptions | None = None) -> None:
        """Make a queue; one that exists stays as it is."""

    async def delete_queue(self, name: str) -> None:
        """Remove a queue with everything in it; one that does not exist is removed already."""

    async def purge_queue(self, name: str) -> int:
        """Remove what waits in a queue, not what somebody holds; return how many it were."""

    def pending_messages(
        self, queue: str, *, limit: int = 50, offset: int = 0
    ) -> list[BrokerMessage]:
        """Return messages that wait in a queue, in the order in which they would be delivered."""

    async def remove_message(self, queue: str, id: str) -> bool:
        """Remove the first waiting message of this id; False where there is none."""

    async def publish(
        self,
        queue: str,
        payload: Any,
        *,
        id: str | None = None,
        headers: Mapping[str, str] | None = None,
        priority: MessagePriority = MessagePriority.NORMAL,
    ) -> str:
        """Put a message into a queue, and return its id when it is kept."""


class BrokerMetrics(Protocol):
    """The figures of a broker at one moment; totals count since the start."""

    @property
    def total_messages_published(self) -> int: ...
    @property
    def total_messages_delivered(self) -> int: ...
    @property
    def total_messages_acknowledged(self) -> int: ...
    @property
    def total_retries(self) -> int: ...
    @property
    def total_dead_lettered(self) -> int: ...
    @property
    def total_errors(self) -> int: ...
    @property
    def total_connections_accepted(self) -> int: ...
    @property
    def total_connections_rejected(self) -> int: ...
    @property
    def active_connections(self) -> int: ...
    @property
    def active_queues(self) -> int: ...
    @property
    def in_flight_messages(self) -> int: ...
    @property
    def memory_usage_bytes(self) -> int: ...
    @property
    def average_delivery_latency_ms(self) -> float: ...
