"""The routes of the commands: what they take, what they answer, which of two paths is meant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from tests.support.server import Server, is_own
from tests.support.web import Web

from tandemq.commands.all import COMMANDS
from tandemq.server.http.routes import CommandPaths

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")


class Way:
    """One of the two ways that a request can take."""

    def __init__(self, web: Web, headers: dict[str, str]) -> None:
        self._web, self._headers = web, headers
        self.name = "long" if headers else "short"

    def __call__(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return self._web.ask(method, path, body, self._headers)


@pytest.fixture(params=[{}, {"X-Long-Way": "1"}], ids=["short", "long"])
def ask(server: Server, request: pytest.FixtureRequest) -> Iterator[Way]:
    web = Web(server.http_port)
    yield Way(web, request.param)
    web.close()


def push(ask: Way, queue: str, **fields: Any) -> str:
    status, told = ask("POST", f"/queues/{queue}/jobs", {"data": {"n": 1}, **fields})
    assert status == 200, told
    id: str = told["id"]
    return id


def test_a_job_is_pushed_pulled_and_acknowledged(ask: Way) -> None:
    id = push(ask, f"{ask.name}.round", name="mail", priority=3)
    assert ask("GET", f"/jobs/{id}")[1]["job"]["state"] == "prioritized"
    status, told = ask("GET", f"/queues/{ask.name}.round/jobs")
    assert (status, told["job"]["id"], told["job"]["name"]) == (200, id, "mail")
    assert ask("POST", f"/jobs/{id}/ack", {"result": {"sent": True}}) == (200, {"ok": True})
    _, told = ask("GET", f"/jobs/{id}/result")
    assert told == {"ok": True, "id": id, "result": {"sent": True}}


def test_a_job_fails_with_an_error(ask: Way) -> None:
    id = push(ask, f"{ask.name}.fails", attempts=1)
    assert ask("GET", f"/queues/{ask.name}.fails/jobs")[1]["job"]["id"] == id
    assert ask("POST", f"/jobs/{id}/fail", {"error": "boom"}) == (200, {"ok": True})
    _, told = ask("GET", f"/queues/{ask.name}.fails/dlq?limit=1")
    assert (told["total"], told["entries"][0]["error"]) == (1, "boom")
    _, told = ask("GET", f"/queues/{ask.name}.fails/dlq?limit=0")
    assert (told["total"], told["entries"]) == (1, [])
    assert ask("GET", f"/queues/{ask.name}.fails/dlq/stats")[1]["stats"]["total"] == 1


def test_jobs_are_pushed_and_pulled_in_bulk(ask: Way) -> None:
    queue = f"{ask.name}.bulk"
    _, told = ask("POST", f"/queues/{queue}/jobs/bulk", {"jobs": [{"data": n} for n in range(3)]})
    ids = told["ids"]
    body = {"count": 2, "owner": "me"}
    _, told = ask("POST", f"/queues/{queue}/jobs/pull-batch", body)
    assert [job["id"] for job in told["jobs"]] == ids[:2]
    done = {"ids": ids[:2], "tokens": told["tokens"]}
    assert ask("POST", "/jobs/ack-batch", done)[1]["ok"]
    _, told = ask("GET", f"/queues/{queue}/jobs/list?state=completed&state=waiting")
    assert len(told["jobs"]) == 3


def test_a_job_tells_why_it_does_not_run(ask: Way) -> None:
    id = push(ask, f"{ask.name}.why", delay=60_000)
    status, told = ask("GET", f"/jobs/{id}/explain")
    assert status == 200
    assert told["data"]["state"] == "delayed"
    assert ask("GET", "/jobs/nope/explain")[1]["data"]["state"] == "unknown"


def test_groups_have_routes(ask: Way) -> None:
    queue = f"{ask.name}.groups"
    push(ask, queue, groupId="a/b")
    path = f"/queues/{queue}/groups/a%2Fb"
    assert ask("GET", f"{path}/count")[1]["data"] == {"count": 1}
    assert ask("PUT", f"{path}/concurrency", {"concurrency": 2}) == (200, {"ok": True})
    assert ask("POST", f"{path}/pause")[0] == 200
    assert ask("GET", f"{path}/paused")[1]["data"] == {"paused": True}


def test_a_head_takes_no_job(ask: Way) -> None:
    queue = f"{ask.name}.head"
    push(ask, queue)
    assert ask("HEAD", f"/queues/{queue}/jobs")[0] == 404
    assert ask("GET", f"/queues/{queue}/count")[1]["count"] == 1


@pytest.mark.parametrize(
    ("method", "path"),
    [("PUT", "/queues/q/jobs"), ("PATCH", "/ping"), ("DELETE", "/queues"), ("GET", "/queues/q")],
)
def test_a_method_that_a_path_does_not_have_is_not_found(ask: Way, method: str, path: str) -> None:
    assert ask(method, path, {}) == (404, {"ok": False, "error": "Not found"})


def test_routes_of_others_are_not_taken_for_commands(ask: Way) -> None:
    push(ask, f"{ask.name}.summed")
    _, told = ask("GET", "/queues/summary")
    assert f"{ask.name}.summed" in [queue["name"] for queue in told]


# -- which command a path means --------------------------------------------------------------------


async def _nothing(_: Any) -> Response:
    return Response()


OTHERS: list[BaseRoute] = [Route("/jobs/board", _nothing, methods=["GET"])]


@pytest.mark.parametrize(
    ("method", "path", "command", "params"),
    [
        ("GET", "/jobs/7", "GetJob", {"id": "7"}),
        ("GET", "/jobs/custom/7", "GetJobByCustomId", {"customId": "7"}),
        ("GET", "/jobs/custom/state", "GetJobByCustomId", {"customId": "state"}),
        ("GET", "/jobs/7/state", "GetState", {"id": "7"}),
        ("POST", "/jobs/ack-batch", "ACKB", {}),
        ("GET", "/queues/q/jobs/list", "GetJobs", {"queue": "q"}),
        ("GET", "/jobs/search", "Search", {}),
        ("POST", "/queues/a%20b/jobs", "PUSH", {"queue": "a%20b"}),
    ],
)
def test_what_is_spelled_out_comes_before_a_name(
    method: str, path: str, command: str, params: dict[str, str]
) -> None:
    found = CommandPaths(OTHERS).find(method, path)
    assert found is not None
    assert (found[0].name, found[2]) == (command, params)


@pytest.mark.parametrize("path", ["/", "/jobs", "/jobs/", "/jobs/board", "/queues//jobs", "jobs/7"])
def test_other_paths_mean_no_command(path: str) -> None:
    assert CommandPaths(OTHERS).find("GET", path) is None


def test_every_route_leads_to_its_command() -> None:
    paths = CommandPaths([])
    for name, row in COMMANDS.items():
        for route in row.http:
            found = paths.find(route.method, route.path)
            assert found is not None
            assert found[0].name == name
