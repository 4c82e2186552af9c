"""Unique keys: who gets one, who makes way, and what operators may do."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of, wait

from tandemq.engine import consume, deadletters, keys, publish, settle
from tandemq.engine.core import Engine
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message, Options, State

READY, DELAYED, PARKED, LEASED, GONE = (
    State.READY,
    State.DELAYED,
    State.PARKED,
    State.LEASED,
    State.GONE,
)


FOLLOWS: dict[str, Any] = {"unique_key": "k", "dedup_policy": "queue-one"}


def keyed(engine: Engine, key: str = "k", *, now: int = NOW, **options: Any) -> Message:
    return put(engine, now=now, unique_key=key, **options)


def owner(engine: Engine, key: str = "k", now: int = NOW) -> str | None:
    return keys.owner(engine, "q", key, now)


def dependent(engine: Engine, id: str) -> Message:
    m = publish.draft("q", "job", b"x", NOW)
    m.links = Links(depends_on=(id,))
    return publish.publish(engine, m, NOW)


def test_a_second_message_with_a_held_key_is_the_first() -> None:
    engine = make_engine()
    first = keyed(engine)
    assert keyed(engine) is first
    assert owner(engine) == first.id
    assert len(engine.queues["q"].ready) == 1


def test_a_key_belongs_to_its_queue() -> None:
    engine = make_engine()
    assert keyed(engine, queue="a") is not keyed(engine, queue="b")


def test_a_key_ends_with_its_time() -> None:
    engine = make_engine()
    first = keyed(engine, dedup_ttl=100)
    assert keyed(engine, dedup_ttl=100, now=NOW + 99) is first
    second = keyed(engine, dedup_ttl=100, now=NOW + 100)
    assert second is not first
    assert owner(engine, now=NOW + 101) == second.id


def test_the_end_of_an_owner_that_lost_its_key_frees_nothing() -> None:
    engine = make_engine()
    first = keyed(engine, dedup_ttl=100)
    second = keyed(engine, now=NOW + 100)
    engine.shift(first, "cancel", GONE)
    assert owner(engine, now=NOW + 101) == second.id


def test_extending_begins_the_time_anew() -> None:
    engine = make_engine()
    first = keyed(engine, dedup_ttl=100, dedup_extend=True)
    assert keyed(engine, dedup_ttl=100, dedup_extend=True, now=NOW + 90) is first
    assert keyed(engine, dedup_ttl=100, dedup_extend=True, now=NOW + 180) is first
    assert keyed(engine, dedup_ttl=100, dedup_extend=True, now=NOW + 280) is not first


def test_the_key_of_a_running_owner_cannot_be_extended() -> None:
    engine = make_engine()
    keyed(engine, dedup_ttl=100, dedup_extend=True)
    hold(engine)
    with pytest.raises(BadRequest, match="Duplicate unique_key"):
        keyed(engine, dedup_ttl=100, dedup_extend=True)


def test_a_waiting_owner_is_replaced() -> None:
    engine = make_engine()
    old = keyed(engine, delay=500)
    new = keyed(engine, dedup_replace=True)
    assert (old.state, new.state) == (GONE, READY)
    assert owner(engine) == new.id


def test_replacing_the_only_message_of_a_queue_keeps_the_queue() -> None:
    engine = make_engine()
    keyed(engine)
    new = keyed(engine, dedup_replace=True)
    assert hold(engine) is new


def test_a_running_owner_gets_a_successor_that_has_the_key() -> None:
    engine = make_engine()
    old = keyed(engine)
    hold(engine)
    new = keyed(engine, dedup_replace=True)
    settle.ack(engine, old.id, token_of(old), NOW)
    assert owner(engine) == new.id
    assert hold(engine) is new


def test_an_owner_that_others_depend_on_is_not_replaced() -> None:
    engine = make_engine()
    old = keyed(engine)
    dependent(engine, old.id)
    with pytest.raises(BadRequest, match="live jobs depend on it"):
        keyed(engine, dedup_replace=True)
    assert keyed(engine) is old


def test_coalescing_gives_the_waiting_owner_the_new_data() -> None:
    engine = make_engine()
    old = keyed(engine, body=b"old", dedup_policy="coalesce")
    engine.take()
    assert keyed(engine, body=b"new", dedup_policy="coalesce") is old
    assert old.body == b"new"
    assert old.rebodied
    assert old.seq in engine.take().changed
    hold(engine)
    assert keyed(engine, body=b"newest", dedup_policy="coalesce") is not old


def queued(engine: Engine, body: bytes = b"x", now: int = NOW, **options: Any) -> Message:
    return keyed(engine, body=body, now=now, dedup_policy="queue-one", **options)


def test_one_runs_and_at_most_one_waits_and_the_newest_wins() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second, third = queued(engine), queued(engine)
    assert (first.state, second.state, third.state) == (LEASED, GONE, PARKED)
    assert consume.take(engine, "q", 1, 9, None, NOW) == []
    settle.ack(engine, first.id, token_of(first), NOW)
    assert third.state is READY
    assert owner(engine) == third.id


def test_a_waiting_pull_gets_the_follower_when_the_owner_ends() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine)
    wait(engine, "r")
    settle.ack(engine, first.id, token_of(first), NOW)
    assert second.state is LEASED


def test_a_delayed_follower_waits_for_its_moment_after_its_turn() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine, delay=500)
    settle.ack(engine, first.id, token_of(first), NOW)
    assert second.state is DELAYED


@pytest.mark.parametrize("key_first", [True, False])
def test_a_follower_that_depends_on_others_waits_for_them_and_for_its_turn(
    key_first: bool,
) -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    other = put(engine)
    hold(engine)
    second = publish.draft("q", "job", b"x", NOW, options=Options(**FOLLOWS))
    second.links = Links(depends_on=(other.id,))
    publish.publish(engine, second, NOW)
    ends = [first, other] if key_first else [other, first]
    settle.ack(engine, ends[0].id, token_of(ends[0]), NOW)
    assert second.state is PARKED
    settle.ack(engine, ends[1].id, token_of(ends[1]), NOW)
    assert second.state is READY
    assert owner(engine) == second.id


def test_an_owner_between_two_attempts_is_replaced_together_with_its_follower() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine)
    settle.fail(engine, first.id, token_of(first), NOW)
    assert (first.state, second.state) == (DELAYED, PARKED)
    third = queued(engine)
    assert (first.state, second.state, third.state) == (GONE, GONE, READY)
    assert owner(engine) == third.id


def test_a_cancelled_follower_leaves_the_owner_its_key() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine)
    engine.shift(second, "cancel", GONE)
    settle.ack(engine, first.id, token_of(first), NOW)
    assert owner(engine) is None


@pytest.mark.parametrize("options", [{"dedup_replace": True}, {"dedup_policy": "coalesce"}])
def test_a_follower_is_never_left_behind_by_another_policy(options: dict[str, Any]) -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine)
    third = keyed(engine, **options)
    assert (second.state, third.state) == (GONE, PARKED)
    settle.ack(engine, first.id, token_of(first), NOW)
    assert third.state is READY


def test_no_clock_takes_the_key_from_an_owner_that_somebody_follows() -> None:
    engine = make_engine()
    first = keyed(engine, dedup_ttl=100)
    hold(engine)
    second = queued(engine)
    keyed(engine, dedup_ttl=100, now=NOW + 500)
    assert keys.owner(engine, "q", "k", NOW + 500) == first.id
    settle.ack(engine, first.id, token_of(first), NOW + 500)
    assert second.state is READY


def test_a_key_is_freed_by_hand_and_its_follower_goes_on() -> None:
    engine = make_engine()
    first = queued(engine)
    hold(engine)
    second = queued(engine)
    assert keys.free(engine, "q", "k", NOW)
    assert (first.state, second.state) == (LEASED, READY)
    assert owner(engine) == second.id
    assert keys.free(engine, "q", "k", NOW)
    assert not keys.free(engine, "q", "k", NOW)


def test_a_message_gives_up_only_its_own_key() -> None:
    engine = make_engine()
    first = keyed(engine)
    hold(engine)
    second = keyed(engine, dedup_replace=True)
    assert not keys.free_own(engine, first, NOW)
    assert not keys.free_own(engine, put(engine), NOW)
    assert keys.free_own(engine, second, NOW)
    assert owner(engine) is None


def test_a_name_with_a_slash_reaches_no_other_queues_key() -> None:
    engine = make_engine()
    m = keyed(engine, "a/b")
    assert keys.owner(engine, "q/a", "b", NOW) is None
    assert not keys.free(engine, "q/a", "b", NOW)
    assert keys.owner(engine, "q", "a/b", NOW) == m.id


def test_a_key_taken_meanwhile_keeps_a_dead_letter_from_coming_back() -> None:
    engine = make_engine()
    dead = keyed(engine, max_attempts=1)
    hold(engine)
    settle.fail(engine, dead.id, token_of(dead), NOW)
    assert deadletters.may_return(engine, dead, NOW)
    keyed(engine)
    assert not deadletters.may_return(engine, dead, NOW)


def test_listeners_hear_of_duplicates() -> None:
    engine = make_engine()
    engine.listening = True
    first = keyed(engine)
    keyed(engine)
    assert [(e.type, e.id) for e in engine.take().events] == [
        ("pushed", first.id),
        ("duplicated", first.id),
    ]


def test_any_number_of_keys_is_held() -> None:
    engine = make_engine()
    made = [keyed(engine, f"k{n}") for n in range(3_000)]
    assert [keyed(engine, f"k{n}") for n in range(3_000)] == made


def test_a_refused_message_leaves_no_queue_behind() -> None:
    engine = make_engine()
    m = publish.draft("new", "job", b"x", NOW, options=Options(unique_key="k"))
    m.links = Links(depends_on=("nobody",))
    with pytest.raises(BadRequest, match="Dependency job not found: nobody"):
        publish.publish(engine, m, NOW)
    assert "new" not in engine.queues
