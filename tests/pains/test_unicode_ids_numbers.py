"""Reports of ids, texts and values that one place took and the next one did not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import pytest
from tests.support.server import Server, is_own
from tests.support.wire import Wire, frame

STORES = ("file", "memory") if is_own() else ("file",)


@pytest.fixture(params=STORES)
def kept(request: pytest.FixtureRequest, new_server: Callable[..., Server]) -> Server:
    """A server on each kind of store."""
    server = new_server()
    if request.param == "memory":
        server.data = Path("memory")
    return server.start()


IDS = [
    "123",
    "00123",
    "a:b",
    "a/b",
    "..",
    ".",
    "%2e%2e",
    "?a=b#c",
    " a ",
    "x" * 256,
    "zoë ☃ 𝄞",
    "\u202ertl",
    "e\u0301",
    "\u00e9",
    "nul\0nul",
    "__proto__",
    "null",
]


def test_an_id_is_found_by_its_exact_text_and_by_nothing_else(kept: Server, queue: str) -> None:
    with kept.connect() as wire:
        for n, job_id in enumerate(IDS):
            assert wire.push(queue, n, jobId=job_id) == job_id
            assert wire.push(queue, "again", jobId=job_id) == job_id
        assert wire.counts(queue) == {"waiting": len(IDS)}
        for n, job_id in enumerate(IDS):
            assert wire.do("GetJob", id=job_id)["job"]["data"] == n
            assert wire.do("GetJobByCustomId", customId=job_id)["job"]["id"] == job_id
        assert [job["id"] for job in wire.jobs(queue)] == IDS
        for job_id in IDS:
            answer = wire.pull(queue)
            assert answer["job"]["id"] == job_id
            wire.do("ACK", id=job_id, token=answer["token"])
        assert set(wire.states(IDS)) == {"completed"}
    if kept.data != Path("memory"):
        kept.kill()
        kept.start()
        with kept.connect() as wire:
            assert set(wire.states(IDS)) == {"completed"}


@pytest.mark.parametrize("number", [123, -5, 2.0**40])
def test_a_number_as_id_is_its_digits(wire: Wire, queue: str, number: float) -> None:
    digits = str(int(number))
    assert wire.push(queue, 1, jobId=number) == digits
    assert wire.push(queue, 2, jobId=digits) == digits
    assert wire.do("GetJob", id=digits)["job"]["data"] == 1
    wire.do("Cancel", id=digits)


TEXTS = {
    "NUL": "a\0b",
    "right to left": "a\u202eb",
    "beyond the basic plane": "😀𝄞",
    "not a character": "\uffff\ufdd0",
    "combining": "e\u0301 \u00e9",
    "line ends": "\r\n\u2028\u2029",
}


def test_a_text_is_kept_exactly_wherever_a_job_has_one(kept: Server, queue: str) -> None:
    ids = {}
    with kept.connect() as wire:
        for name, text in TEXTS.items():
            data = {"text": text, text: [text]}
            options = {"name": text, "tags": [text], "uniqueKey": text, "groupId": "g" + name}
            job_id = wire.push(queue, data, durable=True, **options)
            answer = wire.pull(queue, group={"affinity": "g" + name})
            assert answer["job"]["id"] == job_id
            wire.do("AddLog", id=job_id, message=text)
            wire.do("Progress", id=job_id, progress=1, message=text)
            wire.do("ACK", id=job_id, token=answer["token"], result=text)
            ids[name] = job_id
    if kept.data != Path("memory"):
        kept.stop()
        kept.start()
    with kept.connect() as wire:
        for name, text in TEXTS.items():
            job = wire.do("GetJob", id=ids[name])["job"]
            assert job["data"] == {"text": text, text: [text]}
            assert (job["name"], job["tags"], job["uniqueKey"]) == (text, [text], text)
            assert (job["progressMessage"], job["returnvalue"]) == (text, text)


@pytest.mark.parametrize("name", sorted({**TEXTS, "blank": " ", "slash": "a/b"}))
def test_a_queue_name_with_odd_characters_is_refused_in_clear_words(
    kept: Server, name: str
) -> None:
    text = {**TEXTS, "blank": " ", "slash": "a/b"}[name]
    with kept.connect() as wire:
        for command in ("PUSH", "PULL"):
            answer = wire.ask(command, queue=text, data=1)
            assert answer["error"] == "Queue name contains invalid characters"
        assert wire.ping()


def test_half_of_a_surrogate_pair_gets_one_answer_from_every_store(
    kept: Server, queue: str
) -> None:
    with kept.connect() as wire:
        body = msgpack.packb({"cmd": "PUSH", "queue": queue, "reqId": "half"})
        raw = b"\x84" + body[1:] + msgpack.packb("data") + b"\xa3\xed\xa0\x80"
        wire.send_raw(frame(raw))
        assert wire.receive("half")["ok"] is True
        assert wire.pull(queue)["job"]["data"] == "\ufffd" * 3, "made readable"
        assert wire.unreadable == 0


VALUES: dict[str, Any] = {
    "bytes": b"\x00\xff" * 10,
    "no bytes": b"",
    "a moment": msgpack.Timestamp(1_700_000_000, 5),
    "the largest whole number of a JavaScript peer": 2.0**53 - 1,
    "the smallest": -(2.0**53) + 1,
    "a small fraction": 5e-324,
    "a large number": 1.7976931348623157e308,
    "minus zero": -0.0,
    "an empty key": {"": {"": ""}},
}


@pytest.mark.parametrize("name", sorted(VALUES))
def test_a_value_comes_back_as_it_went(wire: Wire, queue: str, name: str) -> None:
    value = VALUES[name]
    job_id = wire.push(queue, value)
    answer = wire.pull(queue)
    assert answer["job"]["data"] == value
    wire.do("ACK", id=job_id, token=answer["token"], result=value)
    assert wire.do("GetResult", id=job_id)["result"] == value


@pytest.mark.parametrize("bits", [b"\xcf" + b"\xff" * 8, b"\xd3" + b"\x80" + b"\x00" * 7])
def test_a_number_that_no_javascript_peer_reads_is_refused_when_it_is_pushed(
    wire: Wire, queue: str, bits: bytes
) -> None:
    body = msgpack.packb({"cmd": "PUSH", "queue": queue, "reqId": "wide"})
    wire.send_raw(frame(b"\x84" + body[1:] + msgpack.packb("data") + b"\x91" + bits))
    assert wire.receive("wide")["error"] == "Job data must be JSON serializable"
    assert wire.counts(queue) == {}
