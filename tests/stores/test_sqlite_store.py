"""What the SQLite store promises beyond the contract: layout, durability, recovery from faults."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tandemq.stores.base import Batch, Row, StoreFailed
from tandemq.stores.sqlite import SQLiteStore, connection, statements
from tandemq.stores.sqlite.store import LARGE

ROWS = [Row(seq, b"head", b"body") for seq in range(10)]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data.db"


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(path)
    made.open()
    yield made
    made.close()


def query(path: Path, statement: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db:
        return db.execute(statement).fetchall()


def test_only_large_bodies_stand_in_a_table_of_their_own(store: SQLiteStore, path: Path) -> None:
    store.commit(Batch(new=[Row(1, b"h", b"x" * LARGE), Row(2, b"h", b"x" * (LARGE + 1))]))
    assert query(path, "SELECT seq, length(body) FROM message") == [(1, LARGE), (2, None)]
    assert query(path, "SELECT seq, length(body) FROM body") == [(2, LARGE + 1)]


def test_a_large_body_leaves_with_its_message_also_after_a_restart(
    store: SQLiteStore, path: Path
) -> None:
    store.commit(Batch(new=[Row(1, b"h", bytes(LARGE + 1)), Row(2, b"h", bytes(LARGE + 1))]))
    store.commit(Batch(rebodied=[(1, b"small")]))
    assert query(path, "SELECT seq FROM body") == [(2,)]
    store.close()
    store.open()
    store.commit(Batch(gone=[2]))
    assert query(path, "SELECT seq FROM body") == []


def test_a_new_head_of_a_large_message_does_not_write_its_body_again(store: SQLiteStore) -> None:
    store.commit(Batch(new=[Row(1, b"h", bytes(1_000_000))]))
    before = store.size_bytes()
    for n in range(20):
        store.commit(Batch(changed=[(1, b"head %d" % n)]))
    assert store.size_bytes() < before + 1_000_000


def test_few_statements_are_needed_for_batches_of_every_size() -> None:
    sizes = {size for rows in range(3000) for size in statements.chunks(rows)}
    assert sizes == {1, 2, 4, 8, 16, 32, 64, 128, 256}
    assert all(sum(statements.chunks(rows)) == rows for rows in range(3000))


def test_no_statement_has_more_values_than_the_smallest_build_of_sqlite_takes() -> None:
    assert statements.insert_messages(statements.MOST).count("?") <= 999


def test_no_statement_for_many_rows_reads_the_whole_table(store: SQLiteStore, path: Path) -> None:
    store.commit(Batch(new=[Row(seq, b"h", b"b") for seq in range(5000)]))
    for shape, width in [
        (statements.update_heads, 2),
        (statements.delete_messages, 1),
        (statements.delete_bodies, 1),
        (statements.select_messages, 1),
    ]:
        with closing(sqlite3.connect(path)) as db:
            plan = db.execute(f"EXPLAIN QUERY PLAN {shape(4)}", [1] * 4 * width).fetchall()
        assert not [step for step in plan if step[3] in ("SCAN message", "SCAN body")], plan


def test_the_log_is_moved_into_the_file_when_it_is_closed(store: SQLiteStore, path: Path) -> None:
    store.commit(Batch(new=ROWS))
    store.close()
    assert not path.with_name("data.db-wal").exists()
    assert query(path, "SELECT count(*) FROM message") == [(10,)]


def test_closing_while_somebody_reads_loses_nothing(store: SQLiteStore, path: Path) -> None:
    store.commit(Batch(new=ROWS))
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN")
        db.execute("SELECT count(*) FROM message").fetchall()
        store.commit(Batch(gone=[0]))
        store.close()
    store.open()
    assert list(store.load()) == ROWS[1:]


def test_sqlite_finds_nothing_wrong_with_the_file(store: SQLiteStore, path: Path) -> None:
    for at in range(0, 1000, 100):
        store.commit(Batch(new=[Row(at + n, b"h", bytes(50 * n)) for n in range(100)]))
        store.commit(Batch(gone=list(range(at, at + 100, 2))))
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("bad", [2**63, "seq", object()])
def test_a_row_that_sqlite_cannot_take_fails_the_batch_and_no_other(
    store: SQLiteStore, bad: int
) -> None:
    with pytest.raises(StoreFailed):
        store.commit(Batch(new=[*ROWS, Row(bad, b"head", b"body")]))
    assert list(store.load()) == []
    store.commit(Batch(new=ROWS))
    assert list(store.load()) == ROWS


def test_a_commit_fails_while_another_program_writes_and_succeeds_afterwards(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PATIENCE", 0)
    store = SQLiteStore(path)
    store.open()
    with closing(sqlite3.connect(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, match="database is locked") as failure:
            store.commit(Batch(new=ROWS))
        assert not failure.value.disk_full
    store.commit(Batch(new=ROWS))
    assert list(store.load()) == ROWS
    store.close()


def test_a_lost_connection_is_made_again(store: SQLiteStore) -> None:
    store.commit(Batch(new=ROWS))
    assert store._db is not None
    store._db.close()
    with pytest.raises(StoreFailed):
        store.commit(Batch(gone=[0]))
    store.commit(Batch(gone=[1]))
    assert [row.seq for row in store.load()] == [0, *range(2, 10)]


def test_a_transaction_that_was_left_open_is_undone_by_the_next_batch(store: SQLiteStore) -> None:
    assert store._db is not None
    store._db.execute("BEGIN")
    store._db.execute("INSERT INTO fact VALUES ('half', 'done')")
    store.commit(Batch(new=ROWS))
    assert store.load_facts() == {}


def test_a_removed_file_is_a_failure_until_it_is_put_back(store: SQLiteStore, path: Path) -> None:
    store.commit(Batch(new=ROWS))
    path.rename(path.with_name("elsewhere.db"))
    with pytest.raises(StoreFailed, match="the file was removed"):
        store.commit(Batch(gone=[0]))
    path.with_name("elsewhere.db").rename(path)
    store.commit(Batch(gone=[1]))
    assert [row.seq for row in store.load()] == [0, *range(2, 10)]


def test_a_closed_store_says_so(store: SQLiteStore) -> None:
    store.close()
    with pytest.raises(StoreFailed, match="closed"):
        store.commit(Batch(new=ROWS))
    with pytest.raises(StoreFailed, match="closed"):
        store.fetch([1])


def test_damage_that_appears_later_is_a_failure_and_no_crash(
    store: SQLiteStore, path: Path
) -> None:
    store.commit(Batch(new=[Row(seq, b"h", bytes(1000)) for seq in range(500)], facts={"a": b"1"}))
    store.close()
    store.open()
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (path.stat().st_size - 4096))
    store._db = None  # its cache still knows the pages
    with pytest.raises(StoreFailed, match="damaged"):
        list(store.load())
    with pytest.raises(StoreFailed, match="damaged"):
        store.fetch([5])
    with pytest.raises(StoreFailed, match="damaged"):
        store.load_facts()
    with pytest.raises(StoreFailed, match="damaged"):
        store.fetch_facts(["a"])


COMMITS = """
import sys
from tandemq.stores.base import Batch, Row
from tandemq.stores.open import open_store
store = open_store(sys.argv[1])
for n in range(30):
    store.commit(Batch(new=[Row(n, b"head", b"body")], sync=eval(sys.argv[2])))
store.close()
"""


STRACE = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"]


def syncs(folder: Path, sync: str) -> int:
    """Count the calls that wait for the disk while thirty batches are committed."""
    folder.mkdir()
    trace = folder / "trace"
    done = subprocess.run(
        [*STRACE, str(trace), sys.executable, "-c", COMMITS, str(folder / "data.db"), sync],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        pytest.skip(f"strace is not permitted here: {done.stderr.strip()[-200:]}")
    return trace.read_text().count("sync(")


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_batch_waits_for_the_disk_when_it_is_asked_to_and_only_then(tmp_path: Path) -> None:
    never = syncs(tmp_path / "never", "False")
    assert never < 20  # to make the file, and to close it
    assert syncs(tmp_path / "always", "True") - never >= 30
    assert 10 <= syncs(tmp_path / "third", "n % 3 == 0") - never < 20
