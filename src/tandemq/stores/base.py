"""What the server needs of a store.

A store is passive and blocking: it is opened and loaded before the server listens, and afterwards
called from one writer thread only. It does not look into rows; ``rows.py`` makes and reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

from msgspec import Struct, field


class StoreFailed(Exception):
    """A batch was not stored, or stored rows could not be read.

    Nothing of the batch is in the store. ``disk_full`` tells the one cause that
    an operator can end without us.
    """

    def __init__(self, text: str, *, disk_full: bool = False) -> None:
        super().__init__(text)
        self.disk_full = disk_full


class StoreUnusable(Exception):
    """The store cannot be opened; the text says why and what to do."""


class Row(NamedTuple):
    """One stored message: its key, the part that changes, the part that does not."""

    seq: int
    head: bytes
    body: bytes


class Batch(Struct):
    """Everything that changed since the last commit; all of it is stored, or nothing."""

    new: list[Row] = field(default_factory=list)
    changed: list[tuple[int, bytes]] = field(default_factory=list)  # seq, new head
    rebodied: list[tuple[int, bytes]] = field(default_factory=list)  # seq, new body
    gone: list[int] = field(default_factory=list)
    facts: dict[str, bytes | None] = field(default_factory=dict)  # settings, logs: key to value
    sync: bool = False  # survive power loss, not only the end of the process

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.rebodied or self.gone or self.facts)


class Store(Protocol):
    """Where messages survive the process."""

    persistent: bool
    """False for a store that forgets: then nothing is handed to ``commit``."""

    def open(self) -> None:
        """Lock, migrate and get ready.

        Raises:
            StoreUnusable: held by another process, newer than this program, corrupt, not writable.
        """

    def load(self) -> Iterator[Row]:
        """Yield every stored message by ascending seq."""

    def load_facts(self) -> dict[str, bytes]:
        """Return every stored fact."""

    def fetch(self, seqs: Iterable[int]) -> list[Row]:
        """Return the stored rows among ``seqs``; those that do not exist are left out."""

    def fetch_facts(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Return the stored facts among ``keys``."""

    def commit(self, batch: Batch) -> None:
        """Store a batch, all or nothing; when it returns the batch survives a crash.

        Raises:
            StoreFailed: nothing of the batch was stored.
        """

    def size_bytes(self) -> int:
        """How much the store occupies."""

    def close(self) -> None:
        """Let go of the store; a closed store may be opened again."""
