"""A desk at which both wires are spoken: jobs in frames, what brokers' clients ask as requests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.commands.desk import Answer, Desk, shown

from tandemq.commands.broker import Ack, Nack, Publish, Subscribe, Unsubscribe
from tandemq.commands.call import LATER, Call
from tandemq.commands.queues import CreateQueue, DeleteQueue, ListQueues, QueueInfo
from tandemq.commands.table import BY_REQUEST
from tandemq.engine import consume
from tandemq.model.broker import Mode, Policy
from tandemq.model.crossing import name_of
from tandemq.model.errors import TandemqError
from tandemq.model.outcome import Deliver

NORMAL = 1
SUBSCRIBER, OTHER, WORKER = 1, 2, 3  # connections
FAN_OUT = {"mode": Mode.FAN_OUT_WITH_ACK}
FANS = [FAN_OUT, {"mode": Mode.FAN_OUT_WITHOUT_ACK}]


class Market(Desk):
    """One engine, workers and subscribers; what was said since the last look is kept apart."""

    def __init__(self, way: str = "typed", **policy: Any) -> None:
        super().__init__(way)
        self.host.queue_policy = Policy(**policy)
        self.replies: list[tuple[int, Any]] = []  # to brokers' clients, errors by their type
        self.answers: list[tuple[int, Answer]] = []  # to workers
        self.deliveries: list[tuple[int, str, bytes]] = []

    def run(self, request: Any, conn: int = 9) -> Any:
        """Do what a broker's client asks; an error is returned by its type."""
        call = Call(self.engine, self.host, self.caller(conn), self.now, request.req_id)
        try:
            return BY_REQUEST[type(request)].run(request, call)
        except TandemqError as refused:
            return type(refused)

    def publish(
        self,
        id: str,
        queue: str = "q",
        payload: bytes = b"1",
        conn: int = 9,
        level: int = NORMAL,
        **headers: str,
    ) -> Any:
        said = headers or None
        return self.run(
            Publish(
                queue=queue, id=id, payload=payload, headers=said, level=level, req_id=f"r-{id}"
            ),
            conn,
        )

    def subscribe(self, *conns: int, queue: str = "q") -> None:
        for conn in conns:
            assert self.run(Subscribe(queue=queue), conn) is None

    def unsubscribe(self, conn: int, queue: str = "q") -> None:
        self.run(Unsubscribe(queue=queue), conn)

    def create(self, queue: str = "q", **policy: Any) -> None:
        assert self.run(CreateQueue(queue=queue, policy=Policy(**policy))) is None

    def delete(self, queue: str = "q") -> Any:
        return self.run(DeleteQueue(queue=queue))

    def info(self, queue: str = "q") -> Any:
        return self.run(QueueInfo(queue=queue))

    def names(self) -> Any:
        return self.run(ListQueues())

    def settle(self, conn: int, id: str) -> None:
        self.run(Ack(messages=[id]), conn)

    def refuse(self, conn: int, id: str, delay: int = 0) -> None:
        self.run(Nack(message=id, delay=delay), conn)

    def leave(self, conn: int, *, broken: bool = False) -> None:
        consume.disconnect(self.engine, conn, self.now, broken=broken)

    def look(self) -> Market:
        """Sort out what was said."""
        self.later(0)
        self.replies, self.answers, self.deliveries = [], [], []
        for effect in self.engine.take().effects:
            if isinstance(effect, Deliver):
                name = name_of(effect.message)
                self.deliveries += [(conn, name, effect.payload) for conn in effect.conns]
            elif isinstance(effect.req, str):
                reply = effect.reply  # type: ignore[union-attr]  # only pulls have none
                kind = type(reply) if isinstance(reply, TandemqError) else reply
                self.replies.append((effect.conn, kind))
            else:
                self.answers.append((effect.conn, shown(self._session.late(effect)[0][4:])))
        return self

    def told(self) -> Iterator[tuple[int, Answer]]:
        yield from self.look().answers

    def pulled(self, queue: str = "q", **options: Any) -> tuple[Answer, str]:
        """What a worker gets of a queue, and its token."""
        answer = self.pull(queue, conn=WORKER, **options)
        return answer["job"], answer["token"]

    def waiting(self, queue: str = "q") -> list[str]:
        """The ids of letters and the names of jobs that are ready, in order."""
        q = self.engine.queues.get(queue)
        return [m.letter.id if m.letter else m.name for m in q.ready] if q else []

    def letter(self, payload: bytes = b'{"a":1}', queue: str = "q") -> str:
        """Publish a letter; the id under which workers know it."""
        self.publish("m1", queue, payload)
        return str(next(reversed(self.engine.messages)))

    def delivered(self) -> list[tuple[int, str]]:
        return [(conn, name) for conn, name, _ in self.look().deliveries]


__all__ = ["FANS", "FAN_OUT", "LATER", "OTHER", "SUBSCRIBER", "WORKER", "Market"]
