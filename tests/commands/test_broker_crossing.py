"""One queue, both wires: what is published is pulled, what is pushed is delivered, and so on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.market import FAN_OUT, OTHER, SUBSCRIBER, WORKER, Market

from tandemq.model.broker import UNBOUNDED
from tandemq.model.errors import NotFound

# -- a worker gets what was published --------------------------------------------------------------


@pytest.mark.parametrize(
    ("payload", "data"),
    [
        (b"", None),
        (b"null", None),
        (b'{"a": [1, "x", null, true]}', {"a": [1, "x", None, True]}),
        (b"5000000000", 5e9),
        (b"1e999", math.inf),
        (b'"\\u00e9"', "é"),
    ],
)
def test_a_letter_is_pulled_as_a_job_with_its_value(
    market: Market, payload: bytes, data: Any
) -> None:
    market.publish("m1", payload=payload, correlation="c")
    job, token = market.pulled()
    assert job["data"] == data
    assert (job["name"], job["messageId"], job["headers"]) == (
        "default",
        "m1",
        {"correlation": "c"},
    )
    assert job["id"] != "m1"
    assert market.do("ACK", id=job["id"], token=token) == {}
    assert market.state(job["id"]) == "unknown"


READERS: dict[str, Any] = {
    "PULL": lambda market, _: market.pull()["job"],
    "PULLB": lambda market, _: market.do("PULLB", queue="q", count=1, owner="w")["jobs"][0],
    "GetJob": lambda market, id: market.job(id),
    "GetJobs": lambda market, _: market.do("GetJobs", queue="q")["jobs"][0],
    "Dlq": lambda market, id: dead_one(market, id)["jobs"][0],
    "Dlq entry": lambda market, id: dead_one(market, id)["entries"][0]["job"],
    "a retry": lambda market, id: again(market, id),
    "a pull that waited": lambda market, _: waited(market),
}


def dead_one(market: Market, id: str) -> Any:
    market.do("Discard", id=id)
    return market.do("Dlq", queue="q")


def again(market: Market, id: str) -> Any:
    _, token = market.pulled()
    market.do("FAIL", id=id, token=token, error="oh")
    market.later(60_000)
    return market.pulled()[0]


def waited(market: Market) -> Any:
    market.do("Drain", queue="q")
    assert market.waits("PULL", conn=WORKER, queue="q", timeout=1_000)
    market.publish("m1", payload=b'{"a": [5000000000]}', h="v")
    [(conn, answer)] = market.told()
    assert conn == WORKER
    return answer["job"]


@pytest.mark.parametrize("reader", READERS)
def test_wherever_a_letter_is_shown_it_is_a_job(market: Market, reader: str) -> None:
    market.publish("m1", payload=b'{"a": [5000000000]}', h="v")
    [id] = [m.id for m in market.engine.queues["q"].ready]
    job = READERS[reader](market, id)
    assert job["data"] == {"a": [5e9]}
    assert job["messageId"] == "m1"
    assert job["headers"].items() >= {("h", "v")}


@pytest.mark.parametrize("queue", ["jobs", "letters"])
def test_events_and_pages_show_its_value(market: Market, queue: str) -> None:
    if queue == "jobs":
        market.push(queue)
        market.do("Drain", queue=queue)
        market.push(queue)
        market.do("ACK", **dict(zip(("id", "token"), ended(market, queue), strict=True)))
    market.publish("m1", queue, b'{"a": 1}')
    market.engine.watched = market.engine.listening = True
    job, token = market.pulled(queue)
    for _ in range(3):
        market.do("FAIL", id=job["id"], token=token, error="oh", unrecoverable=True)
        break
    events = [e for e in market.engine.take().events if e.type == "failed"]
    assert [e.fields["data"] for e in events] == [b"\x81\xa1a\x01"]
    page = market.do("DashboardQueue", queue=queue)["data"]
    assert [dead["data"] for dead in page["dlqPreview"]] == [{"a": 1}]


def ended(market: Market, queue: str) -> tuple[str, str]:
    job, token = market.pulled(queue)
    return job["id"], token


def test_a_plain_job_has_no_more_than_it_had(market: Market) -> None:
    id = market.push()
    assert not {"headers", "messageId"} & market.job(id).keys()
    assert not {"headers", "messageId"} & market.pull()["job"].keys()


# -- bodies that are rewritten ---------------------------------------------------------------------


def body_of(market: Market, id: str) -> bytes:
    return market.engine.messages[id].body


def test_update_writes_json_again(market: Market) -> None:
    id = market.letter()
    market.do("Update", id=id, data={"b": [1.5, None]})
    assert body_of(market, id) == b'{"b":[1.5,null]}'
    assert market.job(id)["data"] == {"b": [1.5, None]}
    market.subscribe(SUBSCRIBER)
    assert market.look().deliveries == [(SUBSCRIBER, "m1", b'{"b":[1.5,null]}')]


ODD = [(b"\x01", "binary data"), (math.nan, "the number nan"), ([-math.inf], "the number -inf")]


@pytest.mark.parametrize(("data", "why"), ODD)
def test_what_json_cannot_carry_is_refused(market: Market, data: Any, why: str) -> None:
    id = market.letter()
    assert why in market.refused("Update", id=id, data=data)
    market.do("Discard", id=id)
    [dead] = market.do("Dlq", queue="q")["jobs"]
    assert why in market.refused("RetryDlq", queue="q", jobId=dead["id"], data=data)
    assert market.job(dead["id"])["data"] == {"a": 1}


@pytest.mark.parametrize("queue", ["jobs", "letters"])
def test_a_replay_is_a_letter_with_other_data(market: Market, queue: str) -> None:
    if queue == "jobs":
        market.push(queue)
    market.publish("m1", queue, b"1", h="v")
    while (job := market.pulled(queue))[0]["messageId" if "messageId" in job[0] else "id"] != "m1":
        market.do("ACK", id=job[0]["id"], token=job[1])
    market.do("FAIL", id=job[0]["id"], token=job[1], error="oh", unrecoverable=True)
    [dead] = market.do("Dlq", queue=queue)["jobs"]
    assert market.do("RetryDlq", queue=queue, jobId=dead["id"], data=2, dryRun=True) == {"count": 1}
    copy = market.do("RetryDlq", queue=queue, jobId=dead["id"], data=[2])["id"]
    assert body_of(market, copy) == b"[2]"
    again = market.pulled(queue)[0]
    assert (again["id"], again["data"], again["messageId"]) == (copy, [2], "m1")
    assert again["headers"] == {"h": "v"}
    [entry] = market.do("Dlq", queue=queue)["entries"]
    assert (entry["replays"], entry["retryCount"]) == ([copy], 1)
    assert market.do("GetDlqStats", queue=queue)["data"]["stats"]["total"] == 1


def test_links_are_written_into_json(market: Market) -> None:
    parent, child = market.letter(b'{"p":1}'), market.push()
    market.do("UpdateParent", childId=child, parentId=parent)
    assert market.job(parent)["data"] == {"p": 1, "__childrenIds": [child]}
    assert body_of(market, parent) == b'{"p":1,"__childrenIds":["%s"]}' % child.encode()
    market.do("RemoveChildDependency", id=child)
    assert market.job(parent)["data"] == {"p": 1, "__childrenIds": []}
    own, father = market.letter(b"{}"), market.push()
    market.do("UpdateParent", childId=own, parentId=father)
    assert market.job(own)["data"] == {"__parentId": father, "__parentQueue": "q"}
    market.do("RemoveChildDependency", id=own)
    assert body_of(market, own) == b"{}"


def test_what_could_not_be_written_again_is_not_linked(market: Market) -> None:
    endless, job = market.letter(b'{"a":1e999}'), market.push()
    assert "not linkable" in market.refused("UpdateParent", childId=endless, parentId=job)
    assert "not linkable" in market.refused("UpdateParent", childId=job, parentId=endless)
    assert body_of(market, endless) == b'{"a":1e999}'


def test_what_is_out_with_subscribers_gets_no_children(market: Market) -> None:
    market.create(**FAN_OUT)
    market.subscribe(SUBSCRIBER)
    out, job = market.letter(), market.push("jobs")
    assert "not linkable" in market.refused("UpdateParent", childId=job, parentId=out)


# -- a subscriber gets what was pushed -------------------------------------------------------------


def test_a_job_is_delivered_as_json_and_completed_by_its_ack(market: Market) -> None:
    market.subscribe(SUBSCRIBER)
    id = market.push(data={"a": [1, 2.5]})
    assert market.look().deliveries == [(SUBSCRIBER, id, b'{"a":[1,2.5]}')]
    assert market.state(id) == "active"
    market.settle(SUBSCRIBER, id)
    assert market.state(id) == "completed"


def test_a_job_that_json_cannot_carry_is_a_dead_letter(market: Market) -> None:
    market.subscribe(SUBSCRIBER)
    id = market.push(data=b"\x00")
    assert market.delivered() == []
    [entry] = market.do("Dlq", queue="q")["entries"]
    assert (entry["job"]["id"], entry["reason"]) == (id, "unknown")
    assert entry["error"] == "JSON cannot carry binary data"


def test_a_job_pushed_into_a_fan_out_is_completed_when_all_have_answered(market: Market) -> None:
    market.create(**FAN_OUT)
    market.subscribe(SUBSCRIBER, OTHER)
    id = market.push()
    market.settle(SUBSCRIBER, id)
    assert market.state(id) == "waiting-children"
    market.settle(OTHER, id)
    assert market.state(id) == "completed"


def test_workers_and_subscribers_share_a_queue_in_turn(market: Market) -> None:
    market.create()
    for conn in (WORKER, WORKER):
        assert market.waits("PULL", conn=conn, queue="q", timeout=60_000)
    market.subscribe(SUBSCRIBER)
    market.publish("a")
    b = market.push()
    market.publish("c")
    d = market.push()
    market.look()
    assert [answer["job"]["messageId"] for _, answer in market.answers[:1]] == ["a"]
    assert [answer["job"]["id"] for _, answer in market.answers[1:]] == [b]
    assert [name for _, name, _ in market.deliveries] == ["c", d]


# -- what a queue is -------------------------------------------------------------------------------


def test_the_first_message_decides(market: Market) -> None:
    market.push("jobs")
    market.publish("m1", "jobs")
    market.publish("m2", "letters")
    market.push("letters")
    assert market.info("jobs").policy.max_size == UNBOUNDED
    assert market.info("letters").policy.max_size == 10_000
    assert (market.info("jobs").waiting, market.info("letters").waiting) == (2, 2)


def test_to_pull_to_subscribe_and_to_look_decide_nothing(market: Market) -> None:
    market.subscribe(SUBSCRIBER)
    assert market.waits("PULL", conn=WORKER, queue="q", timeout=60_000)
    market.do("GetJobCounts", queue="q")
    market.push()
    assert market.info().policy.max_size == UNBOUNDED


def test_a_queue_that_was_made_before_stays_what_it_is(market: Market) -> None:
    market.create(max_size=5)
    market.push()
    market.create(max_size=7)
    assert market.info().policy.max_size == 5


def test_a_name_of_one_wire_is_none_of_the_other(market: Market) -> None:
    market.push("a:b")
    assert "Queue name" in market.refused("PUSH", queue="größe", data=1)
    market.publish("m1", "größe")
    assert market.names() == ["a:b", "größe"]
    assert market.do("GetJobCounts", queue="größe")["counts"]["waiting"] == 1


def test_where_no_queue_is_made_there_must_be_one(market: Market) -> None:
    market.host.queue_policy = None
    assert market.publish("m1") is NotFound
    market.push()
    assert market.publish("m1") is None


# -- letters that workers fail ---------------------------------------------------------------------


def test_a_letter_follows_the_worker_while_a_worker_has_it(market: Market) -> None:
    """Lease and back-off are the pull's; the schedule of subscribers is for subscribers."""
    market.create(max_attempts=2, dead_letters=True)
    market.publish("m1")
    job, token = market.pulled()
    assert job["maxAttempts"] == 2
    market.do("FAIL", id=job["id"], token=token, error="first")
    assert market.state(job["id"]) == "delayed"
    market.later(10_000)
    again, token = market.pulled()
    assert (again["id"], again["attempts"]) == (job["id"], 1)
    market.later(20_000)  # a subscriber would have had 4 s for its second try
    assert market.state(job["id"]) == "active"
    market.do("FAIL", id=job["id"], token=token, error="second")
    assert market.state(job["id"]) == "unknown"
    [entry] = market.do("Dlq", queue="q")["entries"]
    assert (entry["error"], entry["job"]["queue"]) == ("second", "q.dlq")
    assert entry["attempts"][0]["attempt"] == 2
    assert entry["job"]["headers"]["x-death-reason"] == "MaxRetriesExceeded"


