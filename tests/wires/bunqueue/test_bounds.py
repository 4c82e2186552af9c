"""Frames that are larger than their command allows are refused before anything is built of them."""

from __future__ import annotations

import tracemalloc
from typing import Any

import msgpack
import pytest
from tests.support.wire import UNDEFINED, frame

from tandemq.commands.all import COMMANDS
from tandemq.commands.jobdata import DATA_BYTES
from tandemq.commands.push import BATCH_LIMIT
from tandemq.wires.bunqueue import bounds
from tandemq.wires.bunqueue.bounds import ECHOED, SMALL, TIED, VALUES
from tandemq.wires.bunqueue.session import Refusal, Session


def request(cmd: str, field: str, raw: bytes, **fields: Any) -> bytes:
    """The body of a request, one field of which is spelled out in bytes."""
    known = {"cmd": cmd, "reqId": "r", **fields}
    known.pop(field, None)
    parts = b"".join(msgpack.packb(part) for pair in known.items() for part in pair)
    return bytes((0x80 | len(known) + 1,)) + parts + msgpack.packb(field) + raw


def read(body: bytes) -> Any:
    (item,) = Session().receive(frame(body))
    return item


def name_of(request: Any) -> str:
    """The command of a request, in whichever of its shapes it was read."""
    name: str = request.__struct_config__.tag
    return name


def told(item: Any) -> dict[str, Any]:
    assert isinstance(item, Refusal), type(item)
    answer: dict[str, Any] = msgpack.unpackb(Session().refuse(item.error, item.req)[4:])
    assert answer.pop("ok") is False
    return answer


def many(count: int, member: bytes = b"\x90") -> bytes:
    return b"\xdd" + count.to_bytes(4, "big") + member * count


def text(size: int) -> bytes:
    return b"\xdb" + size.to_bytes(4, "big") + b"a" * size


FIELDS = [
    (cmd, field)
    for cmd, row in sorted(COMMANDS.items())
    for field in row.request.__struct_encode_fields__
]
SMALL_FIELDS = [(cmd, field) for cmd, field in FIELDS if field not in COMMANDS[cmd].large]
LARGE_FIELDS = [(cmd, field) for cmd, field in FIELDS if field in COMMANDS[cmd].large]


def test_only_what_holds_users_data_or_many_members_may_be_large() -> None:
    assert {field for _, field in LARGE_FIELDS} == {
        "data", "result", "error", "stack", "jobs", "ids", "results", "tokens",
        "removeOnCompletes",
    }  # fmt: skip
    for cmd, row in COMMANDS.items():
        assert row.large <= set(row.request.__struct_encode_fields__), cmd


@pytest.mark.parametrize("raw", [text(SMALL + 1), many(SMALL + 1)], ids=["text", "lists"])
@pytest.mark.parametrize(("cmd", "field"), SMALL_FIELDS)
def test_a_field_without_users_data_is_small(cmd: str, field: str, raw: bytes) -> None:
    answer = told(read(request(cmd, field, raw)))
    assert answer["error"].startswith(cmd)
    assert "is too large" in answer["error"]
    assert answer["reqId"] == (UNDEFINED if field == "reqId" else "r")


BATCHES = {"PUSHB", "PUSHF"}  # their other fields are looked at only where they are longer


@pytest.mark.parametrize(("cmd", "field"), [row for row in SMALL_FIELDS if row[0] not in BATCHES])
def test_a_field_without_users_data_holds_few_values(cmd: str, field: str) -> None:
    answer = told(read(request(cmd, field, many(VALUES + 1))))
    assert answer["error"].endswith(f"of more than {VALUES} values is too large")


@pytest.mark.parametrize(("cmd", "field"), SMALL_FIELDS)
def test_what_is_read_of_such_a_frame_takes_no_memory(cmd: str, field: str) -> None:
    data = frame(request(cmd, field, many(SMALL + 1)))
    tracemalloc.start()
    try:
        Session().receive(data)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * len(data)


