"""One queue, both wires: what is published is pulled, what is pushed is delivered, and so on."""

from __future__ import annotations

import math
from typing import Any

import pytest
from tests.commands.desk import WAYS
from tests.commands.market import LATER, Market

from tandemq.model.broker import UNBOUNDED, Mode, Overflow
from tandemq.model.errors import NotFound

SUBSCRIBER, OTHER, WORKER = 1, 2, 3
FAN_OUT = {"mode": Mode.FAN_OUT_WITH_ACK}
FANS = [FAN_OUT, {"mode": Mode.FAN_OUT_WITHOUT_ACK}]


@pytest.fixture(params=WAYS)
def market(request: pytest.FixtureRequest) -> Market:
    return Market(request.param, dead_letters=True)


# -- a worker gets what was published --------------------------------------------------------------


def pulled(market: Market, queue: str = "q", **options: Any) -> tuple[dict[str, Any], str]:
    answer = market.pull(queue, conn=WORKER, **options)
    return answer["job"], answer["token"]


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
    job, token = pulled(market)
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
    _, token = pulled(market)
    market.do("FAIL", id=id, token=token, error="oh")
    market.later(60_000)
    return pulled(market)[0]


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
    job, token = pulled(market, queue)
    for _ in range(3):
        market.do("FAIL", id=job["id"], token=token, error="oh", unrecoverable=True)
        break
    events = [e for e in market.engine.take().events if e.type == "failed"]
    assert [e.fields["data"] for e in events] == [b"\x81\xa1a\x01"]
    page = market.do("DashboardQueue", queue=queue)["data"]
    assert [dead["data"] for dead in page["dlqPreview"]] == [{"a": 1}]


def ended(market: Market, queue: str) -> tuple[str, str]:
    job, token = pulled(market, queue)
    return job["id"], token


def test_a_plain_job_has_no_more_than_it_had(market: Market) -> None:
    id = market.push()
    assert not {"headers", "messageId"} & market.job(id).keys()
    assert not {"headers", "messageId"} & market.pull()["job"].keys()


# -- bodies that are rewritten ---------------------------------------------------------------------


def body_of(market: Market, id: str) -> bytes:
    return market.engine.messages[id].body


def letter(market: Market, payload: bytes = b'{"a":1}', queue: str = "q") -> str:
    market.publish("m1", queue, payload)
    return str(next(reversed(market.engine.messages)))


def test_update_writes_json_again(market: Market) -> None:
    id = letter(market)
    market.do("Update", id=id, data={"b": [1.5, None]})
    assert body_of(market, id) == b'{"b":[1.5,null]}'
    assert market.job(id)["data"] == {"b": [1.5, None]}
    market.subscribe(SUBSCRIBER)
    assert market.look().deliveries == [(SUBSCRIBER, "m1", b'{"b":[1.5,null]}')]


ODD = [(b"\x01", "binary data"), (math.nan, "the number nan"), ([-math.inf], "the number -inf")]


@pytest.mark.parametrize(("data", "why"), ODD)
def test_what_json_cannot_carry_is_refused(market: Market, data: Any, why: str) -> None:
    id = letter(market)
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
    while (job := pulled(market, queue))[0]["messageId" if "messageId" in job[0] else "id"] != "m1":
        market.do("ACK", id=job[0]["id"], token=job[1])
    market.do("FAIL", id=job[0]["id"], token=job[1], error="oh", unrecoverable=True)
    [dead] = market.do("Dlq", queue=queue)["jobs"]
    assert market.do("RetryDlq", queue=queue, jobId=dead["id"], data=2, dryRun=True) == {"count": 1}
    copy = market.do("RetryDlq", queue=queue, jobId=dead["id"], data=[2])["id"]
    assert body_of(market, copy) == b"[2]"
    again = pulled(market, queue)[0]
    assert (again["id"], again["data"], again["messageId"]) == (copy, [2], "m1")
    assert again["headers"] == {"h": "v"}
    [entry] = market.do("Dlq", queue=queue)["entries"]
    assert (entry["replays"], entry["retryCount"]) == ([copy], 1)
    assert market.do("GetDlqStats", queue=queue)["data"]["stats"]["total"] == 1


