"""A client of the broker: publish messages, subscribe to queues, look after queues and users.

One connection, which comes back by itself. A publish that was written when it broke fails with
``ConnectionLost``, one that was not with ``NotSent``, and neither is repeated by itself; what is
asked while the connection is away waits for it as long as an answer may take.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Self

from tandemq.broker.messages import QueueInfo
from tandemq.broker.names import DeliveryMode, MessagePriority
from tandemq.broker.options import ClientOptions, OnConflict, QueueDeclaration, QueueOptions
from tandemq.client.broker.answers import names, queue_info
from tandemq.client.broker.bodies import encoded
from tandemq.client.broker.declare import declare
from tandemq.client.broker.handlers import GRACE, Listener, Wants, wants, work_of
from tandemq.client.broker.strings import place
from tandemq.client.broker.subscription import Subscription
from tandemq.client.broker.subscriptions import Subscriptions
from tandemq.client.broker.users import Users
from tandemq.client.errors import BadOption, Misused
from tandemq.wires.vibemq.kinds import Kind
from tandemq.wires.vibemq.queues import options_text

FOREVER: Final = float("inf")


class Broker:
    """A client; it belongs to the event loop in which it connects.

    ``url`` is one of ours, ``tandemq://user:token@host:6789``, or a connection string of VibeMQ.
    Any field of ``ClientOptions`` may be given by name.

    Raises:
        WrongUrl, BadOption: it cannot be read, or a value makes no sense.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        options: ClientOptions | None = None,
        handlers: Iterable[Any] = (),
        **changes: Any,
    ) -> None:
        host, port, said = place(url)
        try:
            self.options = replace(options or ClientOptions(), **{**said, **changes})
        except (TypeError, ValueError) as why:
            raise BadOption(str(why)) from None
        self._subscriptions = Subscriptions(host, port, self.options)
        self._way = self._subscriptions.way
        self.users = Users(lambda kind, payload: self._way.ask(kind, None, payload))
        self._handlers = list(handlers)
        self._listeners: list[Listener] = []

    def __repr__(self) -> str:
        state = "connected" if self.is_connected else "not connected"
        return f"<Broker {self.address}, {state}>"

    @property
    def address(self) -> str:
        """Host and port."""
        return str(self._way)

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now, with every subscription on it."""
        return self._way.link is not None

    # -- connecting ------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        return await self.connect()

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()

    async def connect(self, *, patience: float = 0.0) -> Self:
        """Connect, declare what is declared, and let the handlers begin.

        Where nobody answers it is tried again for ``patience`` s, as the reconnect policy says.

        Raises:
            ConnectFailed, NotAuthorized, Refused, QueueConflict, Closed
        """
        if await self._way.connect(patience):
            try:
                for handler in self._handlers:
                    await self.attach(handler)
            except BaseException:
                await self.disconnect(grace=0.0)
                raise
        return self

    async def run(self) -> None:
        """Let the handlers work until this is cancelled; wait for a broker that is not there yet.

        Raises:
            ConnectionLost: the reconnect policy allows no more attempts.
            Misused: there are none.
        """
        if not (self._handlers or self._listeners):
            raise Misused("there is nothing to run: give handlers=[...] or call attach first")
        await self.connect(patience=FOREVER)
        try:
            await asyncio.gather(*(each.wait() for each in self._listeners))
        finally:
            await self.disconnect()

    async def disconnect(self, *, grace: float = GRACE) -> None:
        """Let handlers end what they are at within so many s, say goodbye, and close.

        Twice is as good as once.
        """
        await asyncio.gather(*(listener.stop(grace) for listener in self._listeners))
        self._listeners.clear()
        await self._way.close()

    # -- publishing ------------------------------------------------------------------------------

    async def publish(
        self,
        queue: str,
        payload: Any = None,
        *,
        priority: MessagePriority | str | None = None,
        correlation_id: str | None = None,
        headers: Mapping[str, str] | None = None,
        id: str | None = None,
    ) -> str:
        """Publish a message, and return its id when the broker has it, as durable as it promises.

        ``payload`` is anything that JSON can carry, dataclasses and ``msgspec.Struct``s among it.

        Raises:
            NotSent: the broker does not have it.
            ConnectionLost, Timeout: it may have it.
            Refused: it does not want it; ``QueueFull`` and ``NotAuthorized`` are of this kind.
            Unencodable: JSON cannot carry it.
            BadOption: a name, a priority or a header is none.
        """
        given: object = headers or {}
        said: dict[Any, Any] = dict(given) if isinstance(given, Mapping) else {"": given}
        if priority is not None:
            said["priority"] = _level(priority)
        if correlation_id is not None:
            said["correlationId"] = correlation_id
        if not all(isinstance(text, str) for header in said.items() for text in header):
            raise BadOption(f"the headers are {said}; give a text for each name")
        answer = await self._way.ask(Kind.PUBLISH, queue, encoded(payload), said or None, id)
        return answer.id

    # -- subscribing -----------------------------------------------------------------------------

    def subscribe(
        self, queue: str, *, mode: DeliveryMode | None = None, prefetch: int | None = None
    ) -> Subscription:
        """Return the messages of a queue, for ``async with`` and ``async for``.

        ``mode`` makes a queue that is not there yet, and one with another mode a conflict.
        ``prefetch`` is how many messages may be here and unanswered, at most 1000; brokers other
        than ours do not heed it.
        """
        return Subscription(self._subscriptions, queue, mode=mode, prefetch=prefetch)

    async def attach(
        self,
        handler: Any,
        queue: str | None = None,
        *,
        prefetch: int | None = None,
        concurrency: int | None = None,
    ) -> Listener:
        """Let a function or a class work on the messages of a queue, until ``close`` is called.

        What is not said here says its ``handles`` decorator.
        """
        said = wants(handler) or Wants(queue=queue or "")
        told: dict[str, Any] = {"queue": queue, "prefetch": prefetch, "concurrency": concurrency}
        said = replace(said, **{key: value for key, value in told.items() if value is not None})
        subscription = self.subscribe(said.queue, mode=said.mode, prefetch=said.prefetch)
        listener = Listener(subscription, work_of(handler), said.concurrency)
        await listener.start()
        self._listeners = [each for each in self._listeners if not each.closed] + [listener]
        return listener

    async def unsubscribe(self, queue: str) -> None:
        """End the subscription to a queue; where there is none nothing happens."""
        subscription = self._subscriptions.by_queue.get(queue)
        if subscription is not None:
            await subscription.close()

    # -- queues ----------------------------------------------------------------------------------

    async def create_queue(self, queue: str, options: QueueOptions | None = None) -> None:
        """Make a queue, by default as the broker is set up; one that exists stays as it is."""
        said = None if options is None else options_text(options.policy)
        await self._way.ask(Kind.CREATE_QUEUE, queue, said)

    async def delete_queue(self, queue: str) -> None:
        """Remove a queue with everything in it; one that does not exist is removed already."""
        await self._way.ask(Kind.DELETE_QUEUE, queue)

    async def queue_info(self, queue: str) -> QueueInfo | None:
        """Return what a queue is like, None where there is none."""
        answer = await self._way.ask(Kind.QUEUE_INFO, queue)
        return None if answer.payload is None else queue_info(answer.payload)

    async def list_queues(self) -> list[str]:
        """Return the names of all queues that we may know of, in no order."""
        answer = await self._way.ask(Kind.LIST_QUEUES)
        return names(answer.payload)

    async def declare(
        self, queue: str, options: QueueOptions, on_conflict: OnConflict = OnConflict.FAIL
    ) -> None:
        """Let a queue be there as it is declared.

        Raises:
            QueueConflict: it is there with other settings, and ``on_conflict`` is FAIL.
        """
        await declare(queue, QueueDeclaration(options=options), self._way.ask, on_conflict)


def _level(priority: MessagePriority | str) -> str:
    try:
        level = priority if isinstance(priority, int) else MessagePriority[priority.upper()]
        return MessagePriority(level).name.lower()
    except (KeyError, ValueError):
        raise BadOption(f"priority is {priority!r}; give low, normal, high or critical") from None
