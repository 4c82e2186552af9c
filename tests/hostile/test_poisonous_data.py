"""What one client pushes must not make the answers of another unreadable.

The official Python client drops an answer unread that holds text which is not UTF-8, a key that is
neither text nor bytes, or very deep nesting; its worker then waits for an answer that it has got.
The official TypeScript client closes the connection over an extension type that it does not know.
So a server either refuses such data or hands it out in a form that they read.
"""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from tests.support.server import Server, is_own
from tests.support.wire import Wire, frame

BAD_TEXT = b"\xa4ab\xff\xfe"
HALF_SURROGATE = b"\xa3\xed\xa0\x80"
EXTENSION = b"\xc7\x03\x4dabc"

POISON = {
    "text that is not UTF-8": BAD_TEXT,
    "half of a surrogate pair": HALF_SURROGATE,
    "key that is not UTF-8": b"\x81" + BAD_TEXT + b"\x01",
    "deep inside": b"\x91\x81\xa1k\x91" + BAD_TEXT,
    "integer key": b"\x81\x01\x02",
    "nil key": b"\x81\xc0\x02",
    "boolean key": b"\x81\xc3\x02",
    "float key": b"\x81" + msgpack.packb(1.5) + b"\x02",
    "list as key": b"\x81\x91\x01\x02",
    "map as key": b"\x81\x80\x02",
    "bytes as key": b"\x81\xc4\x01k\x02",
    "unknown extension": EXTENSION,
    "extension inside": b"\x91\x81\xa1k" + EXTENSION,
    "extension as key": b"\x81" + EXTENSION + b"\x02",
}

KNOWN_EXTENSIONS = {0, -1}


def with_raw(command: dict[str, Any], field: str, raw: bytes) -> bytes:
    """A frame of `command` with one more field whose value is spelled out in bytes."""
    body = b"".join(msgpack.packb(part) for pair in command.items() for part in pair)
    count = 0x80 + len(command) + 1
    return frame(bytes([count]) + body + msgpack.packb(field) + raw)


def ask_raw(wire: Wire, field: str, raw: bytes, **command: Any) -> dict[str, Any]:
    wire.send_raw(with_raw({**command, "reqId": "raw"}, field, raw))
    return wire.next_answer()


def extensions_in(value: Any) -> set[int]:
    if isinstance(value, msgpack.ExtType):
        return {value.code}
    if isinstance(value, dict):
        return {code for pair in value.items() for part in pair for code in extensions_in(part)}
    if isinstance(value, list):
        return {code for item in value for code in extensions_in(item)}
    return set()


@pytest.mark.parametrize("name", sorted(POISON))
def test_data_that_a_worker_cannot_read_is_refused_or_made_readable(
    wire: Wire, queue: str, name: str
) -> None:
    accepted = ask_raw(wire, "data", POISON[name], cmd="PUSH", queue=queue)["ok"]
    wire.push(queue, "healthy")
    taken = wire.do("PULLB", queue=queue, owner="w", count=10)["jobs"]
    assert wire.unreadable == 0
    assert len(taken) == (2 if accepted else 1)
    assert taken[-1]["data"] == "healthy"
    for job in taken:
        assert extensions_in(job["data"]) <= KNOWN_EXTENSIONS
    wire.jobs(queue)
    assert wire.unreadable == 0


@pytest.mark.parametrize("name", sorted(POISON))
def test_a_result_that_nobody_can_read_is_refused_or_made_readable(
    wire: Wire, queue: str, name: str
) -> None:
    job_id = wire.push(queue, 1)
    token = wire.pull(queue)["token"]
    ask_raw(wire, "result", POISON[name], cmd="ACK", id=job_id, token=token)
    result = wire.do("GetResult", id=job_id).get("result")
    wire.do("GetJob", id=job_id)
    wire.do("GetJobs", queue=queue)
    assert wire.unreadable == 0
    assert extensions_in(result) <= KNOWN_EXTENSIONS


@pytest.mark.parametrize("name", ["text that is not UTF-8", "half of a surrogate pair"])
def test_words_that_are_not_utf_8_are_readable_wherever_they_are_kept(
    server: Server, wire: Wire, queue: str, name: str
) -> None:
    raw = POISON[name]
    job_id = wire.push(queue, 1, maxAttempts=1)
    token = wire.pull(queue)["token"]
    ask_raw(wire, "message", raw, cmd="AddLog", id=job_id)
    ask_raw(wire, "message", raw, cmd="Progress", id=job_id, progress=5)
    ask_raw(wire, "hostname", raw, cmd="RegisterWorker", name=queue, queues=[queue])
    wire.do("GetLogs", id=job_id)
    wire.do("GetProgress", id=job_id)
    wire.do("ListWorkers")
    ask_raw(wire, "error", raw, cmd="FAIL", id=job_id, token=token)
    wire.do("GetJob", id=job_id)
    for field in ("name", "jobId", "uniqueKey"):
        ask_raw(wire, field, raw, cmd="PUSH", queue=queue, data=1)
    ask_raw(wire, "tags", b"\x91" + raw, cmd="PUSH", queue=queue, data=1)
    ask_raw(wire, "cmd", raw)
    wire.do("PULLB", queue=queue, owner="w", count=10)
    wire.do("GetJobs", queue=queue)
    assert wire.unreadable == 0


@pytest.mark.parametrize("depth", [300, 5_000])
def test_data_nested_deeper_than_a_worker_can_read_is_refused(
    wire: Wire, queue: str, depth: int
) -> None:
    if depth > 1_000 and not is_own():
        pytest.skip("the reference hands it out as it is")
    accepted = ask_raw(wire, "data", b"\x91" * depth + b"\xc0", cmd="PUSH", queue=queue)["ok"]
    assert accepted or depth > 1_000
    taken = wire.do("PULLB", queue=queue, owner="w", count=10)["jobs"]
    assert len(taken) == accepted
    assert wire.unreadable == 0
