"""No answer is longer than peers can read, whatever is stored and whatever is asked for.

The bounds are small here, and so is what is stored; every command is asked.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk, packed, shown

from tandemq.commands import answers, pushf, query
from tandemq.commands.answers import Page, check_length, part, whole
from tandemq.commands.table import COMMANDS
from tandemq.engine import core, sweeps
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links
from tandemq.wires.bunqueue import session

BATCH, ANSWER = 60_000, 90_000
LONG = "x" * 2_000
SHORT = "x" * 990  # what may be no longer than a thousand
MANY = 60

Fields = dict[str, Any]

# -- what there is ---------------------------------------------------------------------------------


def world() -> Desk:
    """A server with many of everything, and everything long."""
    desk = Desk()
    desk.push("one", jobId="one", data="x" * 50_000)
    desk.do("PULL", queue="one")
    desk.do("ACK", id="one", result="x" * 95_000)
    jobs = [{"data": LONG, "customId": f"{LONG}{n}", "priority": n} for n in range(MANY)]
    desk.do("PUSHB", queue="q", jobs=jobs)
    desk.do("PUSHB", queue="q", jobs=[{"data": LONG}] * MANY)
    desk.do("PUSHB", queue="r", jobs=[{"customId": f"r{LONG}{n}"} for n in range(MANY)])
    desk.do("PUSHB", queue="later", jobs=[{"delay": 9_000, "priority": n} for n in range(600)])
    failing(desk)
    families(desk)
    desk.push("logged", jobId="logged")
    for n in range(MANY):
        desk.do("AddLog", id="logged", message=LONG)
        desk.do("RegisterWorker", workerId=f"w{n}", queues=["q" * 250] * 8)
        desk.do("Cron", name=f"{n}{SHORT}", queue=LONG, repeatEvery=1_000_000)
        desk.do("Pause", queue=f"{LONG}{n}")
        desk.do("AddWebhook", url=f"http://example.com/{SHORT}{SHORT}{n}", events=["job.pushed"])
    return desk


def failing(desk: Desk) -> None:
    """Dead letters with long errors, and jobs that failed once and wait again."""
    for queue, attempts in (("dead", 2), ("again", 99)):
        jobs = [{"data": "x", "maxAttempts": attempts, "backoff": 0}] * MANY
        desk.do("PUSHB", queue=queue, jobs=jobs)
        for _ in range(2):
            pulled = desk.do("PULLB", queue=queue, count=1_000, owner="w")
            for job, token in zip(pulled["jobs"], pulled["tokens"], strict=True):
                desk.do("FAIL", id=job["id"], token=token, error=LONG, stack=[LONG])


def families(desk: Desk) -> None:
    """A parent of many children with results, and with errors that it outlived."""
    ids = [f"child-{n}" for n in range(MANY)]
    desk.do("PUSHB", queue="kids", jobs=[{"customId": id} for id in ids])
    desk.push("family", jobId="parent")
    desk.do("PULLB", queue="kids", count=MANY)
    desk.do("ACKB", ids=ids, results=[LONG] * MANY)
    parent = desk.engine.messages["parent"]
    errors = {f"kids:{id}": LONG for id in ids}
    parent.links = Links(children=tuple(ids), failures=errors, ignored=dict(errors))


# -- what is asked ---------------------------------------------------------------------------------

FLOW = [{"id": f"{n}{SHORT}", "queue": "flow", "input": {"data": {}}} for n in range(MANY)]
OFFSET = "ask for a part with offset and limit"

PAGES: list[tuple[str, Fields]] = [
    ("GetJobs", {"queue": "q", "limit": 1_000}),
    ("GetJobs", {"queue": "q", "limit": 1_000, "state": "prioritized", "asc": False}),
    ("GetJobs", {"queue": "again", "limit": 1_000}),
    ("GetJobs", {"queue": "kids", "limit": 1_000, "state": ["completed"]}),
    ("Dlq", {"queue": "dead"}),
    ("Dlq", {"queue": "dead", "count": 1_000, "filter": {"limit": 1_000}}),
    ("GetLogs", {"id": "logged"}),
    ("GetLogs", {"id": "logged", "start": 1, "end": 70}),
    ("CronList", {"limit": 1_000}),
    ("CronList", {"limit": 1_000, "offset": 1, "queue": LONG}),
    ("ListQueues", {"limit": 1_000}),
    ("DashboardQueues", {"limit": 1_000, "offset": 1}),
    ("DashboardQueue", {"queue": "r", "includeJobs": True, "jobsLimit": 1_000}),
    ("DashboardOverview", {}),
    ("PULLB", {"queue": "q", "count": 1_000, "owner": "w"}),
    ("PULLB", {"queue": "again", "count": 1_000}),
    ("Clean", {"queue": "q", "grace": 0, "limit": 1_000}),
]
"""What may be cut short: whoever wants more asks again."""

WHOLES: list[tuple[str, Fields, str]] = [
    ("GetJob", {"id": "one"}, "ask for fewer jobs"),
    ("GetResult", {"id": "one"}, "ask for less"),
    ("WaitJob", {"id": "one"}, "ask for less"),
    ("GetChildrenValues", {"id": "parent"}, "ask for the result of each child with GetResult"),
    ("GetFailedChildrenValues", {"id": "parent"}, "ask for each child with GetJob"),
    ("GetIgnoredChildrenFailures", {"id": "parent"}, "ask for each child with GetJob"),
    ("CronList", {}, OFFSET),
    ("ListQueues", {}, OFFSET),
    ("DashboardQueues", {}, OFFSET),
    ("ListWorkers", {}, OFFSET),
    ("ListWebhooks", {}, "ask for less"),
]
"""What is asked for as a whole is refused, with what to do instead."""


def label(case: Any) -> str:
    return case if isinstance(case, str) else ""


@pytest.fixture
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "BATCH_BYTES", BATCH)
    for module in (answers, pushf, sweeps):
        monkeypatch.setattr(module, "ANSWER_BYTES", ANSWER)
    monkeypatch.setattr(pushf, "FEW", 0)
    monkeypatch.setattr(session, "MAX_FRAME", ANSWER)


@pytest.fixture
def full() -> Desk:
    return world()


@pytest.fixture
def small(full: Desk, bounds: None) -> Desk:
    """The same, whose answers have small bounds from now on."""
    return full


def longest(value: Any) -> int:
    """The length of the longest list in an answer."""
    if isinstance(value, dict):
        return max((longest(item) for item in value.values()), default=0)
    return len(value) if isinstance(value, list) else 0


@pytest.mark.parametrize(("cmd", "fields"), [*PAGES, *(case[:2] for case in WHOLES)], ids=label)
def test_without_the_bounds_these_answers_are_long(full: Desk, cmd: str, fields: Fields) -> None:
    assert len(full.hand_in(packed(cmd, **fields))) > ANSWER


@pytest.mark.parametrize(("cmd", "fields"), PAGES, ids=label)
def test_a_page_ends_early(small: Desk, cmd: str, fields: Fields) -> None:
    body = small.hand_in(packed(cmd, **fields))
    assert len(body) <= ANSWER
    answer = shown(body)
    assert answer["ok"] is True
    assert longest(answer) >= 2


@pytest.mark.parametrize(("cmd", "fields", "instead"), WHOLES, ids=label)
def test_what_is_asked_for_as_a_whole_is_refused(
    small: Desk, cmd: str, fields: Fields, instead: str
) -> None:
    said = small.refused(cmd, **fields)
    assert said.startswith("The answer is too large (max ")
    assert said.endswith(f" bytes); {instead}")


@pytest.mark.parametrize("cmd", sorted(COMMANDS))
def test_no_command_has_a_longer_answer(small: Desk, cmd: str) -> None:
    for id in ("parent", "one", "logged"):
        for queue in ("q", "dead", "again", "later"):
            fields = {"queue": queue, "id": id, "jobId": id, "ids": [id], "includeJobs": True}
            assert len(small.hand_in(packed(cmd, **fields, name=f"1{SHORT}"))) <= ANSWER


def test_a_flow_whose_answer_would_be_too_long_is_not_accepted(small: Desk) -> None:
    said = small.refused("PUSHF", jobs=FLOW)
    assert said == "flow data is too large (max 64MB per atomic batch)"
    assert small.state(FLOW[0]["id"]) == "unknown"
    assert longest(small.do("PUSHF", jobs=FLOW[:5])) == 5


def test_pages_put_together_are_the_whole_list(small: Desk) -> None:
    every = [m.id for m in small.engine.queues["q"].ready.all()]
    found: list[str] = []
    while page := small.do("GetJobs", queue="q", limit=1_000, offset=len(found))["jobs"]:
        found += [job["id"] for job in page]
    assert sorted(found) == sorted(every)
    lines: list[Any] = []
    while page := small.do("GetLogs", id="logged", start=len(lines))["data"]["logs"]:
        lines += page
    assert len(lines) == MANY


def test_who_waits_for_a_result_that_is_too_long_is_told_so(small: Desk) -> None:
    id, token = small.active("waited")
    assert small.waits("WaitJob", conn=2, id=id, timeout=1_000)
    small.do("ACK", id=id, token=token, result="x" * 95_000)
    [(conn, answer)] = small.told()
    assert (conn, answer["ok"]) == (2, False)
    assert answer["error"].startswith("The answer is too large")


def test_many_priorities_are_no_exception(full: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(full.do("GetCountsPerPriority", queue="later")["counts"]) == 600
    monkeypatch.setattr(answers, "ANSWER_BYTES", 600 * 17)
    said = full.refused("GetCountsPerPriority", queue="later")
    assert said == "The answer is too large (max 10200 bytes); ask for less"


def test_a_page_has_so_many_jobs_however_small(full: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(query, "LISTED", 7)
    assert len(full.do("GetJobs", queue="q", limit=10**9)["jobs"]) == 7


# -- the means -------------------------------------------------------------------------------------


@pytest.mark.usefixtures("bounds")
def test_the_first_thing_of_a_page_may_be_larger_than_the_page() -> None:
    page = Page()
    assert page.take("", len) == []
    assert page.take([ANSWER * 2, 1], int) == [ANSWER * 2]
    assert page.take([1], int) == []
    assert Page(1).take([ANSWER], int) == []


@pytest.mark.usefixtures("bounds")
def test_what_fits_is_returned_as_it_is() -> None:
    assert Page().take([ANSWER - 1, 1], int) == [ANSWER - 1, 1]
    assert whole([ANSWER - 1, 1], int) == [ANSWER - 1, 1]
    check_length(ANSWER)
    with pytest.raises(BadRequest):
        whole([ANSWER, 1], int)


@pytest.mark.usefixtures("bounds")
@pytest.mark.parametrize(
    ("offset", "limit", "found"),
    [(None, None, "abcd"), (1, None, "bcd"), (-5, 2, "ab"), (1, 2, "bc"), (9, 9, ""), (0, -1, "")],
)
def test_a_part_begins_and_ends_where_it_should(offset: Any, limit: Any, found: str) -> None:
    assert "".join(part("abcd", len, offset, limit)) == found