def test_links_are_written_into_json(market: Market) -> None:
    parent, child = letter(market, b'{"p":1}'), market.push()
    market.do("UpdateParent", childId=child, parentId=parent)
    assert market.job(parent)["data"] == {"p": 1, "__childrenIds": [child]}
    assert body_of(market, parent) == b'{"p":1,"__childrenIds":["%s"]}' % child.encode()
    market.do("RemoveChildDependency", id=child)
    assert market.job(parent)["data"] == {"p": 1, "__childrenIds": []}
    own, father = letter(market, b"{}"), market.push()
    market.do("UpdateParent", childId=own, parentId=father)
    assert market.job(own)["data"] == {"__parentId": father, "__parentQueue": "q"}
    market.do("RemoveChildDependency", id=own)
    assert body_of(market, own) == b"{}"


def test_what_could_not_be_written_again_is_not_linked(market: Market) -> None:
    endless, job = letter(market, b'{"a":1e999}'), market.push()
    assert "not linkable" in market.refused("UpdateParent", childId=endless, parentId=job)
    assert "not linkable" in market.refused("UpdateParent", childId=job, parentId=endless)
    assert body_of(market, endless) == b'{"a":1e999}'


def test_what_is_out_with_subscribers_gets_no_children(market: Market) -> None:
    market.create(**FAN_OUT)
    market.subscribe(SUBSCRIBER)
    out, job = letter(market), market.push("jobs")
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


@pytest.mark.parametrize("push", ["PUSH", "PUSHB", "PUSHF"])
def test_any_push_into_an_undecided_queue_makes_it_a_job_queue(market: Market, push: str) -> None:
    market.subscribe(SUBSCRIBER)
    market.do(push, **pushes(push, "only"))
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


# -- the walls of publishers -----------------------------------------------------------------------


def pushes(cmd: str, *ids: str, queue: str = "q", full: bool = False) -> dict[str, Any]:
    """The fields of a command that pushes these; in its full shape it asks for more."""
    more: dict[str, Any] = {"priority": 0, "maxAttempts": 5} if full else {}
    jobs = [{"data": {"n": id}, "name": id, **more} for id in ids]
    if cmd == "PUSH":
        [job] = jobs
        return {"queue": queue, **job}
    if cmd == "PUSHB":
        return {"queue": queue, "jobs": jobs}
    planned = zip(ids, jobs, strict=True)
    return {"jobs": [{"id": f"flow-{id}", "queue": queue, "input": job} for id, job in planned]}


SHAPES = [(cmd, full) for cmd in ("PUSH", "PUSHB", "PUSHF") for full in (False, True)]
every_push = pytest.mark.parametrize(("cmd", "full"), SHAPES)
BLOCK = {"overflow": Overflow.BLOCK_PUBLISHER}
LIMIT = 100_000


