"""Who holds a key: when it is let go, what is written down, what comes back from a store."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import consume, facts, keyring, keys, manage, settle
from tandemq.engine.core import Engine
from tandemq.model.message import Message, State

FACT = "key/q/k"


def keyed(engine: Engine, **options: Any) -> Message:
    return put(engine, unique_key="k", **options)


def free(engine: Engine) -> bool:
    return keys.owner(engine, "q", "k", NOW) is None


def complete(engine: Engine, m: Message) -> None:
    settle.ack(engine, hold(engine).id, token_of(m), NOW)


def retry(engine: Engine, m: Message) -> None:
    settle.fail(engine, hold(engine).id, token_of(m), NOW)


def bury(engine: Engine, m: Message) -> None:
    settle.fail(engine, hold(engine).id, token_of(m), NOW, unrecoverable=True)


def lose(engine: Engine, m: Message) -> None:
    hold(engine, conn=5)
    consume.disconnect(engine, 5, NOW)


def run_out(engine: Engine, m: Message) -> None:
    hold(engine, span=1)
    settle.overdue(engine, m, NOW + 1_000)


def move_to_wait(engine: Engine, m: Message) -> None:
    hold(engine)
    manage.move_to_wait(engine, m, token_of(m), NOW)


def move_to_delayed(engine: Engine, m: Message) -> None:
    hold(engine)
    manage.move_to_delayed(engine, m, token_of(m), 50, NOW)


def cancel(engine: Engine, m: Message) -> None:
    manage.cancel(engine, m, NOW)


def discard(engine: Engine, m: Message) -> None:
    manage.discard(engine, m, None, NOW)


ENDS = [complete, bury, cancel, discard]
RETURNS = [retry, lose, run_out, move_to_wait, move_to_delayed]


@pytest.mark.parametrize("way", [*ENDS, *RETURNS])
def test_a_key_is_let_go_when_its_owner_ends_or_comes_back(way: Any) -> None:
    engine = make_engine()
    way(engine, keyed(engine))
    assert free(engine)
    assert engine.take().facts[FACT] is None
    assert len(engine.keyring) == 0


@pytest.mark.parametrize("way", RETURNS)
def test_a_kept_key_stays_until_the_end(way: Any) -> None:
    engine = make_engine()
    m = keyed(engine, dedup_keep=True)
    way(engine, m)
    assert not free(engine)
    manage.discard(engine, m, token_of(m) if m.lease else None, NOW)
    assert free(engine)


def test_a_clean_stop_lets_go_of_nothing() -> None:
    engine = make_engine()
    m = keyed(engine)
    hold(engine)
    consume.release_all(engine, NOW)
    assert m.state is State.READY
    assert not free(engine)


def test_a_key_is_written_in_the_batch_of_its_message() -> None:
    engine = make_engine()
    m = keyed(engine)
    outcome = engine.take()
    assert m.seq in outcome.changed
    assert outcome.facts[FACT] is not None


def test_a_stored_key_is_held_again() -> None:
    engine = make_engine()
    m = put(engine, "m", unique_key="k")
    fact = engine.take().facts[FACT]
    other = make_engine()
    other.admit(m)
    facts.restore(other, FACT, fact)
    assert keys.owner(other, "q", "k", NOW) == m.id
    assert keyed(other) is m


def test_an_undone_key_is_free() -> None:
    engine = make_engine()
    m = keyed(engine)
    engine.evict(m)
    facts.restore(engine, FACT, None)
    assert free(engine)


def test_a_key_whose_owner_is_not_there_is_free() -> None:
    engine = make_engine()
    m = keyed(engine)
    engine.evict(m)
    assert free(engine)
    assert keyed(engine) is not m


def test_a_retried_dead_letter_takes_its_key_if_it_is_free() -> None:
    engine = make_engine()
    m = keyed(engine, max_attempts=1)
    bury(engine, m)
    engine.shift(m, "retry", State.READY)
    assert keys.owner(engine, "q", "k", NOW) == m.id


def test_a_key_goes_to_nobody_when_the_follower_is_gone() -> None:
    engine = make_engine()
    m = keyed(engine)
    holder = keyring.Holder(m.id, None, "nobody")
    engine.keyring.hand_over(engine, FACT, holder)
    assert free(engine)


def test_keys_with_any_characters_are_different_keys() -> None:
    engine = make_engine()
    odd = ["", " ", "/", "a/b", "\x00", "é", "\U0001f600", "k" * 1000]
    made = {key: put(engine, unique_key=key) for key in odd if key}
    assert len({m.id for m in made.values()}) == len(made)
