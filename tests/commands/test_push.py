"""PUSH and PUSHB: what they accept, what they default to, in which words they refuse."""

from __future__ import annotations

import math
from typing import Any

import msgpack
import pytest
from tests.commands.desk import NOW, Desk, packed, shown
from tests.hostile.commands import JOB, given, wrong_values
from tests.support.wire import UNDEFINED

from tandemq.commands import push as module
from tandemq.commands.jobdata import DATA_LIMIT
from tandemq.commands.push import Job
from tandemq.model.errors import BadRequest
from tandemq.stores.rows import encode_head
from tandemq.wires.bunqueue import outline

BAD_NAME = "Job name must be a non-empty string of at most 256 characters"
YEAR, DAY = 31_536_000_000, 86_400_000
WIDE = b"\xcf" + (5).to_bytes(8, "big")

RANGES: list[tuple[str, int, int, bool]] = [
    ("priority", -1_000_000, 1_000_000, True),
    ("delay", 0, YEAR, False),
    ("timeout", 0, DAY, False),
    ("maxAttempts", 1, 1000, True),
    ("backoff", 0, DAY, False),
    ("ttl", 0, YEAR, False),
]
DEFAULTS = {
    "priority": 0,
    "delay": None,
    "timeout": None,
    "maxAttempts": 3,
    "backoff": 1000,
    "ttl": None,
}


def refused_with(name: str) -> list[tuple[str, Any, str]]:
    low, high, whole = next((lo, hi, w) for n, lo, hi, w in RANGES if n == name)
    odd: list[Any] = ["5", True, False, [] if name != "backoff" else b"x"]
    found = [(name, value, f"{name} must be a number") for value in odd]
    found += [(name, v, f"{name} must be a finite number") for v in (math.nan, math.inf, -math.inf)]
    found += [(name, low - 1, f"{name} must be at least {low}")]
    found += [(name, high + 1, f"{name} must be at most {high}")]
    if whole:
        found += [(name, 1.5, f"{name} must be an integer")]
    else:
        found += [(name, low - 0.5, f"{name} must be at least {low}")]
    return found


NUMBERS = [row for name, *_ in RANGES for row in refused_with(name)]


@pytest.mark.parametrize(("name", "value", "words"), NUMBERS)
def test_a_number_out_of_order_is_refused_in_the_words_clients_match(
    desk: Desk, name: str, value: Any, words: str
) -> None:
    assert desk.refused("PUSH", queue="q", data=1, **{name: value}) == words
    jobs = [{"data": 1}, {"data": 1, name: value}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == f"jobs[1]: {words}"
    assert desk.do("Count", queue="q") == {"count": 0}


@pytest.mark.parametrize(("name", "low", "high", "whole"), RANGES)
def test_bounds_are_allowed_and_null_is_the_default(
    desk: Desk, name: str, low: int, high: int, whole: bool
) -> None:
    for value in (low, high, float(low), low + 1):
        job = desk.job(desk.push(**{name: value}))
        if name == "delay":
            assert job["runAt"] == NOW + value
        else:
            assert job[name] == value
    for options in ({}, {name: None}):
        job = desk.job(desk.push(**options))
        assert name == "delay" or job[name] == DEFAULTS[name]
        assert job["runAt"] == NOW


@pytest.mark.parametrize(("name", "low", "high", "whole"), RANGES)
def test_an_integer_of_64_bits_is_no_number(
    desk: Desk, name: str, low: int, high: int, whole: bool
) -> None:
    body = packed("PUSH", queue="q", data=1, **{name: 99})
    mark = msgpack.packb(name) + b"\x63"
    assert mark in body
    answer = shown(desk.hand_in(body.replace(mark, mark[:-1] + WIDE)))
    assert answer == {"ok": False, "error": f"{name} must be a number"}


def test_options_default_to_what_the_reference_has(desk: Desk) -> None:
    job = desk.job(desk.push())
    assert (job["name"], job["maxAttempts"], job["stackTraceLimit"]) == ("default", 3, 10)
    for name in ("lifo", "durable", "removeOnComplete", "removeOnFail"):
        assert job[name] is False
    for name in ("customId", "uniqueKey", "groupId", "backoffConfig", "stallTimeout", "keepLogs"):
        assert job[name] is None
    assert job["tags"] == job["dependsOn"] == []
    assert job["createdAt"] == job["runAt"] == NOW


# -- queue and name ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (None, "Queue name is required"),
        ("", "Queue name is required"),
        (True, "Queue name is required"),
        ("x" * 257, "Queue name too long (max 256 characters)"),
        ("a b", "Queue name contains invalid characters"),
        ("ä", "Queue name contains invalid characters"),
    ],
)
@pytest.mark.parametrize("cmd", ["PUSH", "PUSHB"])
def test_the_queue_must_have_a_good_name(desk: Desk, cmd: str, queue: Any, words: str) -> None:
    assert desk.refused(cmd, queue=queue, data=1, jobs=[{"data": 1}]) == words
    assert not desk.engine.queues


