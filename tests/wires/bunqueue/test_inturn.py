"""Answers that are written together are those that would be written one by one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tandemq.commands.call import Pulled
from tandemq.commands.finish import Ack
from tandemq.commands.pull import Pull
from tandemq.commands.table import ABSENT
from tandemq.model.message import (
    DEFAULTS,
    Lease,
    Letter,
    Links,
    Message,
    Options,
    Repeat,
    Run,
    State,
    Step,
)
from tandemq.wires.bunqueue import inturn, session, shapes

NOW = 1_700_000_000_000
ODD: list[dict[str, Any]] = [
    {}, {}, {}, {}, {"priority": 3}, {"priority": -2}, {"priority": 1 << 40}, {"attempts": 1},
    {"links": Links(parent="p")}, {"repeat": Repeat(every=5)},
    {"letter": Letter("m"), "body": b"1"},
    {"options": Options(custom_id=True)}, {"options": Options(ttl=5)}, {"id": "ä\ud800"},
    {"queue": "other"}, {"name": "\ud800"}, {"due": NOW - 3}, {"created": NOW + 1},
    {"born": State.DELAYED}, {"born": State.PARKED}, {"body": b"\xc0" * 70_000},
    {"run": Run(NOW, 0, NOW + 7)}, {"run": Run(NOW, 0, NOW, 4)}, {"run": Run(NOW + 2, 0, NOW)},
    {"run": Run(NOW, 0, NOW, first_priority=2)}, {"run": Run(NOW, 0, NOW, stack=("x",))},
    {"run": Run(NOW, 0, NOW, stalls=2)}, {"run": Run(NOW, 0, NOW, progress_message="x")},
    {"run": Run(NOW, 0, NOW, history=[Step(State.LEASED, 5)])}, {"lease": None},
]  # fmt: skip
REQS = st.sampled_from([Raw(msgspec.msgpack.encode(req)) for req in ("r", 5, "x" * 400)] + [ABSENT])


def job(change: dict[str, Any]) -> Message:
    usual = {
        "id": "0189-x", "queue": "q", "name": "n", "body": b"\x01", "seq": 1, "created": NOW,
        "due": NOW, "state": State.LEASED, "born": State.READY, "leases": 1, "options": DEFAULTS,
        "run": Run(NOW, 0, NOW), "lease": Lease("token", NOW + 5, 5, 1),
    }  # fmt: skip
    return Message(**{**usual, **change})


@given(
    st.lists(st.tuples(st.sampled_from(ODD).map(job), REQS), min_size=1, max_size=8), st.booleans()
)
def test_jobs_look_the_same(pairs: list[tuple[Message, Raw]], owned: bool) -> None:
    replies = [Pulled([m], False, owned) for m, _ in pairs]
    pulls = [Pull(queue="q", req_id=req) for _, req in pairs]
    one_by_one = [
        session.rendered(*each) for each in zip(replies, (p.req_id for p in pulls), strict=True)
    ]
    assert inturn.answers(replies, pulls) == one_by_one


@given(st.lists(REQS, min_size=1, max_size=8))
def test_plain_assent_looks_the_same(reqs: list[Raw]) -> None:
    acks = [Ack(id="x", req_id=req) for req in reqs]
    replies = [None] * len(reqs)
    assert inturn.answers(replies, acks) == [session.rendered(None, req) for req in reqs]


def test_only_so_many_are_answered_as_there_are_replies() -> None:
    assert len(inturn.answers([None], [Ack(id="x"), Ack(id="y")])) == 1


def test_usual_jobs_are_not_written_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(shapes, "job")
    assert len(inturn.answers([Pulled([job({})], False, True)] * 2, [Pull(queue="q")] * 2)) == 2
