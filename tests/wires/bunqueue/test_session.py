"""One connection's protocol: what a request must be, how it is answered, however it is cut."""

from __future__ import annotations

import struct
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from tests.support.wire import UNDEFINED, frame, packed

from tandemq.commands.access import Hello, Ping
from tandemq.commands.all import COMMANDS
from tandemq.commands.call import (
    Buried,
    Data,
    Flowed,
    Found,
    Listed,
    Pulled,
    Pushed,
    PushedMany,
    Result,
)
from tandemq.commands.plain import PlainFlow, PlainPush, PlainPushMany
from tandemq.commands.pull import COUNT_LIMIT
from tandemq.commands.push import Job, Push, PushMany
from tandemq.commands.pushf import JOB_LIMIT, PushFlow
from tandemq.model.errors import BadRequest, Malformed, RateLimited
from tandemq.model.message import Lease, Links, Message, Run, State
from tandemq.wires.bunqueue import session
from tandemq.wires.bunqueue.session import MAX_FRAME, Refusal, Session

INVALID_FORMAT = "Invalid command format"
INVALID = "Invalid command"


def only(body: bytes) -> Any:
    (item,) = Session().receive(frame(body))
    return item


def told(refusal: Refusal) -> dict[str, Any]:
    return answer(Session().refuse(refusal.error, refusal.req))


def answer(said: bytes) -> dict[str, Any]:
    assert struct.unpack(">I", said[:4]) == (len(said) - 4,)
    found: dict[str, Any] = msgpack.unpackb(said[4:], strict_map_key=False)
    return found


# -- what a request must be ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b"",  # a frame of no length
        b"\xc0",
        b"\xc2",
        b"\xa0",
        b"\xd9\x00",
        b"\xd4\x00\x00",  # undefined
        b"\x00",  # the number 0
        b"\xcb" + bytes(8),
        b"\xcb\x7f\xf8" + bytes(6),  # not a number
        b"\x81\xa3cmd",  # cut off
        b"\x81\xa3cmd\xa9short",
        b"\xdd\xff\xff\xff\xff",
        b"\xdf\xff\xff\xff\xff",
        b"\xa5ab",
        b"\x81\xa3cmd\xa4Ping\x00",  # something is left over
        b"\x81\xa3cmd\xa4Ping" * 2,
        b"\xc0\xc0",
        b"\x81\x80\x01",  # a map as a key
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_what_is_no_command_at_all_is_told_so(body: bytes) -> None:
    refusal = only(body)
    assert (refusal.formed, refusal.error.fatal) == (False, False)
    assert told(refusal) == {"ok": False, "error": INVALID_FORMAT, "reqId": UNDEFINED}


@pytest.mark.parametrize(
    "value",
    [
        5,
        -1,
        1.5,
        "Ping",
        True,
        [],
        [{"cmd": "Ping"}],
        {},
        {"cmd": None},
        {"cmd": ""},
        {"cmd": 0},
        {"cmd": False},
        {"cmd": float("nan")},
        {"cmd": UNDEFINED},
        {"Cmd": "Ping"},
        b"Ping",
    ],
)
def test_a_value_without_a_command_is_told_so(value: Any) -> None:
    refusal = only(msgpack.packb(value))
    assert not refusal.formed
    assert told(refusal) == {"ok": False, "error": INVALID, "reqId": UNDEFINED}


def test_the_reserved_byte_is_no_command() -> None:
    assert told(only(b"\xc1"))["error"] == INVALID


@pytest.mark.parametrize(
    ("req", "echoed"),
    [("r", "r"), ("", ""), (5, None), (True, None), (None, None), ([1], None), ({"a": 1}, None)],
)
def test_a_map_without_a_command_has_its_request_id_repeated_if_it_is_a_text(
    req: Any, echoed: Any
) -> None:
    seen = told(only(msgpack.packb({"reqId": req})))
    assert seen == {
        "ok": False,
        "error": INVALID,
        "reqId": UNDEFINED if echoed is None else echoed,
    }


@pytest.mark.parametrize(
    ("cmd", "name"),
    [
        ("Nope", "Nope"),
        ("ping", "ping"),
        ("PING", "PING"),
        ("Ping ", "Ping "),
        ("\0", "\0"),
        ("__proto__", "__proto__"),
        ("x" * 300, "x" * 300),
        (5, "5"),
        (1.5, "1.5"),
        (True, "true"),
        (["PUSH"], "PUSH"),
        (["a", "b"], "a,b"),
        ({}, "[object Object]"),
        (b"Ping", "Ping"),
    ],
)
@pytest.mark.parametrize("req", ["r", 5, None, [1], {"a": 1}, False])
def test_an_unknown_command_is_named_and_any_request_id_repeated(
    cmd: Any, name: str, req: Any
) -> None:
    refusal = only(msgpack.packb({"cmd": cmd, "reqId": req}))
    assert refusal.formed
    assert told(refusal) == {"ok": False, "error": f"Unknown command: {name}", "reqId": req}


