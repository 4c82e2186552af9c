"""Server-Sent Events."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, is_own
from tests.support.stream import Stream
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_a_reader_is_welcomed_and_told_of_jobs_in_short(server: Server, queue: str) -> None:
    with Stream(server.http_port) as stream, server.connect() as wire:
        assert stream.headers["content-type"] == "text/event-stream"
        assert stream.headers["cache-control"] == "no-cache"
        hello = stream.next()
        assert (hello["retry"], hello["data"]["connected"]) == ("3000", True)
        id = wire.ask("PUSH", queue=queue, data={"secret": 1})["id"]
        told = stream.take("job:pushed")
        assert told["id"] > 0
        assert told["data"].keys() == {"queue", "jobId", "timestamp"}
        assert told["data"]["jobId"] == id
        token = wire.ask("PULL", queue=queue, owner="w")["token"]
        assert stream.take("job:active")["data"]["jobId"] == id
        wire.ask("Progress", id=id, progress=30)
        assert stream.take("job:progress")["data"]["progress"] == 30
        wire.ask("FAIL", id=id, token=token, error="bad\nline")
        assert stream.take("job:failed")["data"]["error"] == "bad\nline"
        assert stream.take("job:retried")["data"]["prev"] == "failed"
        counts = stream.take("queue:counts")["data"]
        assert counts["queue"] == queue


def test_a_reader_of_one_queue_is_told_of_its_jobs_only(server: Server, queue: str) -> None:
    with Stream(server.http_port, f"/events/queues/{queue}") as stream, server.connect() as wire:
        stream.next()
        wire.ask("PUSH", queue=queue + "-other", data=1)
        id = wire.ask("PUSH", queue=queue, data=1)["id"]
        assert stream.take("job:pushed")["data"]["jobId"] == id


def test_a_path_is_read_as_it_was_sent(server: Server) -> None:
    with Stream(server.http_port, "/events/queues/a%2Fb") as stream, server.connect() as wire:
        assert stream.next()["data"]["connected"]
        wire.ask("Pause", queue="x")
        wire.ask("Pause", queue="a/b")
        assert stream.take("job:paused")["data"]["queue"] == "a/b"
        for queue in ("x", "a/b"):
            wire.ask("Resume", queue=queue)
    with Stream(server.http_port, "/events/queues/%ff") as stream:
        assert stream.status == 400


def test_who_comes_again_is_told_what_it_missed(server: Server, queue: str) -> None:
    path = f"/events/queues/{queue}"
    with server.connect() as wire:
        with Stream(server.http_port, path) as stream:
            stream.next()
            wire.ask("PUSH", queue=queue, data=1)
            seen = stream.take("job:pushed")["id"]
        missed = [wire.ask("PUSH", queue=queue, data=1)["id"] for _ in range(3)]
        wire.ask("PUSH", queue=queue + "-other", data=1)
        with Stream(server.http_port, path, Last_Event_ID=str(seen)) as stream:
            stream.next()
            again = [stream.take("job:pushed") for _ in missed]
            assert [told["data"]["jobId"] for told in again] == missed
            assert [told["id"] for told in again] == sorted(told["id"] for told in again)
            newest = wire.ask("PUSH", queue=queue, data=1)["id"]
            assert stream.take("job:pushed")["data"]["jobId"] == newest


@pytest.mark.parametrize("number", ["0", "-1", "x", "9" * 30, "1.5"])
def test_a_number_that_is_none_asks_for_nothing(server: Server, queue: str, number: str) -> None:
    with Stream(server.http_port) as stream, server.connect() as wire:
        stream.next()
        wire.ask("PUSH", queue=queue, data=1)
        stream.take("job:pushed")
        with Stream(server.http_port, Last_Event_ID=number) as late:
            assert "event" not in late.next()
            wire.ask("Pause", queue=queue)
            assert late.next()["event"] in ("job:paused", "queue:counts")


def test_a_number_of_an_earlier_run_is_older_than_all(server: Server, queue: str) -> None:
    path = f"/events/queues/{queue}"
    with Stream(server.http_port, path) as stream, server.connect() as wire:
        stream.next()
        id = wire.ask("PUSH", queue=queue, data=1)["id"]
        stream.take("job:pushed")
        with Stream(server.http_port, path, Last_Event_ID="123456789") as late:
            late.next()
            assert late.take("job:pushed")["data"]["jobId"] == id


def test_what_asks_for_no_stream_gets_none(web: Web) -> None:
    for method in ("POST", "PUT", "DELETE"):
        assert web.ask(method, "/events")[0] == 404


def test_a_question_for_the_head_alone_does_not_wait_for_ever(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.http_port), timeout=20) as line:
        line.sendall(b"HEAD /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert b" 404 " in line.makefile("rb").readline()


def test_a_reader_that_leaves_is_forgotten(server: Server, web: Web) -> None:
    streams = [Stream(server.http_port) for _ in range(3)]
    assert links(web)["sse"] >= 3
    for stream in streams:
        stream.close()
    eventually(lambda: links(web)["sse"] == 0, "the end of the readers")


def links(web: Web) -> dict[str, int]:
    found: dict[str, int] = web.get("/health")[1]["connections"]
    return found


def test_a_reader_that_does_not_read_is_cut_and_nobody_waits(
    new_server: Callable[..., Server],
) -> None:
    with new_server() as server, server.connect() as wire:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.http_port))
        slow.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        with Stream(server.http_port, "/events/queues/quick") as quick:
            quick.next()
            jobs = [{"data": 1}] * 1_000
            while "leaves" not in server.log_tail():
                assert wire.ask("PUSHB", queue="q", jobs=jobs)["ok"]
            wire.ask("PUSH", queue="quick", data=1)
            assert quick.take("job:pushed")
        slow.close()


def test_streams_end_with_the_server(new_server: Callable[..., Server]) -> None:
    server = new_server().start()
    with Stream(server.http_port) as stream:
        stream.next()
        server.stop()
        assert "event: server:shutdown\n" in stream.rest()


def test_a_stream_wants_a_token_where_there_is_one(new_server: Callable[..., Server]) -> None:
    with new_server(environment={"TANDEMQ_TOKEN": "alpha"}) as server:
        with Stream(server.http_port) as stream:
            assert stream.status == 401
        with Stream(server.http_port, Authorization="Bearer alpha") as stream:
            assert (stream.status, stream.next()["data"]["connected"]) == (200, True)
