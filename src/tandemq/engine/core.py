"""The engine's state and its inner movements: shift, lease, match, take.

Everything a command can ask is a function ``verb(engine, ..., now)`` in the module of its topic.
The engine is told the time and never waits; what changed and what must be said is collected until
``take`` hands it over. Randomness is given from outside, so equal histories have equal ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from tandemq.engine import admission
from tandemq.engine.consumers import Consumer
from tandemq.engine.counters import Counters
from tandemq.engine.dependents import Dependents
from tandemq.engine.finished import Finished, Rules
from tandemq.engine.journal import Journal
from tandemq.engine.keyring import Keyring
from tandemq.engine.lane import Terms
from tandemq.engine.lifecycle import move
from tandemq.engine.logs import Logs
from tandemq.engine.outbox import Outbox
from tandemq.engine.pressure import Pressure, weight
from tandemq.engine.queue import Queue
from tandemq.engine.search import Line
from tandemq.engine.tallies import Tallies
from tandemq.engine.timers import Timers
from tandemq.engine.users import Users
from tandemq.engine.webhooks import Webhooks
from tandemq.engine.workers import Workers
from tandemq.model.errors import TandemqError
from tandemq.model.message import DEFAULTS, Lease, Message, Options, Run, State
from tandemq.model.outcome import Outcome, Reply
from tandemq.model.policy import BATCH_BYTES, expires, looks_again
from tandemq.model.schedule import Schedule
from tandemq.model.size import message_bytes, short_options

if TYPE_CHECKING:
    from tandemq.engine.fanout import Fanout
    from tandemq.engine.overflow import Blocked
    from tandemq.engine.subscriptions import Subscriber
    from tandemq.engine.sweeps import Sweep
    from tandemq.engine.watches import Watch

NEW, PARKED, READY = State.NEW, State.PARKED, State.READY
LEASED, DONE, GONE = State.LEASED, State.DONE, State.GONE


class Engine(Outbox):
    """The broker without I/O.

    ``new_id(now)`` returns an id nobody can guess, ordered by time; it names messages and leases.
    ``uniform()`` returns a random number in [0, 1).
    """

    def __init__(
        self,
        *,
        new_id: Callable[[int], str],
        uniform: Callable[[], float],
        rules: Rules | None = None,
    ) -> None:
        self.rules = rules or Rules()
        super().__init__(Journal(self.rules.keep_events, self.rules.keep_all_events))
        self.new_id = new_id
        self.uniform = uniform
        self.queues: dict[str, Queue] = {}
        self.messages: dict[str, Message] = {}
        self.leased_by: dict[int, dict[int, Message]] = {}  # connection -> what it pulled
        self.waiting: dict[int, dict[Consumer, None]] = {}  # connection -> its pulls
        self.logs = Logs(self.rules.keep_logs, self.rules.keep_log_bytes)
        self.workers = Workers(self.rules.worker_timeout, self.rules.worker_bytes)
        self.timers = Timers()
        self.schedules: dict[str, Schedule] = {}
        self.counters = Counters()
        self.finished = Finished(self.rules)
        self.dependents = Dependents(self.rules.keep_ids)
        self.keyring = Keyring()
        self.seq = 0
        self.subscribers: dict[int, Subscriber] = {}  # connection -> its subscriptions
        self.fanouts: dict[int, Fanout] = {}  # seq of an origin -> its copies
        self.blocked: dict[str, deque[Blocked]] = {}  # queue -> who waits for room in it
        self.held_bytes: dict[int, int] = {}  # connection -> of what it waits to publish
        self.pressure = Pressure(self.rules.max_memory)
        self.push_token = ""  # of every lease that a subscription has; nobody is told of it
        self.granting = True  # False while the server winds down: no new leases
        self.watches: dict[str, dict[Watch, None]] = {}  # message id -> who waits for its end
        self.watched_by: dict[int, dict[Watch, None]] = {}  # connection -> its watches
        self.sweeps: dict[Sweep, None] = {}  # commands over many messages, on their way
        self.searches = Line()
        self.tallies = Tallies(self.rules.keep_tallies)
        self.webhooks = Webhooks(self.rules.most_webhooks)
        self.users = Users()

    def queue(self, name: str) -> Queue:
        """Return a queue; it begins to exist with the first request that leaves a trace in it."""
        q = self.queues.get(name)
        if q is None:
            q = self.queues[name] = Queue(name)
        return q

    def tidy(self, q: Queue) -> None:
        """Forget a queue that holds nothing, so that made-up names do not fill the memory."""
        if q.blank and q.name not in self.blocked:
            self.queues.pop(q.name, None)

    def compact(self) -> None:
        """Let go of timers that nobody waits for and of queues that hold nothing."""
        self.timers.sweep()
        for q in list(self.queues.values()):
            self.tidy(q)

    # -- movements -----------------------------------------------------------------------------

    def shift(self, m: Message, verb: str, to: State, *, popped: bool = False) -> None:
        """Take a message along an edge of its life and keep every index of it true.

        Only ``lease`` leads to the state LEASED. ``popped`` says that its entry was just taken out
        of the ready order.
        """
        q, before = self.queues[m.queue], m.state
        self._leave(m, q, popped)
        move(m, verb, to)
        if m.options.unique_key is not None:
            self.keyring.moved(self, m, before)
        if before is PARKED:
            self.dependents.left(self, m)
            if self.fanouts and (copies := self.fanouts.pop(m.seq, None)) is not None:
                copies.close(self)
        if to is GONE:
            self.changed[m.seq] = m
            if before is not NEW:
                self.pressure.grow(self, -weight(m))
            if self.messages.get(m.id) is m:
                del self.messages[m.id]
            self.tidy(q)
        else:
            self.enter(m, q)

    def enter(self, m: Message, q: Queue) -> None:
        """Index a message under its present state, and set its timer."""
        state, seq = m.state, m.seq
        self.changed[seq] = m
        if m.options.group is not None:
            admission.open_lanes(q).entered(m)
        if state is READY:
            q.ready.push(m)
            if m.priority > 0:
                q.prioritized += 1
            if m.options.ttl is None:
                return
        else:
            q.members[state][seq] = m
            if state is DONE:
                self.finished.add(m)
                return
            if state is LEASED:
                self._hold(m)
                return
            if m.links is not None:
                self.dependents.add(m)
        if (at := looks_again(m)) is not None:
            self.timers.set(m, at)

    def _hold(self, m: Message) -> None:
        """Note whose message a leased one is, and set its timer."""
        lease = m.lease
        assert lease is not None, "a leased message has a lease"
        conn = lease.conn
        if lease.delivered and conn is not None:
            self.timers.watch(m.seq, m, lease.until)
            return
        if conn is not None:
            held = self.leased_by.get(conn)
            if held is None:
                held = self.leased_by[conn] = {}
            held[m.seq] = m
        self.timers.set(m, looks_again(m))  # type: ignore[arg-type]  # a leased one has a deadline

    def _leave(self, m: Message, q: Queue, popped: bool = False) -> None:
        state = m.state
        if q.groups is not None and m.options.group is not None:
            q.groups.leaves(m)
        if state is READY:
            if not popped:
                q.ready.left(m)
            if m.priority > 0:
                q.prioritized -= 1
            if self.blocked and q.name in self.blocked:
                admission.ring_at(self, q, 0)  # there is room for whoever waits for it
            return
        del q.members[state][m.seq]
        if state is LEASED:
            self._let_go(m)
            if q.limited and q.ring:
                admission.ring_at(self, q, 0)  # its place is free; often a match comes first
        elif state is DONE:
            self.finished.remove(m)
        else:
            if m.links is not None:
                self.dependents.drop(m)
            if self.blocked and q.name in self.blocked:
                admission.ring_at(self, q, 0)

    def _let_go(self, m: Message) -> None:
        conn = m.lease.conn  # type: ignore[union-attr]  # a leased message has a lease
        if conn is None:
            return
        if m.lease.delivered:  # type: ignore[union-attr]
            self.timers.unwatch(m.seq)
            self.subscribers[conn].let_go(self, m)
            return
        held = self.leased_by[conn]
        del held[m.seq]
        if not held:
            del self.leased_by[conn]

    def admit(self, m: Message) -> None:
        """Take in a message as it was stored, in whatever state that is."""
        self.messages[m.id] = m
        self.searches.shuffled |= m.seq < self.seq
        self.seq = max(self.seq, m.seq)
        self.enter(m, self.queue(m.queue))
        self.pressure.grow(self, weight(m))
        del self.changed[m.seq]

    def evict(self, m: Message) -> None:
        """Drop a message from memory as if it had never been here; the store is not told."""
        self.dependents.unlearn(m.id)
        if m.state not in (NEW, GONE):
            q = self.queues[m.queue]
            self._leave(m, q)
            if self.fanouts and (copies := self.fanouts.pop(m.seq, None)) is not None:
                copies.close(self)
            self.pressure.grow(self, -weight(m))
            if self.messages.get(m.id) is m:
                del self.messages[m.id]
            m.state = GONE
            m.gen += 1
            self.tidy(q)

    def forget(self, m: Message) -> None:
        """Let go of a message that has ended, and of its log."""
        if m.links is not None and m.state is DONE:
            self.dependents.leave_value(self, m)
        self.shift(m, "forget", GONE)
        if self.logs:
            self.logs.drop(self, m.id)

    def touched(self, m: Message) -> None:
        """A message changed in place, without moving: its row must be written."""
        self.changed[m.seq] = m

    def rebody(self, m: Message, body: bytes) -> None:
        """Give a message another body, which its row has to get as well."""
        if m.state is DONE:
            self.finished.size_bytes += len(body) - len(m.body)
        self.pressure.grow(self, len(body) - len(m.body))
        m.body, m.rebodied = body, True
        self.changed[m.seq] = m

    def reorder(self, m: Message, priority: int, options: Options) -> None:
        """Give a ready or delayed message another priority or other options, and its place."""
        q = self.queues[m.queue]
        self._leave(m, q)
        m.priority, m.options = priority, options
        move(m, "reschedule", m.state)
        self.enter(m, q)

    def extended(self, m: Message, verb: str = "extend") -> None:
        """The deadline of a leased message has moved, perhaps nearer."""
        move(m, verb, LEASED)
        self.changed[m.seq] = m
        if (at := looks_again(m)) is not None:
            self.timers.set(m, at)

    # -- the matchmaker ------------------------------------------------------------------------

    def lease(
        self,
        m: Message,
        conn: int | None,
        span: int | None,
        now: int,
        *,
        delivered: bool = False,
    ) -> None:
        """Hand out a message just popped from the ready order.

        ``span`` None gives a lease without a token, which no clock ends; ``conn`` None one that
        survives its connection; ``delivered`` one of a subscription.
        """
        run = m.run
        if run is None:
            m.run = Run(now, 0, now)
        else:
            run.started = run.heartbeat = now
            run.retired = None
        m.leases += 1
        self.counters.pulled += 1
        q = self.queues[m.queue]
        if m.priority > 0:
            q.prioritized -= 1
        move(m, "lease", LEASED)
        if span is None:
            m.lease = Lease(None, 0, 0, conn)
        elif delivered:
            m.lease = Lease(self.push_token, now + span, span, conn, 0, True)
        else:
            m.lease = Lease(self.new_id(now), now + span, span, conn)
        self.changed[m.seq] = q.leased[m.seq] = m
        if m.options.group is not None:
            admission.open_lanes(q).entered(m)
        self._hold(m)
        if self.listening:
            self.say("pulled", m, now)

    def next(self, q: Queue, now: int, terms: Terms | None = None) -> Message | None:
        """Take out the message whose turn it is; those past their time to live go on the way.

        ``terms`` are what the pull asks of groups.
        """
        if q.limited or terms is not None:
            return admission.following(self, q, terms, now)
        return self.next_in_line(q, now)

    def next_in_line(self, q: Queue, now: int) -> Message | None:
        """Take out the first message of a queue that asks nothing else."""
        while (m := q.ready.pop()) is not None:
            if m.options.ttl is None or expires(m) > now:  # type: ignore[operator]  # it has one
                return m
            from tandemq.engine.endings import expired  # which builds on this module

            expired(self, m, now, popped=True)
        return None

    def grant(
        self,
        q: Queue,
        count: int,
        conn: int | None,
        span: int | None,
        now: int,
        terms: Terms | None = None,
    ) -> list[Message]:
        """Lease up to ``count`` messages of a queue, those whose turn it is.

        Large messages come in smaller numbers: an answer longer than any peer reads would cost its
        jobs one lost connection after the other.
        """
        taken: list[Message] = []
        room = BATCH_BYTES
        while count > 0 and (m := self.next(q, now, terms)) is not None:
            self.lease(m, conn, span, now)
            taken.append(m)
            if len(taken) == count:
                break
            fresh = m.leases == 1 and m.links is None and m.repeat is None and m.letter is None
            plain = fresh and (m.options is DEFAULTS or short_options(m))
            room -= len(m.body) if plain else message_bytes(m)
            if room <= 0:
                break
        return taken

    def grant_to(self, c: Consumer, q: Queue, now: int) -> list[Message]:
        """Lease to a waiting pull what it may have."""
        conn = None if c.detach else c.conn
        return self.grant(q, c.prefetch, conn, c.span, now, c.terms)

    def match(self, q: Queue, now: int) -> None:
        """Bind ready messages to willing consumers until one side has nothing left."""
        if q.limited:
            admission.match(self, q, now)
            return
        while q.ready and q.open and self.granting and (c := q.ring.first()) is not None:
            if taken := self.grant_to(c, q, now):
                self.answer(c, taken)

    def answer(
        self, c: Consumer, messages: list[Message], refused: TandemqError | None = None
    ) -> None:
        """End a waiting pull."""
        self.queues[c.queue].ring.drop(c)
        pulls = self.waiting[c.conn]
        del pulls[c]
        if not pulls:
            del self.waiting[c.conn]
        self.effects.append(Reply(c.conn, c.req, messages, refused))

    # -- outcomes ------------------------------------------------------------------------------

    def take(self) -> Outcome:
        """Hand over what changed and what must be said since the last call.

        What has ended is kept within its bounds here, once for all that ended meanwhile.
        """
        self.finished.keep_bounds(self)
        return self.hand_over()
