"""Why a message is not running: every reason by its code, in the order in which they matter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of, wait
from tests.engine.office import FAN_OUT, HAND_OVER, A, B, C, D, Office

from tandemq.engine import (
    consume,
    control,
    deadletters,
    groups,
    limits,
    manage,
    publish,
    settle,
)
from tandemq.engine import (
    explain as module,
)
from tandemq.engine.core import Engine
from tandemq.engine.explain import Count, Reason, counters, explain, unknown
from tandemq.engine.lane import NO_GROUP, Terms
from tandemq.engine.workers import Worker
from tandemq.model.message import Links, Message, State
from tandemq.model.policy import Burial, Stall


def codes(engine: Engine, m: Message, now: int = NOW) -> list[str]:
    return [reason.code for reason in explain(engine, m, now)]


def first(engine: Engine, m: Message, now: int = NOW) -> Reason:
    return explain(engine, m, now)[0]


def named(engine: Engine, m: Message, code: str, now: int = NOW) -> Reason:
    (found,) = [reason for reason in explain(engine, m, now) if reason.code == code]
    return found


def parked(engine: Engine, *needs: str, id: str = "") -> Message:
    draft = publish.draft("q", "job", b"x", NOW, id=id)
    draft.links = Links(depends_on=needs)
    return publish.publish(engine, draft, NOW)


def register(
    engine: Engine, id: str, queues: Any, conn: int | None = None, seen: int = NOW
) -> None:
    worker = Worker(id, "w", queues, 1, "h", 1, conn, registered=seen, seen=seen)
    engine.workers.register(worker)


def fail(engine: Engine, m: Message, now: int = NOW, **more: Any) -> None:
    settle.fail(engine, m.id, token_of(m), now, error="no", **more)


# -- nobody wants it ------------------------------------------------------------------------------


def test_without_a_worker_for_its_queue_nobody_will_come() -> None:
    engine = make_engine()
    m = put(engine)
    register(engine, "elsewhere", ["r"])
    register(engine, "odd", 5)
    register(engine, "stale", ["q"], seen=NOW - 30_001)
    assert codes(engine, m) == ["no-worker", "place"]
    assert first(engine, m).facts == {"queue": "q", "active": 0, "workers": 0}


def test_with_a_worker_that_does_not_pull_the_figures_tell_whether_it_is_busy() -> None:
    engine = make_engine()
    m, running = put(engine), put(engine, priority=1)
    assert hold(engine) is running
    register(engine, "w", ["q"])
    assert codes(engine, m) == ["no-pull", "place"]
    assert first(engine, m).facts == {"queue": "q", "active": 1, "workers": 1}


@pytest.mark.parametrize(
    ("group", "affinity", "told"),
    [("g", "other", True), (None, "g", True), ("g", None, True), ("g", "g", False)],
)
def test_pulls_that_take_other_groups_only_are_told_from_those_that_would_take_it(
    group: str | None, affinity: str | None, told: bool
) -> None:
    engine = make_engine()
    control.pause(engine, "q")
    wait(engine, "r", terms=Terms(affinity=affinity))
    m = put(engine, group=group)
    assert ("other-groups" in codes(engine, m)) is told


def test_a_pull_without_terms_takes_anything() -> None:
    engine = make_engine()
    control.pause(engine, "q")
    wait(engine, "r", terms=Terms(affinity="other"))
    wait(engine, "s")
    assert codes(engine, put(engine)) == ["paused", "place"]


# -- its place ------------------------------------------------------------------------------------


def test_the_place_counts_what_goes_first() -> None:
    engine = make_engine()
    a, b, urgent = put(engine), put(engine), put(engine, priority=5)
    newest = put(engine, lifo=True)
    early = put(engine, created=NOW - 50)
    places = {m.id: named(engine, m, "place").facts["ahead"] for m in (a, b, urgent, newest, early)}
    assert places == {a.id: 3, b.id: 4, urgent.id: 0, newest.id: 1, early.id: 2}
    assert not named(engine, urgent, "place").blocks
    assert named(engine, newest, "place").blocks


def test_the_place_agrees_with_the_order_of_delivery() -> None:
    engine = make_engine()
    made = [
        put(engine, priority=n % 3, lifo=n % 4 == 0, created=NOW - n * 7 % 50) for n in range(40)
    ]
    for m in made[::5]:
        manage.cancel(engine, m, NOW)
    order = list(engine.queues["q"].ready)
    assert [named(engine, m, "place").facts["ahead"] for m in order] == list(range(len(order)))


def test_in_a_group_those_of_the_group_are_counted_and_those_without_one() -> None:
    engine = make_engine()
    put(engine)
    put(engine, group="other")
    b, a = put(engine, group="g", priority=2), put(engine, group="g", priority=1)
    put(engine, group="g", priority=3)
    for m, ahead in ((a, 0), (b, 1)):
        place = named(engine, m, "place-in-group")
        assert place.facts == {"ahead": ahead, "exact": True, "group": "g", "ungrouped": 1}
        assert place.blocks


def test_a_look_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", 3)
    engine = make_engine()
    made = [put(engine) for _ in range(8)]
    grouped = [put(engine, group="g") for _ in range(8)]
    assert named(engine, made[2], "place").facts == {"ahead": 2, "exact": True}
    assert named(engine, made[7], "place").facts == {"ahead": 3, "exact": False}
    facts = named(engine, grouped[7], "place-in-group").facts
    assert (facts["ahead"], facts["exact"]) == (3, False)


# -- what is shut ---------------------------------------------------------------------------------


def test_a_pause_comes_first_even_where_nobody_waits() -> None:
    engine = make_engine()
    m = put(engine)
    control.pause(engine, "q")
    assert codes(engine, m) == ["paused", "no-worker", "place"]


def test_a_server_that_stops_hands_out_nothing() -> None:
    engine = make_engine()
    m = put(engine)
    consume.release_all(engine, NOW)
    assert first(engine, m).code == "stopping"


def test_a_queue_may_have_as_many_running_as_it_may() -> None:
    engine = make_engine()
    put(engine)
    m = put(engine)
    limits.set_concurrency(engine, "q", 1, NOW)
    assert "concurrency" not in codes(engine, m)
    hold(engine)
    assert first(engine, m) == Reason("concurrency", facts={"limit": 1, "active": 1})


def test_a_rate_limit_opens_at_a_moment() -> None:
    engine = make_engine()
    put(engine)
    m = put(engine, cost=2)
    limits.set_rate(engine, "q", 2, 1000, NOW)
    assert "rate" not in codes(engine, m)
    hold(engine)
    found = first(engine, m)
    assert (found.code, found.until) == ("rate", NOW + 500)
    assert found.facts == {"max": 2, "duration": 1000, "cost": 2}
    assert "rate" not in codes(engine, m, NOW + 500)


def test_a_rate_limit_of_nothing_opens_only_with_its_end() -> None:
    engine = make_engine()
    m = put(engine)
    limits.set_rate(engine, "q", 0, 1000, NOW)
    assert first(engine, m).code == "rate"
    assert first(engine, m).until is None
    limits.set_rate(engine, "q", 0, 1000, NOW, ttl=700)
    assert first(engine, m).until == NOW + 700
    assert "rate" not in codes(engine, m, NOW + 700)


def test_a_group_is_paused_or_shut_for_a_while() -> None:
    engine = make_engine()
    m, other, plain = put(engine, group="g"), put(engine, group="h"), put(engine)
    groups.change(engine, "q", "g", NOW, paused=True)
    groups.close(engine, "q", "g", 500, NOW)
    assert codes(engine, m)[:2] == ["group-paused", "group-closed"]
    assert named(engine, m, "group-closed").until == NOW + 500
    assert "group-closed" not in codes(engine, m, NOW + 500)
    groups.close(engine, "q", NO_GROUP, 300, NOW)
    assert first(engine, plain) == Reason("group-closed", until=NOW + 300, facts={"group": None})
    assert not any(code.startswith("group") for code in codes(engine, other))


def test_a_group_may_have_as_many_running_as_pulls_allow_it() -> None:
    engine = make_engine()
    put(engine, group="g")
    m = put(engine, group="g")
    terms = Terms(concurrency=1, max=1, duration=1000)
    consume.take(engine, "q", 1, 1, None, NOW, terms)
    assert "group-concurrency" not in codes(engine, m)  # a pull without terms would get it
    wait(engine, "r", terms=terms)
    found = explain(engine, m, NOW)
    assert found[0] == Reason("group-concurrency", facts={"group": "g", "limit": 1, "active": 1})
    assert found[1] == Reason(
        "group-rate", until=NOW + 1000, facts={"group": "g", "max": 1, "used": 1}
    )
    assert "group-rate" not in codes(engine, m, NOW + 1000)
    groups.change(engine, "q", "h", NOW, concurrency=1)
    wait(engine, "s", terms=Terms(affinity="h"))  # it has no limit, but does not want these
    assert first(engine, m).code == "group-concurrency"


def test_the_rule_of_a_group_holds_where_nobody_waits() -> None:
    engine = make_engine()
    put(engine, group="g")
    m = put(engine, group="g")
    groups.change(engine, "q", "g", NOW, concurrency=1)
    hold(engine)
    assert first(engine, m).facts == {"group": "g", "limit": 1, "active": 1}


def test_a_pull_without_a_limit_is_not_held_up_by_one() -> None:
    engine = make_engine()
    put(engine, group="g")
    m = put(engine, group="g")
    hold(engine)
    control.pause(engine, "q")
    wait(engine, "r", terms=Terms(concurrency=1))
    wait(engine, "s")
    assert codes(engine, m) == ["paused", "place-in-group"]


# -- what it waits for ----------------------------------------------------------------------------


def test_a_delay_ends_at_a_moment_and_then_the_pause_still_holds() -> None:
    engine = make_engine()
    m = put(engine, delay=500)
    control.pause(engine, "q")
    assert codes(engine, m) == ["delayed", "paused"]
    assert first(engine, m).until == NOW + 500


def test_a_back_off_tells_the_attempts_and_the_last_error() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine)
    fail(engine, m)
    found = first(engine, m)
    assert (found.code, found.until) == ("back-off", m.due)
    assert found.facts == {"attempts": 1, "maxAttempts": 3, "error": "no"}


def test_a_run_that_is_put_off_after_a_failure_is_no_back_off() -> None:
    engine = make_engine()
    m = put(engine, backoff=0)
    hold(engine)
    fail(engine, m)
    assert hold(engine, now=NOW + 5) is m
    manage.move_to_delayed(engine, m, token_of(m), 900, NOW + 6)
    assert first(engine, m).code == "delayed"


def test_a_time_to_live_is_told_of_what_has_not_begun() -> None:
    engine = make_engine()
    m = put(engine, ttl=500)
    assert explain(engine, m, NOW)[-1] == Reason("ttl", blocks=False, until=NOW + 501)
    hold(engine)
    assert codes(engine, m) == ["active"]


def test_dependencies_are_named_and_those_that_will_not_complete_too() -> None:
    engine = make_engine()
    a, b, c = (put(engine, id) for id in "abc")
    m = parked(engine, "a", "b", "c")
    assert explain(engine, m, NOW) == [
        Reason("dependencies", facts={"count": 3}, jobs=(("a", a), ("b", b), ("c", c)))
    ]
    settle.ack(engine, "a", token_of(hold(engine)), NOW)
    fail(engine, hold(engine), unrecoverable=True)
    manage.cancel(engine, c, NOW)
    waits, stuck = explain(engine, m, NOW)
    assert waits.jobs == (("b", b), ("c", None))
    assert stuck == Reason("stuck", facts={"count": 2}, jobs=(("b", b), ("c", None)))


def test_only_some_of_many_dependencies_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NAMED", 2)
    engine = make_engine()
    ids = [put(engine).id for _ in range(5)]
    found = first(engine, parked(engine, *ids))
    assert found.facts == {"count": 5}
    assert [id for id, _ in found.jobs] == ids[:2]


def test_a_parent_may_wait_for_children_that_nobody_has_added() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine)
    manage.move_to_waiting_children(engine, m, token_of(m), NOW)
    assert codes(engine, m) == ["no-children"]


def test_a_message_behind_the_owner_of_its_key_waits_for_its_end() -> None:
    engine = make_engine()
    owner = put(engine, "a", unique_key="k", dedup_policy="queue-one")
    hold(engine)
    m = put(engine, "b", unique_key="k", dedup_policy="queue-one")
    assert first(engine, m) == Reason("follows", facts={"key": "k"}, jobs=(("a", owner),))
    key = named(engine, m, "unique-key")
    assert key.facts == {"key": "k", "owner": "a", "own": False, "next": "b"}


def test_the_holder_of_a_key_is_told_until_when_it_holds_it() -> None:
    engine = make_engine()
    m = put(engine, "a", unique_key="k", dedup_ttl=100)
    facts = {"key": "k", "owner": "a", "own": True, "next": None}
    expected = Reason("unique-key", blocks=False, until=NOW + 100, facts=facts)
    assert explain(engine, m, NOW)[-1] == expected
    assert "unique-key" not in codes(engine, m, NOW + 100)


# -- it runs, or it has ended ---------------------------------------------------------------------


def test_a_running_message_tells_who_has_it_until_when() -> None:
    engine = make_engine()
    register(engine, "w", ["q"], conn=1)
    register(engine, "v", ["q"], conn=2)
    m = put(engine)
    hold(engine)
    settle.extend(engine, m.id, token_of(m), NOW + 1000)
    (found,) = explain(engine, m, NOW + 1000)
    assert (found.code, found.blocks, found.until) == ("active", False, NOW + 31_800)
    assert found.facts == {
        "since": NOW,
        "heartbeat": NOW + 1000,
        "progress": 0,
        "leasedUntil": NOW + 31_000,
        "renewals": 1,
        "connection": 1,
        "workers": ["w"],
    }


def test_a_lease_without_token_and_connection_is_told_as_such() -> None:
    engine = make_engine()
    m = put(engine)
    hold(engine, conn=None, span=None)
    facts = first(engine, m).facts
    assert (facts["leasedUntil"], facts["connection"], facts["workers"]) == (None, None, [])


def test_a_completed_message_tells_when_it_ended() -> None:
    engine = make_engine()
    m = put(engine)
    settle.ack(engine, m.id, token_of(hold(engine)), NOW + 7)
    assert explain(engine, m, NOW + 9) == [Reason("completed", facts={"at": NOW + 7})]


def test_a_dead_letter_tells_why_and_what_becomes_of_it() -> None:
    engine = make_engine()
    control.configure(engine, engine.queue("q"), burial=Burial(auto_retry=True, interval=500))
    m = put(engine, max_attempts=1)
    hold(engine)
    fail(engine, m, NOW + 7)
    cause = {"at": NOW + 7, "cause": "max_attempts_exceeded", "error": "no", "attempts": 1}
    assert explain(engine, m, NOW + 9) == [
        Reason("failed", facts=cause),
        Reason("automatic-retry", blocks=False, until=NOW + 507),
        Reason("forgotten", blocks=False, until=NOW + 7 + Burial().max_age),
    ]


def test_a_dead_letter_whose_key_another_has_cannot_come_back() -> None:
    engine = make_engine()
    burial = Burial(auto_retry=True, max_age=None)
    control.configure(engine, engine.queue("q"), burial=burial)
    m = put(engine, "a", unique_key="k")
    fail(engine, hold(engine), unrecoverable=True)
    put(engine, "b", unique_key="k")
    assert codes(engine, m) == ["failed", "key-taken", "unique-key"]
    assert not deadletters.retry(engine, m, NOW)


def test_a_discarded_message_has_a_cause_too() -> None:
    engine = make_engine()
    m = put(engine)
    manage.discard(engine, m, None, NOW)
    assert first(engine, m).code == "failed"
    assert first(engine, m).facts["cause"] == "unknown"


def test_an_id_that_is_not_there_may_have_been_completed() -> None:
    engine = make_engine()
    m = put(engine)
    settle.ack(engine, m.id, token_of(hold(engine)), NOW, remove=True)
    assert unknown(engine, m.id) == Reason("removed")
    assert unknown(engine, "never") == Reason("unknown")


# -- three counters -------------------------------------------------------------------------------


def test_the_counters_come_with_the_limits_that_hold() -> None:
    engine = make_engine()
    m = put(engine)
    assert counters(engine, m) == {
        "failures": Count(0, 3),
        "crashes": Count(0, 3),
        "interruptions": Count(0, 10),
    }
    control.configure(engine, engine.queues["q"], stall=Stall(max_stalls=7))
    assert counters(engine, m)["crashes"] == Count(0, 7)
    m = put(engine, priority=1, max_attempts=5, max_stalls=2, max_interruptions=0)
    hold(engine)
    consume.disconnect(engine, 1, NOW)
    assert counters(engine, m) == {
        "failures": Count(0, 5),
        "crashes": Count(0, 2),
        "interruptions": Count(1, 0),
    }


# -- it only reads --------------------------------------------------------------------------------


def asked_of_a_plain(engine: Engine) -> Message:
    return put(engine)


def asked_of_a_grouped(engine: Engine) -> Message:
    wait(engine, "r", terms=Terms(affinity="h", concurrency=1))
    limits.set_rate(engine, "q", 1, 1000, NOW)
    put(engine)
    return put(engine, group="g")


def asked_of_a_parked(engine: Engine) -> Message:
    put(engine, "a")
    return parked(engine, "a")


@pytest.mark.parametrize("make", [asked_of_a_plain, asked_of_a_grouped, asked_of_a_parked])
def test_asking_changes_nothing(make: Callable[[Engine], Message]) -> None:
    engine = make_engine()
    m = make(engine)
    engine.take()
    q = engine.queues["q"]
    before = (m.gen, m.state, len(q.ready), q.counts, len(engine.timers), len(q.ring))
    explain(engine, m, NOW)
    assert engine.quiet
    assert (m.gen, m.state, len(q.ready), q.counts, len(engine.timers), len(q.ring)) == before
    assert m.state is not State.GONE


# -- subscribers -----------------------------------------------------------------------------------


def test_who_subscribes_and_holds_a_message_is_named() -> None:
    office = Office()
    office.make()
    office.subscribe(A)
    office.post("m1")
    (m,) = office.engine.messages.values()
    assert first(office.engine, m, office.now).facts["subscriber"] == "peer 1"


@pytest.mark.parametrize("stalled", [False, True])
def test_full_windows_and_those_who_do_not_read_hold_a_message_up(stalled: bool) -> None:
    office = Office()
    office.make()
    office.subscribe(A, B, window=1)
    if stalled:
        office.stall(A)
        office.stall(B)
    office.post("a", "b", "c")
    m = list(office.engine.messages.values())[-1]
    found = named(office.engine, m, "no-window", office.now)
    assert (found.facts["count"], found.facts["subscribers"]) == (2, ["peer 1", "peer 2"])
    held = 0 if stalled else 2
    assert (found.facts["held"], found.facts["stalled"]) == (held, 2 - held)
    office.unsubscribe(A)
    office.stall(B, stalled=False)
    office.subscribe(C)
    assert "no-window" not in codes(office.engine, m, office.now)


def test_copies_that_are_out_are_told_of() -> None:
    office = Office()
    office.make(max_attempts=1, **FAN_OUT)
    office.subscribe(A, B, C, window=1)
    office.subscribe(D)
    office.post("first")
    office.ack(A, "first")
    office.post("second")
    _, m = office.engine.messages.values()
    office.ack(D, "second")
    found = first(office.engine, m, office.now)
    assert (found.code, found.until) == ("copies", office.now + 30_000)
    assert found.facts == {
        "count": 3,
        "waiting": 2,
        "acknowledged": 1,
        "failed": [],
        "subscribers": ["peer 1", "peer 2", "peer 3"],
    }


def test_a_fan_out_without_subscribers_waits_for_some() -> None:
    office = Office()
    office.make(**FAN_OUT)
    office.post("m1")
    (m,) = office.engine.messages.values()
    assert first(office.engine, m, office.now).code == "no-subscriber"


@pytest.mark.parametrize(("policy", "code"), [(HAND_OVER, "no-window"), (FAN_OUT, "paused")])
def test_who_does_not_read_holds_up_only_what_needs_no_answer(
    policy: dict[str, Any], code: str
) -> None:
    office = Office()
    office.make(**policy)
    office.subscribe(A)
    office.stall(A)
    if code == "paused":
        control.pause(office.engine, "q")
    office.post("m1")
    (m,) = office.engine.messages.values()
    found = codes(office.engine, m, office.now)
    assert found[0] == code
    assert ("no-window" in found) is (code == "no-window")
