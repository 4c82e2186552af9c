"""A store in one SQLite file: WAL, one writer, one transaction for a batch."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

from tandemq.stores.base import Batch, Row, StoreFailed, StoreUnusable
from tandemq.stores.sqlite import statements as sql
from tandemq.stores.sqlite.connection import check_place, connect
from tandemq.stores.sqlite.faults import FAULTS, failed, unusable
from tandemq.stores.sqlite.lock import FileLock

LARGE = 1024  # bytes; from here on one change of the head costs more than a second row does
LOAD_ROWS = 4096  # rows read from SQLite at a time


class SQLiteStore:
    """Messages in one file, which belongs to this process while it is open.

    Not for two threads at once; for one after the other.
    """

    persistent = True

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()  # two names of one file must meet at one lock
        self._lock = FileLock(self._path)
        self._opened = False
        self._db: sqlite3.Connection | None = None
        self._full_sync = False  # the connection is in synchronous=FULL
        self._large_bodies = False  # the table of large bodies may have rows

    def open(self) -> None:
        """Lock the file, migrate it and get ready; without effect when it is open.

        Raises:
            StoreUnusable: with the file, the cause and what to do.
        """
        if self._opened:
            return
        check_place(self._path)
        self._lock.take()
        self._opened = True
        try:
            self._connect()
        except BaseException as exc:
            self.close()
            if isinstance(exc, FAULTS):
                raise unusable(self._path, exc) from exc
            raise

    def load(self) -> Iterator[Row]:
        """Yield every stored message by ascending seq; finish before the next commit.

        Raises:
            StoreFailed: the file cannot be read, or is damaged.
        """
        try:
            with closing(self._ready().execute(sql.LOAD)) as cursor:
                while rows := cursor.fetchmany(LOAD_ROWS):
                    yield from map(Row._make, rows)
        except FAULTS as exc:
            raise failed(self._path, exc) from exc

    def load_facts(self) -> dict[str, bytes]:
        try:
            return dict(self._ready().execute(sql.LOAD_FACTS))
        except FAULTS as exc:
            raise failed(self._path, exc) from exc

    def fetch(self, seqs: Iterable[int]) -> list[Row]:
        wanted = sorted(set(seqs))
        try:
            return [Row._make(row) for row in sql.read(self._ready(), sql.select_messages, wanted)]
        except FAULTS as exc:
            raise failed(self._path, exc) from exc

    def fetch_facts(self, keys: Iterable[str]) -> dict[str, bytes]:
        try:
            return dict(sql.read(self._ready(), sql.select_facts, list(keys)))
        except FAULTS as exc:
            raise failed(self._path, exc) from exc

    def commit(self, batch: Batch) -> None:
        """Store a batch in one transaction; changes of rows that do not exist have no effect.

        When it returns the batch survives the end of the process, with ``batch.sync`` that of
        the machine. After a failure the next batch finds the store usable.

        Raises:
            StoreFailed: nothing of the batch was stored; a new row has the seq of another one,
                or the disk is full or broken.
        """
        try:
            db = self._ready()
            self._set_full_sync(db, batch.sync)
            db.execute("BEGIN IMMEDIATE")
            self._write(db, batch)
            db.execute("COMMIT")
        except FAULTS as exc:
            self._roll_back()
            raise failed(self._path, exc) from exc

    def size_bytes(self) -> int:
        """Return the size of the file and its log; 0 when there is none."""
        total = 0
        for name in (self._path.name, self._path.name + "-wal"):
            with suppress(FileNotFoundError):
                total += self._path.with_name(name).stat().st_size
        return total

    def close(self) -> None:
        """Move the log into the file and let go of both; without effect when it is closed.

        What the log holds is safe where it is: if the disk is too full to move it, it stays, and
        the next start reads it.
        """
        db, self._db = self._db, None
        if db is not None:
            with suppress(sqlite3.Error):
                db.execute("PRAGMA busy_timeout = 0")  # whoever reads now keeps his log, we go
                db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            with suppress(sqlite3.Error):
                db.close()
        self._opened = False
        self._lock.release()

    def _connect(self) -> sqlite3.Connection:
        db = connect(self._path)
        self._db, self._full_sync = db, False
        self._large_bodies = bool(db.execute(sql.ANY_BODIES).fetchone()[0])
        return db

    def _ready(self) -> sqlite3.Connection:
        """Return a connection without an open transaction; a lost one is made again."""
        if not self._opened:
            raise StoreFailed(f"{self._path}: the store is closed")
        if not self._path.exists():  # SQLite would go on in a file that nobody finds again
            raise StoreFailed(
                f"{self._path}: the file was removed; put it back, or stop the server"
            )
        if self._db is not None and self._db.in_transaction:
            self._roll_back()  # something else than a fault of SQLite ended the last commit
        if self._db is not None:
            return self._db
        try:
            return self._connect()
        except StoreUnusable as exc:
            raise StoreFailed(str(exc)) from exc

    def _roll_back(self) -> None:
        """Undo the open transaction; a connection that cannot do that is given up."""
        db = self._db
        if db is None:
            return
        try:
            if db.in_transaction:
                db.execute("ROLLBACK")
        except sqlite3.Error:
            self._db = None
            with suppress(sqlite3.Error):
                db.close()

    def _set_full_sync(self, db: sqlite3.Connection, wanted: bool) -> None:
        if wanted != self._full_sync:
            db.execute(f"PRAGMA synchronous = {'FULL' if wanted else 'NORMAL'}")
            self._full_sync = wanted

    def _write(self, db: sqlite3.Connection, batch: Batch) -> None:
        if batch.new:
            self._insert(db, batch.new)
        if batch.changed:
            sql.write(db, sql.update_heads, list(chain.from_iterable(batch.changed)), 2)
        for seq, body in batch.rebodied:
            self._replace_body(db, seq, body)
        if batch.gone:
            sql.write(db, sql.delete_messages, batch.gone)
            if self._large_bodies:
                sql.write(db, sql.delete_bodies, batch.gone)
        if batch.facts:
            _write_facts(db, batch.facts)

    def _insert(self, db: sqlite3.Connection, rows: list[Row]) -> None:
        large = [row for row in rows if len(row.body) > LARGE]
        if not large:
            sql.write(db, sql.insert_messages, list(chain.from_iterable(rows)), 3)
            return
        self._large_bodies = True  # stays so if the batch fails: costs a lookup, loses nothing
        split = [(r.seq, r.head, None if len(r.body) > LARGE else r.body) for r in rows]
        sql.write(db, sql.insert_messages, list(chain.from_iterable(split)), 3)
        sql.write(
            db, sql.insert_bodies, list(chain.from_iterable((r.seq, r.body) for r in large)), 2
        )

    def _replace_body(self, db: sqlite3.Connection, seq: int, body: bytes) -> None:
        large = len(body) > LARGE
        inline = None if large else body
        known = db.execute("UPDATE message SET body = ? WHERE seq = ?", (inline, seq)).rowcount
        if self._large_bodies:
            db.execute("DELETE FROM body WHERE seq = ?", (seq,))
        if large and known:
            self._large_bodies = True
            db.execute("INSERT INTO body (seq, body) VALUES (?, ?)", (seq, body))


def _write_facts(db: sqlite3.Connection, facts: dict[str, bytes | None]) -> None:
    put = [pair for pair in facts.items() if pair[1] is not None]
    sql.write(db, sql.put_facts, list(chain.from_iterable(put)), 2)
    sql.write(db, sql.delete_facts, [key for key, value in facts.items() if value is None])
