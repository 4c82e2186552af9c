"""Who is told of events: connections that subscribed, webhooks, and whoever else looks on.

Events are built by the engine only while there is somebody. They are addressed when the turn
ends, or when a subscription changes in its middle, and leave like an answer: when what they tell
of is kept. One frame is made for all connections. A connection that does not read is cut when it
leaves too much unread, like any other; nobody waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tandemq.engine.webhooks import Webhook, listen
from tandemq.model.outcome import Event, Remark
from tandemq.server.webhooks import Deliveries
from tandemq.wires.bunqueue.events import event_frame

if TYPE_CHECKING:
    from tandemq.server.connections import Connection
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

TOLD = Raw(b"")  # stands for the request of what nobody requested

Look = Callable[[Event], None]
Survey = Callable[[Event | Remark], None]


class Outlet:
    """Takes what is not for a connection, at its place in the row of what is released."""

    id = -1  # no connection has it

    def __init__(self, deliveries: Deliveries) -> None:
        self._deliveries = deliveries

    def tell(self, told: tuple[Any, Sequence[Webhook], list[Survey]]) -> None:
        """Pass an event on; none of the takers may take long, and one that fails stops no other."""
        event, hooks, looks = told
        for hook in hooks:
            self._deliveries.offer(hook, event)
        for look in looks:
            try:
                look(event)
            except Exception:
                log.exception("a bug in what looks at events")


class Observers:
    """Subscriptions, of one queue for each connection."""

    def __init__(self, runtime: Runtime) -> None:
        self._engine = runtime.engine
        self._queue_of: dict[int, str] = {}
        self._watching: dict[str, dict[int, Connection]] = {}
        self._looks: dict[Look, str | None] = {}
        self._surveys: dict[Survey, None] = {}
        self._waiting: list[tuple[Any, Any, Raw]] = []
        self.deliveries = Deliveries(runtime)
        self._outlet = Outlet(self.deliveries)

    def __len__(self) -> int:
        """Return how many connections and others look on."""
        return len(self._queue_of) + len(self._looks) + len(self._surveys)

    def subscribe(self, caller: Any, queue: str) -> None:
        """Tell a connection of what happens in one queue from now on, and in no other."""
        self.unsubscribe(caller)
        self._queue_of[caller.id] = queue
        self._watching.setdefault(queue, {})[caller.id] = caller
        self._changed()

    def unsubscribe(self, caller: Any) -> None:
        """Tell a connection of no more events."""
        self._catch_up()
        queue = self._queue_of.pop(caller.id, None)
        if queue is not None:
            watching = self._watching[queue]
            del watching[caller.id]
            if not watching:
                del self._watching[queue]
            self._changed()

    def withdraw(self, caller: Any, allowed: Callable[[str], bool]) -> None:
        """Tell a connection of no more events, if they are of a queue that is not allowed."""
        queue = self._queue_of.get(caller.id)
        if queue is not None and not allowed(queue):
            self.unsubscribe(caller)

    def look_on(self, look: Look, queue: str | None = None) -> None:
        """Call ``look`` with every event, or with those of one queue."""
        self._catch_up()
        self._looks[look] = queue
        self._changed()

    def look_away(self, look: Look) -> None:
        """Call ``look`` no more."""
        self._looks.pop(look, None)
        self._changed()

    def survey(self, look: Survey) -> None:
        """Call ``look`` with everything that happens, remarks about the server too."""
        self._catch_up()
        self._surveys[look] = None
        self._changed()

    def end_survey(self, look: Survey) -> None:
        """Call ``look`` no more."""
        self._surveys.pop(look, None)
        self._changed()

    def hooked(self) -> None:
        """A webhook was added: say so if none can be delivered."""
        self.deliveries.check_client()

    def collected(self, events: list[Event | Remark]) -> Sequence[tuple[Any, Any, Raw]]:
        """Return what is to be released for events: to whom, what, and that nobody asked."""
        if not (events or self._waiting):
            return ()
        waiting, self._waiting = self._waiting, []
        return [*waiting, *self._addressed(events)]

    def _changed(self) -> None:
        self._engine.remarking = bool(self._surveys)
        self._engine.watched = bool(self._queue_of or self._looks or self._surveys)
        listen(self._engine)

    def _catch_up(self) -> None:
        """Address what has happened so far to those who were subscribed then."""
        self._waiting += self._addressed(self._engine.heard())

    def _addressed(self, events: list[Event | Remark]) -> list[tuple[Any, Any, Raw]]:
        found: list[tuple[Any, Any, Raw]] = []
        surveys = list(self._surveys)
        for event in events:
            if type(event) is Remark:
                found.append((self._outlet, (event, (), surveys), TOLD))
                continue
            assert type(event) is Event, "there are these two"
            watching = self._watching.get(event.queue)
            if watching:
                frame = event_frame(event)
                found += [(connection, frame, TOLD) for connection in watching.values()]
            hooks = self._engine.webhooks.wanting(event.type, event.queue)
            looks = [look for look, queue in self._looks.items() if queue in (None, event.queue)]
            if hooks or looks or surveys:
                found.append((self._outlet, (event, hooks, [*looks, *surveys]), TOLD))
        return found
