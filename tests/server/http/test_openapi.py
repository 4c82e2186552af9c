"""The document of what there is over HTTP, and whether the server keeps to it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.offline import serving
from tests.support.server import Server, clean_environment, is_own
from tests.support.web import Web

from tandemq.commands.all import COMMANDS
from tandemq.server.http.app import PARTS
from tandemq.server.http.face import Face
from tandemq.server.http.manual import HEADERS, rendered
from tandemq.server.http.openapi import document

SECONDS = 600 if os.environ.get("TANDEMQ_SOAK") else 25
WAITING = ("PULL", "PULLB", "WaitJob")  # commands that a fuzzer would spend its time in
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance"


def test_every_command_has_decided_about_http() -> None:
    undecided = [name for name, row in COMMANDS.items() if not row.decided]
    assert not undecided, f"give them routes, or http=None: {undecided}"


def test_no_two_commands_have_the_same_route() -> None:
    routes = [
        (r.method, re.sub("{.*?}", "{}", r.path)) for row in COMMANDS.values() for r in row.http
    ]
    assert len(routes) == len(set(routes))


def test_the_parameters_of_paths_are_fields_of_their_commands() -> None:
    for name, row in COMMANDS.items():
        fields = row.request.__struct_encode_fields__
        for route in row.http:
            assert set(re.findall(r"{(\w+)}", route.path)) <= set(fields), name


def test_every_route_of_the_table_is_in_the_document() -> None:
    paths = document()["paths"]
    for row in COMMANDS.values():
        for route in row.http:
            operation = paths[route.path][route.method.lower()]
            assert operation["summary"] == row.summary


async def test_every_other_route_is_in_the_document() -> None:
    async with serving() as runtime:
        face = Face(runtime)
        found = {getattr(route, "path", "") for part in PARTS for route in part(face)}
    parts = {"/docs.css", "/ui/{path:path}", "/events/{rest:path}", "/{rest:path}"}
    assert found - set(document()["paths"]) == parts


def test_a_push_is_described_by_the_fields_that_it_has_over_http() -> None:
    body = document()["paths"]["/queues/{queue}/jobs"]["post"]["requestBody"]
    fields = body["content"]["application/json"]["schema"]["properties"]
    assert fields["priority"]["anyOf"][0] == {
        "type": "integer",
        "minimum": -1_000_000,
        "maximum": 1_000_000,
    }
    assert body["required"]
    assert "dedup" not in fields


def test_operations_have_names_of_their_own() -> None:
    paths = document()["paths"].values()
    names = [operation["operationId"] for methods in paths for operation in methods.values()]
    assert len(names) == len(set(names))


def test_the_page_shows_every_operation_and_asks_no_other_site() -> None:
    page = rendered()
    for path in document()["paths"]:
        assert f"<code>{path}</code>" in page
    assert "<script" not in page
    assert not re.search(r'(src|href)="(https?:)?//', page)
    assert "default-src 'none'" in HEADERS["Content-Security-Policy"]


def test_the_document_and_the_page_are_served(server: Server) -> None:
    web = Web(server.http_port)
    try:
        assert web.get("/openapi.json") == (200, json.loads(json.dumps(document())))
        status, page = web.get("/docs")
        assert (status, page) == (200, rendered())
        assert web.headers["content-security-policy"].startswith("default-src 'none'")
        assert web.get("/docs.css")[0] == 200
    finally:
        web.close()


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.skipif(not is_own(), reason="the document is of this server")
def test_no_request_ends_in_a_way_that_is_not_documented(
    new_server: Callable[..., Server], tmp_path: Path
) -> None:
    server = new_server()
    server.data = Path("memory")
    server.start()
    command = [str(Path(sys.executable).parent / "schemathesis"), "run"]
    command += [f"http://127.0.0.1:{server.http_port}/openapi.json", "--checks", CHECKS]
    command += ["--max-time", str(SECONDS), "--request-timeout", "20", "--warnings", "off"]
    command += [
        "--generation-database",
        "none",
        "--no-color",
        "--exclude-path-regex",
        "^/(events|ws)",
    ]
    for name in WAITING:
        command += ["--exclude-operation-id", name]
    played = subprocess.run(
        command,
        env=clean_environment(),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS + 90,
        check=False,
    )
    assert played.returncode == 0, played.stdout[-8_000:]
    assert "Traceback" not in server.log_tail(1_000_000), server.log_tail(8_000)
