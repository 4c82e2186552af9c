"""An engine, its rows and the plain server, side by side: each step is done by both and compared.

The rows stand for a store: they are written as a committer writes them, one batch in the air while
the next one grows, and a batch may fail or be lost in a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import count
from typing import Any, NamedTuple

from tests.histories.plain import Job, Plain, Pull

from tandemq.engine import clock, consume, control, publish, recovery, settle
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.finished import Finished, Rules
from tandemq.engine.timers import FAR, Timers
from tandemq.model.errors import AboutMessage
from tandemq.model.message import DEFAULTS, Message, Options, State
from tandemq.model.outcome import Outcome
from tandemq.stores.base import Row
from tandemq.stores.rows import decode, encode_head

READY, LEASED, DONE, DEAD, GONE = State.READY, State.LEASED, State.DONE, State.DEAD, State.GONE
START = 1_700_000_000_000
RULES = Rules(keep_results=3, keep_done=6, keep_done_bytes=300, retention=20_000)


class Flight(NamedTuple):
    """A batch on its way to the rows, and what the plain server was when it left."""

    touched: dict[int, Message]
    rows: dict[int, Row | None]
    jobs: dict[int, Job | None]
    facts: dict[str, bytes | None]
    paused: set[str]


class World:
    """Both servers; whatever is asked here is asked of both."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules, self.now = rules, START
        self.set_back = False  # then those that ended later may be older, and go late
        self.numbers, self.requests = count(1), count(1)
        self.tokens: list[str] = []  # every token there ever was
        self.ids: list[str] = []  # every id there ever was
        self.log: list[object] = []  # what was said and what changed, for comparing whole histories
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}
        self.saved: dict[int, Job] = {}
        self.saved_paused: set[str] = set()
        self.plain = Plain(rules)
        self.begin()

    def begin(self) -> None:
        """Start with an empty engine and nothing on its way."""
        self.heard: list[Any] = []  # who rang, in order
        self.alarm = FAR  # when a server would wake
        self.engine = Engine(
            new_id=lambda _: f"id-{next(self.numbers)}", uniform=lambda: 0.5, rules=self.rules
        )
        listen(self.engine.timers, self.heard)
        self.pending: dict[int, Message] = {}
        self.pending_facts: dict[str, bytes | None] = {}
        self.flight: Flight | None = None

    # -- what clients ask --------------------------------------------------------------------------

    def publish(
        self,
        queue: str = "a",
        *,
        id: str = "",
        size: int = 1,
        priority: int = 0,
        delay: int = 0,
        age: int = 0,
        options: Options = DEFAULTS,
    ) -> str:
        """Publish one message; `age` says how long ago its publisher dates it."""
        draft = publish.draft(
            queue,
            "job",
            b"x" * size,
            self.now,
            priority,
            delay,
            options,
            id,
            self.now - age if age else None,
        )
        job = Job(0, id, queue, size, draft.created, draft.due, priority, options, State.NEW)
        got, expected = (
            publish.publish(self.engine, draft, self.now),
            self.plain.publish(job, self.now),
        )
        assert got.seq == expected.seq, "another message has the id"
        expected.id = got.id
        self.ids += [got.id] if got.id not in self.ids else []
        self.plain.match(queue, self.now)
        self.compare()
        return got.id

    def take(
        self,
        queue: str = "a",
        conn: int = 1,
        count: int = 1,
        span: int | None = None,
        detach: bool = False,
        wait: int = 0,
    ) -> list[Message]:
        """Pull, and wait if there is nothing and `wait` says so."""
        pull = Pull(conn, queue, count, f"r{next(self.requests)}", span, detach, self.now + wait)
        holder = None if detach else conn
        got = consume.take(self.engine, queue, holder, count, span, self.now)
        expected = self.plain.take(pull, self.now)
        assert [m.seq for m in got] == [job.seq for job in expected]
        if wait and not got:
            consume.wait(
                self.engine, Consumer(conn, queue, count, pull.req, span, detach, pull.until)
            )
            self.plain.pulls.append(pull)
        self.compare()
        return got

    def ack(
        self, id: str, token: str | None, result: bytes | None = None, remove: bool = False
    ) -> str:
        how = said(settle.ack, self.engine, id, token, self.now, result, remove)
        expected = self.plain.ack(id, token, self.now, result, remove)
        assert how == {"held": "True", "late": "True", "over": "False"}.get(expected, expected)
        self.compare()
        return expected

    def fail(
        self, id: str, token: str | None, unrecoverable: bool = False, remove: bool = False
    ) -> str:
        how = said(
            settle.fail,
            self.engine,
            id,
            token,
            self.now,
            error="oh",
            unrecoverable=unrecoverable,
            remove=remove,
        )
        expected = self.plain.fail(id, token, self.now, unrecoverable, remove)
        assert how == {"held": "True", "late": "False", "over": "False"}.get(expected, expected)
        self.compare()
        return expected

    def extend(self, id: str, token: str | None, span: int | None = None) -> bool:
        got = settle.extend(self.engine, id, token, self.now, span)
        assert got == self.plain.extend(id, token, self.now, span)
        self.compare()
        return got

    def heartbeat(self, id: str, token: str | None, span: int | None = None) -> bool:
        got = settle.heartbeat(self.engine, id, token, self.now, span)
        assert got == self.plain.heartbeat(id, token, self.now, span)
        self.compare()
        return got

    def disconnect(self, conn: int) -> None:
        consume.disconnect(self.engine, conn, self.now)
        self.plain.disconnect(conn, self.now)
        self.compare()

    def pause(self, queue: str) -> None:
        control.pause(self.engine, queue)
        self.plain.paused.add(queue)
        self.compare()

    def resume(self, queue: str) -> None:
        control.resume(self.engine, queue, self.now)
        self.plain.paused.discard(queue)
        self.plain.match(queue, self.now)
        self.compare()

    # -- time --------------------------------------------------------------------------------------

    def later(self, ms: int) -> None:
        """Let time pass in one jump, however much becomes due in it."""
        self.now += ms
        if self.alarm <= self.now:
            self.alarm = FAR
        if self.engine.timers.soonest <= self.now:
            clock.tick(self.engine, self.now)
        for who in self.heard:
            if isinstance(who, int):
                self.plain.job_comes_due(who, self.now)
            elif isinstance(who, str):
                self.plain.pull_comes_due(who, self.now)
            else:
                self.plain.sweep(self.now)
        overslept = [at for at in self.moments() if at <= self.now]
        assert not overslept, "the clock overslept"
        self.compare()

    def set_clock(self, step: int) -> None:
        """Somebody sets the wall clock."""
        self.now += step
        self.set_back |= step < 0
        self.alarm = FAR
        clock.shift_spans(self.engine, step)
        self.plain.shift_spans(step)
        self.later(0)

    def moments(self) -> Iterator[int]:
        """Every moment at which time alone changes something."""
        for job in self.plain.jobs.values():
            yield from job.deadlines().values()
        yield from (pull.until for pull in self.plain.pulls)
        if self.plain.done and self.rules.retention and not self.set_back:
            yield self.plain.done[0].finished + self.rules.retention

    # -- the store ---------------------------------------------------------------------------------

    def fly(self) -> None:
        """Hand what has gathered to the writer, which has nothing else to do."""
        assert self.flight is None, "one batch at a time"
        rows = {seq: row_of(m) for seq, m in self.pending.items()}
        for m in self.pending.values():
            m.stored = True
        jobs = {seq: copy(self.plain.jobs.get(seq)) for seq in rows}
        paused = set(self.plain.paused)
        self.flight = Flight(self.pending, rows, jobs, self.pending_facts, paused)
        self.pending, self.pending_facts = {}, {}
        self.check()

    def land(self) -> None:
        """The batch in the air is written."""
        flight = self.flight
        assert flight is not None, "nothing flies"
        put(self.rows, flight.rows)
        put(self.saved, flight.jobs)
        put(self.facts, flight.facts)
        self.saved_paused = flight.paused
        self.flight = None
        self.check()

    def commit(self) -> None:
        """Write everything there is."""
        if self.flight is not None:
            self.land()
        self.fly()
        self.land()

    def lose_batch(self) -> None:
        """The batch in the air is not written: it is undone, with all that was built on it."""
        touched, keys = dict(self.pending), set(self.pending_facts)
        if self.flight is not None:
            touched = {**self.flight.touched, **touched}
            keys |= set(self.flight.facts)
        stored = [decode(self.rows[seq]) for seq in sorted(touched) if seq in self.rows]
        self.pending, self.pending_facts, self.flight = {}, {}, None
        recovery.roll_back(self.engine, touched.values(), stored, self.now)
        self.plain.put_back(set(touched), self.saved, self.now)
        self.plain.paused = set(self.saved_paused)
        for queue in sorted(key.removeprefix(control.FACT) for key in keys if of_queue(key)):
            fact = self.facts.get(control.FACT + queue)
            control.restore(self.engine, queue, fact, self.now)
            self.plain.match(queue, self.now)
        self.compare()

    def crash(self) -> int:
        """End without a word, and start again from the rows."""
        self.begin()
        self.plain = Plain(self.rules, paused=set(self.saved_paused))
        for seq in sorted(self.rows):
            m = decode(self.rows[seq])
            recovery.show_last_start(m)
            self.engine.admit(m)
            self.plain.admit(replace(self.saved[seq]))
        for key in filter(of_queue, self.facts):
            control.restore(self.engine, key.removeprefix(control.FACT), self.facts[key])
        lost = recovery.resume(self.engine, self.now)
        assert lost == self.plain.resume(self.now)
        self.compare()
        self.later(0)
        return lost

    def stop_and_start(self) -> None:
        """End in order: what is leased goes back uncharged, so that nothing is lost in a start."""
        consume.release_all(self.engine, self.now)
        self.plain.release_all(self.now)
        self.compare()
        assert self.take("a") == self.take("b") == [], "nothing is handed out any more"
        self.commit()
        assert self.crash() == 0

    # -- comparing ---------------------------------------------------------------------------------

    def compare(self) -> None:
        """Take what the engine has to say and check everything."""
        self.heard.clear()
        outcome = self.engine.take()
        assert self.engine.quiet
        self.plain.trim()
        self.gather(outcome)
        replies = [(r.conn, r.req, [m.seq for m in r.messages]) for r in outcome.effects]
        assert sorted(replies) == sorted(self.plain.replies), "answers to waiting pulls"
        self.plain.replies.clear()
        self.learn_tokens()
        self.log.append((replies, [(m.id, encode_head(m)) for m in outcome.changed.values()]))
        self.check()

    def gather(self, outcome: Outcome) -> None:
        """What came and went inside one batch is never written."""
        for seq, m in outcome.changed.items():
            assert m.seq == seq
            if m.state is GONE and not m.stored:
                self.pending.pop(seq, None)
            else:
                self.pending[seq] = m
        self.pending_facts.update(outcome.facts)

    def learn_tokens(self) -> None:
        for job in self.plain.handed:
            m = self.engine.messages[job.id]
            assert m.lease is not None, "what was handed out is leased"
            assert (m.lease.token is None) == (job.span is None), "who asks for a token gets one"
            if m.lease.token is not None:
                assert m.lease.token not in self.tokens, "a token is never used again"
                self.tokens.append(m.lease.token)
                job.token = m.lease.token
        self.plain.handed.clear()

    def check(self) -> None:
        """Everything that has to be true at any moment."""
        self.check_messages()
        self.check_queues()
        self.check_connections()
        self.check_figures()
        self.check_alarm()
        self.check_rows()

    def check_messages(self) -> None:
        messages, jobs = self.engine.messages, self.plain.jobs
        numbers = [m.seq for m in messages.values()]
        assert sorted(numbers) == sorted(jobs), "accepted and not ended"
        in_order = numbers == sorted(numbers)
        assert in_order or self.engine.searches.shuffled, "a search would lose its place"
        for id, m in messages.items():
            assert (m.id, view(m)) == (id, view_of(jobs[m.seq]))
            assert m.attempts <= m.options.max_attempts, "more attempts than the budget has"
            assert m.attempts < m.options.max_attempts or m.state in (DONE, DEAD)
        held = [m.lease.token for m in messages.values() if m.lease and m.lease.token]
        assert len(held) == len(set(held)), "two leases with one token"

    def check_queues(self) -> None:
        plain = self.plain
        names = {job.queue for job in plain.jobs.values()} | {pull.queue for pull in plain.pulls}
        assert set(self.engine.queues) == names | plain.paused, (
            "queues exist while they hold something"
        )
        for name, q in self.engine.queues.items():
            ready = plain.ready(name)
            assert [m.seq for m in q.ready] == [job.seq for job in ready]
            assert [m.seq for m in reversed(q.ready)] == [job.seq for job in reversed(ready)]
            assert q.prioritized == sum(job.priority > 0 for job in ready)
            for state in State:
                found = {job.seq for job in plain.within(name, state)}
                assert q.counts[state] == len(found), state.name
                assert {m.seq for m in q.within(state)} == found
                assert state is READY or set(q.members[state]) == found
            pulls = [pull.req for pull in plain.pulls if pull.queue == name]
            assert [c.req for c in q.ring] == pulls
            assert q.open == (name not in plain.paused)
            waits = q.open and self.engine.granting and bool(pulls)
            assert not (waits and ready), "somebody waits while a message is ready"

    def check_connections(self) -> None:
        held: dict[int, set[int]] = {}
        for job in self.plain.jobs.values():
            if job.conn is not None:
                held.setdefault(job.conn, set()).add(job.seq)
        assert {conn: set(by_seq) for conn, by_seq in self.engine.leased_by.items()} == held
        waiting: dict[int, list[str]] = {}
        for pull in self.plain.pulls:
            waiting.setdefault(pull.conn, []).append(pull.req)
        found = {conn: [c.req for c in pulls] for conn, pulls in self.engine.waiting.items()}
        assert found == waiting

    def check_figures(self) -> None:
        counters = {name: n for name, n in asdict(self.engine.counters).items() if n}
        assert counters == {name: n for name, n in self.plain.counters.items() if n}
        finished = self.engine.finished
        assert (finished.count, finished.size_bytes) == (len(self.plain.done), self.plain.bytes())
        assert self.engine.seq >= max(self.plain.jobs, default=0)

    def check_alarm(self) -> None:
        """A server sleeps until its alarm, and looks again only when a nearer timer is set."""
        timers, first = self.engine.timers, min(self.moments(), default=FAR)
        assert timers.soonest <= first, "the timer is late"
        if timers.soonest < self.alarm:
            wake = clock.next_wake(self.engine)
            self.alarm = min(self.alarm, FAR if wake is None else wake)
        assert self.alarm <= first, "the alarm is late"

    def check_rows(self) -> None:
        """What is not on its way to the rows is there already."""
        flying = self.flight.rows if self.flight else {}
        by_seq = {m.seq: m for m in self.engine.messages.values()}
        for seq in (by_seq.keys() | self.rows.keys() | flying.keys()) - self.pending.keys():
            row = flying[seq] if seq in flying else self.rows.get(seq)
            m = by_seq.get(seq)
            assert (m is None) == (row is None), "came or went unnoticed by the rows"
            if m is not None and row is not None:
                assert written(row_of(m), m) == written(row, m), "changed unnoticed by the rows"


