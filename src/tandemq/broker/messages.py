"""Messages and queues as a broker shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tandemq.broker.names import DeliveryMode, MessagePriority, OverflowStrategy


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerMessage:
    """A message."""

    id: str  # as its publisher named it; two may have the same
    queue_name: str
    payload: Any  # anything that JSON can carry; None for none, too
    timestamp: datetime  # when it was accepted
    headers: Mapping[str, str] = field(default_factory=dict)
    version: str = "1.0"  # of the schema
    priority: MessagePriority = MessagePriority.NORMAL
    delivery_attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueInfo:
    """The state of a queue."""

    name: str
    message_count: int  # messages that wait; what somebody holds does not count
    subscriber_count: int
    delivery_mode: DeliveryMode
    max_size: int
    created_at: datetime
    message_ttl: timedelta | None
    enable_dead_letter_queue: bool
    dead_letter_queue_name: str | None
    overflow_strategy: OverflowStrategy
    max_retry_attempts: int