def test_bad_fields_of_a_known_command_are_a_formed_refusal() -> None:
    refusal = only(msgpack.packb({"cmd": "PUSH", "queue": None, "reqId": 7}))
    assert refusal.formed
    assert isinstance(refusal.error, BadRequest)
    assert told(refusal) == {"ok": False, "error": "Queue name is required", "reqId": 7}


# -- every legal encoding ------------------------------------------------------------------------

PING = [
    b"\x81\xa3cmd\xa4Ping",
    b"\xde\x00\x01\xa3cmd\xa4Ping",
    b"\xdf\x00\x00\x00\x01\xa3cmd\xa4Ping",
    b"\x81\xd9\x03cmd\xd9\x04Ping",
    b"\x81\xda\x00\x03cmd\xda\x00\x04Ping",
    b"\x81\xdb\x00\x00\x00\x03cmd\xdb\x00\x00\x00\x04Ping",
    b"\x82\x05\x06\xa3cmd\xa4Ping",
    b"\x82\xa3cmd\xa4Nope\xa3cmd\xa4Ping",
    b"\x82\xa3cmd\xa4Ping\xa9__proto__\x81\xa1a\x01",
    b"\x82\xa1\xff\xa1\xff\xa3cmd\xa4Ping",
    b"\x82\xa3cmd\xa4Ping\xa4more\xca\x3f\x80\x00\x00",
    b"\x82\xa3cmd\xa4Ping\xa4more\xd6\xff\x00\x00\x00\x01",
    b"\x82\xa3cmd\xa4Ping\xd4\x00\x00\x01",
]


@pytest.mark.parametrize("body", PING)
def test_any_legal_encoding_of_a_command_is_read(body: bytes) -> None:
    assert type(only(body)) is Ping


@pytest.mark.parametrize("undefined", [b"\xd4\x00\x00", b"\xd4\x00\x07", b"\xc7\x00\x00"])
@pytest.mark.parametrize("field", ["priority", "delay", "backoff", "lifo", "jobId", "tags", "name"])
def test_an_undefined_field_is_absent(field: str, undefined: bytes) -> None:
    body = b"\x83\xa3cmd\xa4PUSH\xa5queue\xa1q" + msgpack.packb(field) + undefined
    item = only(body)
    assert type(item) is Push
    assert not isinstance(item.name, str)
    assert (item.priority, item.max_attempts, item.backoff) == (0, 3, 1000)


def test_undefined_data_stays_undefined() -> None:
    item = only(b"\x83\xa3cmd\xa4PUSH\xa5queue\xa1q\xa4data\xd4\x00\x00")
    assert bytes(item.data) == b"\xd4\x00\x00"


def test_user_data_is_passed_on_byte_for_byte() -> None:
    data = b"\xdf\x00\x00\x00\x01\xdb\x00\x00\x00\x01k\xcd\x00\x05"
    for odd in (b"", b"\xa1\xff\x01"):  # the second needs the tolerant path
        head = bytes((0x83 + bool(odd),))
        item = only(head + odd + b"\xa3cmd\xa4PUSH\xa5queue\xa1q\xa4data" + data)
        assert bytes(item.data) == data


# -- request ids ---------------------------------------------------------------------------------

REQ_IDS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False)
    | st.text(max_size=40) | st.binary(max_size=9),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)  # fmt: skip


@given(REQ_IDS, st.sampled_from(["Ping", "PULL", "Nope", "PUSH"]))
def test_a_request_id_of_any_kind_is_repeated(req: Any, cmd: str) -> None:
    item = only(msgpack.packb({"cmd": cmd, "queue": "q", "priority": "x", "reqId": req}))
    found = told(item) if isinstance(item, Refusal) else answer(Session().answer(None, item.req_id))
    assert found["reqId"] == req


def test_an_absent_request_id_is_undefined() -> None:
    for item in (only(PING[0]), only(b"\x82\xa3cmd\xa4Ping\xa5reqId\xd4\x00\x00")):
        assert answer(Session().answer(None, item.req_id))["reqId"] == UNDEFINED