def test_a_queue_that_is_missing_is_required(desk: Desk) -> None:
    assert desk.refused("PUSH", data=1) == "Queue name is required"
    assert desk.refused("PUSHB", jobs=[]) == "Queue name is required"


def test_a_number_names_a_queue_by_its_digits(desk: Desk) -> None:
    desk.do("PUSH", queue=12_345_678, data=1)
    assert desk.do("ListQueues") == {"queues": ["12345678"]}


@pytest.mark.parametrize("name", [None, "", "x" * 257, 5, True, []])
def test_a_name_must_be_a_text_of_reasonable_length(desk: Desk, name: Any) -> None:
    assert desk.refused("PUSH", queue="q", data=1, name=name) == BAD_NAME
    jobs = [{"data": 1, "name": name}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == f"jobs[0]: {BAD_NAME}"


def test_the_name_that_older_clients_put_into_the_data_is_moved_out(desk: Desk) -> None:
    job = desk.job(desk.push(data={"name": "mail", "to": "x"}))
    assert (job["name"], job["data"]) == ("mail", {"to": "x"})
    job = desk.job(desk.push(data={"name": "mail", "to": "x"}, name="own"))
    assert (job["name"], job["data"]) == ("own", {"name": "mail", "to": "x"})
    job = desk.job(desk.push(data={"name": 5}))
    assert (job["name"], job["data"]) == ("default", {"name": 5})


def test_a_name_inside_the_data_has_the_same_limit(desk: Desk) -> None:
    long = {"name": "x" * 257}
    assert desk.refused("PUSH", queue="q", data=long) == BAD_NAME
    jobs = [{"data": 1}, {"data": long}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == f"jobs[1]: {BAD_NAME}"


# -- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data", [None, True, 0, -1, 1.5, "", "text", [], [1, [2]], {}, {"a": {"b": None}}, b"\x00\xff"]
)
def test_data_of_any_kind_comes_back(desk: Desk, data: Any) -> None:
    assert desk.job(desk.push(data=data))["data"] == data


def test_data_that_is_absent_stays_absent(desk: Desk) -> None:
    id = desk.do("PUSH", queue="q")["id"]
    assert "data" not in desk.job(id)
    (other,) = desk.do("PUSHB", queue="q", jobs=[{}])["ids"]
    assert "data" not in desk.job(other)


def test_data_has_a_limit_as_json_text(desk: Desk) -> None:
    fits = "x" * (DATA_LIMIT - 2)
    assert desk.push(data=fits)
    words = "Job data too large (max 10MB)"
    assert desk.refused("PUSH", queue="q", data=fits + "x") == words
    assert desk.refused("PUSHB", queue="q", jobs=[{"data": fits + "x"}]) == f"jobs[0]: {words}"


@pytest.mark.parametrize("before", [b"", b"\x91", b"\x81\xa1k", b"\x81\xa1k\x92\x01"])
def test_data_with_an_integer_of_64_bits_is_refused(desk: Desk, before: bytes) -> None:
    data = before + WIDE
    words = "Job data must be JSON serializable"
    one = b"\x83\xa3cmd\xa4PUSH\xa5queue\xa1q\xa4data" + data
    assert shown(desk.hand_in(one))["error"] == words
    many = b"\x83\xa3cmd\xa5PUSHB\xa5queue\xa1q\xa4jobs\x91\x81\xa4data" + data
    assert shown(desk.hand_in(many))["error"] == f"jobs[0]: {words}"


# -- order of checks -----------------------------------------------------------------------------

SPOILT: list[tuple[str, Any, str]] = [
    ("queue", "a b", "Queue name contains invalid characters"),
    ("priority", "x", "priority must be a number"),
    ("delay", -1, "delay must be at least 0"),
    ("timeout", -1, "timeout must be at least 0"),
    ("maxAttempts", 0, "maxAttempts must be at least 1"),
    ("backoff", -1, "backoff must be at least 0"),
    ("ttl", -1, "ttl must be at least 0"),
    ("name", "", BAD_NAME),
]


@pytest.mark.parametrize("first", range(len(SPOILT)))
def test_of_several_faults_the_first_in_the_order_of_the_reference_is_named(
    desk: Desk, first: int
) -> None:
    fields = {name: value for name, value, _ in SPOILT[first:]}
    assert desk.refused("PUSH", **{"queue": "q", "data": 1, **fields}) == SPOILT[first][2]


# -- back-off ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backoff", "words"),
    [
        ({}, "backoff.type must be 'fixed' or 'exponential'"),
        ([], "backoff.type must be 'fixed' or 'exponential'"),
        ({"type": "linear", "delay": 5}, "backoff.type must be 'fixed' or 'exponential'"),
        ({"type": ["fixed"], "delay": 5}, "backoff.type must be 'fixed' or 'exponential'"),
        ({"type": "fixed"}, "backoff.delay is required"),
        ({"type": "fixed", "delay": None}, "backoff.delay is required"),
        ({"type": "fixed", "delay": "5"}, "backoff.delay must be a number"),
        ({"type": "fixed", "delay": -1}, "backoff.delay must be at least 0"),
        ({"type": "exponential", "delay": DAY + 1}, f"backoff.delay must be at most {DAY}"),
    ],
)
def test_a_back_off_with_a_type_needs_both_its_parts(desk: Desk, backoff: Any, words: str) -> None:
    assert desk.refused("PUSH", queue="q", data=1, backoff=backoff) == words


