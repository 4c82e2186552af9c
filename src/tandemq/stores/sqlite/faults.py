"""What went wrong, in the words of people who run a server."""

from __future__ import annotations

import errno
import os
import sqlite3
import tempfile
from pathlib import Path

from tandemq.stores.base import StoreFailed, StoreUnusable

FAULTS = (sqlite3.Error, OSError, OverflowError)  # the last: an integer of more than 64 bits
NO_SPACE = {errno.ENOSPC, errno.EFBIG, errno.EDQUOT}
PROBE = 64 * 1024  # bytes; less than that left is as good as full

ADVICE = {
    sqlite3.SQLITE_NOTADB: "it is not an SQLite file. Give another file with --data, or bring "
    "back a backup of this one.",
    sqlite3.SQLITE_CORRUPT: "it is damaged. Bring back a backup, or save what can be read with "
    "the command: sqlite3 FILE .recover",
    sqlite3.SQLITE_BUSY: "another program keeps it locked (a shell, a backup?). End that program "
    "and start again.",
    sqlite3.SQLITE_LOCKED: "another program keeps it locked. End that program and start again.",
    sqlite3.SQLITE_READONLY: "it cannot be written. Let this user write the file and its folder.",
    sqlite3.SQLITE_PERM: "it cannot be opened. Let this user read and write the file.",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened. Let this user read and write the file, its "
    "folder and the files beside it that end in -wal and -shm.",
    sqlite3.SQLITE_FULL: "no space is left for it. Free some and start again.",
    sqlite3.SQLITE_IOERR: "the disk does not read or write it. Look into the system's log.",
}


def unusable(path: Path, exc: Exception) -> StoreUnusable:
    """Return the refusal for a fault that came up while a file was opened."""
    code = primary(exc)
    if code != sqlite3.SQLITE_FULL and is_full(path, exc):
        code = sqlite3.SQLITE_FULL
    return StoreUnusable(f"{path}: {ADVICE.get(code, 'it cannot be used.')} ({exc})")


def damaged(path: Path, found: str) -> StoreUnusable:
    """Return the refusal for a file in which a check has found something wrong."""
    return StoreUnusable(f"{path}: {ADVICE[sqlite3.SQLITE_CORRUPT]} ({found})")


def failed(path: Path, exc: Exception) -> StoreFailed:
    """Return the failure for a fault that came up while a batch was written or rows were read."""
    full = is_full(path, exc)
    cause = "no space is left on the disk" if full else str(exc)
    return StoreFailed(f"{path}: {cause}", disk_full=full)


def primary(exc: Exception) -> int:
    """Return SQLite's primary error code, 0 when the fault is not SQLite's."""
    code: int = getattr(exc, "sqlite_errorcode", 0)
    return code & 0xFF


def is_full(path: Path, exc: Exception) -> bool:
    """Tell whether a fault comes from want of space.

    SQLite says so only for ENOSPC on a write. A quota, a limit on the size of files, or a file
    that cannot be made are "I/O error" and "unable to open": these are tried out.
    """
    if isinstance(exc, OSError):
        return exc.errno in NO_SPACE
    code = primary(exc)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN):
        return not _can_grow(path)
    return code == sqlite3.SQLITE_FULL


def _can_grow(path: Path) -> bool:
    """Write where the log would have grown to, in a file that is gone afterwards."""
    wal = path.with_name(path.name + "-wal")
    try:
        end = wal.stat().st_size if wal.exists() else 0
        with tempfile.TemporaryFile(dir=path.parent, buffering=0) as probe:
            return os.pwrite(probe.fileno(), bytes(PROBE), end) == PROBE
    except OSError as exc:
        return exc.errno not in NO_SPACE
