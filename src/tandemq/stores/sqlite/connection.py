"""A connection to a data file, checked and tuned."""

from __future__ import annotations

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from tandemq.stores.base import StoreUnusable
from tandemq.stores.sqlite import migrate
from tandemq.stores.sqlite.faults import FAULTS, damaged, unusable

OLDEST = (3, 35)  # statements of ours need 3.33; what is older than this is nowhere tried
URI = "{}?mode=rwc"
PATIENCE = 5.0  # seconds a commit waits for somebody else's lock on the file

PRAGMAS = """
PRAGMA synchronous = NORMAL;
PRAGMA wal_autocheckpoint = 1000;
PRAGMA journal_size_limit = 67108864;
PRAGMA cache_size = -32768;
PRAGMA temp_store = MEMORY;
PRAGMA secure_delete = OFF;
PRAGMA fullfsync = ON;
PRAGMA checkpoint_fullfsync = ON;
"""


def check_place(path: Path) -> None:
    """Refuse what SQLite would misunderstand, before anything is made.

    Raises:
        StoreUnusable: no place for a data file, or what is left of one.
    """
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreUnusable(
            f"SQLite {sqlite3.sqlite_version} is too old: this program needs "
            f"{'.'.join(map(str, OLDEST))} or later. Use a Python that is built with one."
        )
    if not path.parent.is_dir():
        raise StoreUnusable(f"{path}: there is no folder {path.parent}. Make it first.")
    if path.is_dir():
        raise StoreUnusable(f"{path}: this is a folder. Give the name of a file in it.")
    if path.exists() and not path.is_file():
        raise StoreUnusable(f"{path}: this is not a plain file. Give another one with --data.")
    _check_orphan(path)


def _check_orphan(path: Path) -> None:
    """SQLite would delete a log whose file is missing; it may hold all that is left."""
    wal = path.with_name(path.name + "-wal")
    if (not path.exists() or not path.stat().st_size) and wal.exists() and wal.stat().st_size:
        raise StoreUnusable(
            f"{path}: the file is missing or empty, but {wal.name}, a part of it, is there. "
            "Bring the file back, or move that part away to begin anew."
        )


def connect(path: Path) -> sqlite3.Connection:
    """Open a file of ours, led to the newest schema, in WAL mode.

    Raises:
        StoreUnusable: the file is not ours, newer, damaged, not writable or not fit for WAL.
    """
    db: sqlite3.Connection | None = None
    try:
        _make_private(path)
        db = sqlite3.connect(
            URI.format(path.as_uri()),
            uri=True,
            timeout=PATIENCE,
            isolation_level=None,  # transactions are ours to begin and end
            check_same_thread=False,  # one thread after the other, never two at once
        )
        _prepare(db, path)
    except FAULTS as exc:
        _close(db)
        raise unusable(path, exc) from exc
    except StoreUnusable:
        _close(db)
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    db.execute("PRAGMA page_size = 4096")  # both have an effect on a new file only
    db.execute("PRAGMA auto_vacuum = NONE")
    migrate.bring_up(db, path)
    _set_wal(db, path)
    db.executescript(PRAGMAS)
    db.execute("DELETE FROM fact WHERE 0")  # fails here, not later, when the file is read-only
    fault = db.execute("PRAGMA quick_check(1)").fetchone()[0]
    if fault != "ok":
        raise damaged(path, fault)


def _set_wal(db: sqlite3.Connection, path: Path) -> None:
    mode = db.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        raise StoreUnusable(
            f"{path}: the file system has no shared memory for SQLite's write-ahead log (a "
            f"network folder? journal_mode stayed {mode}). Keep the data on a local disk, "
            "or start with --data memory."
        )


def _make_private(path: Path) -> None:
    """Make a missing file for its owner alone; what SQLite adds beside it gets the same mode.

    It will hold what users sent, and what proves who they are.
    """
    with suppress(OSError):  # it is there, or SQLite says why it cannot be
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _close(db: sqlite3.Connection | None) -> None:
    if db is not None:
        with suppress(sqlite3.Error):
            db.close()
