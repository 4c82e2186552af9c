"""Random histories of keys and families: what holds after every step, restart and undone batch."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.engine.making import NOW, make_engine
from tests.support.restart import keep

from tandemq.engine import (
    consume,
    deadletters,
    facts,
    flows,
    keys,
    manage,
    publish,
    recovery,
    settle,
    trees,
)
from tandemq.engine.core import Engine
from tandemq.engine.keyring import name_of
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message, Options, State
from tandemq.model.outcome import Outcome
from tandemq.stores.base import Row
from tandemq.stores.rows import decode

PARKED, LEASED, DONE, DEAD, GONE = State.PARKED, State.LEASED, State.DONE, State.DEAD, State.GONE
ENDED = (DONE, DEAD, GONE)
KEYS = st.sampled_from(["a", "b"])
OPTIONS: list[dict[str, Any]] = [
    {},
    {"dedup_replace": True},
    {"dedup_ttl": 50},
    {"dedup_ttl": 50, "dedup_extend": True},
    {"dedup_keep": True},
    {"dedup_policy": "coalesce"},
    {"dedup_policy": "queue-one"},
]
PICK = st.integers(0, 1_000)


class Ties(RuleBasedStateMachine):
    """One queue, a few keys, and families; a store that is asked to undo and to load."""

    @initialize()
    def begin(self) -> None:
        self.engine = make_engine(keep_ids=3)
        self.now = NOW
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}
        self.made = 0

    # -- what publishers do --------------------------------------------------------------------

    def draft(self, **options: Any) -> Message:
        self.made += 1
        id = f"m{self.made}"
        some = Options(max_attempts=2, backoff=0, **options)
        return publish.draft("q", "job", b"\x80", self.now, options=some, id=id)

    def pick(self, n: int, *states: State) -> Message | None:
        found = [m for m in self.engine.messages.values() if not states or m.state in states]
        return found[n % len(found)] if found else None

    def attempt(self, m: Message) -> None:
        before = set(self.engine.messages)
        try:
            publish.publish(self.engine, m, self.now)
        except BadRequest:
            assert set(self.engine.messages) == before, "a refusal leaves no trace"

    @rule(key=KEYS, options=st.sampled_from(OPTIONS))
    def publish_keyed(self, key: str, options: dict[str, Any]) -> None:
        self.attempt(self.draft(unique_key=key, **options))

    @rule(ns=st.lists(PICK, max_size=2))
    def publish_one_at_a_time(self, ns: list[int]) -> None:
        self.depend(ns, unique_key="one", dedup_policy="queue-one")

    @rule(n=PICK, k=PICK, key=st.none() | KEYS)
    def publish_dependent(self, n: int, k: int, key: str | None) -> None:
        self.depend([n, k], unique_key=key)

    def depend(self, ns: list[int], **options: Any) -> None:
        needs = [m.id for m in map(self.pick, ns) if m is not None]
        m = self.draft(**options)
        m.links = Links(depends_on=tuple(needs))
        self.attempt(m)

    @rule(
        policy=st.sampled_from([None, *flows.POLICIES]),
        cascade=st.booleans(),
        removal=st.booleans(),
        gone=st.booleans(),
    )
    def publish_tree(self, policy: str | None, cascade: bool, removal: bool, gone: bool) -> None:
        options = {"remove_on_complete": gone, "remove_on_fail": gone}
        top, middle, *leaves = (self.draft(**options) for _ in range(4))
        below = tuple(m.id for m in leaves)
        top.links = Links(None, (middle.id,), (middle.id,))
        middle.links = Links(top.id, below, below, (), policy, {}, {}, {}, cascade, removal)
        for m in leaves:
            m.links = Links(middle.id, (), (), (), policy, {}, {}, {}, cascade, removal)
        trees.publish_flow(self.engine, [top, middle, *leaves], self.now)

    # -- what workers and operators do -----------------------------------------------------------

    @rule()
    def pull(self) -> None:
        consume.take(self.engine, "q", 1, 1, None, self.now)

    @rule(n=PICK)
    def ack(self, n: int) -> None:
        if (m := self.pick(n, LEASED)) is not None:
            settle.ack(self.engine, m.id, None, self.now, b"\x01")

    @rule(n=PICK, final=st.booleans())
    def fail(self, n: int, final: bool) -> None:
        if (m := self.pick(n, LEASED)) is not None:
            settle.fail(self.engine, m.id, None, self.now, error="e", unrecoverable=final)

    @rule()
    def disconnect(self) -> None:
        consume.disconnect(self.engine, 1, self.now)

    @rule(n=PICK)
    def cancel(self, n: int) -> None:
        if (m := self.pick(n)) is not None:
            manage.cancel(self.engine, m, self.now)

    @rule(n=PICK)
    def discard(self, n: int) -> None:
        if (m := self.pick(n)) is not None:
            manage.discard(self.engine, m, None, self.now)

    @rule(n=PICK)
    def forget(self, n: int) -> None:
        if (m := self.pick(n, DONE, DEAD)) is not None:
            self.engine.forget(m)

    @rule(n=PICK, k=PICK)
    def link(self, n: int, k: int) -> None:
        parent, child = self.pick(n), self.pick(k)
        if parent is not None and child is not None and parent is not child:
            with suppress(BadRequest):
                flows.link(self.engine, parent, child, self.now)

    @rule(n=PICK)
    def park(self, n: int) -> None:
        if (m := self.pick(n, LEASED)) is not None and m.links is not None and m.links.open:
            manage.move_to_waiting_children(self.engine, m, None, self.now)

    @rule(n=PICK)
    def retry(self, n: int) -> None:
        m = self.pick(n, DEAD)
        if m is not None and deadletters.may_return(self.engine, m, self.now):
            self.engine.shift(m, "retry", State.READY)

    @rule(n=PICK)
    def unlink(self, n: int) -> None:
        m = self.pick(n)
        if m is not None and m.links is not None and m.links.parent is not None:
            flows.unlink(self.engine, m, self.now)

    @rule(n=PICK)
    def prune(self, n: int) -> None:
        if (m := self.pick(n)) is not None:
            trees.remove_unprocessed(self.engine, m, self.now)

    @rule(key=KEYS)
    def free(self, key: str) -> None:
        keys.free(self.engine, "q", key, self.now)

    @rule(ms=st.integers(1, 60))
    def wait(self, ms: int) -> None:
        self.now += ms

    # -- what the store does ---------------------------------------------------------------------

    @rule()
    def commit(self) -> None:
        self.keep(self.engine.take())

    def keep(self, outcome: Outcome) -> None:
        keep(outcome, self.rows, self.facts)

    @rule()
    def undo(self) -> None:
        outcome = self.engine.take()
        back = [self.rows[seq] for seq in outcome.changed if seq in self.rows]
        recovery.roll_back(self.engine, outcome.changed.values(), map(decode, back), self.now)
        for key in outcome.facts:
            facts.restore(self.engine, key, self.facts.get(key))
        self.engine.take()
        self.agrees_with(self.load())

    @rule()
    def restart(self) -> None:
        self.commit()
        before, self.engine = self.engine, self.load()
        self.agrees_with(before)
        recovery.resume(self.engine, self.now)

    def load(self) -> Engine:
        engine = make_engine(keep_ids=3)
        engine.new_id = self.engine.new_id
        for _, row in sorted(self.rows.items()):
            engine.admit(decode(row))
        for key, value in self.facts.items():
            facts.restore(engine, key, value)
        return engine

    def agrees_with(self, other: Engine) -> None:
        """Two engines that took the same know the same."""
        mine = self.engine
        assert {m.id: m.state for m in mine.messages.values()} == {
            m.id: m.state for m in other.messages.values()
        }
        for key in ("a", "b", "one"):
            assert keys.owner(mine, "q", key, self.now) == keys.owner(other, "q", key, self.now)
        assert {id: set(found) for id, found in mine.dependents.waiting.items()} == {
            id: set(found) for id, found in other.dependents.waiting.items()
        }

    # -- what always holds -----------------------------------------------------------------------

    @invariant()
    def the_index_is_what_the_messages_say(self) -> None:
        told: dict[str, set[int]] = {}
        for m in self.engine.messages.values():
            if m.state is PARKED and m.links is not None:
                for id in m.links.open:
                    told.setdefault(id, set()).add(m.seq)
        found = self.engine.dependents.waiting
        assert {id: set(waiters) for id, waiters in found.items()} == told

    @invariant()
    def nobody_waits_for_nothing(self) -> None:
        followers = {holder.next for holder in self.engine.keyring._held.values()}
        for m in self.engine.messages.values():
            if m.state is not PARKED:
                continue
            waits_for = m.links.open if m.links is not None else ()
            assert waits_for or m.id in followers, m
            assert not any(self.done(id) for id in waits_for), m

    def done(self, id: str) -> bool:
        found = self.engine.messages.get(id)
        return found is not None and found.state is DONE

    @invariant()
    def a_key_is_held_by_a_live_message_that_asked_for_it(self) -> None:
        for name, holder in self.engine.keyring._held.items():
            owner = self.engine.messages[holder.id]
            assert owner.state not in ENDED
            assert name == name_of("q", owner.options.unique_key or "")
            if holder.next is not None:
                assert self.engine.messages[holder.next].state is PARKED

    @invariant()
    def one_runs_and_one_waits(self) -> None:
        live = [
            m
            for m in self.engine.messages.values()
            if m.options.unique_key == "one" and m.state not in ENDED
        ]
        assert sum(m.state is LEASED for m in live) <= 1
        assert len(live) <= 2, "one runs, or is between two attempts, and one waits for its end"


Ties.TestCase.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
TestTies = Ties.TestCase