LONG = text(2 * SMALL)
LARGE: dict[tuple[str, str], tuple[bytes, dict[str, Any]]] = {
    ("PUSH", "data"): (LONG, {"queue": "q"}),
    ("Update", "data"): (LONG, {"id": "j"}),
    ("Cron", "data"): (LONG, {"name": "n"}),
    ("RetryDlq", "data"): (LONG, {"queue": "q"}),
    ("ACK", "result"): (LONG, {"id": "j"}),
    ("FAIL", "error"): (LONG, {"id": "j"}),
    ("FAIL", "stack"): (b"\x91" + LONG, {"id": "j"}),
    ("PUSHB", "jobs"): (b"\x91\x81\xa4data" + LONG, {"queue": "q"}),
    ("PUSHF", "jobs"): (
        b"\x91\x83\xa2id\xa1a\xa5queue\xa1q\xa5input\x81\xa4data\x81\xa1a" + LONG, {},
    ),
    ("ACKB", "ids"): (many(BATCH_LIMIT, b"\xb0" + b"j" * 16), {}),
    ("ACKB", "tokens"): (many(BATCH_LIMIT, b"\xb0" + b"t" * 16), {"ids": []}),
    ("ACKB", "results"): (b"\x91" + LONG, {"ids": ["j"]}),
    ("ACKB", "removeOnCompletes"): (many(BATCH_LIMIT, b"\xc3"), {"ids": []}),
}  # fmt: skip


@pytest.mark.parametrize(("cmd", "field"), LARGE_FIELDS)
def test_a_field_that_may_be_large_is_read(cmd: str, field: str) -> None:
    raw, fields = LARGE[cmd, field]
    assert len(raw) > VALUES
    assert name_of(read(request(cmd, field, raw, **fields))) == cmd


@pytest.mark.parametrize("cmd", ["PUSH", "Update", "Cron", "RetryDlq"])
def test_data_that_no_json_text_of_the_limit_can_fill_is_not_looked_into(
    cmd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = request(cmd, "data", many(DATA_BYTES), queue="q", id="j", name="n")
    monkeypatch.setattr("tandemq.model.leaves.survey", None)
    monkeypatch.setattr("tandemq.wires.bunqueue.opaque._decode_plain", None)
    assert told(read(body)) == {"error": "Job data too large (max 10MB)", "reqId": "r"}


@pytest.mark.parametrize("name", ["Nope", "push"])
def test_a_large_frame_of_an_unknown_command_is_not_read(name: str) -> None:
    answer = told(read(request(name, "data", many(VALUES + 1))))
    assert answer == {"error": f"Unknown command: {name}", "reqId": "r"}


def test_a_request_id_is_repeated_to_the_sender_of_such_a_frame_if_it_is_short() -> None:
    for size, repeated in ((ECHOED - 9, True), (ECHOED + 9, False)):
        body = request("Ping", "surplus", many(SMALL), reqId="r" * size)
        assert (told(read(body))["reqId"] == "r" * size) == repeated


@pytest.mark.parametrize("field", ["dependsOn", "childrenIds", "tags"])
@pytest.mark.parametrize("cmd", ["PUSHB", "PUSHF"])
def test_the_lists_of_all_jobs_of_a_frame_are_counted_together(cmd: str, field: str) -> None:
    def batch(count: int) -> bytes:
        lists = msgpack.packb(field) + many(count // 8, b"\xa1a")
        job = b"\x82\xa4data\x80" + lists
        if cmd == "PUSHF":
            jobs = (
                b"\x83\xa2id\xa1" + b"%d" % n + b"\xa5queue\xa1q\xa5input" + job for n in range(8)
            )
            return request(cmd, "jobs", b"\x98" + b"".join(jobs))
        return request(cmd, "jobs", b"\x98" + job * 8, queue="q")

    assert name_of(read(batch(TIED))) == cmd
    told_of = told(read(batch(TIED + 8)))
    assert told_of["error"] == f"{cmd}: more than {TIED} dependencies, children and tags"


def test_too_many_jobs_are_counted_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bodies = {
        "PUSHB takes at most 100000 jobs; send 1100000 in parts": request(
            "PUSHB", "jobs", many(1_100_000, b"\x80"), queue="q"
        ),
        "flow exceeds the 10000 job limit": request("PUSHF", "jobs", many(1_100_000, b"\x80")),
    }
    monkeypatch.setattr("tandemq.wires.bunqueue.session._decode", None)
    for words, body in bodies.items():
        assert told(read(body))["error"] == words


@pytest.mark.parametrize("field", ["jobId", "uniqueKey", "name", "parentId", "zzz"])
def test_a_frame_that_only_the_tolerant_reader_can_read_has_small_fields_too(field: str) -> None:
    odd = b"\x84\x05\x06\xa3cmd\xa4PUSH\xa5queue\xa1q" + msgpack.packb(field)
    assert bounds.head(odd + text(SMALL + 1)) is None
    answer = told(read(odd + text(SMALL + 1)))
    assert answer["error"] == f"PUSH: the field {field} is too large (max {SMALL})"
