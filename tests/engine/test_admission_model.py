"""Lanes and limits against a server written for clarity alone, over random histories.

The plain server keeps one list of jobs and one row of groups, looks through all of them for every
pull, and counts tokens in fractions. After every step the two must have handed out the same
messages to the same pulls, and nobody may wait for what he could have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from tandemq.engine import clock, consume, groups, limits, publish, settle
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.lane import NO_GROUP, NO_TERMS, Terms
from tandemq.model.message import Options, State

START = 1_700_000_000_000
GROUPS = ("a", "b", "c")
QUEUE = "q"


@dataclass
class Job:
    """One job of the plain server."""

    seq: int
    group: str | None
    priority: int
    cost: int
    due: int
    state: State
    conn: int = 0
    taken: int = 0  # when, in order
    interruptions: int = 0


@dataclass
class Rule:
    """What is set for one group."""

    paused: bool = False
    concurrency: int | None = None
    rate: tuple[int, int] | None = None
    weight: int = 1
    closed_until: int = 0


@dataclass
class Pull:
    """One waiting pull."""

    conn: int
    count: int
    req: str
    terms: Terms


@dataclass
class Plain:
    """The whole server: one queue."""

    jobs: list[Job] = field(default_factory=list)
    row: list[str] = field(default_factory=list)  # groups with something ready, in turn
    credit: dict[str, int] = field(default_factory=dict)
    rules: dict[str, Rule] = field(default_factory=dict)
    windows: dict[str, tuple[int, int]] = field(default_factory=dict)  # end, cost so far
    rate: tuple[int, int, int | None] | None = None
    tokens: Fraction = Fraction(0)
    counted: int = 0  # when
    concurrency: int | None = None
    pulls: list[Pull] = field(default_factory=list)
    replies: list[tuple[str, list[int]]] = field(default_factory=list)
    clock: count[int] = field(default_factory=count)

    def rule(self, group: str | None) -> Rule:
        return self.rules.setdefault(group or NO_GROUP, Rule())

    def ready(self, group: str | None) -> list[Job]:
        found = [j for j in self.jobs if j.state is State.READY and j.group == group]
        if group is None:
            return sorted(found, key=lambda j: (-j.priority, j.due, j.seq))
        return sorted(found, key=lambda j: (j.priority, j.seq))

    def leased(self, group: str | None = None) -> list[Job]:
        found = [j for j in self.jobs if j.state is State.LEASED]
        return [j for j in found if group is None or j.group == group]

    def becomes_ready(self, job: Job) -> None:
        if job.group is not None and not self.ready(job.group):
            self.row.append(job.group)
            self.credit[job.group] = self.rule(job.group).weight
        job.state = State.READY

    def open(self, group: str, terms: Terms, now: int) -> bool:
        rule = self.rule(group)
        if rule.paused or rule.closed_until > now:
            return False
        most = rule.concurrency or terms.concurrency
        if terms.concurrency and most is not None and len(self.leased(group)) >= most:
            return False
        end, used = self.windows.get(group, (0, 0))
        return terms.max is None or end <= now or used < (rule.rate or (terms.max,))[0]

    def first(self, terms: Terms, now: int) -> Job | None:
        """What a pull gets next, whatever the limits of the queue say."""
        wanted = terms.affinity
        plain = self.ready(None)
        if wanted in (UNSET, None) and plain and self.rule(None).closed_until <= now:
            return plain[0]
        names = self.row if wanted is UNSET else [wanted] if wanted in self.row else []
        return next((self.ready(g)[0] for g in names if g and self.open(g, terms, now)), None)

    def next(self, terms: Terms, now: int) -> Job | None:
        if self.concurrency is not None and len(self.leased()) >= self.concurrency:
            return None
        job = self.first(terms, now)
        if job is None or self.rate is None or self.rate_is_over(now):
            return job
        most, duration, _ = self.rate
        gained = Fraction((now - self.counted) * most, duration)
        self.tokens, self.counted = min(Fraction(most), self.tokens + gained), now
        return job if most > 0 and self.tokens >= min(job.cost, most) else None

    def rate_is_over(self, now: int) -> bool:
        return self.rate is not None and self.rate[2] is not None and self.rate[2] <= now

    def take(self, pull: Pull, now: int) -> list[Job]:
        taken: list[Job] = []
        while len(taken) < pull.count and (job := self.next(pull.terms, now)) is not None:
            job.state, job.conn, job.taken = State.LEASED, pull.conn, next(self.clock)
            taken.append(job)
            self.tokens -= job.cost
            if job.group is not None:
                self.count_window(job.group, pull.terms, job.cost, now)
                self.turn(job.group)
        return taken

    def count_window(self, group: str, terms: Terms, cost: int, now: int) -> None:
        if terms.max is None or terms.duration is None:
            return
        end, used = self.windows.get(group, (0, 0))
        if end <= now:
            end, used = now + (self.rule(group).rate or (0, terms.duration))[1], 0
        self.windows[group] = end, used + cost

    def turn(self, group: str) -> None:
        self.credit[group] -= 1
        if not self.ready(group):
            self.row.remove(group)
        elif self.credit[group] <= 0:
            self.row.remove(group)
            self.row.append(group)
            self.credit[group] = self.rule(group).weight

    def match(self, now: int) -> None:
        """Nobody waits for what he could have."""
        served = True
        while served:
            served = False
            for pull in list(self.pulls):
                if taken := self.take(pull, now):
                    self.pulls.remove(pull)
                    self.replies.append((pull.req, [j.seq for j in taken]))
                    served = True
                    break

    def due(self, now: int) -> None:
        for job in sorted(self.jobs, key=lambda j: (j.due, j.seq)):
            if job.state is State.DELAYED and job.due <= now:
                self.becomes_ready(job)
                self.match(now)


class Both:
    """The engine and the plain server, asked the same."""

    def __init__(self) -> None:
        ids = count(1)
        self.engine = Engine(new_id=lambda _: f"id-{next(ids)}", uniform=lambda: 0.5)
        self.plain = Plain()
        self.now = START
        self.requests = count(1)

    def push(self, group: str | None, priority: int, delay: int, cost: int) -> None:
        options = Options(group=group, cost=cost, max_attempts=1000, backoff=0)
        draft = publish.draft(QUEUE, "job", b"\xc0", self.now, priority, delay, options)
        m = publish.publish(self.engine, draft, self.now)
        job = Job(m.seq, group, priority, cost, m.due, State.NEW)
        if delay:
            job.state = State.DELAYED
        else:
            self.plain.becomes_ready(job)
        self.plain.jobs.append(job)
        self.plain.match(self.now)

    def pull(self, conn: int, count: int, wait: bool, terms: Terms) -> None:
        pull = Pull(conn, count, f"r{next(self.requests)}", terms)
        given = None if terms == NO_TERMS else terms
        got = consume.take(self.engine, QUEUE, conn, count, None, self.now, given)
        assert [m.seq for m in got] == [j.seq for j in self.plain.take(pull, self.now)]
        if wait and not got:
            until = self.now + 10_000_000
            consume.wait(
                self.engine,
                Consumer(conn, QUEUE, count, pull.req, None, False, until, terms=given),
            )
            self.plain.pulls.append(pull)

    def settle(self, n: int, how: str, span: int) -> None:
        held = self.plain.leased()
        if not held:
            return
        job = held[n % len(held)]
        by_seq = {m.seq: m for m in self.engine.messages.values()}
        id = by_seq[job.seq].id
        if how == "ack":
            settle.ack(self.engine, id, None, self.now)
            self.plain.jobs.remove(job)
        elif how == "fail":
            settle.fail(self.engine, id, None, self.now)
            job.due = self.now
            self.plain.becomes_ready(job)
        else:
            groups.hold_back(self.engine, id, None, span, self.now)
            self.plain.becomes_ready(job)
            self.plain.rule(job.group).closed_until = self.now + span
        self.plain.match(self.now)

    def disconnect(self, conn: int) -> None:
        consume.disconnect(self.engine, conn, self.now)
        self.plain.pulls = [p for p in self.plain.pulls if p.conn != conn]
        held = sorted((j for j in self.plain.leased() if j.conn == conn), key=lambda j: j.taken)
        for job in held:
            job.interruptions += 1
            if job.interruptions == 10:
                self.plain.jobs.remove(job)
                self.plain.match(self.now)
            else:
                self.plain.becomes_ready(job)
        self.plain.match(self.now)

    def rule(self, group: str, what: str, n: int) -> None:
        rule, now = self.plain.rule(group), self.now
        if what == "pause":
            rule.paused = bool(n % 2)
            groups.change(self.engine, QUEUE, group, now, paused=rule.paused)
        elif what == "close":
            rule.closed_until = now + n
            groups.close(self.engine, QUEUE, group, n, now)
        elif what == "concurrency":
            rule.concurrency = n or None
            groups.change(self.engine, QUEUE, group, now, concurrency=rule.concurrency)
        elif what == "rate":
            rule.rate = (n, 100 * n) if n else None
            most, duration = rule.rate or (None, None)
            groups.change(self.engine, QUEUE, group, now, max=most, duration=duration)
        else:
            self.plain.credit[group] = self.plain.credit.get(group, 0) + n + 1 - rule.weight
            rule.weight = n + 1
            groups.change(self.engine, QUEUE, group, now, weight=rule.weight)
        self.plain.match(now)

    def limit(self, what: str, n: int, ttl: int | None) -> None:
        plain, now = self.plain, self.now
        if what == "rate":
            plain.rate = (n, 1000, None if ttl is None else now + ttl)
            plain.tokens, plain.counted = Fraction(n), now
            limits.set_rate(self.engine, QUEUE, n, 1000, now, ttl)
        elif what == "no rate":
            plain.rate = None
            limits.clear_rate(self.engine, QUEUE, now)
        else:
            plain.concurrency = n if what == "concurrency" else None
            limits.set_concurrency(self.engine, QUEUE, plain.concurrency, now)
        plain.match(now)

    def later(self, ms: int) -> None:
        """Let time pass, with a tick at each moment the engine asks for."""
        until = self.now + ms
        while (wake := clock.next_wake(self.engine)) is not None and wake <= until:
            self.now = max(self.now, wake)
            self.plain.due(self.now)
            clock.tick(self.engine, self.now)
            self.plain.match(self.now)
        self.now = until
        due = [j for j in self.plain.jobs if j.state is State.DELAYED and j.due <= until]
        assert not due, "a delayed job was overslept"

    def check(self) -> None:
        plain, engine = self.plain, self.engine
        said = [(e.req, [m.seq for m in e.messages]) for e in engine.take().effects]
        assert said == plain.replies, "who got what"
        plain.replies.clear()
        for pull in plain.pulls:
            assert plain.next(pull.terms, self.now) is None, "somebody waits for what he could have"
        states = {j.seq: j.state for j in plain.jobs}
        assert {m.seq: m.state for m in engine.messages.values() if m.run is None or
                (m.run.cause is None and m.state is not State.DONE)} == states  # fmt: skip
        q = engine.queues.get(QUEUE)
        if q is None:
            assert not plain.jobs
            return
        ready = [j for j in plain.jobs if j.state is State.READY]
        assert len(q.ready) == len(ready)
        assert {m.seq for m in q.ready} == {j.seq for j in ready}
        assert [m.seq for m in reversed(q.ready)] == [m.seq for m in q.ready][::-1]
        assert {m.seq for m in q.ready.all()} >= {j.seq for j in ready}
        assert sum(q.ready.priorities().values()) == len(ready)
        for group in GROUPS:
            waiting = [j for j in plain.jobs if j.group == group and j.state is not State.LEASED]
            assert groups.waiting(engine, QUEUE, group) == len(waiting)
            assert groups.leased(engine, QUEUE, group) == len(plain.leased(group))


terms = st.builds(
    lambda affinity, concurrency, rate: Terms(
        affinity, concurrency, *(rate if rate else (None, None))
    ),
    st.sampled_from([UNSET, UNSET, UNSET, None, "a", "b"]),
    st.sampled_from([None, None, 1, 2]),
    st.sampled_from([None, None, (1, 300), (2, 500)]),
)
some_group = st.sampled_from([None, *GROUPS])
a_push = st.tuples(
    st.just("push"),
    some_group,
    st.integers(0, 2),
    st.sampled_from([0, 0, 0, 150, 700]),
    st.sampled_from([1, 1, 1, 2, 5]),
)
a_pull = st.tuples(st.just("pull"), st.integers(1, 3), st.integers(1, 3), st.booleans(), terms)
an_end = st.tuples(
    st.just("settle"),
    st.integers(0, 9),
    st.sampled_from(["ack", "ack", "ack", "fail", "hold back"]),
    st.sampled_from([0, 100, 400]),
)
a_loss = st.tuples(st.just("disconnect"), st.integers(1, 3))
a_rule = st.tuples(
    st.just("rule"),
    st.sampled_from(GROUPS),
    st.sampled_from(["pause", "close", "concurrency", "rate", "weight"]),
    st.integers(0, 3),
)
a_limit = st.tuples(
    st.just("limit"),
    st.sampled_from(["rate", "rate", "no rate", "concurrency", "any"]),
    st.sampled_from([0, 1, 2, 2, 3, 4]),
    st.sampled_from([None, None, 600]),
)
some_time = st.tuples(st.just("later"), st.sampled_from([1, 50, 250, 1000]))
steps = st.one_of(
    a_push, a_push, a_push, a_pull, a_pull, a_pull, an_end, an_end, a_rule, a_limit, some_time,
    some_time, a_loss,
)  # fmt: skip


@settings(max_examples=250, deadline=None)
@given(st.lists(steps, min_size=40, max_size=80))
def test_any_history_hands_out_what_a_plain_server_would(history: list[tuple[object, ...]]) -> None:
    both = Both()
    for name, *args in history:
        getattr(both, str(name))(*args)
        both.check()
