"""``SyncBroker``: the client of the broker for programs without asyncio."""

from __future__ import annotations

from typing import Any, Self

from tandemq.broker.names import DeliveryMode
from tandemq.client.blocking import Waits, blocking
from tandemq.client.broker import broker as aio
from tandemq.client.broker import message as aio_message
from tandemq.client.broker import subscription as aio_subscription
from tandemq.client.broker import users as aio_users
from tandemq.client.broker.message import Known
from tandemq.client.portal import LoopThread


class SyncMessage(Waits[aio_message.Message], Known):
    """One delivery. ``with message:`` acknowledges it at the end of the block, or gives it back."""

    ack = blocking(aio_message.Message.ack)
    give_back = blocking(aio_message.Message.give_back)

    @property
    def frame(self) -> Any:
        """What the broker sent."""
        return self.inner.frame

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, value: BaseException | None, trace: object) -> None:
        self.wait(self.inner.__aexit__(kind, value, trace))


class SyncSubscription(Waits[aio_subscription.Subscription]):
    """The messages of a queue, for ``for``, as long as its block lasts."""

    close = blocking(aio_subscription.Subscription.close)

    def get(self, timeout: float | None = None) -> SyncMessage | None:
        """Return the next message; None where none comes in time (s), or nothing comes any more."""
        found = self.wait(self.inner.get(timeout))
        return None if found is None else SyncMessage(found, self._thread)

    def __enter__(self) -> Self:
        self.wait(self.inner.__aenter__())
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> SyncMessage:
        found = self.get()
        if found is None:
            raise StopIteration
        return found


class SyncUsers(Waits[aio_users.Users]):
    """``broker.users`` for programs without asyncio."""

    create = blocking(aio_users.Users.create)
    delete = blocking(aio_users.Users.delete)
    change_password = blocking(aio_users.Users.change_password)
    grant = blocking(aio_users.Users.grant)
    revoke = blocking(aio_users.Users.revoke)
    all = blocking(aio_users.Users.all)
    permissions = blocking(aio_users.Users.permissions)


class SyncBroker(Waits[aio.Broker]):
    """A client for threads; any number of them may use it. Options are those of ``Broker``.

    Handlers that are attached run in threads of their own.
    """

    def __init__(self, url: str | None = None, **options: Any) -> None:
        super().__init__(aio.Broker(url, **options), LoopThread())

    publish = blocking(aio.Broker.publish)
    attach = blocking(aio.Broker.attach)
    unsubscribe = blocking(aio.Broker.unsubscribe)
    create_queue = blocking(aio.Broker.create_queue)
    delete_queue = blocking(aio.Broker.delete_queue)
    queue_info = blocking(aio.Broker.queue_info)
    list_queues = blocking(aio.Broker.list_queues)
    declare = blocking(aio.Broker.declare)

    def connect(self, *, patience: float = 0.0) -> Self:
        """Connect, and let the handlers begin; see ``Broker.connect``."""
        self.wait(self.inner.connect(patience=patience))
        return self

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection now, with every subscription on it."""
        return self.inner.is_connected

    @property
    def users(self) -> SyncUsers:
        """Who may log in, and do what."""
        return SyncUsers(self.inner.users, self._thread)

    def subscribe(
        self, queue: str, *, mode: DeliveryMode | None = None, prefetch: int | None = None
    ) -> SyncSubscription:
        """Return the messages of a queue, for ``with`` and ``for``; see ``Broker.subscribe``."""
        found = self.inner.subscribe(queue, mode=mode, prefetch=prefetch)
        return SyncSubscription(found, self._thread)

    def disconnect(self) -> None:
        """Let handlers end what they are at, say goodbye, and close."""
        self._thread.close(self.inner.disconnect)

    def __enter__(self) -> Self:
        return self.connect()

    def __exit__(self, *_: object) -> None:
        self.disconnect()