ENDS: dict[str, Any] = {
    "failed": lambda market, job, token: market.do("FAIL", id=job["id"], token=token),
    "lock": lambda market, job, token: market.later(40_000),
    "discarded": lambda market, job, token: market.do("Discard", id=job["id"], token=token),
}


@pytest.mark.parametrize("dead_letters", [True, False])
@pytest.mark.parametrize("end", ENDS)
def test_the_last_failure_of_a_letter_moves_or_drops_it(
    market: Market, end: str, dead_letters: bool
) -> None:
    market.create(max_attempts=1, dead_letters=dead_letters)
    market.publish("m1")
    job, token = market.pulled()
    ENDS[end](market, job, token)
    assert market.state(job["id"]) == "unknown"
    assert market.waiting("q.dlq") == (["m1"] if dead_letters else [])
    assert market.engine.counters.dropped == (not dead_letters)


def test_a_worker_that_is_lost_gives_its_letter_back(market: Market) -> None:
    market.create()
    market.publish("m1")
    job, _ = market.pulled()
    market.disconnect(WORKER)
    assert market.waiting() == ["m1"]
    assert market.job(job["id"])["attempts"] == 0


# -- what is told of them --------------------------------------------------------------------------


def explained(market: Market, id: str) -> dict[str, str]:
    found = market.do("Explain", id=id)["data"]["reasons"]
    return {reason["code"]: reason["text"] for reason in found}


