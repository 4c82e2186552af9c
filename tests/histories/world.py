"""An engine, its rows and the plain server, side by side: each step is done by both and compared.

The rows stand for a store: they are written as a committer writes them, one batch in the air while
the next one grows, and a batch may fail or be lost in a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from itertools import count
from typing import Any, NamedTuple

import msgspec
from tests.histories.plain import Job, Plain, Pull

from tandemq.engine import clock, consume, control, publish, recovery, settle
from tandemq.engine.consumers import Consumer
from tandemq.engine.core import Engine
from tandemq.engine.finished import SWEEP, Rules
from tandemq.engine.timers import Timers
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

    rows: dict[int, Row | None]
    facts: dict[str, bytes | None]
    touched: dict[int, Message]
    saved: dict[int, Job]
    paused: set[str]


class World:
    """Both servers; whatever is asked here is asked of both."""

    def __init__(self, rules: Rules = RULES) -> None:
        self.rules, self.now = rules, START
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
        got, expected = publish.publish(self.engine, draft, self.now), self.plain.publish(job, self.now)
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
        clock.shift_spans(self.engine, step)
        self.plain.shift_spans(step)
        self.later(0)

    def moments(self) -> Iterator[int]:
        """Every moment at which time alone changes something."""
        for job in self.plain.jobs.values():
            yield from job.deadlines().values()
        yield from (pull.until for pull in self.plain.pulls)

    # -- the store ---------------------------------------------------------------------------------

    def fly(self) -> None:
        """Hand what has gathered to the writer, which has nothing else to do."""
        assert self.flight is None, "one batch at a time"
        rows = {seq: row_of(m) for seq, m in self.pending.items()}
        for m in self.pending.values():
            m.stored = True
        paused = set(self.plain.paused)
        self.flight = Flight(
            rows, self.pending_facts, self.pending, self.plain.saved(), paused
        )
        self.pending, self.pending_facts = {}, {}
        self.check()

    def land(self) -> None:
        """The batch in the air is written."""
        assert self.flight is not None, "nothing flies"
        put(self.rows, self.flight.rows)
        put(self.facts, self.flight.facts)
        self.saved, self.saved_paused = self.flight.saved, self.flight.paused
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
        flown = self.flight
        touched = {**(flown.touched if flown else {}), **self.pending}
        keys = {**(flown.facts if flown else {}), **self.pending_facts}
        stored = [decode(self.rows[seq]) for seq in sorted(touched) if seq in self.rows]
        self.pending, self.pending_facts, self.flight = {}, {}, None
        recovery.roll_back(self.engine, touched.values(), stored, self.now)
        for key in keys:
            name = key.removeprefix(control.FACT)
            control.restore(self.engine, name, self.facts.get(key), self.now)
        self.take_back(set(touched), {key.removeprefix(control.FACT) for key in keys})
        self.compare()

    def take_back(self, touched: set[int], restored: set[str]) -> None:
        plain = self.plain
        # What the engine calls unchanged must be what the rows say, or the comparison will tell.
        seqs = touched | {
            seq
            for seq in plain.jobs.keys() | self.saved.keys()
            if bare(plain.jobs.get(seq)) != bare(self.saved.get(seq))
        }
        before = set(plain.paused)
        plain.paused = set(self.saved_paused)
        for queue in dict.fromkeys(plain.put_back(seqs, self.saved)):
            if queue not in before:
                plain.match(queue, self.now)
        for queue in restored:
            plain.match(queue, self.now)

    def crash(self) -> int:
        """End without a word, and start again from the rows."""
        self.begin()
        old = self.plain
        self.plain = Plain(self.rules, paused=set(self.saved_paused))
        del old
        for seq in sorted(self.rows):
            m = decode(self.rows[seq])
            recovery.show_last_start(m)
            self.engine.admit(m)
        for seq in sorted(self.saved):
            self.plain.admit(msgspec.structs.replace(self.saved[seq]) if False else copy(self.saved[seq]))
        for key, value in self.facts.items():
            control.restore(self.engine, key.removeprefix(control.FACT), value)
        lost = recovery.resume(self.engine, self.now)
        self.engine.finished.keep_bounds(self.engine, self.now)
        assert lost == self.plain.resume(self.now)
        self.compare()
        return lost
