"""What the engine says to connections of its own accord: late answers, and messages pushed.

A message for many is written once for each form in which their wires have it.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tandemq.engine import subscriptions
from tandemq.model.crossing import name_of
from tandemq.model.message import Message
from tandemq.model.outcome import Deliver, Late, Reply
from tandemq.server.meter import now_ms
from tandemq.wires.vibemq.frames import Form, Frame, Unsendable
from tandemq.wires.vibemq.session import NOBODY, delivery

if TYPE_CHECKING:
    from tandemq.server.connections import Connection
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

APART = 0.002  # s between a delivery and the answer to its publish, for a peer that gets both
LEVELS = ("Low", "Normal", "High", "Critical")


class Effects:
    """Hands each effect to whom it is for."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._connections = runtime.connections
        self.last: list[tuple[Connection, bytes]] = []  # answers behind what this turn delivers

    def serve(self, effects: list[Reply | Late | Deliver]) -> None:
        """Answer requests that had waited, and push messages."""
        run: list[Deliver] = []  # for the same subscribers
        for effect in effects:
            if type(effect) is not Deliver:
                self._push(run)
                run = []
                self._answer(effect)
            elif run and effect.conns is not run[0].conns and effect.conns != run[0].conns:
                self._push(run)
                run = [effect]
            else:
                run.append(effect)
        self._push(run)

    def say_last(self) -> None:
        """Say what stands behind the deliveries of this turn."""
        last, self.last = self.last, []
        for connection, answer in last:
            connection.owed -= len(answer)  # it was counted when made
            self.say_apart(connection, answer)

    def say_apart(self, connection: Connection, answer: bytes) -> None:
        """Say something at once, or in a moment to who has just got a delivery.

        The reference's clients were recorded so: they answer a delivery, then read that their own
        publish was accepted.
        """
        runtime = self._runtime
        left = connection.delivered + APART - runtime.loop.time() if connection.delivered else 0.0
        if left <= 0:
            runtime.say(connection, answer)
        else:
            connection.owed += len(answer)
            runtime.loop.call_later(left, runtime.release, [(connection, answer, NOBODY)], False)

    def _answer(self, effect: Any) -> None:
        connection = self._connections.get(effect.conn)
        if connection is not None:
            self._runtime.late(connection, effect)

    def _push(self, run: list[Deliver]) -> None:
        """Push messages to the same subscribers."""
        said: dict[Form, Said] = {}
        now = self._runtime.loop.time()
        for id in run[0].conns if run else ():
            connection = self._connections.get(id)
            if connection is None:
                continue
            form = connection.session.form
            if (written := said.get(form)) is None:
                written = said[form] = Said(form, run)
            for frame, why in written.failed:
                self._undeliverable(connection, frame, why)
            connection.delivered = now
            connection.owed += written.size
            connection.out += written.frames
            self._runtime.touched[connection] = None

    def _undeliverable(self, connection: Connection, frame: Frame, why: Unsendable) -> None:
        log.warning("a message of queue %s cannot be delivered: %s", frame.queue, why)
        self._runtime.begin()
        engine = self._runtime.engine
        subscriptions.undeliverable(engine, connection.id, frame.id, str(why), now_ms())


class Said:
    """Messages in one form."""

    __slots__ = ("failed", "frames", "size")

    def __init__(self, form: Form, run: list[Deliver]) -> None:
        self.frames: list[bytes] = []
        self.failed: list[tuple[Frame, Unsendable]] = []
        for effect in run:
            m = effect.message
            frame = delivery(name_of(m), m.queue, effect.payload, headers_of(m))
            try:
                self.frames.append(form.deliver(frame))
            except Unsendable as why:
                self.failed.append((frame, why))
        self.size = sum(map(len, self.frames))


def headers_of(m: Message) -> dict[str, str] | None:
    """Return the headers under which a message is delivered; a job has its priority at most."""
    if m.letter is not None:
        return m.letter.headers
    return None if not m.priority else {"priority": LEVELS[max(0, min(3, m.priority + 1))]}
