"""WebSockets of clients that know no manners: bad handshakes, bad frames, answers left unread."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable

import pytest
from tests.support.server import Server, is_own
from tests.support.stream import PATIENCE, Socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")

WISHES = (
    "Host: x",
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
)
MASK = b"\0\0\0\0"
LAST = b"\x80\x82" + MASK + b"xx"


def shaking(*more: str) -> bytes:
    return "\r\n".join(("GET /ws HTTP/1.1", *WISHES, *more, "", "")).encode()


def said(port: int, request: bytes, more: bytes = b"") -> bytes:
    """Return all that the server says until it hangs up, to a request and what comes behind."""
    with socket.create_connection(("127.0.0.1", port), PATIENCE) as raw:
        raw.sendall(request)
        told = raw.recv(65_536)
        raw.sendall(more)
        while part := raw.recv(65_536):
            told += part
        return told


@pytest.mark.parametrize(
    "sent",
    [
        shaking("Content-Length: 5") + b"hello",
        shaking(*(f"X-{n}: x" for n in range(300))),
        shaking("X-Long: " + "x" * 20_000),
        b"GET /queues/q/jobs?timeout=60000 HTTP/1.1\r\nHost: x\r\nX-Long-Way: 1\r\n\r\n"
        + shaking(),
    ],
    ids=["a body", "many headers", "a long header", "behind what is not answered"],
)
def test_what_is_no_handshake_is_refused(server: Server, sent: bytes) -> None:
    head, _, body = said(server.http_port, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["ok"] is False


def test_where_there_is_no_socket_that_is_said(server: Server) -> None:
    with pytest.raises(InvalidStatus) as refused:
        Socket(server.http_port, "/nothing")
    assert refused.value.response.status_code == 404
    assert json.loads(refused.value.response.body)["error"] == "Not found"


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        (b"\x81\x02{}", 1002),  # not masked
        (b"\xc1\x82" + MASK + b"{}", 1002),  # compressed, which was not agreed on
        (b"\x83\x80" + MASK, 1002),  # of no kind that there is
        (b"\x80\x80" + MASK, 1002),  # goes on with nothing
        (b"\x09\x80" + MASK, 1002),  # a ping in parts
        (b"\x89\xfe\x00\x7e" + MASK + b"x" * 126, 1002),  # a long ping
        (b"\x01\x82" + MASK + b"{}\x81\x82" + MASK + b"{}", 1002),  # a message in another
        (b"\x81\xff\xff\xff\xff\xff\xff\xff\xff\xff" + MASK, 1009),
        (b"\x81\xff\0\0\0\0\0\x20\0\0" + MASK, 1009),
        (b"\x01\xff\0\0\0\0\0\x0f\xff\xff" + MASK + b"x" * 0xFFFFF + LAST, 1009),
        (b"\x88\x81" + MASK + b"x", 1002),  # takes its leave in half a word
        (b"\x88\x84" + MASK + b"\x03\xe8\xff\xfe", 1007),  # or in none
    ],
)  # fmt: skip
def test_frames_against_the_rules_end_the_socket(server: Server, frames: bytes, code: int) -> None:
    told = said(server.http_port, shaking(), frames)
    assert told.startswith(b"HTTP/1.1 101 ")
    assert b"\x88" in told
    assert int.from_bytes(told.rpartition(b"\x88")[2][1:3], "big") == code


def test_who_sends_pings_and_reads_no_answer_is_cut(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.http_port), PATIENCE) as raw:
        raw.sendall(shaking())
        pings = (b"\x89\xfd" + MASK + b"x" * 125) * 500
        with pytest.raises(ConnectionError):  # noqa: PT012  # it ends while we write
            for _ in range(2_000):
                raw.sendall(pings)
            raise AssertionError("it took everything")


def test_commands_that_wait_are_few_or_small(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws:
        for _ in range(12):
            ws.send("PULL", queue=queue, timeout=300, padding="x" * 1_000_000)
        ws.send("Ping", reqId="last")
        assert "job" in ws.next()  # without a bound the ping would be answered first


def test_the_last_of_too_many_logins_is_answered(new_server: Callable[..., Server]) -> None:
    environment = {"TANDEMQ_TOKEN": "alpha", "TANDEMQ_LOGIN_LIMIT": "2"}
    server = new_server(environment=environment).start()
    with Socket(server.http_port, Authorization="Bearer alpha") as ws:
        answers = [ws.ask("Auth", token="wrong")["error"] for _ in range(3)]
        assert answers[0] == answers[1] == "Unauthorized"
        assert answers[2].startswith("Too many failed logins (2)")
        with pytest.raises(ConnectionClosed):
            ws.next()
        assert ws.raw.close_code == 1008
