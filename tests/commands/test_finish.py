"""ACK, ACKB and FAIL."""

from __future__ import annotations

from typing import Any

import pytest
from tests.commands.desk import Desk, packed, shown

NOT_HELD = "Job not found or not in processing state: "
NEEDED = "Lock token required for job "
WRONG = "Invalid or expired lock token for job "


def test_a_job_is_completed_with_its_result(desk: Desk) -> None:
    id, token = desk.active()
    assert desk.do("ACK", id=id, token=token, result={"r": [1, None]}) == {}
    assert desk.state(id) == "completed"
    assert desk.do("GetResult", id=id) == {"id": id, "result": {"r": [1, None]}}
    job = desk.job(id)
    assert (job["completedAt"], job["returnvalue"]) == (desk.now, {"r": [1, None]})


def test_a_job_without_result_has_none(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("ACK", id=id, token=token)
    assert desk.do("GetResult", id=id) == {"id": id}
    assert "returnvalue" not in desk.job(id)


def test_null_is_a_result(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("ACK", id=id, token=token, result=None)
    assert desk.do("GetResult", id=id) == {"id": id, "result": None}


@pytest.mark.parametrize("cmd", ["ACK", "FAIL"])
def test_what_nobody_holds_cannot_be_settled(desk: Desk, cmd: str) -> None:
    waiting = desk.push()
    for id in (waiting, "missing"):
        assert desk.refused(cmd, id=id, token="t") == NOT_HELD + id
    done, token = desk.active("r")
    desk.do("ACK", id=done, token=token)
    assert desk.refused(cmd, id=done, token=token) == NOT_HELD + done


@pytest.mark.parametrize("cmd", ["ACK", "FAIL"])
@pytest.mark.parametrize("id", [None, 5, True, ["a", 1], {}])
def test_an_id_that_is_no_text_names_no_job(desk: Desk, cmd: str, id: Any) -> None:
    assert desk.refused(cmd, id=id).startswith(NOT_HELD)
    assert desk.refused(cmd).startswith(NOT_HELD)


def test_an_odd_id_shows_nothing_of_our_insides(desk: Desk) -> None:
    error = shown(desk.hand_in(b"\x82\xa3cmd\xa3ACK\xa2id\xc1"))["error"]
    assert error.startswith(NOT_HELD)
    assert "0x" not in error


@pytest.mark.parametrize("cmd", ["ACK", "FAIL"])
def test_a_lease_with_a_token_needs_it(desk: Desk, cmd: str) -> None:
    id, token = desk.active()
    for missing in ({}, {"token": None}, {"token": ""}, {"token": 5}):
        assert desk.refused(cmd, id=id, **missing) == NEEDED + id
    assert desk.refused(cmd, id=id, token=token + "x") == WRONG + id
    assert desk.state(id) == "active"
    assert desk.do(cmd, id=id, token=token) == {}


@pytest.mark.parametrize("cmd", ["ACK", "FAIL"])
@pytest.mark.parametrize("token", [None, "", "anything"])
def test_a_lease_without_a_token_takes_any(desk: Desk, cmd: str, token: Any) -> None:
    id = desk.push()
    desk.do("PULL", queue="q")
    assert desk.do(cmd, id=id, token=token) == {}


@pytest.mark.parametrize(("asked", "kept"), [(True, False), (False, True), (None, True), (1, True)])
def test_only_true_removes_a_job_on_completion(desk: Desk, asked: Any, kept: bool) -> None:
    id, token = desk.active()
    desk.do("ACK", id=id, token=token, removeOnComplete=asked)
    assert desk.state(id) == ("completed" if kept else "unknown")


def test_false_does_not_override_what_the_publisher_wished(desk: Desk) -> None:
    id, token = desk.active(removeOnComplete=True)
    desk.do("ACK", id=id, token=token, removeOnComplete=False)
    assert desk.state(id) == "unknown"


def test_a_job_that_its_time_limit_ended_meanwhile_is_told_so(desk: Desk) -> None:
    id, token = desk.active(timeout=1000, maxAttempts=1)
    desk.later(1000)
    assert desk.state(id) == "failed"
    late = {"data": {"applied": False, "reason": "already-finalized"}}
    assert desk.do("ACK", id=id, token=token) == late
    assert desk.do("FAIL", id=id, token=token) == late
    expected = {"data": {"ignoredIndices": [0], "ignoredIds": [id]}}
    assert desk.do("ACKB", ids=[id], tokens=[token]) == expected


# -- FAIL ----------------------------------------------------------------------------------------


def test_a_failed_job_is_tried_again_after_its_back_off(desk: Desk) -> None:
    id, token = desk.active(backoff=1000)
    assert desk.do("FAIL", id=id, token=token, error="boom") == {}
    job = desk.job(id)
    assert (job["state"], job["attempts"], job["failedReason"]) == ("delayed", 1, "boom")
    assert job["runAt"] == desk.now + 2000
    desk.later(2000)
    assert desk.pull()["job"]["attempts"] == 1


def test_a_job_out_of_attempts_is_a_dead_letter(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=1)
    desk.do("FAIL", id=id, token=token, error="boom")
    assert desk.state(id) == "failed"


def test_a_failure_may_say_when_the_next_try_is(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, delay=50)
    assert desk.job(id)["attempts"] == 1
    desk.later(49)
    assert desk.pull()["job"] is None
    desk.later(1)
    assert desk.pull()["job"]["id"] == id


def test_a_job_may_be_given_back_uncharged(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, charge=False, error="stopping")
    assert desk.job(id)["attempts"] == 0
    token = desk.pull()["token"]
    desk.do("FAIL", id=id, token=token, charge=False, delay=100, error="not known here")
    assert desk.job(id)["failedReason"] == "not known here"
    assert desk.pull()["job"] is None
    desk.later(100)
    assert desk.pull()["job"]["id"] == id
    assert desk.refused("FAIL", id=id, delay=-1) == "delay must be at least 0"


@pytest.mark.parametrize(("value", "dead"), [(True, True), (1, True), (False, False), (0, False)])
def test_a_failure_may_be_final(desk: Desk, value: Any, dead: bool) -> None:
    id, token = desk.active(maxAttempts=9)
    desk.do("FAIL", id=id, token=token, unrecoverable=value)
    assert desk.state(id) == ("failed" if dead else "delayed")


def test_a_failure_may_remove_the_job(desk: Desk) -> None:
    id, token = desk.active(maxAttempts=1)
    desk.do("FAIL", id=id, token=token, removeOnFail=True)
    assert desk.state(id) == "unknown"
    id, token = desk.active(maxAttempts=1, removeOnFail=True)
    desk.do("FAIL", id=id, token=token)
    assert desk.state(id) == "unknown"


@pytest.mark.parametrize(
    ("error", "reason"),
    [("x", "x"), ("", ""), (5, "5"), (True, "true"), ({"a": 1}, '{"a":1}'), ([None], "[null]")],
)
def test_an_error_that_is_no_text_is_told_as_json(desk: Desk, error: Any, reason: str) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, error=error)
    assert desk.job(id)["failedReason"] == reason


def test_without_an_error_there_is_no_reason(desk: Desk) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, error=None)
    assert "failedReason" not in desk.job(id)


