"""Requests that run as one come to what they would have come to one by one."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.server.offline import Answer, Peer, serving, turns

from tandemq.commands.table import BY_REQUEST
from tandemq.server.intake import TOGETHER, Intake

PUSHES: list[dict[str, Any]] = [
    {"queue": "q", "data": 1, "name": "n"},
    {"queue": "q", "data": {"name": "within"}},  # no name of its own
    {"queue": "q", "data": "x" * 20_000, "name": "large"},
    {"queue": "other", "data": 1, "name": "n"},
    {"queue": "no such: name!", "data": 1, "name": "n"},
    {"queue": "q", "data": 1, "name": "n", "priority": 5},
    {"queue": "q", "data": 1, "name": "n", "ttl": 3_600_000},
    {"queue": "q", "data": 1, "name": "n", "groupId": "g"},
]
PULLS: list[dict[str, Any]] = [
    {"queue": "q", "owner": "w"},
    {"queue": "q"},
    {"queue": "q", "owner": "w", "lockTtl": 5_000},
    {"queue": "other", "owner": "w"},
    {"queue": "q", "detach": True},
    {"queue": "q", "owner": "w", "timeout": 60_000},
    {"queue": "q", "owner": "w", "group": {"affinity": "g"}},
]
ACKS: list[dict[str, Any]] = [{}, {}, {"result": 5}, {"token": "wrong"}, {"removeOnComplete": True}]
KINDS = {"PUSH": PUSHES, "PULL": PULLS, "ACK": ACKS}


@st.composite
def runs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Some commands of one kind, most of them equal."""
    cmd = draw(st.sampled_from(list(KINDS)))
    usual, odd = draw(st.sampled_from(KINDS[cmd])), st.sampled_from(KINDS[cmd])
    others = draw(st.lists(odd, max_size=3))
    count = draw(st.integers(1, 6))
    return [{"cmd": cmd, **fields} for fields in (*[usual] * count, *others, usual)]


READS = st.lists(st.lists(runs(), min_size=1, max_size=3), min_size=1, max_size=8)


def told(runtime: Any) -> list[Any]:
    """What is left: the messages in the order of their arrival, and what was counted."""
    found = [
        (m.seq, m.queue, m.name, m.body, m.state, m.attempts, m.leases, m.priority, m.options)
        for m in runtime.engine.messages.values()
    ]
    return [sorted(found, key=lambda m: m[0]), runtime.engine.counters]


async def played(reads: list[list[list[dict[str, Any]]]]) -> list[Any]:
    """Send commands, several kinds in one read; ACKs name in turn what was pulled before."""
    async with serving() as runtime:
        peer = Peer(runtime)
        held: list[Answer] = []
        answers: list[Answer | None] = []
        for read in reads:
            taken: Iterator[Answer] = iter(held)
            commands = [named(c, taken) for run in read for c in run]
            held = list(taken)
            sent = peer.send_all(commands)
            await turns()
            answers += [peer.answers[req] if peer.has(req) else None for req in sent]
            held += [a for a in answers[-len(sent) :] if a and a.get("job")]
        return [masked(answers), *told(runtime)]


def named(command: dict[str, Any], taken: Iterator[Answer]) -> dict[str, Any]:
    """Say of an ACK what it is for."""
    if command["cmd"] != "ACK":
        return command
    job = next(taken, None) or {"job": {"id": "unknown"}, "token": None}
    return {"id": job["job"]["id"], "token": job.get("token"), **command}


UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def masked(answers: Any) -> str:
    """Answers without moments, ids in the order in which they are seen."""
    seen: dict[str, str] = {}
    text = UUID.sub(
        lambda found: seen.setdefault(found[0], f"id{len(seen)}"), json.dumps(answers, default=str)
    )
    return re.sub(r"1[0-9]{12}(\.0)?", "T", text)


@settings(max_examples=60, deadline=None)
@given(READS)
def test_several_come_to_what_they_would_come_to_one_by_one(reads: Any) -> None:
    together = asyncio.run(played(reads))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Intake, "_run_together", lambda *given: 0)
        assert together == asyncio.run(played(reads))


@pytest.mark.parametrize("cmd", KINDS)
async def test_equal_requests_run_together(cmd: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    run = Intake._run_together

    def spied(*given: Any) -> int:
        counts.append(run(*given))
        return counts[-1]

    async with serving() as runtime:
        peer = Peer(runtime)
        await peer.push()
        peer.send_all([{"cmd": "PUSH", **PUSHES[0]}] * 100)
        pulled = [await peer.pull() for _ in range(99)] if cmd == "ACK" else []
        jobs = [{"id": found["job"]["id"], "token": found["token"]} for found in pulled]
        monkeypatch.setattr(Intake, "_run_together", spied)
        requests = jobs or [KINDS[cmd][0]] * 99
        sent = peer.send_all([{"cmd": cmd, **fields} for fields in requests])
        assert [(await peer.answer(req))["ok"] for req in sent] == [True] * 99
    assert counts[0] == TOGETHER
    assert sum(counts) >= 98  # one may be left over for the next turn


async def test_a_kind_that_cannot_run_together_is_not_tried_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[Any] = []
    monkeypatch.setattr(Intake, "_run_together", lambda *given: bool(tries.append(given)))
    async with serving() as runtime:
        peer = Peer(runtime)
        sent = peer.send_all([{"cmd": "PUSH", **PUSHES[0]}] * 50)
        assert (await peer.answer(sent[-1]))["ok"]
    assert len(tries) < 10  # once a turn, of which a slow machine needs a few


def test_only_what_is_asked_by_the_thousand_has_a_short_cut() -> None:
    names = {row.name for row in BY_REQUEST.values() if row.together is not None}
    assert names == {"PUSH", "PULL", "ACK", "Publish"}
