"""The part that owns the engine: requests in, answers out, the one alarm, what was lost.

Everything here runs in the loop, one turn at a time. A turn is all that arrived in one iteration:
its requests run in order, its changes go to the committer as one group, and each connection it
touched gets one write.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Sequence
from typing import Any

from msgspec import Raw

from tandemq.commands.call import LATER, SILENCE, Pulled
from tandemq.commands.table import BY_REQUEST
from tandemq.config import Settings
from tandemq.engine import clock, consume, facts, recovery
from tandemq.engine.core import Engine
from tandemq.engine.ids import Uuid7
from tandemq.engine.webhooks import Webhook
from tandemq.model.broker import Policy
from tandemq.model.errors import TandemqError
from tandemq.model.outcome import Late, Reply
from tandemq.server.accounts import Accounts
from tandemq.server.alarm import Alarm
from tandemq.server.bounds import policy, rules
from tandemq.server.committer import Committer
from tandemq.server.connections import HIGH_WATER, Connection
from tandemq.server.crowd import Crowd
from tandemq.server.effects import Effects
from tandemq.server.events import TOLD, Observers, Outlet
from tandemq.server.feed import Feed
from tandemq.server.grants import Grants
from tandemq.server.guard import gate
from tandemq.server.meter import Meter, Watch, now_ms
from tandemq.server.monitor import Monitor
from tandemq.server.outage import Outage
from tandemq.server.turns import SLICE, Turns
from tandemq.server.undo import undo
from tandemq.stores.base import Store, StoreFailed
from tandemq.stores.rows import decode
from tandemq.wires.bunqueue.session import Refusal
from tandemq.wires.vibemq.session import Packed

log = logging.getLogger("tandemq.server")

PROBE_FACT = "probe"
HELD_BYTES = 8 << 20  # that one connection may wait to publish (ruling 19)

Answer = tuple[Any, Any, Any]  # a connection or who else is told, what, of which request


class Runtime:
    """A running engine with its connections."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.loop = asyncio.get_running_loop()
        self.crowd = Crowd(settings, self.loop)
        self.connections, self._silent = self.crowd.open, self.crowd.silent
        self.next_id = self.crowd.next_id
        self.policy = policy(settings)
        self.meter = Meter()
        self.turns = Turns(self.loop, self.meter, self._go_on)
        self._watch = Watch(now_ms())
        self.engine = Engine(
            new_id=Uuid7(os.urandom).__call__,  # a method is called sooner than an object
            uniform=random.random,
            rules=rules(settings, persistent=store.persistent),
        )
        self._patient = store.persistent and settings.durability != "buffered"
        self._committer: Committer | None = None
        self.outage = Outage(self._probe)
        self.held: list[Answer] = []
        self._touched: dict[Connection, None] = {}
        self._turning = False
        self._turn_ends = 0.0  # s of the meter's clock
        self._alarm = Alarm(self.engine, self._begin_turn)
        self._grants = Grants()
        self.http_port: int | None = None  # where HTTP is served
        self.broken: asyncio.Future[StoreFailed] = self.loop.create_future()
        self.effects = Effects(self)
        self.accounts = Accounts(self)
        self.observers = Observers(self)
        self.feed = Feed(self)
        self.monitor = Monitor(self)

    # -- start and stop ------------------------------------------------------------------------

    def start(self) -> None:
        """Take over what the store holds and begin to commit."""
        store, engine = self.store, self.engine
        if store.persistent:
            self._load()
        self.accounts.begin(store)
        if store.persistent:
            self._committer = Committer(
                store,
                self.release,
                lambda *lost: undo(self, *lost),
                turning=lambda: self._turning,
                always_sync=self.settings.durability == "sync",
            )
            lost = recovery.resume(engine, now_ms())
            engine.finished.keep_bounds(engine)
            if lost:
                log.warning("%d jobs were running when the server ended; they run again", lost)
        self._begin_turn()

    def _load(self) -> None:
        for row in self.store.load():
            m = decode(row)
            recovery.show_last_start(m)
            self.engine.admit(m)
        for key, value in self.store.load_facts().items():
            self.restore(key, value)

    def wind_down(self) -> None:
        """Hand out nothing more, and say so; what is held may still be settled."""
        self.engine.granting = False
        self.feed.say_last("server:shutdown")
        for connection in list(self.connections.values()):
            if connection.is_broker:
                self.say(connection, connection.session.goodbye("server_shutdown"))
        self._begin_turn()

    @property
    def winding_down(self) -> bool:
        """The server is about to stop."""
        return not self.engine.granting

    async def stop(self) -> None:
        """Give back what is leased, keep what is pending, let go of the connections."""
        self._end_turn()  # what was just handed out is said while it is still held
        consume.release_all(self.engine, now_ms())
        self.engine.tallies.flush(self.engine)
        self._end_turn()
        self.feed.close()
        await self.accounts.passwords.close()
        await self.observers.deliveries.close()
        if self._committer is not None and not self.broken.done():
            await self._committer.close()
        for connection in list(self.connections.values()):
            connection.close()
        self._alarm.cancel()
        self.outage.cancel()

    @property
    def leased(self) -> int:
        """How many messages somebody holds."""
        return sum(map(len, self.engine.leased_by.values())) + len(self.engine.fanouts)

    # -- from connections ----------------------------------------------------------------------

    def lost(self, connection: Connection) -> None:
        """A connection is gone, and with it what it waited for and held."""
        if not self.crowd.leave(connection):
            return
        connection.backlog.clear()
        self.engine.workers.disconnected(connection.id)
        self.accounts.left(connection)
        self.observers.unsubscribe(connection)
        self._touched.pop(connection, None)
        self._begin_turn()
        engine, broken = self.engine, connection.broken and not self.winding_down
        consume.disconnect(engine, connection.id, now_ms(), connection.spared, broken=broken)

    def received(self, connection: Connection, items: list[Any]) -> None:
        """Run requests in order, as far as the window of the connection allows."""
        self._silent.pop(connection.id, None)
        self._begin_turn()
        if connection.backlog or connection.busy:
            connection.postpone(items)
            return
        self._run_all(connection, items, self._turn_ends)

    def _go_on(self, connection: Connection, ends: float) -> None:
        """Run what was postponed, as far as there is room and time now."""
        self._begin_turn()
        items = list(connection.backlog)
        connection.backlog.clear()
        self._run_all(connection, items, ends, 1)
        connection.heard(len(items))

    def _run_all(
        self, connection: Connection, items: list[Any], ends: float, every: int = 4
    ) -> None:
        """Run requests until a moment of the clock, which is read once in ``every`` requests."""
        call, clock = connection.call, self.meter.clock
        call.now = now = now_ms()
        for i, item in enumerate(items):
            if connection.waiting >= connection.window or connection.owed > HIGH_WATER:
                if connection.out:
                    connection.flush()  # what is said need not wait for the end of the turn
                if connection.busy:
                    connection.postpone(items[i:])
                    return
            if i % every == 0 and i and clock() > ends:
                connection.postpone(items[i:])
                self.turns.resume(connection)
                return
            try:
                self._run(connection, item, now)
            except TandemqError as error:
                self.engine.counters.errors += 1
                self.say(connection, connection.session.refuse(error, _req(connection, item)))
                if error.fatal:
                    self.hang_up(connection)
                    return
            except Exception:
                log.exception("a bug in %s", type(item).__name__)
                self.say(connection, connection.session.refuse(Exception(), _req(connection, item)))

    # -- requests ------------------------------------------------------------------------------

    def _run(self, connection: Connection, request: Any, now: int) -> None:
        row = BY_REQUEST.get(type(request))
        if row is None and type(request) is Packed:
            request = connection.session.unpack(request)
            row = BY_REQUEST.get(type(request))
        if row is None or connection.limiter is not None or not connection.trusted:
            gate(connection, request, now)
            assert row is not None, "what is no request was refused"
        reply = row.run(request, connection.call)
        if reply is LATER:
            connection.waiting += 1
            if self.engine.held_bytes.get(connection.id, 0) > HELD_BYTES:
                connection.window = connection.waiting  # no more until some of it is in
            return
        if reply is SILENCE:
            return
        answer = connection.session.answer(reply, request.req_id)
        connection.owed += len(answer)
        if granted := type(reply) is Pulled and reply.messages:
            self._grants.note(connection, now)
        # While writing fails a lease has to be kept before it is told of, as a promise has always.
        waits = self._committer is not None and (row.keeps or (granted and self.outage))
        if waits and self._unkept:
            self.held.append((connection, answer, request.req_id))
        elif row.last:
            self.effects.last.append((connection, answer))
        else:
            connection.out.append(answer)
            self._touched[connection] = None

    @property
    def _unkept(self) -> bool:
        """Something that an answer may rest on is not kept yet, and it is to wait for that."""
        committer = self._committer
        if committer is None or not (self._patient or self.engine.owes_sync):
            return False
        return committer.pending or not self.engine.quiet

    def say(self, connection: Connection, answer: bytes) -> None:
        """Write something with the rest of this turn."""
        connection.owed += len(answer)
        connection.out.append(answer)
        self._touched[connection] = None

    def hang_up(self, connection: Connection) -> None:
        self._touched.pop(connection, None)
        connection.close()

    # -- turns ---------------------------------------------------------------------------------

    def begin(self) -> int:
        """Begin a turn for what comes from neither a connection nor the clock; return now (ms)."""
        self._begin_turn()
        return now_ms()

    def _begin_turn(self) -> None:
        """Do what is due, and see to it that this turn has an end."""
        if self._turning:
            return
        self._turning = True
        self._turn_ends = self.meter.turn_began() + SLICE
        self.loop.call_soon(self._end_turn)
        now = now_ms()
        if (step := self._watch.step(now)) is not None:
            log.warning("the clock was set by %d ms; leases and waits move with it", step)
            clock.shift_spans(self.engine, step)
        wake = clock.next_wake(self.engine)
        if wake is not None and wake <= now:
            clock.tick(self.engine, now)

    def _end_turn(self) -> None:
        self._turning = False
        outcome = self.engine.take()
        if self.broken.done():
            return  # memory is ahead of the store for good: nothing of it is told or kept
        for effect in outcome.effects:
            self.effects.serve(effect)
        self.effects.say_last()
        held, self.held = self.held, []
        if told := self.observers.collected(outcome.events):
            if self._committer is not None and self._patient:
                held += told
            else:
                self.release(told, False)
        if self._committer is not None:
            self._committer.add(outcome, held)
        self._grants.check()
        self._flush()
        self._alarm.set()
        self.meter.turn_ended(self.engine.counters)

    def late(self, connection: Connection, effect: Reply | Late) -> None:
        """Answer a request that had waited."""
        connection.waiting -= 1
        if connection.window:  # 0: somebody logs in
            connection.let_go()
        answer, req_id = connection.session.late(effect)
        if isinstance(effect, Reply) and effect.messages:
            self._grants.note(connection, now_ms())
        if self.outage or (self._patient and isinstance(effect, Late)):
            connection.owed += len(answer)
            self.held.append((connection, answer, req_id))
        else:
            self.say(connection, answer)
        if connection.backlog:
            self.turns.resume(connection)

    def answer(self, connection: Connection, req: Raw, reply: Any) -> None:
        """Answer at once a request that had waited; nothing of the answer has to be kept first."""
        self._begin_turn()
        connection.waiting -= 1
        self.say(connection, connection.session.late(Late(connection.id, req, reply))[0])
        if isinstance(reply, TandemqError) and reply.fatal:
            self.hang_up(connection)

    def _flush(self) -> None:
        touched, self._touched = self._touched, {}
        for connection in touched:
            connection.flush()
            if connection.backlog:
                self.turns.resume(connection)

    # -- commits -------------------------------------------------------------------------------

    def release(self, held: Sequence[Answer], written: bool) -> None:
        """Say what has waited; ``written`` tells that a batch was stored meanwhile."""
        if written:
            self.outage.ended()
        for connection, answer, req in held:
            if connection.id in self.connections:
                connection.owed -= 0 if req is TOLD else len(answer)  # it was counted when made
                self.effects.say_apart(connection, answer)
            elif connection.id == Outlet.id:
                connection.tell(answer)
        if not self._turning:
            self._flush()

    def _probe(self) -> None:
        """Try to write, so that an idle server notices when it works again."""
        self.engine.record(PROBE_FACT, str(now_ms()).encode())
        self._begin_turn()

    def delivered(self, hook: Webhook, event: str, well: bool) -> None:
        """A delivery has ended."""
        now, engine = self.begin(), self.engine
        engine.webhooks.delivered(engine, hook.id, now, well=well)
        what = "webhook:fired" if well else "webhook:failed"
        engine.remark(what, None, now, webhookId=hook.id, url=hook.url, event=event)

    def restore(self, key: str, value: bytes | None) -> None:
        """Take a fact as the store has it."""
        facts.restore(self.engine, key, value, now_ms() if self.outage else None)

    # -- what commands ask of the server (commands.call.Host) ----------------------------------

    def stats(self) -> dict[str, float]:
        return self.meter.stats(self.engine.counters, len(self.connections))

    @property
    def queue_policy(self) -> Policy | None:
        return self.policy if self.settings.auto_create else None

    @property
    def publish_wait(self) -> int:
        return round(self.settings.publish_wait * 1_000)

    def storage(self) -> dict[str, Any]:
        return self.outage.status()


def _req(connection: Connection, item: Any) -> Any:
    """Return what the answer to a request repeats."""
    if type(item) is Packed:
        return connection.session.opened
    return item.req if type(item) is Refusal else item.req_id
