"""Search: each filter alone and with others, pages, what is refused, who sees what."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import NOW, Desk
from tests.commands.market import Market

from tandemq.engine import search
from tandemq.model.permission import Operation


def ids(desk: Desk, **fields: Any) -> list[str]:
    answer = desk.do("Search", **fields)
    assert answer["cursor"] is None
    return [job["id"] for job in answer["jobs"]]


def test_a_job_is_shown_without_its_data(desk: Desk) -> None:
    id = desk.push("mail", {"to": "x"}, name="send", tags=["a", "b"], priority=3, groupId="g")
    assert desk.do("Search") == {
        "jobs": [
            {
                "id": id,
                "queue": "mail",
                "name": "send",
                "state": "prioritized",
                "priority": 3,
                "attempts": 0,
                "maxAttempts": 3,
                "createdAt": float(NOW),
                "runAt": float(NOW),
                "startedAt": None,
                "finishedAt": None,
                "progress": 0,
                "failedReason": None,
                "cause": None,
                "tags": ["a", "b"],
                "groupId": "g",
                "messageId": None,
                "deadFrom": None,
                "dataBytes": 6,
                "resultBytes": 0,
            }
        ],
        "cursor": None,
        "looked": 1,
    }


def test_a_dead_job_tells_why(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=1)
    desk.do("FAIL", id=id, token=token, error="x" * 500)
    [job] = desk.do("Search", state="failed")["jobs"]
    assert (job["failedReason"], job["cause"]) == ("x" * 200, "max_attempts_exceeded")
    assert job["finishedAt"] == float(NOW)


def test_each_filter_narrows_it_down(desk: Desk) -> None:
    a = desk.push("mail", {"to": "Ann"}, name="send-now", tags=["x"], jobId="a-1")
    desk.later(1_000)
    b = desk.push("mail", {"to": "Bob"}, name="receive", delay=60_000)
    desk.later(1_000)
    c = desk.push("other", {"order": 4711}, name="send-later", jobId="a-2")
    assert ids(desk) == [c, b, a]
    assert ids(desk, queue="mail") == [b, a]
    assert ids(desk, state="delayed") == [b]
    assert ids(desk, state=["delayed", "waiting"], queue="mail") == [b, a]
    assert ids(desk, state="delayed,waiting") == [c, b, a]
    assert ids(desk, name="receive") == [b]
    assert ids(desk, name="send-*") == [c, a]
    assert ids(desk, id="a-") == [c, a]
    assert ids(desk, id="a-1") == [a]
    assert ids(desk, tag="x") == [a]
    assert ids(desk, text="ann") == [a]
    assert ids(desk, text="4711") == [c]
    assert ids(desk, text=4711) == [c]
    assert ids(desk, after=NOW + 1_000, before=NOW + 2_000) == [b]
    assert ids(desk, after=str(NOW + 2_000)) == [c]
    assert ids(desk, name="send-*", queue="mail", text="to") == [a]
    assert ids(desk, queue="none") == []
    assert ids(desk, id="a-1", queue="other") == []


def test_empty_words_do_not_restrict(desk: Desk) -> None:
    id = desk.push()
    empty = dict.fromkeys(
        ("queue", "state", "name", "id", "tag", "text", "after", "before", "limit", "cursor"), ""
    )
    assert ids(desk, **empty) == [id]


def test_states_are_those_that_counts_show(desk: Desk) -> None:
    low, high = desk.push("q"), desk.push("q", priority=1)
    asleep = desk.push("p", priority=1)
    desk.do("Pause", queue="p")
    assert ids(desk, state="waiting") == [low]
    assert ids(desk, state="prioritized") == [high]
    assert ids(desk, state="paused") == [asleep]
    assert ids(desk, state="waiting", queue="p") == []


def test_an_error_is_searched_too(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, error="Connection refused by mail.example")
    assert ids(desk, text="REFUSED") == [id]


def test_letters_are_found_by_the_name_their_publisher_gave(market: Market) -> None:
    market.publish("order-7", payload=b'{"colour": "green"}')
    [job] = market.do("Search", id="order-")["jobs"]
    assert job["messageId"] == "order-7"
    assert ids(market, text="green") == [job["id"]]


def test_pages_go_on_where_the_last_one_ended(desk: Desk) -> None:
    pushed = [desk.push() for _ in range(5)][::-1]
    first = desk.do("Search", limit=2)
    desk.push()
    second = desk.do("Search", limit="2", cursor=first["cursor"])
    third = desk.do("Search", limit=2, cursor=second["cursor"])
    assert [j["id"] for page in (first, second, third) for j in page["jobs"]] == pushed
    assert third["cursor"] is None


def test_a_long_search_answers_later(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "SLICE", 2)
    id = desk.push(data="needle")
    for _ in range(5):
        desk.push(data="hay")
    assert desk.waits("Search", conn=2, text="needle")
    for _ in range(6):  # a look and a reading each
        desk.later(1)
    [(conn, answer)] = desk.told()
    assert conn == 2
    assert [job["id"] for job in answer["jobs"]] == [id]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"state": "stuck"}, "state must be one or several of waiting-children, delayed"),
        ({"state": [["x"]]}, "state must be one or several of"),
        ({"state": 7}, "state must be one or several of"),
        ({"limit": 0}, "limit must be a whole number from 1 to 200"),
        ({"limit": 201}, "limit must be a whole number from 1 to 200"),
        ({"limit": "many"}, "limit must be a whole number"),
        ({"cursor": "x"}, "cursor must be a whole number"),
        ({"cursor": "9" * 5_000}, "cursor must be a whole number"),
        ({"cursor": "²"}, "cursor must be a whole number"),
        ({"after": "yesterday"}, "after must be a whole number"),
        ({"before": -1}, "before must be a whole number"),
        ({"text": "x" * 257}, "text must be a text of at most 256 characters"),
        ({"id": {}}, "id must be a text"),
        ({"queue": []}, "queue must be a text"),
        ({"name": []}, "name must be a text"),
    ],
)
def test_what_makes_no_sense_is_refused(desk: Desk, fields: dict[str, Any], text: str) -> None:
    assert text in desk.refused("Search", **fields)


def test_a_user_sees_jobs_of_granted_queues_only(desk: Desk) -> None:
    seen = desk.push("mine")
    desk.push("theirs")
    caller = desk.caller(1)
    caller.trusted, caller.user = False, "ann"
    desk.host.accounts.may = lambda who, operation, queue: (
        operation is Operation.GET_QUEUE_INFO and queue == "mine"
    )
    assert ids(desk) == [seen]
