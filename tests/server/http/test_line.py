"""One HTTP connection: bad bytes, bounds of size and time, and two ways with the same answers."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

from tandemq.server.http.line import MOST_HEAD

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")
LINES = b"\r\n"


class Raw:
    """A connection on which anything may be written."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 20)

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *parts: bytes) -> None:
        self.socket.sendall(b"".join(parts))

    def answer(self) -> tuple[int, bytes]:
        """Return status and body of the next answer; (0, b"") when the server hangs up."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            if not (got := self.socket.recv(1)):
                return 0, b""
            head += got
        size = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0] or b"0")
        body = b""
        while len(body) < size:
            body += self.socket.recv(size - len(body))
        return int(head.split(b" ")[1]), body

    def ended(self) -> bool:
        """Whether the server hangs up, whatever it says before."""
        while self.socket.recv(65_536):
            pass
        return True


@pytest.fixture
def raw(server: Server) -> Iterator[Raw]:
    with Raw(server.http_port) as raw:
        yield raw


def head(target: str, *headers: str, method: str = "POST") -> bytes:
    lines = (f"{method} {target} HTTP/1.1", "Host: x", *headers, "", "")
    return "\r\n".join(lines).encode("latin-1")


def push(queue: str, body: bytes, *headers: str) -> bytes:
    return head(f"/queues/{queue}/jobs", *headers, f"Content-Length: {len(body)}") + body


CHUNKED = "Transfer-Encoding: chunked"
GOOD = b'{"data":1}'


def chunked(queue: str, body: bytes) -> bytes:
    return head(f"/queues/{queue}/jobs", CHUNKED) + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


# -- both ways -----------------------------------------------------------------------------------

BODIES = (
    GOOD,
    b"",
    b"{",
    b"null",
    b"[1]",
    b"5",
    b'"text"',
    b'{"data":',
    b'{"data":NaN}',
    b'{"data":"\xff"}',
    b'{"data":"\\ud800"}',
    b"[" * 100_000,
    b'{"data":' + b"[" * 600 + b"]" * 600 + b"}",
    b'{"data":12345678901234567}',
    b'{"data":123456789012345678901234567890}',
    b'{"data":1e999}',
    b'{"priority":"x"}',
    b'{"cmd":"Obliterate","reqId":7,"queue":"other","data":1}',
    b'{"data":{"__proto__":1}}',
)


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body[:24].decode("latin-1"))
def test_both_ways_give_the_same_answer(raw: Raw, body: bytes) -> None:
    raw.send(push("both", body))
    short = raw.answer()
    raw.send(chunked("both", body) if body else push("both", body, "X-Long-Way: 1"))
    long = raw.answer()
    if short[0] == 200:
        assert long[0] == 200
    else:
        assert short == long
        assert short[0] == 400
        assert json.loads(short[1])["ok"] is False


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/queues/a%2Fb/jobs", 400),  # a bad name, not another path
        ("/queues/%2e%2e/jobs", 200),  # a name, however odd
        ("/queues/../jobs", 200),  # paths are names, no folder is left
        ("/queues/%FF/jobs", 400),
        ("/queues/%00/jobs", 400),
        ("/queues/%zz/jobs", 400),
        ("/queues/%252e/jobs", 400),  # decoded once
        ("/queues//jobs", 404),
        ("/queues/q/jobs/", 404),
        ("//queues/q/jobs", 404),
        ("/queues/q/jobs;x", 404),
        ("/QUEUES/q/jobs", 404),
    ],
)
def test_paths_are_taken_as_they_are_on_both_ways(raw: Raw, path: str, status: int) -> None:
    for more in ((), ("X-Long-Way: 1",)):
        raw.send(head(path, *more, f"Content-Length: {len(GOOD)}"), GOOD)
        assert raw.answer()[0] == status, (path, more)


def test_requests_in_one_write_are_answered_in_their_order(raw: Raw) -> None:
    raw.send(*(push("row", b'{"data":1,"jobId":"row-%d"}' % n) for n in range(20)))
    for n in range(20):
        assert raw.answer() == (200, b'{"ok":true,"id":"row-%d"}' % n)


def test_both_ways_take_turns_on_one_connection(raw: Raw) -> None:
    for n in range(6):
        way = push if n % 2 else chunked
        raw.send(way("turns", b'{"jobId":"turn-%d"}' % n))
        assert raw.answer() == (200, b'{"ok":true,"id":"turn-%d"}' % n)


def test_a_request_may_come_in_pieces(raw: Raw) -> None:
    data = push("pieces", b'{"jobId":"pieces"}')
    for at in range(0, len(data), 7):
        raw.send(data[at : at + 7])
    assert raw.answer() == (200, b'{"ok":true,"id":"pieces"}')
    for part in (data[:-5], data[-5:]):  # the head as a whole
        raw.send(part)
    assert raw.answer() == (200, b'{"ok":true,"id":"pieces"}')


def test_requests_behind_one_that_waits_are_answered_later(raw: Raw) -> None:
    raw.send(head("/queues/waits/jobs?timeout=300", method="GET"), push("other", GOOD))
    assert raw.answer() == (200, b'{"ok":true,"job":null}')
    assert raw.answer()[0] == 200


def test_a_head_that_repeats_but_for_its_length_is_read_again(raw: Raw) -> None:
    for n in (1, 22, 333):
        raw.send(push("lengths", b'{"jobId":"length-%d"}' % n))
        assert raw.answer() == (200, b'{"ok":true,"id":"length-%d"}' % n)


# -- what is no request --------------------------------------------------------------------------

NONSENSE = {
    "both lengths": head("/queues/q/jobs", "Content-Length: 5", CHUNKED) + b"0\r\n\r\n",
    "lengths that differ": head("/queues/q/jobs", "Content-Length: 5", "Content-Length: 6"),
    "no host": b"GET /ping HTTP/1.1\r\nX-A: 1\r\n\r\n",
    "two hosts": head("/ping", "Host: y", method="GET"),
    "a negative length": head("/queues/q/jobs", "Content-Length: -5"),
    "a length with a sign": head("/queues/q/jobs", "Content-Length: +5") + b"{    ",
    "a length in words": head("/queues/q/jobs", "Content-Length: five"),
    "two lengths in one": head("/queues/q/jobs", "Content-Length: 5, 5"),
    "chunks said twice": head("/queues/q/jobs", "Transfer-Encoding: chunked, identity"),
    "a chunk of no size": head("/queues/q/jobs", CHUNKED) + b"zz\r\n",
    "a space before a colon": head("/queues/q/jobs", "Content-Length : 2") + b"{}",
    "a folded header": head("/queues/q/jobs", "X-A: 1\r\n 2") + b"",
    "a bare return": b"GET /ping HTTP/1.1\rHost: x\r\r",
    "no version": b"GET /ping\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
    "a frame of the wires": b"\x00\x00\x00\x05\x81\xa3cmd",
    "spaces in the target": b"GET /pi ng HTTP/1.1\r\nHost: x\r\n\r\n",
    "a zero byte in a header": head("/ping", "X-A: \0", method="GET"),
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("sent", NONSENSE.values(), ids=NONSENSE)
def test_what_is_no_request_ends_the_connection(raw: Raw, sent: bytes) -> None:
    raw.send(sent)
    status, body = raw.answer()
    assert (status, json.loads(body)["ok"]) == (400, False)
    assert raw.ended()


def test_a_request_hidden_in_another_is_not_served(server: Server, raw: Raw) -> None:
    hidden = push("smuggled", GOOD)
    with pytest.raises(ConnectionError):  # noqa: PT012  # whichever of the two it is
        raw.send(head("/queues/q/jobs", "Content-Length: 4", CHUNKED), b"0\r\n\r\n", hidden)
        assert raw.answer()[0] == 400
        raw.ended()
        raise ConnectionError
    web = Web(server.http_port)
    assert web.get("/queues/smuggled/count") == (200, {"ok": True, "count": 0})
    web.close()


# -- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "lines",
    [
        [f"X-Long: {'x' * (MOST_HEAD + 1)}"],
        [f"X-{n}: {'y' * 60}" for n in range(1_100)],
    ],
    ids=["one", "many"],
)
def test_a_head_that_is_too_large_is_refused(raw: Raw, lines: list[str]) -> None:
    raw.send(head("/ping", *lines, method="GET"))
    status, body = raw.answer()
    assert (status, json.loads(body)["ok"]) == (431, False)


def test_a_target_that_is_too_large_is_refused(raw: Raw) -> None:
    raw.send(head("/" + "x" * (MOST_HEAD + 1), method="GET"))
    assert raw.answer()[0] == 431


def test_a_head_that_never_ends_is_refused(raw: Raw) -> None:
    raw.send(b"GET /ping HTTP/1.1\r\nX-A: ")
    with pytest.raises(ConnectionError):  # noqa: PT012  # it hangs up while we write
        for _ in range(10_000):
            raw.send(b"x" * 1_000)
        raise AssertionError("it took everything")


@pytest.fixture
def small(new_server: Callable[..., Server]) -> Server:
    """A server with little patience and room."""
    environment = {"TANDEMQ_MAX_FRAME_BYTES": "2000", "TANDEMQ_HALF_FRAME_TIMEOUT": "1"}
    return new_server(environment=environment).start()


def test_what_is_too_large_or_too_slow_is_refused(small: Server) -> None:
    body = b'{"data":"' + b"x" * 3_000 + b'"}'
    for sent in (push("large", body), chunked("large", body)):
        with Raw(small.http_port) as raw:
            raw.send(sent)
            status, said = raw.answer()
            assert (status, json.loads(said)["ok"]) == (413, False)
    slow = (
        b"POST /queues/slow",  # the head
        push("slow", GOOD)[:-3],  # the body
        head("/queues/slow/jobs", CHUNKED) + b"5\r\n{",  # a chunk
    )
    lines = [Raw(small.http_port) for _ in slow]
    for raw, begun in zip(lines, slow, strict=True):
        raw.send(begun)
    for raw in lines:
        status, said = raw.answer()
        assert (status, json.loads(said)["ok"]) == (408, False)
        assert raw.ended()
        raw.socket.close()
    with Raw(small.http_port) as raw:
        raw.send(push("large", GOOD))
        assert raw.answer()[0] == 200  # it is well


def test_connections_are_limited_together_with_those_of_the_wires(
    new_server: Callable[..., Server],
) -> None:
    server = new_server(environment={"TANDEMQ_MAX_CONNECTIONS": "2"}).start()
    lines = [Raw(server.http_port) for _ in range(2)]
    for raw in lines:
        raw.send(push("few", GOOD))
        assert raw.answer()[0] == 200
    with Raw(server.http_port) as raw:
        assert raw.answer()[0] == 503
        assert raw.ended()
    for raw in lines:
        raw.socket.close()


# -- clients that leave --------------------------------------------------------------------------


@pytest.mark.parametrize("headers", [(), ("X-Long-Way: 1",)], ids=["short", "long"])
def test_no_job_goes_to_a_client_that_has_hung_up(server: Server, headers: tuple[str, ...]) -> None:
    queue = f"gone{len(headers)}"
    with Raw(server.http_port) as raw:
        raw.send(head(f"/queues/{queue}/jobs?timeout=60000", *headers, method="GET"))
        web = Web(server.http_port)
        assert web.get("/ping")[0] == 200  # so the pull waits by now
    web.get("/ping")
    _, pushed = web.post(f"/queues/{queue}/jobs", {"data": 1})
    assert web.get(f"/jobs/{pushed['id']}/state")[1]["state"] == "waiting"
    assert web.get(f"/queues/{queue}/jobs")[1]["job"]["id"] == pushed["id"]
    web.close()


def test_a_pulled_job_outlives_the_connection(server: Server) -> None:
    web = Web(server.http_port)
    _, pushed = web.post("/queues/outlives/jobs", {"data": 1})
    _, batch = web.post("/queues/outlives/jobs/pull-batch", {"count": 1})
    assert batch["jobs"][0]["id"] == pushed["id"]
    web.close()
    again = Web(server.http_port)
    assert again.get(f"/jobs/{pushed['id']}/state")[1]["state"] == "active"
    assert again.post(f"/jobs/{pushed['id']}/ack") == (200, {"ok": True})
    again.close()


def test_a_worker_outlives_the_connection_that_registered_it(server: Server) -> None:
    web = Web(server.http_port)
    _, told = web.post("/workers", {"name": "w", "queues": ["stays"]})
    web.close()
    again = Web(server.http_port)
    _, found = again.get("/queues/stays/workers")
    assert [worker["id"] for worker in found["workers"]] == [told["data"]["workerId"]]
    again.close()