@pytest.mark.parametrize("cmd", [b"\xa4Ping", b"\xa4Nope"])
@pytest.mark.parametrize(
    "req", [b"\xc1", b"\x91\xc1", b"\x91\xd4\0\0", b"\x91" * 500 + b"\xc0", b"\xcf" + b"\x7f" * 8]
)
def test_a_request_id_beyond_reason_spoils_nothing(cmd: bytes, req: bytes) -> None:
    item = only(b"\x82\xa3cmd" + cmd + b"\xa5reqId" + req)
    said = told(item) if isinstance(item, Refusal) else answer(Session().answer(None, item.req_id))
    assert "reqId" in said


# -- frames --------------------------------------------------------------------------------------

STREAM = [
    packed({"cmd": "Ping", "reqId": "a"}),
    packed({"cmd": "PUSH", "queue": "q", "data": {"x": "y" * 300}}),
    frame(b""),
    packed({"cmd": "Nope"}),
    packed({"cmd": "Hello"}),
    frame(b"\xff"),
]


def kinds(items: list[Any]) -> list[type]:
    return [type(item.error) if isinstance(item, Refusal) else type(item) for item in items]


@given(st.lists(st.integers(0, len(b"".join(STREAM))), max_size=12))
def test_frames_are_found_in_any_cut(cuts: list[int]) -> None:
    data, session, items = b"".join(STREAM), Session(), []
    for start, stop in zip([0, *sorted(cuts)], [*sorted(cuts), len(data)], strict=True):
        items += session.receive(data[start:stop])
    assert kinds(items) == kinds(Session().receive(data))
    assert not session.mid_frame


def test_bytes_may_come_one_by_one() -> None:
    session, items = Session(), []
    data = b"".join(STREAM)
    for n in range(len(data)):
        items += session.receive(data[n : n + 1])
    assert len(items) == len(STREAM)


def test_several_frames_of_one_read_come_in_their_order() -> None:
    items = Session().receive(b"".join(STREAM))
    assert kinds(items)[0:2] == [Ping, PlainPush]
    assert kinds(items)[4] is Hello
    assert bytes(items[0].req_id) == b"\xa1a"


ASKED = {
    "priority": 5, "delay": 5, "maxAttempts": 5, "backoff": 5, "ttl": 5, "timeout": 5,
    "jobId": "five", "customId": "five", "lifo": True, "durable": True, "removeOnComplete": True,
    "removeOnFail": True, "timestamp": 5, "tags": ["five"], "stallTimeout": 5,
    "stackTraceLimit": 5, "keepLogs": 5, "sizeLimit": 5, "groupId": "five", "groupMaxSize": 5,
    "cost": 5, "maxStalls": 5, "maxInterruptions": 5, "uniqueKey": "five", "dedup": {"ttl": 5},
    "debounceId": "five", "debounceTtl": 5, "dependsOn": ["five"], "parentId": "five",
    "childrenIds": ["five"], "failParentOnFailure": True, "continueParentOnFailure": True,
    "ignoreDependencyOnFailure": True, "removeDependencyOnFailure": True,
    "cascadeOnFailure": True, "failOnRemoval": True, "repeat": {"every": 5},
}  # fmt: skip


def test_everything_a_job_may_ask_for_is_tried() -> None:
    known = set(Job.__struct_encode_fields__) - {"data", "name", "reqId", "backoffType"}
    assert set(ASKED) == known


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("more", [{}, {"name": "n"}, {"name": "n", "reqId": "r"}])
def test_what_a_push_of_few_fields_asks_for_is_heard(name: str, more: dict[str, Any]) -> None:
    bare = getattr(Job(), field := Job.__struct_fields__[Job.__struct_encode_fields__.index(name)])
    fields = {"data": {}, name: ASKED[name], **more}
    one = only(msgpack.packb({"cmd": "PUSH", "queue": "q", **fields}))
    assert type(one) is Push
    assert getattr(one, field) not in (bare, None)
    jobs = [{"data": {}}, {"name": "n"}, {key: fields[key] for key in fields if key != "reqId"}]
    many = only(msgpack.packb({"cmd": "PUSHB", "queue": "q", "jobs": jobs}))
    assert type(many) is PushMany
    assert [getattr(job, field) == bare for job in many.jobs] == [True, True, False]


KINSHIP = ("parentId", "dependsOn", "childrenIds")


