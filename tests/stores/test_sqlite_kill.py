"""Batches whose commit returned survive kill -9, whole; the one under way is whole or absent."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tandemq.stores.base import Batch, Row
from tandemq.stores.sqlite import SQLiteStore

SIZE = 40  # rows a batch

COMMITS = f"""
import itertools, sys
from tandemq.stores.base import Batch, Row
from tandemq.stores.open import open_store
store = open_store(sys.argv[1])
for n in itertools.count():
    new = [Row(n * {SIZE} + k, b"%d" % n, bytes(k * 300)) for k in range({SIZE})]
    old = range((n - 3) * {SIZE}, (n - 2) * {SIZE}) if n % 2 else ()
    facts = {{f"batch {{n}}": b"", "last": b"%d" % n}}
    store.commit(Batch(new=new, gone=list(old), facts=facts, sync=n % 5 == 0))
    print(n, flush=True)
"""


@pytest.mark.parametrize("batches", [1, 17, 150])
def test_every_batch_that_was_committed_survives_kill_9_whole(tmp_path: Path, batches: int) -> None:
    path = tmp_path / "data.db"
    printed = commit_until_killed(path, batches)
    store = SQLiteStore(path)
    store.open()
    facts = store.load_facts()
    last = int(facts["last"])
    assert last >= printed
    assert set(facts) == {"last", *(f"batch {n}" for n in range(last + 1))}
    gone = {n - 3 for n in range(3, last + 1) if n % 2}
    rows = Counter(int(row.head) for row in store.load())
    assert rows == {n: SIZE for n in range(last + 1) if n not in gone}
    assert all(len(row.body) == row.seq % SIZE * 300 for row in store.load())
    store.commit(Batch(new=[Row(10**9, b"0", b"")]))
    store.close()


def commit_until_killed(path: Path, batches: int) -> int:
    """Commit in another process, kill it after some batches, return the last one it told."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMITS, path],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(batches):
            process.stdout.readline()
        process.kill()
        told = process.stdout.read().splitlines()
    return int(told[-1]) if told and told[-1].isdecimal() else batches - 1
