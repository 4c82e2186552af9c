"""From the schema a file has to the schema this program wants, one numbered step at a time."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path

from tandemq.stores.base import StoreUnusable
from tandemq.stores.sqlite.faults import FAULTS, is_full

APPLICATION_ID = 0x54444D51  # "TDMQ", at a fixed place in the file: see file(1)


def steps() -> dict[int, str]:
    """Return the steps of the package: the version each one leads to, and its SQL."""
    folder = resources.files("tandemq.stores.sqlite") / "migrations"
    files = sorted((f.name, f) for f in folder.iterdir() if f.name.endswith(".sql"))
    return {int(name.split("_")[0]): file.read_text("utf-8") for name, file in files}


def bring_up(db: sqlite3.Connection, path: Path) -> None:
    """Lead a file to the newest version; an older one is copied before it is touched.

    Raises:
        StoreUnusable: the file is another program's, newer than this program, or a step failed
            (the file is then at the version before that step, whole).
    """
    todo = steps()
    version = _version(db, path)
    if version > max(todo):
        raise StoreUnusable(
            f"{path}: a newer tandemq made this file (schema version {version}); this one knows "
            f"versions up to {max(todo)}. Start the newer tandemq, or bring back the copy that it "
            f"made before its migration ({_copy_name(path, max(todo)).name})."
        )
    wanted = [step for step in todo if step > version]
    if version and wanted:
        _copy(db, path, version)
    for step in wanted:
        _take(db, path, step, todo[step])


def _version(db: sqlite3.Connection, path: Path) -> int:
    """Return the schema version of a file of ours, 0 for one without any content."""
    owner: int = db.execute("PRAGMA application_id").fetchone()[0]
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    blank = not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    if owner == APPLICATION_ID or (blank and owner == version == 0):
        return version
    raise StoreUnusable(
        f"{path}: this is an SQLite file, but of another program. Nothing in it was changed; "
        "give another file with --data."
    )


def _take(db: sqlite3.Connection, path: Path, step: int, sql: str) -> None:
    try:
        db.executescript(f"BEGIN IMMEDIATE;\n{sql}\n;PRAGMA user_version = {step};\nCOMMIT;")
    except sqlite3.Error as exc:
        if db.in_transaction:
            db.execute("ROLLBACK")
        cause = "no space is left on the disk" if is_full(path, exc) else exc
        raise StoreUnusable(
            f"{path}: the step to schema version {step} failed ({cause}). The file is as it was "
            "before; the version of tandemq that made it can still use it."
        ) from exc


def _copy(db: sqlite3.Connection, path: Path, version: int) -> None:
    """Keep the file as it is; the copy has its name only when it is complete and on the disk."""
    copy = _copy_name(path, version)
    partial = copy.with_name(copy.name + ".partial")
    try:
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial)) as target:
            db.backup(target)
        partial.chmod(path.stat().st_mode & 0o777)
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(copy)
    except FAULTS as exc:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
        raise StoreUnusable(
            f"{path}: no copy could be made before the migration ({exc}). Nothing was changed; "
            f"make room for {copy.name} and start again."
        ) from exc


def _copy_name(path: Path, version: int) -> Path:
    """Return a name that no earlier copy has: a copy is never overwritten."""
    name, n = f"{path.name}.v{version}.bak", 1
    while (copy := path.with_name(name if n == 1 else f"{name}.{n}")).exists():
        n += 1
    return copy
