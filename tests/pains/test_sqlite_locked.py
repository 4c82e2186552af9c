"""Reports of "database is locked", of file systems that cannot, and of slow disks."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, figure, is_own
from tests.support.wire import Lost, Wire

only_ours = pytest.mark.skipif(not is_own(), reason="a promise of this server only")


def start_refused(server: Server) -> str:
    """Start a server that must not come up; returns what it said, its exit code checked."""
    with pytest.raises(ChildProcessError) as refusal:
        server.start()
    assert server.process.returncode not in (0, None)
    said = str(refusal.value)
    assert "Traceback" not in said
    return said


@pytest.mark.slow
def test_no_client_sees_an_error_while_others_read_and_copy_the_file(
    own_server: Server, queue: str
) -> None:
    enough = threading.Event()
    errors: list[str] = []
    pushed: list[int] = []

    def push(name: str) -> None:
        with own_server.connect() as wire:
            count = 0
            while not enough.is_set():
                push = {"cmd": "PUSH", "queue": queue, "data": name, "durable": count % 10 == 0}
                for answer in wire.receive_all(wire.send_all([push] * 10)):
                    count += 1
                    if not answer["ok"]:
                        errors.append(answer["error"])
                enough.wait(0.04)
            pushed.append(count)

    def look(statement: str) -> None:
        while not enough.wait(0.02):
            try:
                with closing(sqlite3.connect(own_server.data, timeout=0.1)) as reader:
                    reader.execute("BEGIN")
                    reader.execute(statement).fetchall()
                    enough.wait(0.1)
            except sqlite3.Error:
                pass  # the file may be closed to others; what counts is what clients see

    def copy() -> None:
        target = own_server.data.with_suffix(".copy")
        while not enough.wait(0.05):
            target.unlink(missing_ok=True)
            try:
                with (
                    closing(sqlite3.connect(own_server.data, timeout=0.1)) as source,
                    closing(sqlite3.connect(target)) as sink,
                ):
                    source.backup(sink, pages=50)
            except sqlite3.Error:
                pass

    threads = [threading.Thread(target=push, args=(f"p{n}",)) for n in range(4)]
    threads += [threading.Thread(target=look, args=("SELECT * FROM sqlite_schema",))]
    threads += [threading.Thread(target=copy)]
    for thread in threads:
        thread.start()
    time.sleep(figure("TANDEMQ_TEST_SECONDS", short=3, long=30))
    enough.set()
    for thread in threads:
        thread.join(20)
    assert errors == []
    assert len(pushed) == 4
    with own_server.connect() as wire:
        assert wire.counts(queue) == {"waiting": sum(pushed)}


@pytest.mark.slow
def test_a_stranger_who_locks_the_file_for_a_while_delays_answers_and_loses_nothing(
    own_server: Server, queue: str
) -> None:
    with own_server.connect() as wire:
        wire.push(queue, 0)
        time.sleep(0.1)
        try:
            with closing(sqlite3.connect(own_server.data, timeout=0.5)) as stranger:
                stranger.execute("BEGIN IMMEDIATE")
                sent = [wire.send("PUSH", queue=queue, data=n, durable=True) for n in range(10)]
                time.sleep(1)
                stranger.rollback()
        except sqlite3.OperationalError:
            sent = [wire.send("PUSH", queue=queue, data=n, durable=True) for n in range(10)]
        assert all(answer["ok"] for answer in wire.receive_all(sent))
    own_server.kill()
    own_server.start()
    with own_server.connect() as wire:
        assert wire.counts(queue) == {"waiting": 11}


@only_ours
def test_a_second_server_on_the_same_file_is_refused_and_the_first_goes_on(
    own_server: Server, new_server: Callable[..., Server], queue: str
) -> None:
    second = new_server()
    second.data = own_server.data
    said = start_refused(second)
    assert own_server.data.name in said
    with own_server.connect() as wire:
        wire.push(queue, 1, durable=True)
        assert wire.counts(queue) == {"waiting": 1}


@only_ours
@pytest.mark.slow
def test_a_file_that_a_stranger_holds_locked_is_named_at_the_start(
    new_server: Callable[..., Server],
) -> None:
    server = new_server()
    with closing(sqlite3.connect(server.data)) as stranger:
        stranger.execute("CREATE TABLE t (x)")
        stranger.execute("BEGIN EXCLUSIVE")
        said = start_refused(server)
        assert server.data.name in said
        assert "lock" in said.lower()


@only_ours
@pytest.mark.parametrize(
    "content", [b"no database at all " * 500, b"SQLite format 3\0" + b"\xff" * 8000]
)
def test_a_file_that_is_no_database_is_named_at_the_start_and_left_alone(
    new_server: Callable[..., Server], content: bytes
) -> None:
    server = new_server()
    server.data.write_bytes(content)
    assert server.data.name in start_refused(server)
    assert server.data.read_bytes() == content


@only_ours
@pytest.mark.parametrize("place", ["no/such/folder/queue.db", "file/queue.db", ""])
def test_a_place_that_cannot_hold_the_file_is_named_at_the_start(
    new_server: Callable[..., Server], tmp_path: Path, place: str
) -> None:
    server = new_server()
    (tmp_path / "file").write_text("not a folder")
    server.data = tmp_path / place
    assert server.data.name in start_refused(server)


@only_ours
@pytest.mark.slow
def test_a_disk_that_syncs_slowly_delays_durable_pushes_and_loses_none(
    new_server: Callable[..., Server], queue: str
) -> None:
    strace = shutil.which("strace")
    if not strace or subprocess.run([strace, "-qq", "true"], check=False).returncode:
        pytest.skip("needs strace and the right to use it")
    delay = "inject=fsync,fdatasync:delay_enter=300000"
    quiet = ["-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", "/dev/null"]
    server = new_server(prefix=[strace, "-f", "-qq", *quiet, "-e", delay]).start()
    confirmed = []
    with server.connect() as wire:
        for n in range(5):
            started = time.monotonic()
            confirmed.append(wire.push(queue, n, durable=True))
            assert time.monotonic() - started > 0.25, "answered before the disk had it"
            assert wire.ping()
        burst = wire.do_all(
            {"cmd": "PUSH", "queue": queue, "data": n, "durable": True} for n in range(40)
        )
        confirmed += [answer["id"] for answer in burst]
    server.kill()
    again = new_server()
    again.data = server.data
    again.start()
    with again.connect() as wire:
        assert set(wire.states(confirmed)) == {"waiting"}


@only_ours
@pytest.mark.slow
def test_nothing_confirmed_is_missing_after_a_kill_during_a_slow_sync(
    new_server: Callable[..., Server], queue: str
) -> None:
    strace = shutil.which("strace")
    if not strace or subprocess.run([strace, "-qq", "true"], check=False).returncode:
        pytest.skip("needs strace and the right to use it")
    delay = "inject=fsync,fdatasync:delay_enter=2000000:when=3+"
    quiet = ["-e", "trace=fsync,fdatasync", "-e", "signal=none", "-o", "/dev/null"]
    server = new_server(prefix=[strace, "-f", "-qq", *quiet, "-e", delay]).start()
    confirmed: list[str] = []

    def push() -> None:
        try:
            with server.connect() as wire:
                while True:
                    confirmed.append(wire.push(queue, 1, durable=len(confirmed) % 5 == 4))
        except Lost:
            return

    pusher = threading.Thread(target=push)
    pusher.start()
    eventually(lambda: len(confirmed) >= 4, "some pushes are confirmed", within=30)
    time.sleep(0.5)
    server.kill()
    pusher.join(10)
    again = new_server()
    again.data = server.data
    again.start()
    with again.connect() as wire:
        assert set(wire.states(confirmed)) == {"waiting"}


def test_the_storage_status_of_a_healthy_server_says_so(wire: Wire) -> None:
    status = wire.do("StorageStatus")["data"]
    assert status["diskFull"] is False