def test_an_error_that_cannot_be_told_says_nothing(desk: Desk) -> None:
    id, token = desk.active()
    body = packed("FAIL", id=id, token=token, error="X")
    assert shown(desk.hand_in(body.replace(b"\xa1X", b"\xc1")))["ok"]
    assert "failedReason" not in desk.job(id)


def test_of_a_stack_the_texts_are_kept_up_to_the_limit(desk: Desk) -> None:
    id, token = desk.active(stackTraceLimit=2)
    desk.do("FAIL", id=id, token=token, stack=[" a ", 5, None, "", "b", "c"])
    assert desk.job(id)["stacktrace"] == ["a", "b"]


def test_only_the_first_hundred_lines_of_a_stack_are_looked_at(desk: Desk) -> None:
    id, token = desk.active(stackTraceLimit=1000)
    desk.do("FAIL", id=id, token=token, stack=[0] * 99 + ["a", "b"])
    assert desk.job(id)["stacktrace"] == ["a"]


@pytest.mark.parametrize("stack", [None, "text", 5, {}, [], [1]])
def test_a_stack_that_is_none_leaves_none(desk: Desk, stack: Any) -> None:
    id, token = desk.active()
    desk.do("FAIL", id=id, token=token, stack=stack)
    assert desk.job(id)["stacktrace"] is None


