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
from tandemq.server.connections import Connection
from tandemq.server.crowd import Crowd
from tandemq.server.effects import Effects
from tandemq.server.events import TOLD, Observers, Outlet
from tandemq.server.feed import Feed
from tandemq.server.grants import Grants
from tandemq.server.intake import Intake
from tandemq.server.meter import Meter, Watch, now_ms
from tandemq.server.monitor import Monitor
from tandemq.server.outage import Outage
from tandemq.server.turns import SLICE, Turns
from tandemq.server.undo import undo
from tandemq.stores.base import Store, StoreFailed
from tandemq.stores.rows import decode

log = logging.getLogger("tandemq.server")

PROBE_FACT = "probe"

Answer = tuple[Any, Any, Any]  # a connection or who else is told, what, of which request


class Runtime:
    """A running engine with its connections."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings = settings
        self.store = store
        self.loop = asyncio.get_running_loop()
        self.crowd = Crowd(settings, self.loop)
        self.connections = self.crowd.open
        self.next_id = self.crowd.next_id
        self.policy = policy(settings)
        self.meter = Meter()
        self._watch = Watch(now_ms())
        self.engine = Engine(
            new_id=Uuid7(os.urandom).__call__,  # a method is called sooner than an object
            uniform=random.random,
            rules=rules(settings, persistent=store.persistent),
        )
        self.patient = store.persistent and settings.durability != "buffered"
        self.committer: Committer | None = None
        self.outage = Outage(self._probe)
        self.held: list[Answer] = []
        self.touched: dict[Connection, None] = {}  # those to which something was said in this turn
        self._turning = False
        self.turn_ends = 0.0  # s of the meter's clock
        self._alarm = Alarm(self.engine, self.begin_turn)
        self.grants = Grants()
        self.http_port: int | None = None  # where HTTP is served
        self.broken: asyncio.Future[StoreFailed] = self.loop.create_future()
        self.intake = Intake(self)
        self.received = self.intake.received
        self.turns = Turns(self.loop, self.meter, self.intake.go_on)
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
            self.committer = Committer(
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
        self.begin_turn()

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
        self.begin_turn()

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
        if self.committer is not None and not self.broken.done():
            await self.committer.close()
        for connection in list(self.connections.values()):
            connection.close()
        self._alarm.cancel()
        self.outage.cancel()

    @property
    def leased(self) -> int:
        """How many messages somebody holds."""
        engine = self.engine
        delivered = sum(len(who.messages) for who in engine.subscribers.values())
        return delivered + sum(map(len, engine.leased_by.values())) + len(engine.fanouts)

    # -- from connections ----------------------------------------------------------------------

    def lost(self, connection: Connection) -> None:
        """A connection is gone, and with it what it waited for and held."""
        if not self.crowd.leave(connection):
            return
        connection.backlog.clear()
        for worker in self.engine.workers.disconnected(connection.id):
            self.engine.remark("worker:disconnected", None, now_ms(), workerId=worker.id)
        self.accounts.left(connection)
        self.observers.unsubscribe(connection)
        self.touched.pop(connection, None)
        self.begin_turn()
        engine, broken = self.engine, connection.broken and not self.winding_down
        consume.disconnect(engine, connection.id, now_ms(), connection.spared, broken=broken)

    def say(self, connection: Connection, answer: bytes) -> None:
        """Write something with the rest of this turn."""
        connection.owed += len(answer)
        connection.out.append(answer)
        self.touched[connection] = None

    def hang_up(self, connection: Connection) -> None:
        self.touched.pop(connection, None)
        connection.close()

    # -- turns ---------------------------------------------------------------------------------

    def begin(self) -> int:
        """Begin a turn for what comes from neither a connection nor the clock; return now (ms)."""
        self.begin_turn()
        return now_ms()

    def begin_turn(self) -> None:
        """Do what is due, and see to it that this turn has an end."""
        if self._turning:
            return
        self._turning = True
        self.turn_ends = self.meter.turn_began() + SLICE
        self.loop.call_soon(self._end_turn)
        now = now_ms()
        if (step := self._watch.step(now)) is not None:
            log.warning("the clock was set by %d ms; leases and waits move with it", step)
            clock.shift_spans(self.engine, step)
        if self.engine.timers.soonest <= now:
            clock.tick(self.engine, now)

    def _end_turn(self) -> None:
        self._turning = False
        outcome = self.engine.take()
        if self.broken.done():
            return  # memory is ahead of the store for good: nothing of it is told or kept
        if outcome.effects:
            self.effects.serve(outcome.effects)
        if self.effects.last:
            self.effects.say_last()
        held, self.held = self.held, []
        if told := self.observers.collected(outcome.events):
            if self.committer is not None and self.patient:
                held += told
            else:
                self.release(told, False)
        if self.committer is not None:
            self.committer.add(outcome, held)
        self.grants.check()
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
            self.grants.note(connection, now_ms())
        if self.outage or (self.patient and isinstance(effect, Late)):
            connection.owed += len(answer)
            self.held.append((connection, answer, req_id))
        else:
            self.say(connection, answer)
        if connection.backlog:
            self.turns.resume(connection)

    def answer(self, connection: Connection, req: Raw, reply: Any) -> None:
        """Answer at once a request that had waited; nothing of the answer has to be kept first."""
        self.begin_turn()
        connection.waiting -= 1
        self.say(connection, connection.session.late(Late(connection.id, req, reply))[0])
        if isinstance(reply, TandemqError) and reply.fatal:
            self.hang_up(connection)

    def _flush(self) -> None:
        touched, self.touched = self.touched, {}
        for connection in touched:
            connection.flush()
            if connection.backlog:
                self.turns.resume(connection)

    # -- commits -------------------------------------------------------------------------------

    def release(self, held: Sequence[Answer], written: bool) -> None:
        """Say what has waited; ``written`` tells that a batch was stored meanwhile."""
        if written and self.outage:
            self.outage.ended()
            self.feed.store_changed()
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
        self.begin_turn()

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