def listen(timers: Timers, heard: list[Any]) -> None:
    """Note who rings: messages by seq, pulls by request, the sweep by age as None."""
    due = timers.due

    def noted(now: int) -> Iterator[Any]:
        for owner in due(now):
            if isinstance(owner, Message):
                heard.append(owner.seq)
            elif isinstance(owner, Consumer):
                heard.append(owner.req)
            elif isinstance(owner, Finished):
                heard.append(None)
            yield owner

    timers.due = noted  # type: ignore[method-assign]


def said(verb: Callable[..., bool], *args: Any, **options: Any) -> str:
    """Return what a verb answered, or the name of its refusal."""
    try:
        return str(verb(*args, **options))
    except AboutMessage as refused:
        return type(refused).__name__


def view(m: Message) -> dict[str, object]:
    """What is promised about a message, as plain values."""
    run, lease = m.run, m.lease
    return {
        "state": m.state,
        "due": m.due,
        "attempts": m.attempts,
        "leases": m.leases,
        "lease": None if lease is None else (lease.token, lease.conn, lease.until, lease.renewals),
        "runs": (run.started, run.heartbeat) if run is not None and lease is not None else None,
        "stalls": run.stalls if run else 0,
        "interruptions": run.interruptions if run else 0,
        "retired": run.retired if run else None,
        "end": (run.error, run.cause, run.result, run.finished) if run else (None, None, None, 0),
    }


