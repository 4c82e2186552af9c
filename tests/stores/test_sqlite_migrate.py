"""Files of earlier versions are read, led to the newest schema, and kept as a copy."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from tandemq.model.message import Message, State
from tandemq.stores.base import Batch, Row, StoreUnusable
from tandemq.stores.rows import decode
from tandemq.stores.sqlite import SQLiteStore, migrate

DATA = Path(__file__).parent / "data"
RELEASED = (1,)  # a file of each of these versions is checked in


class Told(msgspec.Struct):
    """What is in a checked-in file."""

    messages: list[Message]
    facts: dict[str, bytes]


def told(version: int) -> Told:
    return msgspec.json.decode((DATA / f"version-{version}.json").read_bytes(), type=Told)


@pytest.fixture(params=RELEASED)
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


@pytest.fixture
def path(tmp_path: Path, version: int) -> Path:
    return Path(shutil.copy(DATA / f"version-{version}.db", tmp_path / "data.db"))


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    made = SQLiteStore(path)
    yield made
    made.close()


def user_version(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        number: int = db.execute("PRAGMA user_version").fetchone()[0]
        return number


def with_step(monkeypatch: pytest.MonkeyPatch, sql: str) -> int:
    """Let the program know one more version; return its number."""
    known = migrate.steps()
    step = max(known) + 1
    monkeypatch.setattr(migrate, "steps", lambda: {**known, step: sql})
    return step


def test_the_steps_are_numbered_from_one_without_a_gap() -> None:
    assert list(migrate.steps()) == [*range(1, len(migrate.steps()) + 1)]


def test_a_file_of_every_released_version_is_checked_in() -> None:
    assert max(migrate.steps()) in RELEASED
    assert all((DATA / f"version-{version}.db").exists() for version in RELEASED)


def test_a_file_of_a_released_version_holds_what_was_put_into_it(
    store: SQLiteStore, version: int
) -> None:
    store.open()
    expected = told(version)
    assert [decode(row) for row in store.load()] == expected.messages
    assert store.load_facts() == expected.facts


def test_the_checked_in_files_have_messages_in_every_state(version: int) -> None:
    assert {m.state for m in told(version).messages} == set(State)


def test_a_new_file_has_the_newest_version_and_says_whose_it_is(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "new.db")
    store.open()
    store.close()
    assert user_version(tmp_path / "new.db") == max(migrate.steps())
    assert (tmp_path / "new.db").read_bytes()[68:72] == b"TDMQ"
    assert not list(tmp_path.glob("*.bak"))


def test_a_step_changes_the_schema_and_keeps_what_is_there(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = with_step(monkeypatch, "CREATE TABLE later (x); INSERT INTO later VALUES (1);")
    store.open()
    assert user_version(path) == step
    assert [decode(row) for row in store.load()] == told(version).messages
    store.commit(Batch(new=[Row(999, b"head", b"body")]))


def test_the_file_is_copied_before_the_first_step(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_step(monkeypatch, "DELETE FROM message;")
    store.open()
    assert list(store.load()) == []
    monkeypatch.undo()
    copy = path.with_name(f"data.db.v{version}.bak")
    assert not list(path.parent.glob("*.partial*"))
    old = SQLiteStore(copy)
    old.open()
    assert [decode(row) for row in old.load()] == told(version).messages
    old.close()


def test_what_is_only_in_the_log_is_copied_too(
    path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("INSERT INTO fact VALUES ('late', x'01')")
        db.commit()
        with_step(monkeypatch, "SELECT 1;")
        store = SQLiteStore(path)
        store.open()
        store.close()
    with closing(sqlite3.connect(path.with_name(f"data.db.v{version}.bak"))) as copy:
        assert copy.execute("SELECT value FROM fact WHERE key = 'late'").fetchall() == [(b"\1",)]


def test_an_earlier_copy_is_never_overwritten(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = path.with_name(f"data.db.v{version}.bak")
    earlier.write_bytes(b"precious")
    with_step(monkeypatch, "SELECT 1;")
    store.open()
    assert earlier.read_bytes() == b"precious"
    assert user_version(earlier.with_name(f"{earlier.name}.2")) == version


def test_a_step_that_fails_halfway_leaves_the_file_at_the_version_before(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_step(monkeypatch, "DELETE FROM message; INSERT INTO nowhere VALUES (1);")
    with pytest.raises(StoreUnusable, match=f"step to schema version {version + 1} failed"):
        store.open()
    monkeypatch.undo()
    assert user_version(path) == version
    store.open()
    assert [decode(row) for row in store.load()] == told(version).messages


def test_without_a_copy_there_is_no_migration(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.with_name(f"data.db.v{version}.bak.partial").mkdir()  # the copy cannot be made
    with_step(monkeypatch, "DELETE FROM message;")
    with pytest.raises(StoreUnusable, match="no copy could be made before the migration"):
        store.open()
    assert user_version(path) == version


def test_a_newer_file_names_the_copy_that_was_made_before_its_migration(
    store: SQLiteStore, path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_step(monkeypatch, "SELECT 1;")
    store.open()
    store.close()
    monkeypatch.undo()
    with pytest.raises(StoreUnusable, match=rf"data\.db\.v{version}\.bak"):
        store.open()