@pytest.mark.parametrize("kind", ["fixed", "exponential"])
def test_a_back_off_with_a_type_shows_both_its_parts(desk: Desk, kind: str) -> None:
    job = desk.job(desk.push(backoff={"type": kind, "delay": 250}))
    assert (job["backoff"], job["backoffConfig"]) == (250, {"type": kind, "delay": 250})


# -- what nobody checks --------------------------------------------------------------------------

LOOSE = ["timestamp", "stallTimeout", "stackTraceLimit", "keepLogs", "sizeLimit"]


@pytest.mark.parametrize("name", LOOSE)
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "5", True, [], {}, 1e308, -1e308])
def test_a_number_that_nobody_checks_spoils_neither_answers_nor_the_store(
    desk: Desk, name: str, value: Any
) -> None:
    id = desk.push(**{name: value}, maxAttempts=1)
    assert encode_head(desk.engine.messages[id])
    assert desk.do("PULLB", queue="q", count=9)["jobs"][0]["id"] == id
    desk.later(60_000)
    assert desk.job(id)["stackTraceLimit"] in (10, 2**53, -(2**53))
    desk.later(YEAR)


@pytest.mark.parametrize("name", ["stallTimeout", "keepLogs", "sizeLimit"])
def test_a_number_that_nobody_checks_is_kept(desk: Desk, name: str) -> None:
    assert desk.job(desk.push(**{name: 7}))[name] == 7
    assert desk.job(desk.push(**{name: None}))[name] is None


def test_the_stack_trace_limit_is_a_whole_number(desk: Desk) -> None:
    assert desk.job(desk.push(stackTraceLimit=2.9))["stackTraceLimit"] == 2
    assert desk.job(desk.push(stackTraceLimit=0))["stackTraceLimit"] == 0


@pytest.mark.parametrize(("value", "kept"), [(True, True), (1, True), ("x", True), (None, False)])
@pytest.mark.parametrize("name", ["lifo", "durable", "removeOnComplete", "removeOnFail"])
def test_a_switch_is_whatever_is_true(desk: Desk, name: str, value: Any, kept: bool) -> None:
    assert desk.job(desk.push(**{name: value}))[name] is kept


def test_tags_are_the_texts_of_a_list(desk: Desk) -> None:
    assert desk.job(desk.push(tags=["a", "b"]))["tags"] == ["a", "b"]
    assert desk.job(desk.push(tags=["a", 5, None]))["tags"] == ["a"]
    assert desk.job(desk.push(tags="ab"))["tags"] == []


def test_a_job_may_be_back_dated_or_post_dated(desk: Desk) -> None:
    past = desk.job(desk.push(timestamp=NOW - 5000, delay=1000))
    assert (past["createdAt"], past["runAt"]) == (NOW - 5000, NOW - 4000)
    future = desk.job(desk.push(timestamp=NOW + 5000))
    assert (future["createdAt"], future["state"]) == (NOW + 5000, "delayed")