# -- ACKB ----------------------------------------------------------------------------------------


def batch(desk: Desk, size: int = 3, **options: Any) -> tuple[list[str], list[str]]:
    ids = desk.do("PUSHB", queue="q", jobs=[options] * size)["ids"]
    return ids, desk.do("PULLB", queue="q", count=size, owner="w")["tokens"]


def test_a_batch_is_completed_with_its_results(desk: Desk) -> None:
    ids, tokens = batch(desk)
    assert desk.do("ACKB", ids=ids, tokens=tokens, results=[1, None, {"a": 2}]) == {}
    results = [desk.do("GetResult", id=id).get("result", "none") for id in ids]
    assert results[0] == 1
    assert results[2] == {"a": 2}
    assert [desk.state(id) for id in ids] == ["completed"] * 3


def test_a_batch_without_results_or_tokens_is_fine_for_leases_without_token(desk: Desk) -> None:
    ids = desk.do("PUSHB", queue="q", jobs=[{}, {}])["ids"]
    desk.do("PULLB", queue="q", count=2)
    assert desk.do("ACKB", ids=ids, tokens=None, results=None, removeOnCompletes=None) == {}


def test_a_batch_has_a_limit(desk: Desk) -> None:
    too_many = "ACKB takes at most 100000 jobs; send 100001 in parts"
    assert desk.refused("ACKB", ids=["j"] * 100_001) == too_many
    assert desk.refused("ACKB", ids=["j"] * 100_000) != too_many


@pytest.mark.parametrize("name", ["tokens", "results", "removeOnCompletes"])
@pytest.mark.parametrize("length", [0, 1, 4])
def test_parallel_lists_have_the_length_of_the_ids(desk: Desk, name: str, length: int) -> None:
    ids, tokens = batch(desk)
    words = desk.refused("ACKB", **{"ids": ids, "tokens": tokens, name: [None] * length})
    assert words == f"ACKB {name} length must match ids length"
    assert [desk.state(id) for id in ids] == ["active"] * 3


@pytest.mark.parametrize("name", ["ids", "tokens", "results", "removeOnCompletes"])
@pytest.mark.parametrize("value", [5, "x", {}])
def test_parallel_lists_are_lists(desk: Desk, name: str, value: Any) -> None:
    assert desk.refused("ACKB", **{"ids": ["a"], name: value}) == f"{name} must be a list"
    assert desk.refused("ACKB") == "ids must be a list"


def test_one_bad_token_applies_nothing(desk: Desk) -> None:
    ids, tokens = batch(desk)
    wrong = [tokens[0], "bad", tokens[2]]
    assert desk.refused("ACKB", ids=ids, tokens=wrong) == WRONG + ids[1]
    assert desk.refused("ACKB", ids=ids, tokens=[*tokens[:2], None]) == NEEDED + ids[2]
    assert desk.refused("ACKB", ids=ids) == NEEDED + ids[0]
    assert [desk.state(id) for id in ids] == ["active"] * 3


def test_an_unknown_id_spoils_only_itself(desk: Desk) -> None:
    ids, tokens = batch(desk)
    mixed = ["missing", *ids, "gone"]
    words = desk.refused("ACKB", ids=mixed, tokens=[None, *tokens, None])
    assert words == NOT_HELD + "missing"
    assert [desk.state(id) for id in ids] == ["completed"] * 3


def test_an_id_named_twice_is_completed_once(desk: Desk) -> None:
    ids, tokens = batch(desk, 1)
    assert desk.refused("ACKB", ids=ids * 2, tokens=tokens * 2) == NOT_HELD + ids[0]
    assert desk.state(ids[0]) == "completed"


def test_removals_work_only_together_with_results(desk: Desk) -> None:
    ids, tokens = batch(desk, 2)
    desk.do("ACKB", ids=ids[:1], tokens=tokens[:1], removeOnCompletes=[True])
    desk.do("ACKB", ids=ids[1:], tokens=tokens[1:], removeOnCompletes=[True], results=[1])
    assert [desk.state(id) for id in ids] == ["completed", "unknown"]


def test_an_empty_batch_is_fine(desk: Desk) -> None:
    assert desk.do("ACKB", ids=[], tokens=[], results=[]) == {}
