"""Copies of a data file: while a server writes, whole or not at all, and never over anything."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.shell import Shell
from tests.support.server import Server

JOBS = 300


@pytest.fixture
def nobody() -> Shell:
    """These commands need no server."""
    return Shell(1)


@pytest.fixture
def data(tmp_path: Path, new_server: Callable[..., Server]) -> Path:
    """The file of a server that has been stopped, with some jobs in it."""
    server = new_server().start()
    with server.connect() as wire:
        wire.ask("PUSHB", queue="kept", jobs=[{"data": n} for n in range(JOBS)])
    server.stop()
    return server.data


def test_counts_are_equal_before_and_after(
    nobody: Shell, tmp_path: Path, new_server: Callable[..., Server]
) -> None:
    """S-250: backup, restore and statistics, of jobs in several states and of a schedule."""
    server = new_server().start()
    shell = Shell(server.port)
    for n in range(20):
        shell.add("states", str(n))
    shell.add("states", "1", "--delay", "1h")
    done = shell.json("job", "pull", "states")["id"]
    shell.text("job", "ack", done, "7")
    shell.text("job", "discard", shell.add("states"), "--yes")
    shell.text("queue", "pause", "states")
    shell.text("cron", "add", "daily", "states", "--every", "1d")
    counts, crons = shell.json("queue", "list"), shell.json("cron", "list")
    copy = str(tmp_path / "copy.db")
    made = nobody.json("backup", "create", copy, "--data", str(server.data))
    shell.text("queue", "obliterate", "states", "--yes")
    shell.text("cron", "delete", "daily", "--yes")
    server.stop()
    nobody.text("backup", "restore", copy, "--data", str(server.data), "--yes")
    server.start()
    assert shell.json("queue", "list") == counts
    assert shell.json("cron", "list") == crons
    assert shell.json("job", "result", done)["result"] == 7
    assert made["messages"] == 22  # the completed, the delayed and the dead one among them


def test_a_copy_made_under_load_is_one_moment(
    nobody: Shell, tmp_path: Path, server: Server, new_server: Callable[..., Server]
) -> None:
    """Each batch is in the copy as a whole or not at all, though the server keeps writing."""
    stop = threading.Event()
    pushed: list[int] = []

    def push() -> None:
        with server.connect() as wire:
            while not stop.is_set():
                batch = len(pushed)
                jobs = [{"data": {"batch": batch}} for _ in range(50)]
                wire.ask("PUSHB", queue="load", jobs=jobs)
                pushed.append(batch)

    writer = threading.Thread(target=push)
    writer.start()
    try:
        while len(pushed) < 20:
            assert writer.is_alive()
        before = len(pushed)
        copy = tmp_path / "copy.db"
        nobody.text("backup", "create", str(copy), "--data", str(server.data))
    finally:
        stop.set()
        writer.join()
    second = new_server()
    copy.rename(second.data)
    with second.start().connect() as wire:
        count = wire.ask("Count", queue="load")["count"]
    assert count % 50 == 0
    assert before * 50 <= count <= len(pushed) * 50


def test_a_copy_is_one_file_that_only_its_owner_reads(
    nobody: Shell, data: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copies" / "a.db"
    copy.parent.mkdir()
    said = nobody.text("backup", "create", str(copy), "--data", str(data))
    assert said.startswith(f"Copied {JOBS} messages to {copy}")
    assert os.listdir(copy.parent) == ["a.db"]
    assert copy.stat().st_mode & 0o777 == 0o600
    verified = nobody.json("backup", "verify", str(copy))
    assert verified["messages"] == JOBS
    assert verified["schemaVersion"] == 1
    assert os.listdir(copy.parent) == ["a.db"]


def test_an_earlier_copy_is_replaced_by_force_only(
    nobody: Shell, data: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "a.db"
    copy.write_text("precious")
    said = nobody.fails(1, "backup", "create", str(copy), "--data", str(data))
    assert "--force" in said
    assert copy.read_text() == "precious"
    nobody.text("backup", "create", str(copy), "--data", str(data), "--force")
    nobody.text("backup", "verify", str(copy))


@pytest.mark.parametrize("verb", ["create", "restore"])
def test_a_file_is_never_copied_onto_itself(nobody: Shell, data: Path, verb: str) -> None:
    extra = {"create": ["--force"], "restore": ["--yes"]}[verb]
    said = nobody.fails(1, "backup", verb, str(data), "--data", str(data), *extra)
    assert "is the data file itself" in said
    assert nobody.json("backup", "verify", str(data))["messages"] == JOBS


def test_restoring_over_a_file_asks_first(nobody: Shell, data: Path, tmp_path: Path) -> None:
    copy = str(tmp_path / "a.db")
    nobody.text("backup", "create", copy, "--data", str(data))
    before = data.read_bytes()
    said = nobody.fails(2, "backup", "restore", copy, "--data", str(data))
    assert "add --yes" in said
    assert data.read_bytes() == before


def test_restoring_under_a_running_server_is_refused(
    nobody: Shell, server: Server, tmp_path: Path
) -> None:
    copy = str(tmp_path / "a.db")
    nobody.text("backup", "create", copy, "--data", str(server.data))
    said = nobody.fails(74, "backup", "restore", copy, "--data", str(server.data), "--yes")
    assert f"process {server.process.pid} uses this file" in said
    with server.connect() as wire:
        assert wire.ask("Ping")["ok"]


def test_what_belonged_to_the_replaced_file_goes_with_it(
    nobody: Shell, data: Path, tmp_path: Path, new_server: Callable[..., Server]
) -> None:
    copy = str(tmp_path / "a.db")
    nobody.text("backup", "create", copy, "--data", str(data))
    later = new_server().start()
    with later.connect() as wire:
        wire.ask("PUSH", queue="later", data=1)
    later.kill()  # leaves a write-ahead log behind
    assert later.data.with_name(later.data.name + "-wal").stat().st_size
    nobody.text("backup", "restore", copy, "--data", str(later.data), "--yes")
    with later.start().connect() as wire:
        assert wire.ask("Count", queue="kept")["count"] == JOBS
        assert wire.ask("Count", queue="later")["count"] == 0


def damaged(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[5000:9000] = bytes(4000)
    file.write_bytes(raw)


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA user_version = 999")


def foreign(file: Path) -> None:
    with closing(sqlite3.connect(file)) as db:
        db.execute("PRAGMA application_id = 7")


def rubbish(file: Path) -> None:
    file.write_bytes(b"rubbish" * 2000)


def empty(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (damaged, ""),
        (newer, "made by a newer tandemq (schema version 999)"),
        (foreign, "is no data file of tandemq"),
        (rubbish, "not a database"),
        (empty, "is no data file of tandemq"),
        (Path.unlink, "there is no such file"),
    ],
)
def test_what_cannot_be_used_is_neither_copied_nor_restored(
    nobody: Shell, data: Path, tmp_path: Path, harm: Callable[[Path], None], says: str
) -> None:
    bad, place = tmp_path / "bad.db", tmp_path / "place.db"
    nobody.text("backup", "create", str(bad), "--data", str(data))
    harm(bad)
    for arguments in (
        ("verify", str(bad)),
        ("restore", str(bad), "--data", str(place), "--yes"),
    ):
        assert says in nobody.fails(74, "backup", *arguments)
    assert not place.exists()
    assert not list(tmp_path.glob(".*partial"))


def test_a_folder_that_does_not_exist_is_told(nobody: Shell, data: Path, tmp_path: Path) -> None:
    target = str(tmp_path / "none" / "a.db")
    said = nobody.fails(74, "backup", "create", target, "--data", str(data))
    assert "Make it first" in said
