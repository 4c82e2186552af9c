"""``tandemq backup``: copies of a data file, made while a server uses it.

The lock that keeps a second server off a file keeps no readers off (``stores/sqlite/lock.py``): a
backup is a second connection that only reads, in one read transaction, so the copy is the state of
one moment, whatever is written meanwhile. It has its name only when it is complete and on the disk.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import click

from tandemq.cli import output
from tandemq.cli.exits import Refused, StoreTrouble
from tandemq.cli.groups import Verbs
from tandemq.cli.output import Card, Done, Shown
from tandemq.cli.verb import confirm, current, verb

PAGES = 2_000  # of one step, about 8 MiB
OURS = 0x54444D51  # "TDMQ", as in stores/sqlite/migrate.py
KINDS = ("message", "fact")  # tables that are counted
PARTS = ("-wal", "-shm")  # files that belong to one in use


@click.group(cls=Verbs, aliases={"now": "create", "status": "verify"})
def backup() -> None:
    """Copy, check and bring back a data file; the server may go on."""


def data_option(command: Any) -> Any:
    """Add the option that names the data file."""
    return click.option(
        "--data",
        envvar="TANDEMQ_DATA",
        default="./tandemq.db",
        show_default=True,
        metavar="FILE",
        help="Data file of the server.",
    )(command)


@verb(backup, link=None)
@click.argument("target", type=click.Path(path_type=Path))
@data_option
@click.option("--force", is_flag=True, help="Replace an earlier copy of that name.")
def create(target: Path, data: str, force: bool) -> Shown:
    """Copy the data file as it is at this moment to TARGET, and check the copy.

    Example: tandemq backup create ./backups/monday.db --data ./tandemq.db
    """
    source = Path(data)
    if target.exists() and not force:
        raise Refused(f"{target} exists: give another name, or --force to replace it.")
    if target.exists() and source.exists() and target.samefile(source):
        raise Refused(f"{target} is the data file itself.")
    with _trouble(), closing(reader(source)) as db:
        facts = checked(db, source, quick=True)
        _copy(db, target)
    size = output.amount(target.stat().st_size)
    return Done(
        f"Copied {output.counted(facts['messages'], 'message')} to {target} ({size}).",
        {"file": str(target), "bytes": target.stat().st_size, **facts},
    )


@verb(backup, link=None)
@click.argument("file", type=click.Path(path_type=Path))
def verify(file: Path) -> Shown:
    """Check a copy or a data file: that it is whole, its schema version, and what is in it.

    Example: tandemq backup verify ./backups/monday.db
    """
    with _trouble(), closing(reader(file)) as db:
        facts = checked(db, file, quick=False)
    return Card({"file": str(file), "ok": True, "bytes": file.stat().st_size, **facts}, ("file",))


@verb(backup, link=None)
@click.argument("file", type=click.Path(path_type=Path))
@data_option
def restore(file: Path, data: str) -> Shown:
    """Make a copy the data file again, after checking it. The server has to be stopped.

    Example: tandemq backup restore ./backups/monday.db --data ./tandemq.db --yes
    """
    from tandemq.stores.base import StoreUnusable
    from tandemq.stores.sqlite.lock import FileLock

    place = Path(data)
    with _trouble():
        if place.exists() and file.exists() and place.samefile(file):
            raise Refused(f"{file} is the data file itself.")
        with closing(reader(file)) as db:
            facts = checked(db, file, quick=False)
            if place.exists():
                confirm(f"Replace {place}, which exists?", sure=current().sure)
            lock = FileLock(place)
            try:
                lock.take()
                _copy(db, place, before=lambda: _drop_parts(place))
            except StoreUnusable as problem:
                raise StoreTrouble(str(problem)) from None
            finally:
                lock.release()
    text = f"{place} holds {output.counted(facts['messages'], 'message')} of {file}."
    return Done(text, {"file": str(place), "restoredFrom": str(file), **facts})


def checked(db: sqlite3.Connection, file: Path, *, quick: bool) -> dict[str, Any]:
    """Return what is in a file, if it is ours, whole, and of a version that this program knows.

    Raises:
        StoreTrouble: it is not.
    """
    from tandemq.stores.sqlite.migrate import steps

    db.execute("BEGIN")  # from here on it is one moment
    if _pragma(db, "application_id") != OURS:
        raise StoreTrouble(f"{file} is no data file of tandemq.")
    version, known = _pragma(db, "user_version"), max(steps())
    if version > known:
        raise StoreTrouble(
            f"{file} was made by a newer tandemq (schema version {version}); this one knows "
            f"versions up to {known}."
        )
    fault = _pragma(db, "quick_check(1)" if quick else "integrity_check(1)")
    if fault != "ok":
        raise StoreTrouble(f"{file} is damaged: {fault}. Bring back an earlier copy.")
    counts = {
        f"{kind}s": db.execute(f"SELECT count(*) FROM {kind}").fetchone()[0] for kind in KINDS
    }
    return {"schemaVersion": version, **counts}


def _pragma(db: sqlite3.Connection, name: str) -> Any:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def reader(file: Path) -> sqlite3.Connection:
    """Open a file for reading only.

    Raises:
        StoreTrouble: there is none.
    """
    if not file.is_file():
        raise StoreTrouble(f"{file}: there is no such file.")
    return sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def _copy(db: sqlite3.Connection, target: Path, before: Any = None) -> None:
    """Copy all that a connection sees; ``before`` runs when the copy is ready to take its name."""
    partial = target.with_name(f".{target.name}.partial")
    if not target.parent.is_dir():
        raise StoreTrouble(f"{target}: there is no folder {target.parent}. Make it first.")
    try:
        partial.unlink(missing_ok=True)
        with closing(sqlite3.connect(partial)) as copy, output.progress(100, "Copying") as bar:
            partial.chmod(0o600)  # it holds what users sent, and what proves who they are

            def moved(_: int, left: int, total: int) -> None:
                bar.update(max(0, 100 * (total - left) // max(total, 1) - bar.pos))

            db.backup(copy, pages=PAGES, progress=moved)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, without parts beside it
        _sync(partial)
        if before is not None:
            before()
        partial.replace(target)
        _sync(target.parent)
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def _drop_parts(place: Path) -> None:
    """Take away what belongs to the file that is replaced: SQLite would mix it with the new one."""
    for part in PARTS:
        place.with_name(place.name + part).unlink(missing_ok=True)


def _sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _trouble() -> Iterator[None]:
    """Turn what a disk or SQLite says into one line and its exit code."""
    try:
        yield
    except sqlite3.Error as problem:
        raise StoreTrouble(f"SQLite says: {problem}.") from None
    except OSError as problem:
        raise StoreTrouble(f"{problem.filename or 'The disk'}: {problem.strerror}.") from None
