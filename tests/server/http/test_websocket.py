"""WebSockets: commands and events."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest
from tests.support.server import Server, is_own
from tests.support.stream import Socket
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")


def test_commands_are_answered_with_their_request_id(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws:
        ws.ask("Unsubscribe")
        ws.send("PUSH", queue=queue, data={"n": 2**53}, reqId=[1])
        pushed = ws.next()
        assert (pushed["ok"], pushed["reqId"]) == (True, [1])
        pulled = ws.ask("PULL", queue=queue, owner="w")
        assert pulled["job"]["data"] == {"n": 2**53}
        ws.send("ACK", id=pushed["id"], token=pulled["token"])
        assert ws.next() == {"ok": True}
        assert ws.ask("GetState", id=pushed["id"])["state"] == "completed"


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        ("no json", "Invalid JSON"),
        ("", "Invalid JSON"),
        ("null", "Invalid JSON"),
        ("[" * 5_000, "Invalid JSON"),
        ("[]", "Invalid command"),
        ("{}", "Invalid command"),
        ('{"cmd":""}', "Invalid command"),
        ('{"cmd":"Nope"}', "Unknown command: Nope"),
        ('{"cmd":7}', "Unknown command: 7"),
        ('{"cmd":["Ping"]}', "Unknown command: ['Ping']"),
        ('{"cmd":"PUSH","queue":"!"}', "Queue name contains invalid characters"),
    ],
)
def test_what_is_no_command_is_refused_and_the_next_one_served(
    server: Server, sent: str, error: str
) -> None:
    with Socket(server.http_port) as ws:
        ws.raw.send(sent)
        assert ws.next() == {"ok": False, "error": error}
        assert ws.ask("Ping")["data"]["pong"]


def test_commands_in_bytes_and_in_parts_are_read_too(server: Server) -> None:
    with Socket(server.http_port) as ws:
        ws.raw.send(b'{"cmd":"Ping"}')
        assert ws.next()["data"]["pong"]
        ws.raw.send(iter(('{"cmd":', '"Ping"}')))
        assert ws.next()["data"]["pong"]


def test_text_that_is_no_utf_8_is_no_json(server: Server) -> None:
    with Socket(server.http_port) as ws:
        ws.raw.send(b'{"cmd":"\xff"}', text=True)
        assert ws.next() == {"ok": False, "error": "Invalid JSON"}
        assert ws.ask("Ping")["ok"]


def test_a_number_that_json_readers_would_change_is_refused(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws:
        ws.raw.send(f'{{"cmd":"PUSH","queue":"{queue}","data":9007199254740993}}')
        assert "9007199254740993" in ws.next()["error"]


def test_a_waiting_command_holds_up_no_other(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws:
        ws.ask("Unsubscribe")
        ws.send("PULL", queue=queue, timeout=20_000, reqId="waits")
        assert ws.ask("Ping")["ok"]
        ws.send("PUSH", queue=queue, data=1, reqId="pushes")
        answers = {told["reqId"]: told for told in (ws.next(), ws.next())}
        assert answers["waits"]["job"]["id"] == answers["pushes"]["id"]


def test_jobs_go_back_when_their_socket_ends(server: Server, queue: str) -> None:
    with server.connect() as wire:
        id = wire.ask("PUSH", queue=queue, data=1)["id"]
        with Socket(server.http_port) as ws:
            assert ws.ask("PULL", queue=queue)["job"]["id"] == id
        assert wire.ask("PULL", queue=queue, timeout=20_000)["job"]["id"] == id


def test_who_says_nothing_is_told_of_all_jobs_whole(server: Server, queue: str) -> None:
    with Socket(server.http_port, f"/ws/queues/{queue}") as ws, server.connect() as wire:
        ws.ask("Ping")
        wire.ask("PUSH", queue=queue + "-other", data=1)
        id = wire.ask("PUSH", queue=queue, data={"x": 1}, maxAttempts=1)["id"]
        told = ws.take("pushed")
        assert told.keys() == {"eventType", "queue", "jobId", "timestamp"}
        assert told["jobId"] == id
        token = wire.ask("PULL", queue=queue, owner="w")["token"]
        wire.ask("FAIL", id=id, token=token, error="no")
        told = ws.take("failed")
        assert (told["data"], told["error"], told["terminal"]) == ({"x": 1}, "no", True)


def test_who_subscribes_is_told_of_what_it_chose(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws, server.connect() as wire:
        assert ws.ask("Subscribe", events=["job:*", "queue:paused"])["subscribed"] == [
            "job:*",
            "queue:paused",
        ]
        id = wire.ask("PUSH", queue=queue, data=1)["id"]
        told = ws.take("job:pushed")
        assert told.keys() == {"event", "ts", "data"}
        assert told["data"] == {"queue": queue, "jobId": id}
        wire.ask("Pause", queue=queue)
        assert ws.take("queue:paused")["data"] == {"queue": queue}
        assert ws.ask("Unsubscribe", events=["job:*"])["subscribed"] == ["queue:paused"]
        wire.ask("PUSH", queue=queue, data=1)
        wire.ask("Resume", queue=queue)
        wire.ask("Pause", queue=queue)
        assert ws.next()["event"] == "queue:paused"
        assert ws.ask("Unsubscribe")["subscribed"] == []
        wire.ask("PUSH", queue=queue, data=1)
        ws.send("Ping")
        assert ws.next()["ok"]


@pytest.mark.parametrize("events", [None, [], "job:*", {}, 1])
def test_a_subscription_names_events(server: Server, events: object) -> None:
    with Socket(server.http_port) as ws:
        answer = ws.ask("Subscribe", events=events)
    assert answer == {"ok": False, "error": "events must be a non-empty array"}


def test_a_subscription_with_an_unknown_name_changes_nothing(server: Server) -> None:
    with Socket(server.http_port) as ws:
        answer = ws.ask("Subscribe", events=["job:*", "bogus", "flow:pushed", "bogus:*", 5])
        assert answer["error"] == "Invalid: bogus, flow:pushed, bogus:*, 5"
        assert ws.ask("Subscribe", events=["*"])["subscribed"] == ["*"]


def test_events_can_be_asked_for_as_on_the_wire(server: Server, queue: str) -> None:
    with Socket(server.http_port) as ws, server.connect() as wire:
        assert not ws.ask("SubscribeEvents", queue="!")["ok"]
        assert ws.ask("SubscribeEvents", queue=queue) == {"ok": True}
        wire.ask("PUSH", queue=queue + "-other", data=1)
        id = wire.ask("PUSH", queue=queue, data=1)["id"]
        assert ws.next()["jobId"] == id
        assert ws.ask("UnsubscribeEvents") == {"ok": True}
        wire.ask("PUSH", queue=queue, data=1)
        ws.send("Ping")
        assert ws.next()["ok"]


def test_a_message_over_the_limit_ends_the_socket(server: Server) -> None:
    with Socket(server.http_port) as ws:
        ws.raw.send("x" * ((1 << 20) + 1))
        with pytest.raises(ConnectionClosed) as ended:
            ws.next()
        assert ended.value.rcvd is not None
        assert ended.value.rcvd.code == 1009


def test_a_socket_that_does_not_read_is_cut(new_server: Callable[..., Server]) -> None:
    upgrade = (
        b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with new_server() as server, server.connect() as wire:
        slow = socket.socket()
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.http_port))
        slow.sendall(upgrade)
        assert b" 101 " in slow.recv(64)
        while "leaves" not in server.log_tail():
            assert wire.ask("PUSHB", queue="q", jobs=[{"data": 1}] * 1_000)["ok"]
        slow.close()


def test_sockets_are_told_when_the_server_stops(new_server: Callable[..., Server]) -> None:
    server = new_server().start()
    with Socket(server.http_port) as ws:
        ws.send("PULL", queue="q", timeout=20_000)
        ws.ask("Ping")
        server.stop()
        with pytest.raises(ConnectionClosed):
            ws.take("pushed")
        assert ws.raw.close_code == 1012


def test_a_socket_wants_a_token_where_there_is_one(new_server: Callable[..., Server]) -> None:
    with new_server(environment={"TANDEMQ_TOKEN": "alpha"}) as server:
        with pytest.raises(InvalidStatus) as refused:
            Socket(server.http_port)
        assert refused.value.response.status_code == 401
        with Socket(server.http_port, Authorization="Bearer alpha") as ws:
            assert ws.ask("Count", queue="q") == {"ok": True, "count": 0}


def test_pages_of_strangers_may_not_connect(new_server: Callable[..., Server]) -> None:
    environment = {"TANDEMQ_CORS_ORIGINS": "https://friend.example"}
    with new_server(environment=environment) as server:
        with pytest.raises(InvalidStatus) as refused:
            Socket(server.http_port, Origin="https://stranger.example")
        assert refused.value.response.status_code == 403
        for origin in ("https://friend.example", f"http://127.0.0.1:{server.http_port}"):
            with Socket(server.http_port, Origin=origin) as ws:
                assert ws.ask("Ping")["ok"]
