"""Prints what a row costs in the SQLite store: CPU per row, and the time to load and decode.

    python tests/stores/measure.py [ROWS]

Not a test: figures depend on the machine. docs/decisions/0003-sqlite-layout.md quotes them.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tandemq.model.message import Message, State
from tandemq.stores import rows
from tandemq.stores.base import Batch, Row
from tandemq.stores.sqlite import SQLiteStore


def message(seq: int) -> Message:
    return Message(
        id=f"01890a5d-ac96-774b-bcce-{seq:012x}",
        queue="emails",
        name="welcome",
        body=b"x" * 160,
        seq=seq,
        created=1_760_000_000_000,
        due=1_760_000_000_000,
        state=State.READY,
        born=State.READY,
    )


def cpu(store: SQLiteStore, total: int, size: int, make: Callable[[range], Batch]) -> float:
    """Commit batches over ``total`` rows; return microseconds of CPU a row."""
    batches = [make(range(at, at + size)) for at in range(0, total, size)]
    before = time.process_time()
    for batch in batches:
        store.commit(batch)
    return (time.process_time() - before) / total * 1e6


def lives(store: SQLiteStore, total: int) -> None:
    for size in (1000, 100, 10):
        head, later, body = os.urandom(90), os.urandom(110), os.urandom(160)
        made = cpu(store, total, size, lambda b: Batch(new=[Row(i, head, body) for i in b]))  # noqa: B023
        moved = cpu(store, total, size, lambda b: Batch(changed=[(i, later) for i in b]))  # noqa: B023
        ended = cpu(store, total, size, lambda b: Batch(gone=list(b)))
        print(
            f"batches of {size:4}: insert {made:.1f}, update {moved:.1f}, delete {ended:.1f} us CPU"
        )


def start(store: SQLiteStore, total: int) -> None:
    for at in range(0, total, 1000):
        made = [message(seq) for seq in range(at, at + 1000)]
        store.commit(Batch(new=[Row(m.seq, rows.encode_head(m), m.body) for m in made]))
    store.close()
    begin = time.perf_counter()
    store.open()
    opened = time.perf_counter()
    count = sum(1 for _ in store.load())
    loaded = time.perf_counter()
    kept = [rows.decode(row) for row in store.load()]
    decoded = time.perf_counter()
    print(
        f"{len(kept)} rows, {store.size_bytes() / 1e6:.0f} MB: open {opened - begin:.2f}, "
        f"load {loaded - opened:.2f}, load and decode {decoded - loaded:.2f} s ({count} read)"
    )


def coding(times: int = 200_000) -> None:
    m = message(1)
    row = Row(1, rows.encode_head(m), m.body)
    for name, once in (
        ("encode", lambda: rows.encode_head(m)),
        ("decode", lambda: rows.decode(row)),
    ):
        begin = time.process_time()
        for _ in range(times):
            once()
        print(f"{name} {(time.process_time() - begin) / times * 1e6:.2f} us")


def main() -> None:
    total = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    coding()
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "data.db")
        store.open()
        lives(store, min(total, 200_000))
        start(store, total)
        store.close()


if __name__ == "__main__":
    main()