def test_explain_names_subscribers(market: Market) -> None:
    id = market.letter()
    market.subscribe(SUBSCRIBER)
    assert f"held by the subscriber c{SUBSCRIBER}" in explained(market, id)["active"]


def test_explain_tells_of_copies_and_of_nobody(market: Market) -> None:
    market.create(**FAN_OUT)
    id = market.letter()
    assert "nobody is subscribed" in explained(market, id)["no-subscriber"]
    market.subscribe(SUBSCRIBER, OTHER)
    id = market.letter()
    assert f"Waited for: c{SUBSCRIBER}, c{OTHER}." in explained(market, id)["copies"]


def test_explain_tells_of_full_windows(market: Market) -> None:
    market.subscribe(SUBSCRIBER)
    for n in range(1_001):
        market.publish(f"m{n}")
    id = next(reversed(market.engine.messages))
    text = explained(market, id)["no-window"]
    assert "unanswered: 1000;" in text
    assert text.endswith(f"They are: c{SUBSCRIBER}.")


def test_what_is_out_as_copies_is_counted_where_it_waits(market: Market) -> None:
    market.create(**FAN_OUT)
    market.subscribe(SUBSCRIBER)
    id = market.letter()
    counts = market.do("GetJobCounts", queue="q")["counts"]
    assert {name: n for name, n in counts.items() if n} == {"waiting-children": 1}
    [line] = market.do("DashboardQueues")["data"]["queues"]
    assert line["waiting-children"] == 1
    jobs = market.do("GetJobs", queue="q", state="waiting-children")["jobs"]
    assert [job["id"] for job in jobs] == [id]
    assert market.do("ListQueues")["queues"] == ["q"]
