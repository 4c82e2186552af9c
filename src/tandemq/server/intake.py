"""Requests of connections: run in order, as far as room and time allow, and answered or held.

Equal requests that follow each other run as one where their command can do that (``together``).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tandemq.commands.call import LATER, SILENCE, Pulled
from tandemq.commands.table import BY_REQUEST, Command
from tandemq.model.errors import TandemqError
from tandemq.server.connections import HIGH_WATER, Connection
from tandemq.server.guard import gate
from tandemq.server.meter import now_ms
from tandemq.wires.bunqueue import inturn
from tandemq.wires.bunqueue.session import Refusal, Session
from tandemq.wires.vibemq.session import Packed

if TYPE_CHECKING:
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

TOGETHER = 64  # requests that run as one
HELD_BYTES = 8 << 20  # that one connection may wait to publish (ruling 19)


class Intake:
    """Runs what connections ask, in the turn of a runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime, self._engine = runtime, runtime.engine
        self._meter, self._silent = runtime.meter, runtime.crowd.silent

    def received(self, connection: Connection, items: list[Any]) -> None:
        """Run requests in order, as far as the window of the connection allows."""
        self._silent.pop(connection.id, None)
        self._runtime.begin_turn()
        if connection.backlog or connection.busy:
            connection.postpone(items)
            return
        self._run_all(connection, items, self._runtime.turn_ends)

    def go_on(self, connection: Connection, ends: float) -> None:
        """Run what was postponed, as far as there is room and time now."""
        self._runtime.begin_turn()
        items = list(connection.backlog)
        connection.backlog.clear()
        self._run_all(connection, items, ends, 1)
        connection.heard(len(items))

    def _run_all(
        self, connection: Connection, items: list[Any], ends: float, every: int = 4
    ) -> None:
        """Run requests until a moment of the clock, which is read once in ``every`` requests."""
        connection.call.now = now_ms()
        done, count, look = 0, len(items), every
        alone = None  # what kind cannot run together now
        while done < count:
            if connection.waiting >= connection.window or connection.owed > HIGH_WATER:
                if connection.out:
                    connection.flush()  # what is said need not wait for the end of the turn
                if connection.busy:
                    connection.postpone(items[done:])
                    return
            if done >= look:
                look = done + every
                if self._meter.clock() > ends:
                    connection.postpone(items[done:])
                    self._runtime.turns.resume(connection)
                    return
            item, ran, kind = items[done], 0, type(items[done])
            try:
                if kind is not alone and done + 1 < count and type(items[done + 1]) is kind:
                    ran = self._run_together(connection, kind, items[done : done + TOGETHER])
                    alone = None if ran else kind
                if not ran:
                    self._run(connection, item)
            except TandemqError as error:
                self._engine.counters.errors += 1
                self._refuse(connection, item, error)
                if error.fatal:
                    self._runtime.hang_up(connection)
                    return
            except Exception:
                log.exception("a bug in %s", kind.__name__)
                self._refuse(connection, item, Exception())
            done += ran or 1

    def _run(self, connection: Connection, request: Any) -> None:
        row = BY_REQUEST.get(type(request))
        if row is None and type(request) is Packed:
            request = connection.session.unpack(request)
            row = BY_REQUEST.get(type(request))
        if row is None or connection.limiter is not None or not connection.trusted:
            gate(connection, request, connection.call.now)
            assert row is not None, "what is no request was refused"
        reply = row.run(request, connection.call)
        if reply is LATER:
            connection.waiting += 1
            if self._engine.held_bytes.get(connection.id, 0) > HELD_BYTES:
                connection.window = connection.waiting  # no more until some of it is in
        elif reply is not SILENCE:
            self._answer(connection, row, [reply], [request])

    def _run_together(self, connection: Connection, kind: type, items: list[Any]) -> int:
        """Run the first of some requests as one, where that is possible; return how many."""
        row = BY_REQUEST.get(kind)
        if row is None or row.together is None:
            return 0
        if connection.limiter is not None or not connection.trusted:
            return 0
        other = next((i for i, item in enumerate(items) if type(item) is not kind), len(items))
        replies = row.together(items[:other], connection.call)
        if replies:
            self._answer(connection, row, replies, items)
        return len(replies)

    def _answer(
        self, connection: Connection, row: Command, replies: list[Any], requests: list[Any]
    ) -> None:
        """Say what the first of some requests came to, now or when it may be said."""
        runtime, answer = self._runtime, connection.session.answer
        if len(replies) > 1 and type(connection.session) is Session:
            answers = inturn.answers(replies, requests)
        else:
            pairs = zip(replies, requests, strict=False)
            answers = [answer(reply, request.req_id) for reply, request in pairs]
        connection.owed += sum(map(len, answers))
        if granted := type(replies[0]) is Pulled and replies[0].messages:
            runtime.grants.note(connection, connection.call.now)
        # While writing fails a lease has to be kept before it is told of, as a promise has always.
        waits = runtime.committer is not None and (row.keeps or (granted and runtime.outage))
        if waits and self._unkept:
            pairs = zip(answers, requests, strict=False)
            runtime.held += [(connection, said, request.req_id) for said, request in pairs]
        elif row.last and connection.id in self._engine.subscribers:
            runtime.effects.last += [(connection, said) for said in answers]
        else:
            connection.out += answers
            runtime.touched[connection] = None

    def _refuse(self, connection: Connection, item: Any, error: Exception) -> None:
        session = connection.session
        if type(item) is Packed:
            req = session.opened
        else:
            req = item.req if type(item) is Refusal else item.req_id
        self._runtime.say(connection, session.refuse(error, req))

    @property
    def _unkept(self) -> bool:
        """Something that an answer may rest on is not kept yet, and it is to wait for that."""
        committer = self._runtime.committer
        if committer is None or not (self._runtime.patient or self._engine.owes_sync):
            return False
        return committer.pending or not self._engine.quiet