def test_a_delayed_job_becomes_ready_in_its_time(desk: Desk) -> None:
    id = desk.push(delay=1500)
    assert desk.state(id) == "delayed"
    desk.later(1499)
    assert desk.pull()["job"] is None
    desk.later(1)
    assert desk.pull()["job"]["id"] == id


def test_a_job_past_its_time_to_live_is_not_handed_out(desk: Desk) -> None:
    id = desk.push(ttl=100)
    desk.later(101)
    assert desk.pull()["job"] is None
    assert desk.state(id) == "unknown"


@pytest.mark.parametrize("name", ["dependsOn", "childrenIds", "tags"])
def test_an_empty_list_is_like_none(desk: Desk, name: str) -> None:
    assert desk.job(desk.push(**{name: []}))[name] == []


# -- ids -----------------------------------------------------------------------------------------


def test_an_id_of_ours_is_a_uuid_ordered_by_time(desk: Desk) -> None:
    first, second = desk.push(), desk.push()
    assert first < second
    assert len(first) == 36
    assert first[14] == "7"


def test_an_id_chosen_by_the_client_names_one_live_job_over_all_queues(desk: Desk) -> None:
    assert desk.push(jobId="mine", data=1) == "mine"
    assert desk.push("other", jobId="mine", data=2) == "mine"
    job = desk.job("mine")
    assert (job["queue"], job["data"], job["customId"]) == ("q", 1, "mine")
    assert desk.do("Count", queue="q") == {"count": 1}
    token = desk.pull()["token"]
    desk.do("ACK", id="mine", token=token)
    assert desk.push("other", jobId="mine", data=2) == "mine"
    assert desk.job("mine")["queue"] == "other"


@pytest.mark.parametrize(("given", "id"), [(7, "7"), (0.1, "0.1"), ("x", "x"), ("é☃", "é☃")])
def test_a_number_is_an_id_by_its_digits(desk: Desk, given: Any, id: str) -> None:
    assert desk.push(jobId=given) == id


@pytest.mark.parametrize("given", [None, "", True, [], {}])
def test_an_id_that_is_none_is_made_by_us(desk: Desk, given: Any) -> None:
    job = desk.job(desk.push(jobId=given))
    assert len(job["id"]) == 36
    assert job["customId"] is None


# -- batches -------------------------------------------------------------------------------------


def test_a_batch_returns_an_id_for_each_job_and_repeats_those_of_equals(desk: Desk) -> None:
    jobs = [{"data": 1, "customId": "a"}, {"data": 2}, {"data": 3, "customId": "a"}]
    ids = desk.do("PUSHB", queue="q", jobs=jobs)["ids"]
    assert (ids[0], ids[2]) == ("a", "a")
    assert desk.do("Count", queue="q") == {"count": 2}
    assert desk.job("a")["data"] == 1


def test_an_empty_batch_is_fine_and_leaves_no_queue(desk: Desk) -> None:
    assert desk.do("PUSHB", queue="q", jobs=[]) == {"ids": []}
    assert not desk.engine.queues


@pytest.mark.parametrize("jobs", [None, {}, "x", 5])
def test_the_jobs_of_a_batch_are_a_list(desk: Desk, jobs: Any) -> None:
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == "jobs must be a list"
    assert desk.refused("PUSHB", queue="q") == "jobs must be a list"


@pytest.mark.parametrize("job", [None, 5, "x", [], True])
def test_a_member_of_a_batch_is_a_map(desk: Desk, job: Any) -> None:
    words = desk.refused("PUSHB", queue="q", jobs=[{"data": 1}, job])
    assert words == "jobs[1]: must be a map with the fields of a job"


