"""What a call of the engine says to the outside."""

from __future__ import annotations

from tandemq.model.outcome import Event, Outcome, Reply


def test_an_outcome_tells_what_changed_and_what_must_be_said() -> None:
    reply, event = Reply(1, "req", []), Event("pushed", "q", "m", 5, {})
    outcome = Outcome({}, {"key": None}, [reply], [event])
    assert (outcome.changed, outcome.facts) == ({}, {"key": None})
    assert (outcome.effects, outcome.events) == ([reply], [event])


def test_a_reply_names_the_connection_and_repeats_what_was_asked() -> None:
    asked = object()
    reply = Reply(7, asked, [])
    assert (reply.conn, reply.messages, reply.refused) == (7, [], None)
    assert reply.req is asked