@pytest.mark.parametrize("name", ASKED)
def test_what_a_member_of_a_flow_asks_for_is_heard(name: str) -> None:
    fields = {"data": {}, "name": "n", name: ASKED[name]}
    jobs = [{"id": str(n), "queue": "q", "input": fields if n else {}} for n in range(3)]
    flow = only(msgpack.packb({"cmd": "PUSHF", "jobs": jobs, "reqId": "r"}))
    assert type(flow) is (PlainFlow if name in KINSHIP else PushFlow)
    field = Job.__struct_fields__[Job.__struct_encode_fields__.index(name)]
    bare = getattr(Job(), field)
    assert [getattr(job.input, field) == bare for job in flow.jobs] == [True, False, False]


def test_what_a_flow_as_a_whole_asks_for_is_heard() -> None:
    flow = only(msgpack.packb({"cmd": "PUSHF", "jobs": [], "onChildFailure": "ignore"}))
    assert (type(flow), flow.on_child_failure) == (PushFlow, "ignore")


@pytest.mark.parametrize("fields", [{}, {"data": 1}, {"name": "n"}, {"data": [], "name": "n"}])
def test_a_push_that_asks_for_nothing_is_known_as_such(fields: dict[str, Any]) -> None:
    one = {"cmd": "PUSH", "queue": "q", "reqId": 1, **fields}
    assert type(only(msgpack.packb(one))) is PlainPush
    many = {"cmd": "PUSHB", "queue": "q", "reqId": 1, "jobs": [fields, fields]}
    assert type(only(msgpack.packb(many))) is PlainPushMany


def test_part_of_a_frame_is_known_to_be_one() -> None:
    session = Session()
    for part in (STREAM[0][:2], STREAM[0][2:7]):
        assert session.receive(part) == []
        assert session.mid_frame
    assert len(session.receive(STREAM[0][7:] + STREAM[1][:1])) == 1
    assert session.mid_frame
    assert len(session.receive(STREAM[1][1:])) == 1
    assert not session.mid_frame


@pytest.mark.parametrize("size", [MAX_FRAME + 1, 2**32 - 1, 0x47455420])
def test_an_announcement_above_the_limit_is_refused_as_soon_as_it_is_known(size: int) -> None:
    session = Session()
    head = size.to_bytes(4, "big")
    assert session.receive(head[:3]) == []
    (refusal,) = session.receive(head[3:])
    assert refusal.error.fatal
    assert told(refusal) == {
        "ok": False,
        "error": f"Frame too large: {size} bytes exceeds maximum 67108864",
        "reqId": UNDEFINED,
    }


def test_an_announcement_at_the_limit_is_fine() -> None:
    session = Session()
    assert session.receive(MAX_FRAME.to_bytes(4, "big")) == []
    assert session.mid_frame
    small = Session(max_frame=100)
    assert kinds(small.receive(frame(b"\xc0" * 100))) == [Malformed]
    (refusal,) = small.receive((101).to_bytes(4, "big"))
    assert told(refusal)["error"] == "Frame too large: 101 bytes exceeds maximum 100"


def test_good_frames_before_an_oversized_one_are_still_read() -> None:
    items = Session().receive(STREAM[0] + STREAM[1] + b"\xff\xff\xff\xff" + STREAM[0])
    assert kinds(items)[:2] == [Ping, PlainPush]
    assert [item.error.fatal for item in items[2:]] == [True]


def test_after_an_oversized_announcement_no_request_is_read() -> None:
    session = Session()
    session.receive(b"GET / HTTP/1.1\r\n")
    assert not any(type(item) is Ping for item in session.receive(STREAM[0]))


