"""Well-formed commands with wrong values are answered, every one of them, and harm nobody."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import msgpack
import pytest
from tests.hostile.commands import (
    COMMANDS,
    NO_LEASE,
    WRONG_VALUES,
    Lease,
    wrong_batches,
    wrong_requests,
)
from tests.support.server import Server, is_own
from tests.support.wire import Wire


def raw_frame(command: dict[str, Any]) -> bytes:
    """A frame with integers as they are, also those of 64 bits."""
    body = msgpack.packb(command, use_bin_type=True)
    return struct.pack(">I", len(body)) + body


def ask_all(wire: Wire, commands: Iterable[dict[str, Any]], *, size: int = 40) -> None:
    """Send commands in groups and check that each gets an answer of the agreed shape."""
    numbers = iter(range(10**9))
    stream = iter(commands)
    while group := list(islice(stream, size)):
        numbered = {f"n{next(numbers)}": command for command in group}
        wire.send_raw(
            b"".join(raw_frame({**command, "reqId": n}) for n, command in numbered.items())
        )
        for _ in range(len(group)):
            answer = wire.next_answer(timeout=15)
            check_shape(numbered.pop(answer.get("reqId", ""), {}), answer)


def check_shape(command: dict[str, Any], answer: dict[str, Any]) -> None:
    shown = f"{str(command)[:500]} -> {str(answer)[:500]}"
    assert answer.get("ok") in (True, False), shown
    if answer["ok"] is False:
        assert isinstance(answer.get("error"), str), shown
        assert 0 < len(answer["error"]) < 7_000, shown
        for leak in ("Traceback", "site-packages", '.py"', "object at 0x"):
            assert leak not in answer["error"], shown
        if is_own():
            assert "internal" not in answer["error"].lower(), f"a bug, not a refusal: {shown}"


def leases(wire: Wire, queue: str) -> Iterator[Lease]:
    """Active jobs without end, each to be spoiled by one command."""
    while True:
        wire.do("PUSHB", queue=queue, jobs=[{"data": 1, "backoff": 0}] * 100)
        taken = wire.do("PULLB", queue=queue, owner="w", count=100)
        for job, token in zip(taken["jobs"], taken["tokens"], strict=True):
            yield Lease(job["id"], token)


def assert_unharmed(server: Server, witness: Wire, queue: str) -> None:
    """Old and new connections can still take a job through its life."""
    for wire in (witness, server.connect()):
        job_id = wire.push(queue + "-witness", {"n": 1})
        answer = wire.pull(queue + "-witness")
        assert answer["job"]["id"] == job_id
        wire.do("ACK", id=job_id, token=answer["token"], result="fine")
        assert wire.do("GetResult", id=job_id)["result"] == "fine"
        if wire is not witness:
            wire.close()


@pytest.mark.parametrize("cmd", sorted(COMMANDS))
def test_a_wrong_value_in_any_field_is_answered(
    server: Server, wire: Wire, queue: str, cmd: str
) -> None:
    with server.connect() as witness:
        if cmd in NO_LEASE:
            ask_all(wire, wrong_requests(cmd, queue, Lease("missing", "missing")))
        else:
            supply = leases(witness, queue + "-leases")
            count = sum(1 for _ in wrong_requests(cmd, queue, Lease("", "")))
            targets = [next(supply) for _ in range(count)]
            requests = (
                next(islice(wrong_requests(cmd, queue, target), n, None))
                for n, target in enumerate(targets)
            )
            ask_all(wire, requests)
        assert wire.ping(), "the connection goes on"
        assert_unharmed(server, witness, queue)


def test_a_wrong_value_inside_a_batch_is_answered(server: Server, wire: Wire, queue: str) -> None:
    with server.connect() as witness:
        ask_all(wire, wrong_batches(queue))
        assert wire.ping()
        assert_unharmed(server, witness, queue)


def test_a_refused_batch_leaves_nothing_behind(wire: Wire, queue: str) -> None:
    answer = wire.ask("PUSHB", queue=queue, jobs=[{"data": 1}, {"data": 2, "priority": "high"}])
    assert answer["ok"] is False
    assert answer["error"].startswith("jobs[1]: ")
    assert wire.counts(queue) == {}


def test_a_command_of_any_kind_is_answered(server: Server, wire: Wire, queue: str) -> None:
    """Also where `cmd` is no text; such an answer need not carry the request id."""
    for value in WRONG_VALUES.values():
        wire.send_raw(raw_frame({"cmd": value, "queue": queue, "reqId": "odd"}))
        answer = wire.next_answer()
        assert answer["ok"] is False
        assert isinstance(answer["error"], str)
    assert wire.ping()


@pytest.mark.parametrize(
    "req_id", ["", "x" * 10_000, 0, -7, 1.5, True, False, [1, [2]], {"a": {"b": 1}}, "naïve ☃"]
)
def test_a_request_id_of_any_kind_comes_back_unchanged(
    server: Server, wire: Wire, req_id: Any
) -> None:
    wire.send_raw(raw_frame({"cmd": "Ping", "reqId": req_id}))
    answer = wire.receive(req_id) if isinstance(req_id, str) else wire.next_frame()
    assert answer["ok"] is True
    assert answer["reqId"] == req_id
    assert type(answer["reqId"]) in (type(req_id), int)


SPECIAL = ["__proto__", "constructor", "toString", "__class__", "..", "-", "None", "null", "0"]


def test_a_name_that_is_special_elsewhere_is_ordinary_here(own_server: Server) -> None:
    """As the name of a queue, of a job, as a custom id, and as a key of its data."""
    with own_server.connect() as wire:
        for name in SPECIAL:
            assert wire.push(name, {"k": {name: name}}, name=name, jobId=name) == name
        for name in SPECIAL:
            answer = wire.pull(name)
            job = answer["job"]
            assert (job["id"], job["name"]) == (name, name)
            if name != "__proto__":  # the reference drops this key
                assert job["data"] == {"k": {name: name}}
            wire.do("ACK", id=name, token=answer["token"], result=name)
            assert wire.do("GetResult", id=name)["result"] == name
        assert sorted(wire.do("ListQueues")["queues"]) == sorted(SPECIAL)
