"""Admission: where a message begins, and what an id that is taken means."""

from __future__ import annotations

import pytest
from tests.engine.making import NOW, answers, hold, make_engine, put, ready, token_of, wait, where
from tests.engine.office import Office

from tandemq.engine import control, post, publish, settle
from tandemq.model.broker import Overflow, Policy
from tandemq.model.errors import MustWait, QueueFull
from tandemq.model.message import DEFAULTS, Options, State

READY, DELAYED, DONE, GONE = State.READY, State.DELAYED, State.DONE, State.GONE


def test_a_draft_is_known_to_nobody() -> None:
    m = publish.draft("q", "job", b"x", NOW, 3, 40)
    assert (m.id, m.seq, m.state, m.gen, m.options) == ("", 0, State.NEW, 0, DEFAULTS)
    assert (m.queue, m.name, m.body, m.priority) == ("q", "job", b"x", 3)
    assert (m.created, m.due) == (NOW, NOW + 40)


@pytest.mark.parametrize(
    ("delay", "created", "state", "due"),
    [
        (0, None, READY, NOW),
        (1, None, DELAYED, NOW + 1),
        (0, NOW - 500, READY, NOW - 500),
        (200, NOW - 500, READY, NOW - 300),
        (501, NOW - 500, DELAYED, NOW + 1),
        (0, NOW + 7, DELAYED, NOW + 7),
    ],
)
def test_a_message_is_delayed_until_its_delay_after_its_timestamp(
    delay: int, created: int | None, state: State, due: int
) -> None:
    m = put(make_engine(), delay=delay, created=created)
    assert (m.state, m.born, m.due) == (state, state, due)


def test_messages_get_ids_and_ascending_numbers() -> None:
    engine = make_engine()
    messages = [put(engine), put(engine, "mine"), put(engine)]
    assert [(m.id, m.seq) for m in messages] == [("id-1", 1), ("mine", 2), ("id-2", 3)]
    assert list(engine.messages.values()) == messages
    assert engine.take().changed == {m.seq: m for m in messages}
    assert engine.counters.pushed == 3


def test_a_message_that_is_published_serves_whoever_waits_longest() -> None:
    engine = make_engine()
    wait(engine, "first")
    wait(engine, "second")
    put(engine, "a")
    assert answers(engine) == {"first": ["a"]}


def test_a_durable_message_asks_for_more_than_a_commit() -> None:
    engine = make_engine()
    put(engine)
    assert not engine.owes_sync
    put(engine, durable=True)
    assert engine.owes_sync
    engine.take()
    assert not engine.owes_sync


# -- ids chosen by publishers ----------------------------------------------------------------------


@pytest.mark.parametrize("queue", ["q", "another"])
def test_an_id_names_one_message_over_all_queues_while_that_lives(queue: str) -> None:
    engine = make_engine()
    live = put(engine, "mine", delay=5)
    engine.take()
    assert put(engine, "mine", queue=queue, body=b"other") is live
    assert live.body == b"x"
    assert engine.quiet
    assert engine.counters.pushed == 1
    assert list(engine.queues) == ["q"]  # no queue is made by a message that is not accepted


def test_a_leased_message_keeps_its_id() -> None:
    engine = make_engine()
    live = put(engine, "mine")
    hold(engine)
    assert put(engine, "mine") is live


@pytest.mark.parametrize("queue", ["q", "another"])
@pytest.mark.parametrize("well", [True, False])
def test_the_id_of_a_message_that_has_ended_is_free(queue: str, well: bool) -> None:
    engine = make_engine()
    old = put(engine, "mine")
    token = token_of(hold(engine))
    if well:
        settle.ack(engine, "mine", token, NOW)
    else:
        settle.fail(engine, "mine", token, NOW, unrecoverable=True)
    engine.take()
    new = put(engine, "mine", queue=queue)
    assert new is not old
    assert engine.messages == {"mine": new}
    assert (old.state, new.state, new.seq) == (GONE, READY, 2)
    assert engine.take().changed == {1: old, 2: new}
    assert list(engine.queues) == [queue]
    assert ready(engine, queue) == ["mine"]
    assert engine.finished.count == 0


# -- batches ---------------------------------------------------------------------------------------


def drafts(*ids: str) -> list:
    return [publish.draft("q", "job", b"x", NOW, id=id) for id in ids]


def test_a_batch_is_accepted_in_its_order() -> None:
    engine = make_engine()
    accepted = publish.publish_all(engine, "q", drafts("a", "", "b"), NOW)
    assert [(m.id, m.seq) for m in accepted] == [("a", 1), ("id-1", 2), ("b", 3)]
    assert ready(engine) == ["a", "id-1", "b"]


def test_a_batch_is_handed_out_together() -> None:
    engine = make_engine()
    wait(engine, "r", count=5)
    batch = [
        publish.draft("q", "job", b"x", NOW, priority, id=f"p{priority}") for priority in (1, 9)
    ]
    publish.publish_all(engine, "q", batch, NOW)
    assert answers(engine) == {"r": ["p9", "p1"]}


