"""Connections that come and go in masses leave nothing behind."""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import struct
import threading
import time
from collections.abc import Callable

import pytest
from tests.hostile.commands import COMMANDS, Lease, given
from tests.support.patience import eventually
from tests.support.server import Server, figure, is_own, room, token
from tests.support.wire import Lost, Wire, packed

CONNECTIONS = figure("TANDEMQ_TEST_CONNECTIONS", short=2_000, long=100_000)
RESET = struct.pack("ii", 1, 0)


def visit(port: int, number: int, first_words: bytes) -> None:
    """Connect from one of many local addresses, say something, and leave in one of two ways."""
    address = f"127.0.{1 + number // 250 % 250}.{1 + number % 250}"
    with socket.create_connection(
        ("127.0.0.1", port), timeout=20, source_address=(address, 0)
    ) as visitor:
        if first_words:
            visitor.sendall(first_words)
        if number % 10:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)


def in_threads(count: int, work: Callable[[int], None], threads: int = 4) -> None:
    numbers = itertools.count()
    failures: list[BaseException] = []

    def loop() -> None:
        try:
            while (number := next(numbers)) < count and not failures:
                work(number)
        except BaseException as failure:
            failures.append(failure)

    crew = [threading.Thread(target=loop, daemon=True) for _ in range(threads)]
    for each in crew:
        each.start()
    for each in crew:
        each.join()
    assert failures == []


def idle_files(server: Server) -> int:
    """Open descriptors, once their number has stopped to change."""
    before = server.open_files()
    time.sleep(0.2)
    return before if server.open_files() == before else 0


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_connections_opened_and_dropped_leave_nothing_behind(
    server: Server, wire: Wire, queue: str
) -> None:
    words = [
        b"",
        b"\x00\x00",
        packed({"cmd": "Ping", "reqId": "p"}),
        packed({"cmd": "Ping", "reqId": "p"})[:9],
        packed({"cmd": "PULL", "queue": queue, "owner": "w", "timeout": 30_000, "reqId": "p"}),
        packed({"cmd": "RegisterWorker", "name": "w", "queues": [queue], "reqId": "p"}),
        b"\xff\xff\xff\xff",
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    in_threads(200, lambda n: visit(server.port, n, words[n % len(words)]))
    eventually(lambda: wire.ping(), "warm")
    files = eventually(lambda: idle_files(server), "the warm-up is over")
    memory = server.memory()
    in_threads(CONNECTIONS, lambda n: visit(server.port, n, words[n % len(words)]))
    with server.connect() as last:  # accepted after all those
        assert last.ping()
    eventually(lambda: server.open_files() <= files, "all sockets are closed", within=10)
    assert server.memory() < memory + room(32)
    eventually(
        lambda: wire.do("ListWorkers")["data"]["workers"] == [], "no worker is left", within=5
    )
    job_id = wire.push(queue, {"n": 1})
    answer = wire.pull(queue, timeout=5_000)
    assert answer["job"], "kept by the pull of a connection that is gone"
    assert (answer["job"]["id"], answer["job"]["attempts"]) == (job_id, 0)


def test_pulls_whose_clients_left_before_they_were_read_do_not_use_up_a_job(
    own_server: Server, queue: str
) -> None:
    """As after a pause of the server, when clients have timed out and connected anew."""
    with own_server.connect() as wire:
        job_id = wire.push(queue, {"n": 1})
        own_server.process.send_signal(signal.SIGSTOP)
        try:
            for _ in range(40):
                gone = own_server.connect()
                gone.send("PULL", queue=queue, owner="gone", timeout=30_000)
                gone.close()
        finally:
            own_server.process.send_signal(signal.SIGCONT)
        with own_server.connect() as last:
            assert last.ping()
        job = wire.pull(queue, timeout=5_000)["job"]
        assert job, f"the job is {wire.state(job_id)} although nobody ever saw it"
        assert job["attempts"] == 0


@pytest.mark.slow
def test_a_thousand_idle_connections_cost_little_and_none_is_forgotten(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        wire.ping()
        base = own_server.memory()
        crowd: list[Wire] = []
        try:
            crowd += [own_server.connect() for _ in range(1_000)]
            assert all(each.ping() for each in crowd)
            assert own_server.memory() < base + room(40)
            job_id = crowd[500].push(queue, 1)
            assert crowd[0].pull(queue)["job"]["id"] == job_id
        finally:
            for each in crowd:
                each.close()
        eventually(lambda: wire.state(job_id) == "waiting", "given back", within=5)
        assert wire.ping()


def test_a_client_that_reconnects_in_a_loop_disturbs_nobody(
    server: Server, wire: Wire, queue: str
) -> None:
    enough = threading.Event()

    def loop() -> None:
        while not enough.is_set():
            with server.connect() as restless:
                restless.send("PULL", queue=queue + "-other", owner="w", timeout=10_000)

    threads = [threading.Thread(target=loop, daemon=True) for _ in range(2)]
    for each in threads:
        each.start()
    for n in range(100):
        wire.push(queue, n)
        answer = wire.pull(queue)
        assert answer["job"]["data"] == n
        wire.do("ACK", id=answer["job"]["id"], token=answer["token"])
    enough.set()
    for each in threads:
        each.join(10)
    assert wire.counts(queue) == {"completed": 100}


@pytest.mark.skipif(not is_own(), reason="a promise of this server only")
def test_a_client_that_guesses_tokens_is_cut_after_ten_guesses(
    new_server: Callable[..., Server], queue: str
) -> None:
    guarded = new_server(environment=token("open-sesame")).start()
    with guarded.connect() as friend, guarded.connect() as stranger:
        friend.do("Auth", token="open-sesame")
        answers = []
        with contextlib.suppress(Lost):
            for n in range(100):
                answers.append(stranger.ask("Auth", token=f"guess {n}"))
        assert not any(answer["ok"] for answer in answers)
        assert [answer["error"] for answer in answers[:10]] == ["Invalid token"] * 10
        assert [answer["error"] for answer in answers[10:]] == [
            "Too many failed logins (10); connect again"
        ]
        assert friend.push(queue, 1)


def test_nothing_but_auth_is_done_for_a_client_without_a_token(
    new_server: Callable[..., Server], queue: str
) -> None:
    guarded = new_server(environment=token("open-sesame")).start()
    with guarded.connect() as friend, guarded.connect() as stranger:
        friend.do("Auth", token="open-sesame")
        job_id = friend.push(queue, 1)
        lease = Lease(job_id, "token")
        for cmd, fields in COMMANDS.items():
            if cmd != "Auth":
                answer = stranger.ask(cmd, **given(fields(queue, lease)))
                assert (answer["ok"], answer["error"]) == (False, "Not authenticated"), cmd
        assert friend.jobs(queue)[0]["id"] == job_id
        assert friend.counts(queue) == {"waiting": 1}