def view_of(job: Job) -> dict[str, object]:
    """The same of a job of the plain server."""
    leased = job.state is LEASED
    return {
        "state": job.state,
        "due": job.due,
        "attempts": job.attempts,
        "leases": job.leases,
        "lease": (job.token, job.conn, job.until, job.renewals) if leased else None,
        "runs": (job.started, job.heartbeat) if leased else None,
        "stalls": job.stalls,
        "interruptions": job.interruptions,
        "retired": job.retired,
        "end": (job.error, job.cause, job.result, job.finished),
    }


def row_of(m: Message) -> Row | None:
    return None if m.state is GONE else Row(m.seq, encode_head(m), m.body)


def written(row: Row | None, m: Message) -> Row | None:
    """A row without what need not be written: a result dropped for space, the last start shown."""
    assert row is not None, "a living message has a row"
    stored = decode(row)
    recovery.show_last_start(stored)
    if stored.run is not None and m.run is not None and m.run.result is None:
        stored.run.result = None
    return row_of(stored)


def of_queue(key: str) -> bool:
    """Whether a fact is about the settings of a queue."""
    return key.startswith(control.FACT)


def copy(job: Job | None) -> Job | None:
    return None if job is None else replace(job)


def put(kept: dict[Any, Any], changes: dict[Any, Any]) -> None:
    """Bring a dictionary up to date; None forgets a key."""
    for key, value in changes.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value