def test_a_bad_member_spoils_the_whole_batch(desk: Desk) -> None:
    jobs = [{"data": 1}, {"data": 2, "ttl": -1}, {"data": 3}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == "jobs[1]: ttl must be at least 0"
    assert not desk.engine.messages
    assert not desk.engine.queues


def test_a_batch_has_a_limit(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_LIMIT", 3)
    assert len(desk.do("PUSHB", queue="q", jobs=[{}] * 3)["ids"]) == 3
    words = desk.refused("PUSHB", queue="q", jobs=[{"priority": 1}] * 4)
    assert words == "PUSHB takes at most 3 jobs; send 4 in parts"


def made(job: module.Job) -> Any:
    m = module.draft(job, "q", NOW)
    return m.name, m.body, m.id, m.created, m.due, m.priority, m.options, m.links, m.repeat


@pytest.mark.parametrize("field", [*JOB, "customId", "jobId"])
def test_a_member_of_a_batch_is_read_alike_quickly_and_slowly(field: str) -> None:
    """Most members of an odd batch are not odd themselves, and are taken as they are."""
    for value in wrong_values(field):
        fields = outline.read_command(msgpack.packb({**given(JOB), "groupId": "g", field: value}))
        read = []
        for way in (Job.read, lambda fields: Job(**module._read_job(fields))):
            try:
                read.append(made(way(dict(fields))))
            except BadRequest as refused:
                read.append(str(refused))
        assert read[0] == read[1], value


def test_a_batch_with_one_odd_member_is_read_quickly(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowly: list[Any] = []
    read = module._read_job

    def count(fields: dict[str, Any]) -> dict[str, Any]:
        slowly.append(fields)
        return read(fields)

    monkeypatch.setattr(module, "_read_job", count)
    jobs = [{"data": n, "name": "n", "tags": ["a"], "ttl": UNDEFINED} for n in range(9)]
    desk.do("PUSHB", queue="q", jobs=[*jobs, {"priority": 2.0}])
    assert len(slowly) == 1


def test_jobs_that_ask_for_the_same_share_one_object(desk: Desk) -> None:
    one, two = desk.push(ttl=123_457), desk.push(ttl=123_457)
    named = desk.push(ttl=123_457, jobId="named")
    messages = desk.engine.messages
    assert messages[one].options is messages[two].options
    assert messages[named].options is not messages[one].options


def test_the_shared_options_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_shared", ({}, {}))
    monkeypatch.setattr(module, "SHARED", 3)
    for n in range(10):
        assert desk.job(desk.push(ttl=n + 1000))["ttl"] == n + 1000
    assert len(module._shared[False]) == 3


# -- limits that a job sets for itself -----------------------------------------------------------

TOO_LARGE = "Job data too large (its sizeLimit is 10 bytes)"


@pytest.mark.parametrize(
    ("data", "fits"), [("x" * 8, True), ("x" * 9, False), ("ü" * 4, True), ("ü" * 5, False)]
)
def test_the_size_limit_counts_bytes_of_json(desk: Desk, data: str, fits: bool) -> None:
    if fits:
        assert desk.job(desk.push(data=data, sizeLimit=10))["data"] == data
    else:
        assert desk.refused("PUSH", queue="q", data=data, sizeLimit=10) == TOO_LARGE
        assert desk.do("GetJobs", queue="q")["jobs"] == []


@pytest.mark.parametrize("limit", [0, 0.5, -5, None, "10", math.inf])
def test_a_size_limit_that_limits_nothing_is_none(desk: Desk, limit: Any) -> None:
    assert desk.push(data="x" * 99, sizeLimit=limit)


def test_a_job_without_data_is_never_too_large(desk: Desk) -> None:
    assert desk.do("PUSH", queue="q", sizeLimit=1)


@pytest.mark.parametrize("name", [{}, {"name": "given"}])
def test_a_batch_tells_which_job_was_too_large(desk: Desk, name: dict[str, str]) -> None:
    large = {"data": {"name": "n", "a": "x" * 20}, "sizeLimit": 10, **name}
    jobs = [{"data": 1, "sizeLimit": 10}, large, {"data": 1}]
    assert desk.refused("PUSHB", queue="q", jobs=jobs) == f"jobs[1]: {TOO_LARGE}"
    assert desk.do("GetJobs", queue="q")["jobs"] == []


@pytest.mark.parametrize("name", ["maxStalls", "maxInterruptions"])
@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("5", "must be a number"),
        (1.5, "must be an integer"),
        (-1, "must be at least 0"),
        (1001, "must be at most 1000"),
        (math.nan, "must be a finite number"),
    ],
)
def test_a_limit_of_a_counter_is_checked(desk: Desk, name: str, value: Any, words: str) -> None:
    assert desk.refused("PUSH", queue="q", data=1, **{name: value}) == f"{name} {words}"
    batch = desk.refused("PUSHB", queue="q", jobs=[{"data": 1}, {"data": 1, name: value}])
    assert batch == f"jobs[1]: {name} {words}"


@pytest.mark.parametrize("value", [0, 1000, 2.0, None])
def test_a_limit_of_a_counter_is_kept(desk: Desk, value: Any) -> None:
    options = desk.engine.messages[desk.push(maxStalls=value, maxInterruptions=value)].options
    assert (options.max_stalls, options.max_interruptions) == (value, value)
