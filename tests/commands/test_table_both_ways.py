"""A request means the same whichever path reads it: fast and typed, or tolerant."""

from __future__ import annotations

from typing import Any

import msgpack
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.commands.desk import NOW, WAYS, Desk
from tests.support.wire import wire_form

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31 - 1) | st.floats(allow_nan=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
SPANS = st.integers(0, 86_400_000) | st.floats(0, 86_400_000) | st.none()
FLAGS = st.booleans() | st.none()
LOOSE = st.integers(-5, 5000) | st.floats() | st.none()
IDS = st.sampled_from(["a", "b", "c"])
ANY_ID = IDS | st.none() | st.integers(-5, 5) | st.text(max_size=3)

OPTIONS = {
    "data": VALUES,
    "name": st.text(min_size=1, max_size=8),
    "priority": st.integers(-1_000_000, 1_000_000) | st.sampled_from([2.0, None]),
    "delay": SPANS,
    "maxAttempts": st.integers(1, 1000) | st.none(),
    "backoff": SPANS | st.fixed_dictionaries(
        {"type": st.sampled_from(["fixed", "exponential"]), "delay": st.integers(0, 5000)}
    ),
    "ttl": SPANS,
    "timeout": SPANS,
    "lifo": FLAGS,
    "durable": FLAGS,
    "removeOnComplete": FLAGS,
    "removeOnFail": FLAGS,
    "timestamp": st.integers(0, 2**40) | st.floats() | st.none(),
    "tags": st.lists(st.text(max_size=3), max_size=3) | st.none(),
    "stallTimeout": LOOSE,
    "stackTraceLimit": LOOSE,
    "keepLogs": LOOSE,
    "sizeLimit": LOOSE.filter(lambda limit: not limit or not 0 < limit < 1000),
    "maxStalls": st.integers(0, 1000) | st.sampled_from([2.0, None]),
    "maxInterruptions": st.integers(0, 1000) | st.none(),
    "customId": IDS | st.none(),
    "surplus": VALUES,
}  # fmt: skip
JOB = st.fixed_dictionaries({}, optional=OPTIONS)
PULL = {
    "timeout": st.integers(0, 60_000) | st.floats(0, 60_000) | st.none(),
    "owner": st.sampled_from([None, "", "w", 0, 1, True]),
    "lockTtl": LOOSE,
}
COUNTS = st.integers(1, 1000) | st.sampled_from([2.0, None])
QUEUE = st.sampled_from(["q", "r", "s"])
TOKEN = {"token": st.none() | st.text(max_size=3)}

COMMANDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "PUSH": ({"queue": QUEUE}, {**OPTIONS, "jobId": IDS | st.none()}),
    "PUSHB": ({"queue": QUEUE, "jobs": st.lists(JOB, max_size=4)}, {}),
    "PULL": ({"queue": QUEUE}, {**PULL, "detach": FLAGS}),
    "PULLB": ({"queue": QUEUE}, {**PULL, "count": COUNTS}),
    "ACK": ({"id": ANY_ID}, {**TOKEN, "result": VALUES, "removeOnComplete": FLAGS}),
    "ACKB": ({"ids": st.lists(IDS, max_size=3)}, {"tokens": st.lists(TOKEN["token"], max_size=3)}),
    "FAIL": (
        {"id": ANY_ID},
        {
            **TOKEN,
            "error": st.none() | st.text(max_size=5),
            "stack": VALUES,
            "unrecoverable": FLAGS,
            "removeOnFail": FLAGS,
        },
    ),
    "ExtendLock": ({"id": ANY_ID}, {**TOKEN, "duration": LOOSE}),
    "ExtendLocks": (
        {name: st.lists(VALUES, max_size=3) for name in ("ids", "tokens", "durations")}, {},
    ),
    "JobHeartbeat": ({"id": ANY_ID}, {**TOKEN, "duration": LOOSE}),
    "JobHeartbeatB": ({"ids": st.lists(IDS)}, {"tokens": VALUES}),
    "Progress": ({"id": ANY_ID}, {"progress": LOOSE, "message": VALUES}),
    "AddLog": ({"id": ANY_ID}, {"message": VALUES, "level": VALUES}),
    "GetLogs": ({"id": ANY_ID}, {"start": LOOSE, "end": LOOSE}),
    "GetJob": ({"id": ANY_ID}, {}),
    "Explain": ({"id": VALUES}, {}),
    "GetState": ({"id": VALUES}, {}),
    "GetResult": ({"id": VALUES}, {}),
    "GetJobs": (
        {"queue": QUEUE},
        {"state": VALUES, "offset": LOOSE, "limit": LOOSE, "asc": VALUES},
    ),
    "GetJobCounts": ({"queue": QUEUE}, {}),
    "Pause": ({"queue": QUEUE}, {}),
    "Resume": ({"queue": QUEUE}, {}),
    "RegisterWorker": (
        {"workerId": IDS},
        {"name": VALUES, "queues": VALUES, "concurrency": LOOSE, "pid": LOOSE, "hostname": VALUES},
    ),
    "Heartbeat": ({"id": ANY_ID}, {"activeJobs": LOOSE, "processed": VALUES}),
    "ListWorkers": ({}, {}),
    "Stats": ({}, {"details": FLAGS}),
}  # fmt: skip


def request(cmd: str) -> st.SearchStrategy[dict[str, Any]]:
    needed, optional = COMMANDS[cmd]
    return st.fixed_dictionaries(
        {"cmd": st.just(cmd), **needed}, optional={"reqId": VALUES, **optional}
    )


REQUESTS = st.sampled_from([*COMMANDS, "PUSH", "PUSH", "PULL", "PULL"]).flatmap(request)


@settings(max_examples=400, deadline=None)
@given(st.lists(REQUESTS, max_size=12))
def test_a_history_read_on_either_path_gives_the_same_answers_and_the_same_jobs(
    requests: list[dict[str, Any]],
) -> None:
    desks = [Desk(way) for way in WAYS]
    for fields in requests:
        body = msgpack.packb(wire_form(fields), use_bin_type=True)
        said = [desk.hand_in(body) for desk in desks]
        assert said[0] == said[1], fields
    late = [[(conn, answer) for conn, answer in desk.told()] for desk in desks]
    assert repr(late[0]) == repr(late[1])
    typed, tolerant = (desk.engine.messages for desk in desks)
    assert typed == tolerant


@settings(max_examples=300, deadline=None)
@given(JOB, st.sampled_from([1, "r", None, [1]]))
def test_a_push_read_on_either_path_is_kept_alike(job: dict[str, Any], req: Any) -> None:
    body = msgpack.packb(wire_form({"cmd": "PUSH", "queue": "q", "reqId": req, **job}))
    shown = []
    for way in WAYS:
        desk = Desk(way)
        requests = desk.read(body)
        assert msgpack.unpackb(bytes(requests.req_id)) == req
        desk.hand_in(body)
        (m,) = desk.engine.messages.values()
        assert m.created == NOW or job.get("timestamp") is not None
        shown.append((m.id, m.name, m.body, m.created, m.due, m.priority, m.options, m.state))
    assert shown[0] == shown[1]
