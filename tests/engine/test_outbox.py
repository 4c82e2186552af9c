"""What is collected until it is taken, and what nobody asked for."""

from __future__ import annotations

from tandemq.engine.journal import Journal
from tandemq.engine.outbox import Outbox
from tandemq.model.message import Message
from tandemq.model.outcome import Deliver, Event, Late

M = Message("m", "q", "n", b"", 1, 0, 0)


def test_everything_is_handed_over_once_and_in_order() -> None:
    box = Outbox(Journal(9, 99))
    assert box.quiet
    box.tell(1, "r", "reply")
    box.deliver([1, 2], M, b"{}")
    box.record("key", b"value")
    box.owes_sync = True
    assert not box.quiet
    outcome = box.hand_over()
    assert outcome.effects == [Late(1, "r", "reply"), Deliver([1, 2], M, b"{}")]
    assert outcome.facts == {"key": b"value"}
    assert box.quiet
    assert not box.owes_sync
    assert box.hand_over() == ({}, {}, [], [])


def test_events_are_built_only_while_somebody_listens() -> None:
    box = Outbox(Journal(9, 99))
    box.say("pushed", M, 5)
    box.announce("paused", "q", 5)
    assert box.heard() == []
    box.listening = True
    box.say("pushed", M, 5, more=1)
    box.announce("paused", "q", 6)
    assert box.quiet  # an event alone need not be kept
    told = [Event("pushed", "q", "m", 5, {"more": 1}), Event("paused", "q", "", 6, {})]
    assert box.heard() == told
    assert box.hand_over().events == []
