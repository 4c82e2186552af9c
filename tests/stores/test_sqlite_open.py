"""What can be opened, what is refused, and that the refusal says what to do."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tandemq.stores.base import Batch, Row, StoreUnusable
from tandemq.stores.sqlite import SQLiteStore, connection

ROWS = [Row(seq, b"head", b"body" * 200) for seq in range(200)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def filled(path: Path) -> Path:
    with opened(path) as store:
        store.commit(Batch(new=ROWS))
    return path


@contextmanager
def opened(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path)
    store.open()
    try:
        yield store
    finally:
        store.close()


def refusal(path: Path) -> str:
    """Open and return the sentence, which must name the file."""
    store = SQLiteStore(path)
    with pytest.raises(StoreUnusable) as caught:
        store.open()
    store.close()
    assert str(caught.value).startswith(f"{path}: ")
    return str(caught.value)


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        answer = db.execute(statement).fetchall()
        db.commit()
        return answer


def python(code: str, *words: str | Path) -> subprocess.Popen[str]:
    """Run a program in a process of its own that can import what we can."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, words)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


HOLD = """
import sys
from tandemq.stores.open import open_store
store = open_store(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file open."""
    with python(HOLD, path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        process.kill()


def test_a_file_in_use_is_refused_with_the_number_of_its_process(
    path: Path, holder: subprocess.Popen[str]
) -> None:
    assert f"process {holder.pid} uses this file" in refusal(path)


def test_a_file_is_free_again_after_kill_9(path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with opened(path) as store:
        store.commit(Batch(new=ROWS))


def test_another_name_of_a_file_in_use_is_refused_too(filled: Path) -> None:
    link = filled.with_name("link.db")
    link.symlink_to(filled)
    with opened(filled), pytest.raises(StoreUnusable, match="uses this file"):
        SQLiteStore(link).open()


def test_a_file_in_use_can_be_read_and_copied_by_others(path: Path) -> None:
    with opened(path) as store:
        store.commit(Batch(new=ROWS))
        copy = path.with_name("copy.db")
        with closing(sqlite3.connect(path)) as db, closing(sqlite3.connect(copy)) as target:
            db.backup(target)
    assert query(copy, "SELECT count(*) FROM message") == [(200,)]


def test_a_file_that_another_program_has_locked_is_refused(
    filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0)
    with closing(sqlite3.connect(filled)) as db:
        db.execute("BEGIN IMMEDIATE")
        assert "another program keeps it locked" in refusal(filled)


def test_a_newer_file_is_refused_with_both_versions_and_what_to_do(filled: Path) -> None:
    query(filled, "PRAGMA user_version = 99")
    said = refusal(filled)
    assert "schema version 99" in said
    assert "versions up to 1" in said
    assert "Start the newer tandemq" in said


@pytest.mark.parametrize("mode", ["DELETE", "WAL"])
def test_a_file_of_another_program_is_refused_and_left_alone(path: Path, mode: str) -> None:
    query(path, f"PRAGMA journal_mode = {mode}")
    query(path, "CREATE TABLE message (text)")
    before = path.read_bytes()
    assert "of another program" in refusal(path)
    assert path.read_bytes() == before


def test_a_file_of_ours_without_its_tables_is_refused(filled: Path) -> None:
    query(filled, "DROP TABLE body")
    assert "no such table: body" in refusal(filled)


@pytest.mark.parametrize("content", [b"hello", b"x" * 10_000, bytes(5000)])
def test_a_file_that_is_not_of_sqlite_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    assert "it is not an SQLite file" in refusal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_truncated_file_is_refused_as_damaged(filled: Path, part: float) -> None:
    os.truncate(filled, int(filled.stat().st_size * part))
    assert "it is damaged" in refusal(filled)


def test_a_file_with_garbage_in_the_middle_is_refused_as_damaged(filled: Path) -> None:
    with filled.open("r+b") as file:
        file.seek(filled.stat().st_size // 2)
        file.write(b"\xa5" * 8192)
    assert "it is damaged" in refusal(filled)


def test_an_empty_file_becomes_a_store(path: Path) -> None:
    path.touch()
    with opened(path) as store:
        assert list(store.load()) == []


def test_a_file_of_sqlite_without_content_becomes_a_store(path: Path) -> None:
    query(path, "VACUUM")
    with opened(path) as store:
        assert list(store.load()) == []


@pytest.mark.parametrize("left", [None, b""])
def test_a_log_without_its_file_is_refused_and_left_alone(path: Path, left: bytes | None) -> None:
    wal = path.with_name("data.db-wal")
    wal.write_bytes(b"all that is left")
    if left is not None:
        path.write_bytes(left)
    assert "data.db-wal, a part of it, is there" in refusal(path)
    assert wal.read_bytes() == b"all that is left"


def test_a_folder_is_refused(tmp_path: Path) -> None:
    assert "this is a folder" in refusal(tmp_path)


def test_a_missing_folder_is_refused_and_not_made(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path / 'typo'}" in refusal(tmp_path / "typo" / "data.db")
    assert not (tmp_path / "typo").exists()


def test_a_pipe_is_refused(path: Path) -> None:
    os.mkfifo(path)
    assert "not a plain file" in refusal(path)


@contextmanager
def read_only(folder: Path, mount: Callable[..., None]) -> Iterator[None]:
    """Make a folder unwritable, for root too."""
    if os.geteuid() == 0:
        mount("-o", "bind", folder, folder)
        mount("-o", "remount,ro,bind", folder)
        yield
        return
    folder.chmod(0o555)
    try:
        yield
    finally:
        folder.chmod(0o755)


@pytest.fixture
def mount() -> Iterator[Callable[..., None]]:
    mounted: list[str] = []

    def run(*words: str | Path) -> None:
        done = subprocess.run(["mount", *map(str, words)], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"mounts are not permitted here: {done.stderr.strip()}")
        mounted.append(str(words[-1]))

    yield run
    for point in dict.fromkeys(reversed(mounted)):
        subprocess.run(["umount", "--lazy", point], check=True)


@pytest.mark.parametrize("exists", [False, True])
def test_a_read_only_folder_is_refused(
    tmp_path: Path, mount: Callable[..., None], exists: bool
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    if exists:
        with opened(folder / "data.db"):
            pass
    with read_only(folder, mount):
        said = refusal(folder / "data.db")
    assert re.search(r"folder .* is not writable|cannot be (opened|written)", said)


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes files that are read-only")
def test_a_read_only_file_is_refused(filled: Path) -> None:
    filled.chmod(0o444)
    assert "it cannot be written" in refusal(filled)


def test_a_place_without_write_ahead_log_is_refused_with_the_alternative(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "URI", "{}?mode=rwc&vfs=unix-none")  # has no shared memory
    said = refusal(path)
    assert "no shared memory for SQLite's write-ahead log" in said
    assert "--data memory" in said


def test_an_old_sqlite_is_refused_with_both_versions(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    monkeypatch.setattr(sqlite3, "sqlite_version", "3.34.1")
    with pytest.raises(StoreUnusable, match=r"SQLite 3\.34\.1 is too old.* 3\.35 or later"):
        SQLiteStore(path).open()


def test_a_refused_file_can_be_opened_when_the_cause_is_gone(path: Path) -> None:
    path.write_bytes(b"hello")
    store = SQLiteStore(path)
    with pytest.raises(StoreUnusable):
        store.open()
    path.unlink()
    store.open()
    store.commit(Batch(new=ROWS))
    store.close()


def test_what_users_sent_is_for_the_owner_of_the_file_alone(path: Path) -> None:
    with opened(path) as store:
        store.commit(Batch(new=ROWS))
        beside = [each for each in path.parent.iterdir() if each.name != path.name + ".lock"]
        assert len(beside) >= 2, "data and log"
        assert {each.stat().st_mode & 0o777 for each in beside} == {0o600}


def test_the_mode_of_a_file_that_is_there_stays(filled: Path) -> None:
    filled.chmod(0o640)
    with opened(filled):
        assert filled.stat().st_mode & 0o777 == 0o640