@pytest.mark.parametrize("bug", [RecursionError(), KeyError("secret"), MemoryError()])
def test_a_bug_in_reading_a_frame_costs_that_frame_alone(
    bug: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = session.read

    def fail(frame: bytes) -> Any:
        if b"Hello" in frame:
            raise bug
        return read(frame)

    monkeypatch.setattr(session, "read", fail)
    ping, hello = STREAM[0], STREAM[4]
    items = Session().receive(ping + hello + ping)
    assert kinds(items) == [Ping, type(bug), Ping]
    assert told(items[1]) == {"ok": False, "error": "Internal server error", "reqId": UNDEFINED}


# -- answers -------------------------------------------------------------------------------------

REQ = Raw(b"\xa1r")


def message(id: str = "i", *, token: str | None = "t", data: bytes = b"\x01") -> Message:
    m = Message(id, "q", "n", data, 1, 5, 7, born=State.READY, state=State.LEASED)
    m.run = Run(started=6, heartbeat=6)
    m.lease = Lease(token, 9, 1, 1)
    return m


def said(reply: Any) -> dict[str, Any]:
    found = answer(Session().answer(reply, REQ))
    assert (found.pop("ok"), found.pop("reqId")) == (True, "r")
    return found


def test_answers_decode_to_what_the_specification_says() -> None:
    assert said(None) == {}
    assert said(Pushed("j")) == {"id": "j"}
    assert said(Pushed("é" * 300)) == {"id": "é" * 300}
    assert said(PushedMany(["a", "b"])) == {"ids": ["a", "b"]}
    assert said(Data({"n": 1})) == {"data": {"n": 1}}
    assert said({"count": 2**40}) == {"count": float(2**40)}
    assert said(Result("j", b"\x93\x01\x02\x03")) == {"id": "j", "result": [1, 2, 3]}
    assert said(Result("j", None)) == {"id": "j", "result": UNDEFINED}


def test_a_pull_is_answered_with_a_job_and_its_token_where_one_was_asked_for() -> None:
    assert said(Pulled([], False, False)) == {"job": None}
    assert said(Pulled([], False, True)) == {"job": None, "token": None}
    assert said(Pulled([], True, False)) == {"jobs": []}
    assert said(Pulled([], True, True)) == {"jobs": [], "tokens": []}
    one = said(Pulled([message()], False, True))
    assert (one["job"]["id"], one["token"]) == ("i", "t")
    many = said(Pulled([message(str(n)) for n in range(20)], True, True))
    assert [job["id"] for job in many["jobs"]] == [str(n) for n in range(20)]
    assert many["tokens"] == ["t"] * 20


def test_a_lease_that_ended_before_it_could_be_told_has_no_token() -> None:
    ended = message()
    ended.lease = None
    assert said(Pulled([ended], False, True))["token"] is None
    assert said(Pulled([ended], True, True))["tokens"] == [None]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 100])
def test_lists_of_any_length_can_be_told(count: int) -> None:
    messages = [message(str(n)) for n in range(count)]
    assert len(said(Listed(messages))["jobs"]) == count
    assert len(said(Pulled(messages, True, False))["jobs"]) == count


def test_the_largest_answers_to_a_pull_and_to_a_flow_can_be_told() -> None:
    pulled = said(Pulled([message()] * COUNT_LIMIT, True, True))
    assert (len(pulled["jobs"]), len(pulled["tokens"])) == (COUNT_LIMIT, COUNT_LIMIT)
    fresh = message()
    fresh.run = fresh.lease = None
    fresh.links = Links(depends_on=("a",))
    assert len(said(Flowed([fresh] * JOB_LIMIT))["data"]["jobs"]) == JOB_LIMIT


@pytest.mark.parametrize("buried", [False, True])
def test_a_list_too_large_for_a_frame_is_refused(buried: bool) -> None:
    large = [message(data=b"\xc6" + struct.pack(">I", 10 << 20) + bytes(10 << 20))] * 7
    for fits, messages in ((True, large[:3]), (False, large[:6] if buried else large)):
        reply = Buried([(m, {}) for m in messages]) if buried else Listed(messages)
        if fits:
            assert len(Session().answer(reply, REQ)) > 30 << 20
        else:
            with pytest.raises(BadRequest, match="ask for fewer jobs"):
                Session().answer(reply, REQ)


def test_a_reader_gets_state_and_outcome() -> None:
    job = said(Found(message()))["job"]
    assert (job["state"], job["returnvalue"], job["failedReason"]) == (
        "active",
        UNDEFINED,
        UNDEFINED,
    )
    assert "state" not in said(Found(message(), with_state=False))["job"]


def test_user_data_is_told_byte_for_byte() -> None:
    data = b"\xdf\x00\x00\x00\x01\xda\x00\x01k\xd6\xff\x00\x00\x00\x01"
    for reply in (Pulled([message(data=data)], False, False), Found(message(data=data))):
        assert b"\xa4data" + data in Session().answer(reply, REQ)


def test_a_refusal_that_is_no_error_of_ours_says_nothing() -> None:
    assert answer(Session().refuse(KeyError("secret"), REQ)) == {
        "ok": False,
        "error": "Internal server error",
        "reqId": "r",
    }
    assert answer(Session().refuse(RateLimited()))["reqId"] == UNDEFINED


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_is_recognised_by_its_name_alone(name: str) -> None:
    item = only(msgpack.packb({"cmd": name}))
    if isinstance(item, Refusal):
        assert item.formed
        assert "Unknown" not in told(item)["error"]
    else:
        assert type(item) is COMMANDS[name].request
