"""Statements for many rows at once.

``executemany`` takes and gives back the interpreter lock for every row, and starves beside a busy
event loop; one statement over 256 rows takes it once. Rows are cut into chunks of 256, 128, ... 1,
so that any number of them needs at most nine statements of each kind to be prepared, ever.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

MOST = 256  # rows a statement; three values each stay below the 999 of the smallest builds

BODY = "coalesce(body, (SELECT b.body FROM body AS b WHERE b.seq = message.seq))"
LOAD = f"SELECT seq, head, {BODY} FROM message ORDER BY seq"
ANY_BODIES = "SELECT EXISTS (SELECT 1 FROM body)"
LOAD_FACTS = "SELECT key, value FROM fact"

Shape = Callable[[int], str]  # a number of rows to the statement for that many


def _rows(n: int, row: str) -> str:
    return ",".join([row] * n)


@cache
def insert_messages(n: int) -> str:
    return f"INSERT INTO message (seq, head, body) VALUES {_rows(n, '(?,?,?)')}"


@cache
def insert_bodies(n: int) -> str:
    return f"INSERT INTO body (seq, body) VALUES {_rows(n, '(?,?)')}"


@cache
def update_heads(n: int) -> str:
    # Not an upsert: that would make a row of a head whose message is gone.
    return (
        f"UPDATE message SET head = v.column2 FROM (VALUES {_rows(n, '(?,?)')}) AS v "
        "WHERE message.seq = v.column1"
    )


@cache
def delete_messages(n: int) -> str:
    return f"DELETE FROM message WHERE seq IN ({_rows(n, '?')})"


@cache
def delete_bodies(n: int) -> str:
    return f"DELETE FROM body WHERE seq IN ({_rows(n, '?')})"


@cache
def put_facts(n: int) -> str:
    return f"INSERT OR REPLACE INTO fact (key, value) VALUES {_rows(n, '(?,?)')}"


@cache
def delete_facts(n: int) -> str:
    return f"DELETE FROM fact WHERE key IN ({_rows(n, '?')})"


@cache
def select_messages(n: int) -> str:
    return f"SELECT seq, head, {BODY} FROM message WHERE seq IN ({_rows(n, '?')}) ORDER BY seq"


@cache
def select_facts(n: int) -> str:
    return f"SELECT key, value FROM fact WHERE key IN ({_rows(n, '?')})"


def write(db: sqlite3.Connection, shape: Shape, values: Sequence[Any], width: int = 1) -> None:
    """Run a statement over rows of ``width`` values that stand one behind the other."""
    at = 0
    for n in chunks(len(values) // width):
        db.execute(shape(n), values[at : at + n * width])
        at += n * width


def read(db: sqlite3.Connection, shape: Shape, keys: Sequence[Any]) -> Iterator[Any]:
    """Yield what a query finds for any number of keys."""
    at = 0
    for n in chunks(len(keys)):
        yield from db.execute(shape(n), keys[at : at + n]).fetchall()
        at += n


def chunks(rows: int) -> Iterator[int]:
    """Cut a number of rows into sizes for which there are statements."""
    for _ in range(rows // MOST):
        yield MOST
    size = MOST // 2
    while size:
        if rows & size:
            yield size
        size //= 2
