"""The three commands about unique keys, and what PUSH answers for a key that is held."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk


def holder(desk: Desk, key: Any = "k") -> Any:
    return desk.do("GetDeduplicationJobId", queue="q", deduplicationId=key)["data"]["jobId"]


def test_the_holder_of_a_key_is_told(desk: Desk) -> None:
    id = desk.push(uniqueKey="k")
    assert desk.push(uniqueKey="k") == id
    assert holder(desk) == id
    assert holder(desk, "other") is None


def test_a_key_is_removed_once(desk: Desk) -> None:
    desk.push(uniqueKey="k")
    for count in (1, 0):
        answer = desk.do("RemoveDeduplicationKey", queue="q", deduplicationId="k")
        assert answer["data"] == {"count": count}
    assert holder(desk) is None


def test_a_job_gives_its_key_up_once(desk: Desk) -> None:
    id = desk.push(uniqueKey="k")
    for removed in (True, False):
        answer = desk.do("RemoveJobDeduplicationKey", id=id)
        assert answer["data"] == {"removed": removed}
    assert desk.push(uniqueKey="k") != id


def test_what_does_not_exist_holds_nothing(desk: Desk) -> None:
    assert desk.do("RemoveJobDeduplicationKey", id="nobody")["data"] == {"removed": False}
    assert desk.do("RemoveJobDeduplicationKey")["data"] == {"removed": False}
    assert desk.do("RemoveDeduplicationKey", queue="q")["data"] == {"count": 0}
    assert desk.do("GetDeduplicationJobId", queue="q")["data"] == {"jobId": None}


def test_a_queue_is_needed(desk: Desk) -> None:
    assert desk.refused("RemoveDeduplicationKey") == "Queue name is required"
    assert desk.refused("GetDeduplicationJobId", deduplicationId="k") == "Queue name is required"


@pytest.mark.parametrize(
    ("cmd", "options"),
    [("Cancel", {}), ("Discard", {}), ("Drain", {}), ("Obliterate", {}), ("Clean", {"grace": 0})],
)
def test_a_job_that_is_taken_away_leaves_no_key_behind(
    desk: Desk, cmd: str, options: dict[str, Any]
) -> None:
    id = desk.push(uniqueKey="k")
    desk.later(10)
    about = {"id": id} if cmd in ("Cancel", "Discard") else {"queue": "q"}
    desk.do(cmd, **about, **options)
    assert holder(desk) is None
    assert desk.push(uniqueKey="k") != id
