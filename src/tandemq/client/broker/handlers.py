"""Functions and classes that work on messages, each for its queue.

::

    @handles("orders", concurrency=4)
    async def ship(message: Message) -> None: ...

    @handles("mails")
    class Mails:
        async def handle(self, message: Message) -> None: ...

A message is acknowledged when its function returns, and given back when it raises. One without a
payload is acknowledged at once. Functions that are not ``async`` run in a thread.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from tandemq.broker.names import DeliveryMode
from tandemq.client.broker.message import Message
from tandemq.client.broker.subscription import Subscription
from tandemq.client.calls import looked_at
from tandemq.client.errors import BadOption

log = logging.getLogger("tandemq.client")

T = TypeVar("T")

GRACE: Final = 30.0  # s that a message which is being worked on has when its listener is closed
CLEAN_UP: Final = 2.0  # s that a handler may take to end when it is cancelled
MARK: Final = "__tandemq_handles__"

Work = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wants:
    """What a handler wants: which queue, and how many messages at a time."""

    queue: str
    mode: DeliveryMode | None = None
    prefetch: int | None = None
    concurrency: int = 1

    def __post_init__(self) -> None:
        if not self.queue.strip():
            raise BadOption("a handler needs the name of its queue, and this one is blank")
        if self.concurrency < 1:
            raise BadOption(f"concurrency is {self.concurrency}; give a whole number, 1 or more")


def handles(
    queue: str,
    *,
    mode: DeliveryMode | None = None,
    prefetch: int | None = None,
    concurrency: int = 1,
) -> Callable[[T], T]:
    """Say which queue a function or a class is for; both stay what they are."""
    wants = Wants(queue=queue, mode=mode, prefetch=prefetch, concurrency=concurrency)

    def marked(handler: T) -> T:
        setattr(handler, MARK, wants)
        return handler

    return marked


def wants(handler: object) -> Wants | None:
    """Return what a handler was marked with; None where it was not."""
    found: Wants | None = getattr(handler, MARK, None)
    return found


def work_of(handler: Any) -> Work:
    """Return the function that works on a message; a class is instantiated for it, once.

    Raises:
        BadOption: there is none.
    """
    if inspect.isclass(handler):
        try:
            handler = handler()
        except Exception as why:
            name = handler.__qualname__
            raise BadOption(f"Failed to create instance of {name}: {why!r}") from why
    work: Any = getattr(handler, "handle", None) or (handler if callable(handler) else None)
    if not callable(work):
        raise BadOption(f"{handler!r} is no handler: give it a method handle(self, message)")
    called = work if inspect.isroutine(work) else type(work).__call__
    return cast(Work, work) if inspect.iscoroutinefunction(called) else _in_thread(work)


def _in_thread(work: Callable[[Message], Any]) -> Work:
    async def threaded(message: Message) -> None:
        result = await asyncio.to_thread(work, message)
        if inspect.isawaitable(result):  # something wrapped an async function
            await result

    return threaded


class Listener:
    """A handler at work on what a subscription brings, until it is closed."""

    def __init__(self, subscription: Subscription, work: Work, concurrency: int) -> None:
        self.subscription = subscription
        self._work, self._concurrency = work, concurrency
        self._tasks: list[asyncio.Task[None]] = []

    def __repr__(self) -> str:
        return f"<Listener of {self.subscription.queue}>"

    @property
    def closed(self) -> bool:
        """Whether nothing comes any more."""
        return self.subscription.over

    async def start(self) -> None:
        """Subscribe, and begin."""
        await self.subscription.__aenter__()
        self._tasks = [asyncio.create_task(self._run()) for _ in range(self._concurrency)]

    async def _run(self) -> None:
        async for message in self.subscription:
            try:
                async with message:
                    if message.body not in (None, b"null"):
                        await self._work(message)
            except Exception:  # whatever user code raises is about this one message
                log.exception("the handler of %s failed on message %r", message.queue, message.id)

    async def wait(self) -> None:
        """Return when nothing comes any more.

        Raises:
            ConnectionLost: the broker is gone for good.
        """
        await asyncio.gather(*self._tasks)

    async def close(self, grace: float = GRACE) -> None:
        """Take nothing new, let what is begun end within so many s, and unsubscribe."""
        await self.stop(grace)
        await self.subscription.close()

    async def stop(self, grace: float = GRACE) -> None:
        """The same, but leave it to the end of the connection to return what was not begun."""
        self.subscription.finish()
        for task in self._tasks:
            task.add_done_callback(looked_at)
        _, late = await asyncio.wait(self._tasks, timeout=grace) if self._tasks else ((), ())
        for task in late:
            task.cancel()
        _, deaf = await asyncio.wait(late, timeout=CLEAN_UP) if late else ((), ())
        if deaf:
            log.warning("%s: a handler that was cancelled goes on; nobody waits for it", self)