def fill(market: Market, per_cent: int) -> None:
    pressure = market.engine.pressure
    if not pressure.limit:
        pressure.limit = LIMIT
        pressure._stay()
    pressure.grow(market.engine, LIMIT * per_cent // 100 - pressure.used)


def waiting(market: Market, queue: str = "q") -> list[str]:
    q = market.engine.queues.get(queue)
    return [m.letter.id if m.letter else m.name for m in q.ready] if q else []


@every_push
def test_a_push_waits_while_memory_is_held_and_comes_in_in_order(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    assert market.publish("b", conn=1) is LATER
    assert market.waits("PUSH", **pushes("PUSH", "c"))
    assert waiting(market) == []
    fill(market, 10)
    assert market.waits(cmd, **pushes(cmd, "d", full=full)), "it may not overtake"
    market.look()
    assert [answer["ok"] for _, answer in market.answers] == [True] * 3
    assert waiting(market) == ["a", "b", "c", "d"]
    market.do(cmd, **pushes(cmd, "e", full=full))


@every_push
def test_a_push_is_answered_late_while_memory_is_scarce(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 85)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    assert waiting(market) == ["a"]
    assert list(market.told()) == []
    market.later(500)
    [(_, answer)] = market.told()
    assert answer["ok"]


@every_push
def test_a_push_is_refused_when_memory_is_full(market: Market, cmd: str, full: bool) -> None:
    market.create()
    fill(market, 95)
    assert "memory" in market.refused(cmd, **pushes(cmd, "a", full=full)).lower()
    assert waiting(market) == []


@every_push
def test_whoever_waits_for_memory_is_refused_when_it_is_full(
    market: Market, cmd: str, full: bool
) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    fill(market, 96)
    [(_, answer)] = market.told()
    assert "memory" in answer["error"].lower()


@every_push
def test_a_push_waits_for_memory_no_longer_than_that(market: Market, cmd: str, full: bool) -> None:
    fill(market, 91)
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    market.later(7_999)
    assert list(market.told()) == []
    market.later(1)
    [(_, answer)] = market.told()
    assert answer["ok"] is False
    fill(market, 0)
    assert list(market.told()) == []
    assert waiting(market) == []


@every_push
@pytest.mark.parametrize("wall", ["memory", "queue"])
def test_who_leaves_pushes_nothing(market: Market, cmd: str, full: bool, wall: str) -> None:
    market.create(max_size=1, **BLOCK)
    market.publish("first")
    if wall == "memory":
        fill(market, 91)
    assert market.waits(cmd, conn=WORKER, **pushes(cmd, "a", full=full))
    market.leave(WORKER)
    fill(market, 0)
    job, token = pulled(market)
    market.do("ACK", id=job["id"], token=token)
    assert list(market.told()) == []
    assert waiting(market) == []


@every_push
def test_a_push_into_a_full_queue_is_refused_or_waits_as_its_publishers_do(
    market: Market, cmd: str, full: bool
) -> None:
    for strategy in Overflow:
        queue = f"q{strategy}"
        market.create(queue, max_size=1, overflow=strategy)
        market.publish("first", queue)
        if strategy is Overflow.BLOCK_PUBLISHER:
            assert market.waits(cmd, **pushes(cmd, "a", queue=queue, full=full))
        else:
            assert "full" in market.refused(cmd, **pushes(cmd, "a", queue=queue, full=full))
        assert waiting(market, queue) == ["first"]


@every_push
def test_a_push_that_waits_for_room_comes_in_before_whoever_comes_later(
    market: Market, cmd: str, full: bool
) -> None:
    market.create(max_size=1, **BLOCK)
    market.publish("first")
    assert market.waits(cmd, **pushes(cmd, "a", full=full))
    pulled(market)
    assert market.publish("b") is LATER, "there is room, but not for it"
    assert market.waits("PUSH", **pushes("PUSH", "c"))
    market.look()
    assert [answer["ok"] for _, answer in market.answers] == [True]
    assert waiting(market) == ["a"]
    pulled(market)
    assert market.look().replies == [(9, True)]
    assert waiting(market) == ["b"]


@pytest.mark.parametrize("cmd", ["PUSHB", "PUSHF"])
@pytest.mark.parametrize("full", [False, True])
def test_many_come_in_together_or_not_at_all(market: Market, cmd: str, full: bool) -> None:
    market.create(max_size=3, **BLOCK)
    market.publish("first")
    assert market.waits(cmd, **pushes(cmd, "a", "b", "c", full=full))
    assert waiting(market) == ["first"]
    pulled(market)
    assert [answer["ok"] for _, answer in market.told()] == [True]
    assert waiting(market) == ["a", "b", "c"]
    assert "full" in market.refused(cmd, **pushes(cmd, "d", "e", "f", "g", full=full))
    assert waiting(market) == ["a", "b", "c"]


def test_a_flow_looks_at_every_queue_first(market: Market) -> None:
    market.create("a", max_size=1, **BLOCK)
    market.create("b", max_size=1, **BLOCK)
    market.publish("in a", "a")
    market.publish("in b", "b")
    jobs = [
        {"id": f"{queue}-{n}", "queue": queue, "input": {"data": {}, "name": "n"}}
        for n, queue in enumerate(("free", "a", "b"))
    ]
    assert market.waits("PUSHF", jobs=jobs)
    assert market.info("free") is None
    pulled(market, "a")
    assert list(market.told()) == []
    assert market.info("free") is None
    pulled(market, "b")
    [(_, answer)] = market.told()
    assert answer["ok"]
    assert [waiting(market, queue) for queue in ("free", "a", "b")] == [["n"], ["n"], ["n"]]


@pytest.mark.parametrize("cmd", ["PUSH", "PUSHB"])
def test_a_name_for_a_job_that_is_there_needs_no_room(market: Market, cmd: str) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    id = market.push(jobId="mine")
    if cmd == "PUSH":
        assert market.push(jobId="mine") == id
    else:
        jobs = [{"data": 1, "customId": "mine"}, {"data": 1, "customId": "mine"}]
        assert market.do("PUSHB", queue="q", jobs=jobs)["ids"] == [id, id]


def test_keys_that_are_held_need_no_room(market: Market) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    id = market.push(uniqueKey="k")
    jobs = [{"data": 1, "uniqueKey": "k"}, {"data": 2, "uniqueKey": "k"}]
    assert market.do("PUSHB", queue="q", jobs=jobs)["ids"] == [id, id]


def test_a_repeated_job_comes_again_into_a_full_queue(market: Market) -> None:
    market.create(max_size=1, overflow=Overflow.DROP_NEWEST)
    market.push(repeat={"every": 1_000})
    job, token = pulled(market)
    market.publish("in its place")
    market.do("ACK", id=job["id"], token=token)
    assert market.info().waiting == 2


# -- pulls on a fan-out ----------------------------------------------------------------------------


@pytest.mark.parametrize("policy", FANS)
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_pull_on_a_fan_out_is_told_to_subscribe(
    market: Market, policy: dict[str, Any], cmd: str
) -> None:
    market.create(**policy)
    assert "subscribe" in market.refused(cmd, queue="q", timeout=1_000)


@pytest.mark.parametrize("policy", FANS)
@pytest.mark.parametrize("how", ["create", "publish"])
@pytest.mark.parametrize("cmd", ["PULL", "PULLB"])
def test_a_pull_that_waited_before_is_told_so_too(
    market: Market, policy: dict[str, Any], how: str, cmd: str
) -> None:
    more = {"count": 5} if cmd == "PULLB" else {}
    assert market.waits(cmd, conn=WORKER, queue="q", timeout=60_000, owner="w", **more)
    assert market.waits(cmd, conn=OTHER, queue="q", timeout=60_000, **more)
    if how == "create":
        market.create(**policy)
    else:
        market = on_default(market, policy)
    answers = list(market.told())
    assert [conn for conn, _ in answers] == [WORKER, OTHER]
    assert all("subscribe" in answer["error"] for _, answer in answers)
    market.later(60_000)
    assert list(market.told()) == []
    market.leave(WORKER)


def on_default(market: Market, policy: dict[str, Any]) -> Market:
    market.host.queue_policy = market.host.queue_policy.__class__(**policy)
    market.publish("m1")
    return market


@pytest.mark.parametrize("policy", FANS)
def test_a_fan_out_that_is_not_decided_yet_may_be_pulled_from(
    market: Market, policy: dict[str, Any]
) -> None:
    market.host.queue_policy = market.host.queue_policy.__class__(**policy)
    market.subscribe(SUBSCRIBER)
    assert market.waits("PULL", conn=WORKER, queue="q", timeout=60_000)
    a = market.push()
    b = market.push()
    market.look()
    assert [name for _, name, _ in market.deliveries] == [a]
    assert [answer["job"]["id"] for _, answer in market.answers] == [b]


# -- letters that workers fail ---------------------------------------------------------------------


def test_a_letter_follows_the_worker_while_a_worker_has_it(market: Market) -> None:
    """Lease and back-off are the pull's; the schedule of subscribers is for subscribers."""
    market.create(max_attempts=2, dead_letters=True)
    market.publish("m1")
    job, token = pulled(market)
    assert job["maxAttempts"] == 2
    market.do("FAIL", id=job["id"], token=token, error="first")
    assert market.state(job["id"]) == "delayed"
    market.later(10_000)
    again, token = pulled(market)
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
    job, token = pulled(market)
    ENDS[end](market, job, token)
    assert market.state(job["id"]) == "unknown"
    assert waiting(market, "q.dlq") == (["m1"] if dead_letters else [])
    assert market.engine.counters.dropped == (not dead_letters)


def test_a_worker_that_is_lost_gives_its_letter_back(market: Market) -> None:
    market.create()
    market.publish("m1")
    job, _ = pulled(market)
    market.disconnect(WORKER)
    assert waiting(market) == ["m1"]
    assert market.job(job["id"])["attempts"] == 0


# -- dead letters, both faces ----------------------------------------------------------------------


@pytest.fixture
def graves(market: Market) -> tuple[Market, str, str]:
    """A dead job that stayed and a dead letter that moved, in this order."""
    market.create(dead_letters=True)
    market.push("q", maxAttempts=1)
    job, token = pulled(market)
    market.do("FAIL", id=job["id"], token=token, error="job")
    market.later(10)
    market.publish("m1")
    letter, token = pulled(market)
    market.do("FAIL", id=letter["id"], token=token, error="letter", unrecoverable=True)
    market.later(10)
    [moved] = [m.id for m in market.engine.queues["q.dlq"].ready]
    return market, job["id"], moved


Graves = tuple[Market, str, str]


def ids(market: Market, **asked: Any) -> list[str]:
    return [job["id"] for job in market.do("Dlq", queue="q", **asked)["jobs"]]


def test_both_kinds_are_listed_oldest_first(graves: Graves) -> None:
    market, job, moved = graves
    assert ids(market) == [job, moved]
    assert ids(market, count=1) == [job]
    assert ids(market, filter={"offset": 1}) == [moved]
    assert ids(market, filter={"reason": "max_attempts_exceeded"}) == [job, moved]
    assert ids(market, filter={"reason": "timeout"}) == []
    assert ids(market, filter={"newerThan": market.now - 15}) == [moved]
    assert ids(market, filter={"olderThan": market.now - 15}) == [job]
    assert ids(market, filter={"retriable": True}) == []


def test_both_kinds_are_counted(graves: Graves) -> None:
    market, _, _ = graves
    stats = market.do("GetDlqStats", queue="q")["data"]["stats"]
    assert (stats["total"], stats["byQueue"]) == (2, {"q": 2})
    assert stats["byReason"]["max_attempts_exceeded"] == 2
    assert stats["oldestEntry"] == market.now - 20
    assert stats["newestEntry"] == market.now - 10


def test_both_kinds_are_retried(graves: Graves) -> None:
    market, job, _ = graves
    assert market.do("RetryDlq", queue="q", dryRun=True) == {"count": 2}
    assert market.do("RetryDlq", queue="q") == {"count": 2}
    assert ids(market) == []
    [first, second] = [pulled(market)[0] for _ in range(2)]
    assert {first["id"] == job, second["id"] == job} == {True, False}
    letter = first if second["id"] == job else second
    assert (letter["messageId"], letter["headers"], letter["attempts"]) == ("m1", {}, 0)


def test_each_is_retried_by_its_id(graves: Graves) -> None:
    market, job, moved = graves
    for id in (moved, job):
        assert market.do("RetryDlq", queue="q", jobId=id, dryRun=True) == {"count": 1}
        assert market.do("RetryDlq", queue="q", jobId=id) == {"count": 1}
        assert market.do("RetryDlq", queue="q", jobId=id) == {"count": 0}
    assert market.do("RetryDlq", queue="other", jobId=moved) == {"count": 0}
    assert market.info().waiting == 2


def test_some_are_retried(graves: Graves) -> None:
    market, _, moved = graves
    assert market.do("RetryDlq", queue="q", count=1) == {"count": 1}
    assert ids(market) == [moved]
    assert market.do("RetryDlq", queue="q", filter={"newerThan": market.now}) == {"count": 0}


def test_both_kinds_are_purged(graves: Graves) -> None:
    market, _, _ = graves
    assert market.do("PurgeDlq", queue="q", dryRun=True) == {"count": 2}
    assert market.do("PurgeDlq", queue="q") == {"count": 2}
    assert ids(market) == []
    assert market.info("q.dlq").waiting == 0


def test_each_is_removed_by_its_id(graves: Graves) -> None:
    market, job, moved = graves
    for id in (moved, job):
        assert market.do("RemoveDlqJob", queue="q", jobId=id)["data"] == {"removed": True}
        assert market.do("RemoveDlqJob", queue="q", jobId=id)["data"] == {"removed": False}
    assert ids(market) == []


def test_letters_of_another_queue_in_the_same_grave_are_left_alone(market: Market) -> None:
    for queue in ("q", "p"):
        market.create(queue, dead_letters=True, dead_letter_queue="dead", max_attempts=1)
        market.publish(f"of {queue}", queue)
        job, token = pulled(market, queue)
        market.do("FAIL", id=job["id"], token=token)
    assert [job["messageId"] for job in market.do("Dlq", queue="q")["jobs"]] == ["of q"]
    assert market.do("PurgeDlq", queue="q") == {"count": 1}
    assert waiting(market, "dead") == ["of p"]


def test_what_somebody_reads_from_the_grave_is_no_dead_letter_meanwhile(graves: Graves) -> None:
    market, job, _ = graves
    pulled(market, "q.dlq")
    assert ids(market) == [job]


def test_a_full_queue_takes_none_back(market: Market) -> None:
    market.create(dead_letters=True, max_size=1, max_attempts=1)
    market.publish("m1")
    job, token = pulled(market)
    market.do("FAIL", id=job["id"], token=token)
    market.publish("m2")
    assert market.do("RetryDlq", queue="q", dryRun=True) == {"count": 0}
    assert market.do("RetryDlq", queue="q") == {"count": 0}
    [dead] = ids(market)
    assert "full" in market.refused("RetryDlq", queue="q", jobId=dead, data=1)
    assert waiting(market) == ["m2"]


def test_ten_thousand_letters_are_gone_through_in_slices() -> None:
    market = Market(dead_letters=True, max_attempts=1, max_size=20_000)
    for n in range(10_000):
        market.publish(f"m{n}")
    while jobs := market.do("PULLB", queue="q", count=1_000)["jobs"]:
        for job in jobs:
            market.do("FAIL", id=job["id"])
    assert len(ids(market, count=100)) == 100
    assert in_slices(market, "GetDlqStats")["data"]["stats"]["total"] == 10_000
    assert in_slices(market, "RetryDlq", dryRun=True)["count"] == 10_000
    assert in_slices(market, "RetryDlq", count=6_000)["count"] == 6_000
    assert in_slices(market, "PurgeDlq")["count"] == 4_000
    assert (market.info().waiting, ids(market)) == (6_000, [])


def in_slices(market: Market, cmd: str, **asked: Any) -> Any:
    assert market.waits(cmd, queue="q", **asked)
    slices, said = 1, list(market.told())
    while not said:
        slices += 1
        market.later(1)
        said = list(market.told())
    assert slices >= 2
    return said[0][1]
