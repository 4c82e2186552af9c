"""Random histories of a broker: what holds after every step, crash and undone batch.

A few publishers, subscribers and workers share two queues of one policy; one of them is decided
about by its first message. Every mode, every rule for full queues, with and without dead letters,
with and without a limit of memory.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.making import NOW, make_engine
from tests.engine.office import A, Office
from tests.support.restart import keep

from tandemq.engine import (
    clock,
    consume,
    entrance,
    facts,
    graves,
    manage,
    overflow,
    post,
    publish,
    recovery,
    settle,
    subscriptions,
)
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.fanout import Copy
from tandemq.engine.overflow import Blocked
from tandemq.engine.pressure import Level, weight
from tandemq.engine.queue import Queue
from tandemq.model.broker import Mode, Overflow, Policy
from tandemq.model.errors import BadRequest, MemoryFull, TandemqError
from tandemq.model.message import Letter, Message, Options, State
from tandemq.model.outcome import Deliver, Outcome
from tandemq.stores.base import Row
from tandemq.stores.rows import decode

PARKED, READY, LEASED, DONE = State.PARKED, State.READY, State.LEASED, State.DONE
QUEUES = "made", "first"  # one is made before, one by its first message
SUBSCRIBERS, WORKERS, PUBLISHERS = (1, 2, 3), (4, 5), (6, 7)
WINDOW = 2
WAIT = 8_000  # ms
MEMORY = 9_000  # bytes, some fourteen messages
PLAIN = Options(max_attempts=2, backoff=0)

queues = st.sampled_from(QUEUES)
subscribers, workers = st.sampled_from(SUBSCRIBERS), st.sampled_from(WORKERS)
publishers = st.sampled_from(PUBLISHERS)
PICK = st.integers(0, 1_000)


class Broker(RuleBasedStateMachine):
    """Two queues, and a store that is asked to undo and to load."""

    @initialize(
        mode=st.sampled_from(Mode),
        full=st.sampled_from(Overflow),
        dead_letters=st.booleans(),
        ttl=st.sampled_from([None, 45_000]),
        memory=st.sampled_from([0, MEMORY]),
    )
    def begin(
        self, mode: Mode, full: Overflow, dead_letters: bool, ttl: int | None, memory: int
    ) -> None:
        self.rules = {"max_memory": memory}
        self.policy = Policy(
            mode=mode, max_size=3, overflow=full, dead_letters=dead_letters, max_attempts=2, ttl=ttl
        )
        self.engine: Engine = make_engine(**self.rules)
        self.now = NOW
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}
        self.changed: dict[int, Message] = {}  # and not stored yet
        self.new_facts: dict[str, bytes | None] = {}
        self.made = 0
        self.remember()
        post.opened(self.engine, "made", self.now, self.policy)
        self.turn()
        self.commit()

    # -- what publishers do --------------------------------------------------------------------

    def enter(self, queue: str, conn: int, count: int, letter: bool) -> None:
        """Publish as the commands do: a letter, or so many jobs together."""
        self.made += 1
        name = f"m{self.made}"

        def accept(now: int) -> bool:
            engine = self.engine
            if letter:
                q = post.opened(engine, queue, now, self.policy)
                post.post(engine, q, Letter(name, {"k": "v"}), b"1", self.made % 4, now)
                self.came[name] += 1
                self.accepted += 1
                return True
            if engine.pressure.level is Level.FULL:
                raise MemoryFull
            bodies = [f"{name}.{n}" for n in range(count)]
            drafts = [publish.draft(queue, n, b"\x01", now, options=PLAIN) for n in bodies]
            publish.publish_all(engine, queue, drafts, now)
            self.came.update(bodies)
            return True

        b = Blocked(queue, conn, count, accept, self.now + WAIT)
        before = {m.seq for m in self.engine.messages.values() if m.letter is None}
        try:
            entrance.enter(self.engine, b, self.now)
        except TandemqError:
            after = {m.seq for m in self.engine.messages.values() if m.letter is None}
            assert after == before, "a refusal leaves no trace"
        self.turn()

    @rule(queue=queues, conn=publishers, count=st.integers(1, 4))
    def publish_letters(self, queue: str, conn: int, count: int) -> None:
        for _ in range(count):
            self.enter(queue, conn, 1, True)

    @rule(queue=queues, conn=publishers, count=st.integers(1, 3))
    def push(self, queue: str, conn: int, count: int) -> None:
        self.enter(queue, conn, count, False)

    # -- what subscribers do -------------------------------------------------------------------

    @rule(queue=queues, conn=subscribers)
    def subscribe(self, queue: str, conn: int) -> None:
        post.found(self.engine, queue, self.now, self.policy)
        subscriptions.subscribe(self.engine, queue, conn, WINDOW, self.now, f"peer {conn}")
        self.turn()

    @rule(queue=queues, conn=subscribers)
    def unsubscribe(self, queue: str, conn: int) -> None:
        subscriptions.unsubscribe(self.engine, queue, conn, self.now)
        self.turn()

    @rule(conn=subscribers, stalled=st.booleans())
    def stall(self, conn: int, stalled: bool) -> None:
        subscriptions.stall(self.engine, conn, self.now, stalled=stalled)
        self.turn()

    def held(self, conn: int, n: int) -> str:
        who = self.engine.subscribers.get(conn)
        names = list(who.held) if who is not None else []
        return names[n % len(names)] if names else "nothing"

    @rule(conn=subscribers, n=PICK)
    def acknowledge(self, conn: int, n: int) -> None:
        subscriptions.acknowledge(self.engine, conn, [self.held(conn, n)], self.now)
        self.turn()

    @rule(conn=subscribers, n=PICK, delay=st.sampled_from([0, 5_000]))
    def refuse(self, conn: int, n: int, delay: int) -> None:
        subscriptions.refuse(self.engine, conn, self.held(conn, n), delay, self.now)
        self.turn()

    # -- what workers and operators do -----------------------------------------------------------

    @rule(queue=queues, conn=workers, span=st.sampled_from([None, 20_000]), waits=st.booleans())
    def pull(self, queue: str, conn: int, span: int | None, waits: bool) -> None:
        with suppress(BadRequest):
            taken = consume.take(self.engine, queue, conn, 1, span, self.now)
            if waits and not taken:
                until = self.now + 10_000
                consume.wait(self.engine, Consumer(conn, queue, 1, "pull", span, until=until))
        self.turn()

    def pick(self, n: int, *states: State) -> Message | None:
        found = [
            m
            for m in self.engine.messages.values()
            if m.state in states and not (m.lease is not None and m.lease.delivered)
        ]
        return found[n % len(found)] if found else None

    @rule(n=PICK, well=st.booleans())
    def settle_pulled(self, n: int, well: bool) -> None:
        m = self.pick(n, LEASED)
        if m is not None and m.lease is not None:
            if well:
                settle.ack(self.engine, m.id, m.lease.token, self.now)
            else:
                settle.fail(self.engine, m.id, m.lease.token, self.now, error="oh")
        self.turn()

    @rule(n=PICK)
    def discard(self, n: int) -> None:
        m = self.pick(n, PARKED, State.DELAYED, READY)
        if m is not None and m.queue in QUEUES:
            manage.discard(self.engine, m, None, self.now)
        self.turn()

    @rule(queue=queues, n=PICK)
    def retry(self, queue: str, n: int) -> None:
        dead = list(graves.listed(self.engine, queue))
        if dead:
            graves.retry(self.engine, dead[n % len(dead)], self.now)
        self.turn()

    @rule(conn=st.sampled_from(SUBSCRIBERS + WORKERS + PUBLISHERS), broken=st.booleans())
    def leave(self, conn: int, broken: bool) -> None:
        consume.disconnect(self.engine, conn, self.now, broken=broken)
        self.turn()

    @rule(ms=st.sampled_from([1, 400, 4_000, 30_000, 120_000]))
    def wait(self, ms: int) -> None:
        end = self.now + ms
        while (wake := clock.next_wake(self.engine)) is not None and wake <= end:
            self.now = max(self.now, wake)
            clock.tick(self.engine, self.now)
        self.now = end
        self.turn()

    @rule(step=st.sampled_from([-60_000, 60_000]))
    def set_the_clock(self, step: int) -> None:
        self.now += step
        clock.shift_spans(self.engine, step)
        self.turn()

    # -- what the store does ---------------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        keep(Outcome(self.changed, self.new_facts, [], []), self.rows, self.facts)
        self.changed, self.new_facts = {}, {}

    @rule()
    def undo(self) -> None:
        back = [self.rows[seq] for seq in self.changed if seq in self.rows]
        recovery.roll_back(self.engine, self.changed.values(), map(decode, back), self.now)
        for key in self.new_facts:
            facts.restore(self.engine, key, self.facts.get(key), self.now)
        self.begins_again()

    @rule()
    def crash(self) -> None:
        engine, self.engine = self.engine, make_engine(**self.rules)
        self.engine.new_id = engine.new_id
        for _, row in sorted(self.rows.items()):
            self.engine.admit(decode(row))
        for key, value in self.facts.items():
            facts.restore(self.engine, key, value)
        recovery.resume(self.engine, self.now)
        self.begins_again()

    def begins_again(self) -> None:
        """Memory is what the store had; nothing of that is lost, and nothing else is there."""
        self.changed, self.new_facts = {}, {}
        self.spin()
        self.collect()
        stored = [decode(row) for row in self.rows.values()]
        came = self.came  # publishers that waited for room, which there is again
        assert names(stored, jobs=True) <= self.names(jobs=True)
        assert self.names(jobs=True) <= names(stored, jobs=True) + came
        assert self.names(jobs=False) <= names(stored, jobs=False) + came
        self.remember()

    # -- the end of a turn -----------------------------------------------------------------------

    def turn(self) -> None:
        """Do what is due at once, and see that nothing was lost or made twice on the way."""
        self.spin()
        said = self.collect()
        jobs, letters, done, counters = self.before
        now = self.engine.counters
        handed = sum(isinstance(e, Deliver) and self.hands_over(e.message) for e in said)
        gone = now.dropped - counters.dropped + handed
        gone += now.completed - counters.completed - (self.done() - done)
        assert jobs <= self.names(jobs=True), "a job is never lost"
        expected = letters.total() + self.accepted - gone
        assert self.names(jobs=False).total() == expected, "so is no letter, but for a rule"
        self.remember()

    def spin(self) -> None:
        for _ in range(1_000):
            wake = clock.next_wake(self.engine)
            if wake is None or wake > self.now:
                return
            clock.tick(self.engine, self.now)
        raise AssertionError("there is always something due")

    def collect(self) -> list[Any]:
        """Take what changed, which is not stored yet; return what was said."""
        outcome = self.engine.take()
        self.changed.update(outcome.changed)
        self.new_facts.update(outcome.facts)
        return outcome.effects

    def remember(self) -> None:
        self.accepted = 0
        self.came: Counter[str] = Counter()  # what was accepted in this step
        counters = replace(self.engine.counters)
        self.before = self.names(jobs=True), self.names(jobs=False), self.done(), counters

    def names(self, *, jobs: bool) -> Counter[str]:
        return names(self.engine.messages.values(), jobs=jobs)

    def done(self) -> int:
        return sum(m.state is DONE for m in self.engine.messages.values())

    def hands_over(self, m: Message) -> bool:
        broker = self.engine.queues[m.queue].settings.broker
        without = broker is not None and broker.mode is Mode.FAN_OUT_WITHOUT_ACK
        return without and m.letter is not None

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def each_message_is_in_one_place(self) -> None:
        for jobs in (True, False):
            assert set(self.names(jobs=jobs).values()) <= {1}
        found = [m for q in self.engine.queues.values() for m in members(q)]
        assert Counter(m.seq for m in found) == Counter(
            m.seq for m in self.engine.messages.values()
        )
        for q in self.engine.queues.values():
            assert len(q.ready) == len(list(q.ready))
            assert all(m.state is READY and m.queue == q.name for m in q.ready)

    @invariant()
    def nobody_holds_more_than_a_window(self) -> None:
        for who in self.engine.subscribers.values():
            for sub in who.subscriptions.values():
                held = [h for h in who.everything() if queue_of(h) == sub.queue]
                assert sub.held == len(held) <= WINDOW
                origins = [h.fanout.origin if isinstance(h, Copy) else h for h in held]
                assert sub.held_bytes == sum(len(m.body) for m in origins)

    @invariant()
    def what_is_held_is_leased_or_a_copy(self) -> None:
        held = [h for who in self.engine.subscribers.values() for h in who.everything()]
        leased = {
            m.seq
            for m in self.engine.messages.values()
            if m.lease is not None and m.lease.delivered
        }
        assert {h.seq for h in held if isinstance(h, Message)} == leased
        copies = [c for f in self.engine.fanouts.values() for c in f.copies.values()]
        assert {id(h) for h in held if isinstance(h, Copy)} == {id(c) for c in copies if c.out}

    @invariant()
    def copies_belong_to_parked_origins_and_to_who_is_there(self) -> None:
        engine = self.engine
        parked = {m.seq for m in engine.messages.values() if m.state is PARKED}
        assert set(engine.fanouts) == parked
        waiting: Counter[int] = Counter()
        for f in engine.fanouts.values():
            assert f.copies, "nobody would ever settle it"
            for sub, copy in f.copies.items():
                assert sub in engine.queues[sub.queue].subscriptions
                waiting[id(copy)] += not copy.out
        boxes = [c for q in engine.queues.values() for sub in q.subscriptions for c in sub.mailbox]
        assert Counter(map(id, boxes)) == +waiting

    @invariant()
    def nobody_willing_waits_while_there_is_something(self) -> None:
        for q in self.engine.queues.values():
            if q.fans_out and self.policy.mode is Mode.FAN_OUT_WITH_ACK:
                willing = bool(q.subscriptions)
            elif q.fans_out:
                willing = any(not sub.stalled for sub in q.subscriptions)
            else:
                willing = any(c.willing for c in [*q.ring, *q.subscriptions])
            assert not (willing and q.ready), "a message waits for nothing"
            for sub in q.subscriptions:
                assert not (sub.willing and sub.mailbox), "a copy waits for nothing"
                assert not sub.willing or q.fans_out or sub in q.ring

    @invariant()
    def publishers_wait_for_a_reason(self) -> None:
        engine = self.engine
        assert not engine.pressure.held or engine.pressure.level is Level.HELD
        for name, waiters in engine.blocked.items():
            q = engine.queues[name]
            full = overflow.waiting(q) + waiters[0].req > self.policy.max_size
            assert full or engine.pressure.level >= Level.HELD

    @invariant()
    def the_figures_agree(self) -> None:
        engine = self.engine
        assert engine.pressure.used == sum(map(weight, engine.messages.values()))
        if engine.pressure.limit and not engine.pressure.held:
            assert engine.pressure.level is engine.pressure.due
        for q in engine.queues.values():
            assert q.prioritized == sum(m.priority > 0 for m in q.ready)


def names(messages: Iterable[Message], *, jobs: bool) -> Counter[str]:
    """The names that publishers gave, and how often each is there."""
    return Counter(
        m.name if m.letter is None else m.letter.id for m in messages if (m.letter is None) is jobs
    )


def members(q: Queue) -> list[Message]:
    return [*q.ready, *(m for kind in q.members for m in kind.values())]


def queue_of(held: Message | Copy) -> str:
    return held.fanout.origin.queue if isinstance(held, Copy) else held.queue


Broker.TestCase.settings = settings(max_examples=200, stateful_step_count=60, deadline=None)
TestBroker = Broker.TestCase


@given(
    window=st.integers(1, 4),
    steps=st.lists(st.sampled_from(["letter", "job", "jobs", "ack"]), max_size=60),
)
def test_one_subscriber_gets_all_in_the_order_of_their_publication(
    window: int, steps: list[str]
) -> None:
    office = Office()
    office.make()
    office.subscribe(A, window=window)
    published: list[str] = []
    told: list[str] = []
    held: deque[str] = deque()

    def listen() -> None:
        names = [name for _, name in office.told()]
        told.extend(names)
        held.extend(names)

    for n, step in enumerate(steps):
        if step == "ack" and held:
            office.ack(A, held.popleft())
        elif step == "letter":
            office.post(f"m{n}")
            published.append(f"m{n}")
        elif step != "ack":
            drafts = [publish.draft("q", "n", b"\x01", office.now) for _ in range(len(step) - 2)]
            found = publish.publish_all(office.engine, "q", drafts, office.now)
            published += [m.id for m in found]
        clock.tick(office.engine, office.now)
        listen()
    while held:
        office.ack(A, held.popleft())
        clock.tick(office.engine, office.now)
        listen()
    assert told == published
