"""On a full disk a batch fails, nothing is lost, and service resumes when space is back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

FILL = """
import resource, sqlite3, sys
from pathlib import Path
from tandemq.stores.base import Batch, Row, StoreFailed
from tandemq.stores.open import open_store

path, way = Path(sys.argv[1]), sys.argv[2]
store, kept, body = open_store(str(path)), {}, b"x" * 2000


def rows(first):
    return [Row(first + n, b"head", body) for n in range(10)]


def commit(first):
    store.commit(Batch(new=rows(first), facts={"last": str(first).encode()}, sync=first % 20 == 0))
    kept.update((row.seq, row) for row in rows(first))


def refused(first):
    try:
        commit(first)
    except StoreFailed as failure:
        assert failure.disk_full, failure
        assert "no space is left" in str(failure), failure
        return True
    return False


def whole():
    assert list(store.load()) == [kept[seq] for seq in sorted(kept)]
    assert store.load_facts()["last"] == str(max(kept) - 9).encode()


for first in range(0, 100, 10):
    commit(first)
if way == "limit":
    wal = path.with_name(path.name + "-wal")
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (wal.stat().st_size + 50_000, hard))
else:
    (path.parent / "ballast").write_bytes(bytes(1_000_000))

first = 100
while not refused(first):
    first += 10
    assert first < 100_000, "the disk was never full"
assert all(refused(first) for _ in range(3)), "service resumed without space"
whole()
assert store.fetch([5, first]) == [kept[5]]

if way == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
else:
    (path.parent / "ballast").unlink()
for more in range(5):
    commit(first + more * 10)
whole()
store.commit(Batch(changed=[(0, b"later")], gone=[1]))
kept[0] = kept[0]._replace(head=b"later")
del kept[1]
store.close()

store.open()
whole()
store.close()
db = sqlite3.connect(path)
assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
db.close()
print("whole", len(kept))
"""


def fill(path: Path, way: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, path, way],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("whole ")


def test_a_limit_on_the_size_of_files_refuses_batches_until_it_is_lifted(tmp_path: Path) -> None:
    fill(tmp_path / "data.db", "limit")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of four megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", folder], capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"mounts are not permitted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
def test_a_full_file_system_refuses_batches_until_space_is_back(small_disk: Path) -> None:
    fill(small_disk / "data.db", "ballast")


CLOSE = """
import sys
from pathlib import Path
from tandemq.stores.base import Batch, Row, StoreFailed, StoreUnusable
from tandemq.stores.open import open_store

path = Path(sys.argv[1])
store = open_store(str(path))
store.commit(Batch(new=[Row(n, b"head", bytes(2000)) for n in range(500)]))
ballast = open(path.parent / "ballast", "wb", buffering=0)
try:
    while ballast.write(bytes(4096)):
        pass
except OSError:
    ballast.close()
store.close()
assert path.with_name(path.name + "-wal").exists(), "there was room, this test shows nothing"
try:
    open_store(str(path)).close()
except StoreUnusable as refusal:
    assert "no space is left" in str(refusal), refusal
(path.parent / "ballast").unlink()
store.open()
assert [row.seq for row in store.load()] == list(range(500))
store.close()
print("whole")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts file systems")
def test_closing_on_a_full_disk_loses_nothing(small_disk: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLOSE, small_disk / "data.db"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "whole\n"), done.stderr
