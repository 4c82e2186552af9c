"""Who may hear and see what: users with grants, on the faces that look on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.stream import Socket, Stream
from tests.support.web import Web
from tests.support.wire import Wire
from websockets.exceptions import ConnectionClosed, InvalidStatus

pytestmark = pytest.mark.skipif(not is_own(), reason="users of this server are tested")

ENVIRONMENT = {
    "TANDEMQ_SUPERUSER": "root",
    "TANDEMQ_SUPERUSER_PASSWORD": "hunter2",
    "TANDEMQ_PASSWORD_HASH_BYTES": "8KiB",
    "TANDEMQ_PASSWORD_HASH_ROUNDS": "1",
    "TANDEMQ_LOGIN_LIMIT": "0",
}


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("closed"), environment=ENVIRONMENT) as server:
        yield server
        assert "Traceback" not in server.log_tail(1_000_000), server.log_tail(20_000)


@pytest.fixture
def root(closed: Server) -> Iterator[Wire]:
    with closed.connect() as wire:
        wire.do("Auth", user="root", password="hunter2")
        yield wire


@pytest.fixture
def reader(root: Wire) -> Iterator[str]:
    """The credentials of a user who may subscribe to mine.* and look at it."""
    root.do("CreateUser", name="reader", password="x")
    operations = ["Subscribe", "GetQueueInfo", "ListQueues"]
    root.do("GrantPermission", name="reader", pattern="mine.*", operations=operations)
    told = root.do("CreateToken", name="reader")
    token = told.get("token") or told["data"]["token"]
    yield f"Bearer {token}"
    root.ask("DeleteUser", name="reader")


def test_a_reader_is_told_of_its_queues_only(closed: Server, root: Wire, reader: str) -> None:
    with Stream(closed.http_port, Authorization=reader) as stream:
        stream.next()
        root.do("PUSH", queue="other", data=1)
        root.do("Pause", queue="other")
        root.do("RegisterWorker", name="w", queues=["mine.a"])
        root.do("PUSH", queue="mine.a", data=1)
        told = [stream.next() for _ in range(2)]
        assert [each["event"] for each in told] == ["job:pushed", "queue:counts"]
        assert {each["data"]["queue"] for each in told} == {"mine.a"}
        root.do("Resume", queue="other")


def test_what_was_missed_is_judged_too(closed: Server, root: Wire, reader: str) -> None:
    with Stream(closed.http_port, Authorization=reader) as stream:
        stream.next()
        root.do("PUSH", queue="other", data=1)
        id = root.do("PUSH", queue="mine.a", data=1)["id"]
        stream.take("job:pushed")
        with Stream(closed.http_port, Authorization=reader, Last_Event_ID="99999999") as late:
            late.next()
            assert {late.next()["data"]["queue"] for _ in range(2)} == {"mine.a"}
            assert root.do("GetState", id=id)["state"] == "waiting"


@pytest.mark.parametrize("path", ["/events/queues/other", "/events/queues/MINE.a"])
def test_a_queue_that_is_not_granted_has_no_stream(closed: Server, reader: str, path: str) -> None:
    with Stream(closed.http_port, path, Authorization=reader) as stream:
        assert stream.status == 403
    with pytest.raises(InvalidStatus) as refused:
        Socket(closed.http_port, path.replace("/events", "/ws"), Authorization=reader)
    assert refused.value.response.status_code == 403


def test_a_revoked_grant_is_heard_of_no_more(closed: Server, root: Wire, reader: str) -> None:
    with Stream(closed.http_port, "/events/queues/mine.a", Authorization=reader) as stream:
        stream.next()
        root.do("GrantPermission", name="reader", pattern="mine.b", operations=["Subscribe"])
        root.do("RevokePermission", name="reader", pattern="mine.*")
        root.do("PUSH", queue="mine.a", data=1)
        root.do("Pause", queue="mine.b")
        assert stream.take("queue:paused")["data"]["queue"] == "mine.b"
        root.do("Resume", queue="mine.b")


def test_the_stream_of_a_deleted_user_ends(closed: Server, root: Wire, reader: str) -> None:
    with (
        Stream(closed.http_port, Authorization=reader) as stream,
        Socket(closed.http_port, Authorization=reader) as ws,
    ):
        stream.next()
        assert ws.ask("Ping")["ok"]
        root.do("DeleteUser", name="reader")
        stream.rest()
        with pytest.raises(ConnectionClosed):
            ws.next()
        assert ws.raw.close_code == 1008
    with Stream(closed.http_port, Authorization=reader) as stream:
        assert stream.status == 401


def test_commands_of_a_socket_are_judged(closed: Server, root: Wire, reader: str) -> None:
    with Socket(closed.http_port, Authorization=reader) as ws:
        assert ws.ask("Count", queue="mine.a")["ok"]
        for cmd in ("Count", "SubscribeEvents", "Pause"):
            assert not ws.ask(cmd, queue="other")["ok"], cmd
        assert not ws.ask("Stats")["ok"]
        ws.ask("Subscribe", events=["*"])
        root.do("Pause", queue="other")
        root.do("Pause", queue="mine.a")
        assert ws.take("queue:paused")["data"] == {"queue": "mine.a"}
        for queue in ("other", "mine.a"):
            root.do("Resume", queue=queue)


def test_the_api_of_the_brokers_page_is_judged(closed: Server, root: Wire, reader: str) -> None:
    for queue in ("mine.c", "other.c"):
        root.do("PUSH", queue=queue, data=1)
    web = Web(closed.http_port)
    seen = {"Authorization": reader}
    names = web.get("/api/queues", headers=seen)[1]
    assert ("mine.c" in names, "other.c" in names) == (True, False)
    for path in ("", "/messages"):
        assert web.get(f"/api/queues/mine.c{path}", headers=seen)[0] == 200
        assert web.get(f"/api/queues/other.c{path}", headers=seen)[0] == 403
        assert web.ask("DELETE", f"/api/queues/mine.c{path}", headers=seen)[0] == 403
    (waiting,) = web.get("/api/queues/mine.c/messages", headers=seen)[1]
    for queue in ("mine.c", "other.c"):
        path = f"/api/queues/{queue}/messages/{waiting['id']}"
        assert web.ask("DELETE", path, headers=seen)[0] == 403
    assert web.get("/api/metrics", headers=seen)[0] == 403
    assert web.get("/stats", headers=seen)[0] == 403
    web.close()


def test_scrapes_are_open_unless_they_want_a_token(closed: Server) -> None:
    web = Web(closed.http_port)
    assert web.get("/prometheus")[0] == web.get("/metrics/")[0] == 200
    assert web.get("/metrics")[0] == web.get("/heapstats")[0] == 401
    web.close()
