"""What a client is subscribed to, carried from one connection to the next."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from tandemq.broker.options import ClientOptions
from tandemq.client.broker.declare import declare_all, fit
from tandemq.client.broker.link import Link
from tandemq.client.broker.message import Message
from tandemq.client.broker.subscription import Subscription
from tandemq.client.broker.way import Ask, Way
from tandemq.client.errors import Closed, LinkError, Misused, TandemqError, Timeout
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind


class Subscriptions:
    """The subscriptions of one client.

    Attributes:
        way: to the broker; it tells what happens to the connection.
        by_queue: those that have begun and not ended.
    """

    def __init__(self, host: str, port: int, options: ClientOptions) -> None:
        self.way = Way(host, port, options, self)
        self.by_queue: dict[str, Subscription] = {}

    async def begin(self, subscription: Subscription) -> None:
        """Let a subscription have its messages.

        Raises:
            Misused: there is one to this queue already.
            QueueConflict: the queue has another mode.
        """
        queue = subscription.queue
        if queue in self.by_queue:
            raise Misused(f"already subscribed to {queue!r}: share it, or use another client")
        self.by_queue[queue] = subscription
        try:
            if subscription.mode is not None:
                await fit(queue, subscription.mode, self.way.ask)
            await self.way.ask(Kind.SUBSCRIBE, queue, headers=subscription.headers)
        except BaseException as why:
            self.by_queue.pop(queue, None)
            unknown = isinstance(why, (Timeout, asyncio.CancelledError))
            if unknown and self.way.link is not None:
                self.way.link.tell(Kind.UNSUBSCRIBE, queue)  # whatever became of it
            raise
        subscription.confirmed = True

    async def finish(self, subscription: Subscription) -> None:
        """End a subscription; one that has ended already is left alone."""
        queue = subscription.queue
        subscription.finish()
        if self.by_queue.get(queue) is not subscription:
            return
        del self.by_queue[queue]
        if self.way.link is not None:
            with suppress(LinkError, Timeout):  # then the broker forgets it by itself
                await self.way.ask(Kind.UNSUBSCRIBE, queue)

    # -- for the way -----------------------------------------------------------------------------

    def deliver(self, link: Link, frame: Frame) -> None:
        """A message came; one that nobody wants any more is the broker's again soon."""
        subscription = self.by_queue.get(frame.queue or "")
        if subscription is not None:
            subscription.put(Message(frame, link))

    def lost(self) -> None:
        """What was not begun is dropped: the broker delivers it again."""
        for subscription in self.by_queue.values():
            subscription.forget()

    def ended(self, why: TandemqError) -> None:
        """There will be no further connection: iterating ends, or raises."""
        for subscription in self.by_queue.values():
            subscription.finish(None if isinstance(why, Closed) else why)
        self.by_queue.clear()

    async def restore(self, ask: Ask, again: bool) -> None:
        """Declare what is declared, and subscribe to what was subscribed to."""
        await declare_all(self.way.options.queue_declarations, ask, again=again)
        for each in list(self.by_queue.values()):
            if each.confirmed:
                await ask(Kind.SUBSCRIBE, each.queue, None, each.headers)
