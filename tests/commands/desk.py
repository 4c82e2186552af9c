"""A counter at which commands are handed in: a real engine, a fixed clock, no server around it.

A desk reads frames as the session does, or always on its tolerant path, so that each test can be
run both ways; answers come back as an independent decoder sees them.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from types import SimpleNamespace
from typing import Any

import msgpack
from tests.support.wire import UNDEFINED, frame, wire_form

from tandemq.commands.call import LATER, Call
from tandemq.commands.table import BY_REQUEST
from tandemq.engine import clock, consume
from tandemq.engine.core import Engine
from tandemq.engine.ids import Uuid7
from tandemq.model.body import holds_wide_integer
from tandemq.model.broker import Policy
from tandemq.model.errors import BadCredentials, BadPassword, TandemqError
from tandemq.model.outcome import Deliver
from tandemq.model.permission import Operation
from tandemq.wires.bunqueue import session
from tandemq.wires.bunqueue.session import Refusal, Session

NOW = 1_700_000_000_000
WAYS = ("typed", "tolerant")

Answer = dict[str, Any]


class Observers:
    """Subscriptions, without anybody who is told."""

    def __init__(self) -> None:
        self.queues: dict[int, str] = {}
        self.hooks = 0

    def subscribe(self, caller: Any, queue: str) -> None:
        self.queues[caller.id] = queue

    def unsubscribe(self, caller: Any) -> None:
        self.queues.pop(caller.id, None)

    def hooked(self) -> None:
        self.hooks += 1


class Monitor:
    """Figures of a server that does not exist."""

    def latency(self) -> dict[str, Any]:
        spread = {"p50": 1.0, "p95": 2.0, "p99": 3.0}
        return {
            "averages": {"pushMs": 0.5, "pullMs": 0.25, "ackMs": 0.75},
            "percentiles": dict.fromkeys(("push", "pull", "ack"), spread),
        }

    def rates(self) -> dict[str, float]:
        return dict.fromkeys(("pushPerSec", "pullPerSec", "completePerSec", "failPerSec"), 1.5)

    def memory(self) -> dict[str, int]:
        return {"heapUsed": 1 << 20, "heapTotal": 2 << 20, "rss": 3 << 20}

    def store_bytes(self) -> int:
        return 1 << 19

    def connections(self) -> int:
        return 7

    def prometheus(self) -> str:
        return "# nothing\n"


class Accounts:
    """One token and one user, who are let in at once; what was granted stands in the engine."""

    def __init__(self, engine: Engine) -> None:
        self.token = "open sesame"
        self.user = ("ali", "baba")
        self.open = False
        self.changes: list[tuple[str, Any]] = []
        self._engine = engine

    def by_token(self, caller: Any, req: Any, token: str, welcome: Any) -> Any:
        if token != self.token:
            raise BadCredentials("Invalid token")
        caller.trusted = True
        return welcome

    def by_password(self, caller: Any, req: Any, name: str, password: str, welcome: Any) -> Any:
        if (name, password) != self.user:
            raise BadPassword
        caller.user = name
        return welcome

    def hashed(self, caller: Any, req: Any, password: str, then: Any) -> Any:
        try:
            reply = then(f"hash of {password}", NOW)
        except TandemqError as refused:
            reply = refused
        self._engine.tell(caller.id, req, reply)
        return LATER

    def may(self, caller: Any, operation: Operation, queue: str) -> bool:
        return operation in self._engine.users.allowed(caller.user, queue)

    def changed(self, name: str, spare: Any = None) -> None:
        self.changes.append((name, spare))


class Host:
    """What commands ask of a server, without one."""

    def __init__(self, engine: Engine) -> None:
        self.accounts = Accounts(engine)
        self.failed: str | None = None
        self.queue_policy: Policy | None = Policy()
        self.publish_wait = 8_000
        self.observers = Observers()
        self.monitor = Monitor()

    def stats(self) -> dict[str, float]:
        return {"uptime": 12.5, "pushPerSec": 3.0, "pullPerSec": 2.0, "loopLagMs": 0.25}

    def storage(self) -> dict[str, Any]:
        failed = self.failed
        since = None if failed is None else float(NOW)
        return {"diskFull": failed is not None, "error": failed, "since": since}


class Desk:
    """One engine; every answer is checked to hold no integer that a JavaScript peer cannot read."""

    def __init__(self, way: str = "typed") -> None:
        self.way = way
        self.now = NOW
        self.engine = Engine(new_id=Uuid7(Random(7).randbytes), uniform=lambda: 0.5)
        self.host = Host(self.engine)
        self.callers: dict[int, Any] = {}
        self._session = Session()

    def caller(self, conn: int) -> Any:
        caller = SimpleNamespace(id=conn, trusted=True, user=None, left=False, title=f"c{conn}")
        caller.leave = lambda: setattr(caller, "left", True)
        return self.callers.setdefault(conn, caller)

    def read(self, body: bytes) -> Any:
        if self.way == "tolerant":
            return session._read_leniently(body)
        (item,) = Session().receive(frame(body))
        return item

    def hand_in(self, body: bytes, conn: int = 1) -> bytes:
        """One frame's body in, the body of its answer out; empty if that comes later."""
        item = self.read(body)
        req = item.req if isinstance(item, Refusal) else item.req_id
        try:
            if isinstance(item, Refusal):
                raise item.error
            call = Call(self.engine, self.host, self.caller(conn), self.now, req)
            reply = BY_REQUEST[type(item)].run(item, call)
            if reply is LATER:
                return b""
            said = self._session.answer(reply, req)
        except TandemqError as error:
            said = self._session.refuse(error, req)
        return said[4:]

    def ask(self, cmd: str, conn: int = 1, **fields: Any) -> Answer:
        """The answer as a client decodes it; what is undefined is missing."""
        return shown(self.hand_in(packed(cmd, **fields), conn))

    def do(self, cmd: str, conn: int = 1, **fields: Any) -> Answer:
        answer = self.ask(cmd, conn, **fields)
        assert answer.pop("ok") is True, answer
        return answer

    def refused(self, cmd: str, conn: int = 1, **fields: Any) -> str:
        """The error text of a command that must be refused."""
        answer = self.ask(cmd, conn, **fields)
        assert answer["ok"] is False, answer
        return str(answer["error"])

    def waits(self, cmd: str, conn: int = 1, **fields: Any) -> bool:
        """Hand in a command; whether its answer comes later."""
        return self.hand_in(packed(cmd, **fields), conn) == b""

    def told(self) -> Iterator[tuple[int, Answer]]:
        """What was said since the last look to those whose answers came later."""
        for effect in self.engine.take().effects:
            assert not isinstance(effect, Deliver), "only jobs are asked for here"
            yield effect.conn, shown(self._session.late(effect)[0][4:])

    def later(self, ms: int) -> None:
        """Time passes, and what is due is done."""
        self.now += ms
        clock.tick(self.engine, self.now)

    def disconnect(self, conn: int = 1) -> None:
        self.engine.workers.disconnected(conn)
        consume.disconnect(self.engine, conn, self.now)

    def push(self, queue: str = "q", data: Any = 1, **options: Any) -> str:
        return str(self.do("PUSH", queue=queue, data=data, **options)["id"])

    def pull(self, queue: str = "q", **options: Any) -> Answer:
        return self.do("PULL", queue=queue, **{"owner": "w", **options})

    def job(self, id: str) -> Answer:
        job: Answer = self.do("GetJob", id=id)["job"]
        return job

    def state(self, id: str) -> str:
        return str(self.do("GetState", id=id)["state"])

    def active(self, queue: str = "q", **options: Any) -> tuple[str, str]:
        """A job that is leased: its id and its token."""
        id = self.push(queue, **options)
        answer = self.pull(queue)
        assert answer["job"]["id"] == id
        return id, answer["token"]


def packed(cmd: str, **fields: Any) -> bytes:
    return msgpack.packb(wire_form({"cmd": cmd, **fields}), use_bin_type=True)


def shown(body: bytes) -> Answer:
    assert body, "the answer comes later"
    assert not holds_wide_integer(body), body
    found: Answer = without_undefined(msgpack.unpackb(body, raw=False, strict_map_key=False))
    return found


def without_undefined(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: without_undefined(v) for k, v in value.items() if v != UNDEFINED}
    if isinstance(value, list):
        return [without_undefined(item) for item in value]
    return value
