"""Who is told of events over HTTP: the registry, kept over restarts, with its figures.

Delivering is the server's part; here it is decided who gets what, and remembered how it went.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

FACT = "webhook/"  # + id: the key under which a webhook is stored

EVENTS = {
    "pushed": "job.pushed",
    "pulled": "job.started",
    "completed": "job.completed",
    "failed": "job.failed",
    "progress": "job.progress",
    "stalled": "job.stalled",
}


class Webhook(Struct, array_like=True):
    """One registration. Stored as it stands: append with a default, never reorder."""

    id: str
    url: str
    events: tuple[str, ...]
    queue: str | None  # None: of every queue
    secret: str | None
    created: int
    enabled: bool = True
    last: int = 0  # moment of the last delivery that ended, 0: none
    succeeded: int = 0
    failed: int = 0


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(Webhook).decode


class Webhooks:
    """The registered webhooks, by id; there may be ``most`` of them."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._all: dict[str, Webhook] = {}

    def __len__(self) -> int:
        return len(self._all)

    def listed(self) -> list[Webhook]:
        """Return all webhooks, the oldest first."""
        return list(self._all.values())

    @property
    def enabled(self) -> int:
        """How many are enabled."""
        return sum(hook.enabled for hook in self._all.values())

    def get(self, id: str) -> Webhook | None:
        return self._all.get(id)

    def wanting(self, type: str, queue: str) -> list[Webhook]:
        """Return who is to be told of an event."""
        name = EVENTS.get(type)
        return [
            hook
            for hook in self._all.values()
            if hook.enabled and name in hook.events and hook.queue in (None, queue)
        ]

    def put(self, engine: Engine, hook: Webhook) -> None:
        """Add a webhook, or remember that it changed."""
        self._all[hook.id] = hook
        engine.record(FACT + hook.id, _encode(hook))
        listen(engine)

    def remove(self, engine: Engine, id: str) -> bool:
        """Remove a webhook; False when there is none."""
        if self._all.pop(id, None) is None:
            return False
        engine.record(FACT + id, None)
        listen(engine)
        return True

    def delivered(self, engine: Engine, id: str, now: int, *, well: bool) -> None:
        """Count a delivery that ended, if its webhook still exists."""
        hook = self._all.get(id)
        if hook is None:
            return
        hook.last = now
        if well:
            hook.succeeded += 1
        else:
            hook.failed += 1
        engine.record(FACT + id, _encode(hook))

    def restore(self, engine: Engine, id: str, fact: bytes | None) -> None:
        """Take a webhook as it was stored; None is none."""
        if fact is None:
            self._all.pop(id, None)
        else:
            self._all[id] = _decode(fact)
        listen(engine)


def listen(engine: Engine) -> None:
    """Have events built exactly while somebody wants them."""
    engine.listening = engine.watched or engine.webhooks.enabled > 0