def test_an_id_twice_in_a_batch_is_one_message() -> None:
    engine = make_engine()
    one, other, again = publish.publish_all(engine, "q", drafts("a", "b", "a"), NOW)
    assert again is one
    assert where(engine) == {"READY": 2}
    assert other.seq == 2


def test_a_batch_may_replace_all_that_its_queue_held() -> None:
    engine = make_engine()
    for id in "ab":
        put(engine, id)
        settle.ack(engine, id, token_of(hold(engine)), NOW)
    publish.publish_all(engine, "q", drafts("a", "b"), NOW)
    assert where(engine) == {"READY": 2}
    assert engine.finished.count == 0


@pytest.mark.parametrize("ids", [(), ("live",), ("live", "live")])
def test_a_batch_of_which_nothing_is_new_leaves_no_queue_behind(ids: tuple[str, ...]) -> None:
    engine = make_engine()
    live = put(engine, "live", queue="another")
    assert publish.publish_all(engine, "q", drafts(*ids), NOW) == [live] * len(ids)
    assert list(engine.queues) == ["another"]


def test_a_message_whose_time_is_over_before_it_arrives_serves_nobody() -> None:
    engine = make_engine()
    wait(engine, "r")
    m = put(engine, created=NOW - 100, ttl=99)
    assert m.state is GONE
    assert answers(engine) == {}
    assert engine.counters.expired == 1


def test_a_paused_queue_accepts_messages() -> None:
    engine = make_engine()
    control.pause(engine, "q")
    put(engine, "a", max_attempts=7)
    assert where(engine) == {"READY": 1}
    assert engine.messages["a"].options == Options(max_attempts=7)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("waiting", [False, True])
def test_plain_messages_are_what_drafts_that_ask_for_nothing_become(
    grouped: bool, waiting: bool
) -> None:
    found = []
    for plain in (True, False):
        engine = make_engine()
        engine.listening = True
        if grouped:
            put(engine, "other", group="g")
        if waiting:
            wait(engine, "first")
        if plain:
            ids = publish.publish_plain(engine, "q", [("a", b"1"), ("b", b"2")], NOW)
        else:
            drafts = [publish.draft("q", "a", b"1", NOW), publish.draft("q", "b", b"2", NOW)]
            ids = [m.id for m in publish.publish_all(engine, "q", drafts, NOW)]
        outcome = engine.take()
        said = [(event.type, event.id) for event in outcome.events]
        found.append((ids, outcome.changed, said, where(engine), engine.counters, outcome.effects))
    assert found[0] == found[1]


# -- queues that are bounded -----------------------------------------------------------------------


@pytest.mark.parametrize("overflow", Overflow)
def test_a_batch_that_does_not_fit_is_refused_as_a_whole(overflow: Overflow) -> None:
    office = Office()
    office.make(max_size=3, overflow=overflow)
    office.post("a")
    refusal = MustWait if overflow is Overflow.BLOCK_PUBLISHER else QueueFull
    with pytest.raises(refusal):
        publish.publish_all(office.engine, "q", drafts("x", "y", "z"), NOW)
    with pytest.raises(refusal):
        publish.publish_plain(office.engine, "q", [("x", b""), ("y", b""), ("z", b"")], NOW)
    assert office.waiting() == ["a"]


def test_a_batch_that_never_fits_does_not_wait() -> None:
    office = Office()
    office.make(max_size=2, overflow=Overflow.BLOCK_PUBLISHER)
    with pytest.raises(QueueFull) as refused:
        publish.publish_all(office.engine, "q", drafts("x", "y", "z"), NOW)
    assert type(refused.value) is QueueFull


def test_names_for_what_is_there_take_no_room() -> None:
    office = Office()
    office.make(max_size=1)
    put(office.engine, "x")
    publish.publish_all(office.engine, "q", drafts("x", "x"), NOW)
    assert office.waiting() == ["x"]
    with pytest.raises(QueueFull):
        publish.publish_all(office.engine, "q", drafts("x", "y"), NOW)


def test_a_draft_may_be_let_in_whatever_is_full() -> None:
    office = Office()
    office.make(max_size=1)
    put(office.engine, "x")
    (m,) = drafts("y")
    publish.publish(office.engine, m, NOW, room=False)
    assert office.waiting() == ["x", "y"]


def test_space_is_looked_at_in_all_queues_before_one_is_decided() -> None:
    office = Office()
    office.make("full", max_size=1)
    put(office.engine, "x", queue="full")
    post.found(office.engine, "open", NOW, Policy())
    with pytest.raises(QueueFull):
        publish.check_space(office.engine, {"open": 1, "full": 1})
    assert office.engine.queues["open"].settings.broker is not None
    publish.check_space(office.engine, {"open": 0})
    assert office.engine.queues["open"].settings.broker is None
