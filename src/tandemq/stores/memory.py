"""A store that forgets: for tests, and for servers that keep nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tandemq.stores.base import Batch, Row, StoreFailed


class MemoryStore:
    """Rows in a dictionary, gone with the process.

    It keeps the whole contract, so that it can stand for any other store in a test. The server
    hands nothing to it, because ``persistent`` is false.
    """

    persistent = False

    def __init__(self) -> None:
        self._rows: dict[int, Row] = {}
        self._facts: dict[str, bytes] = {}

    def open(self) -> None:
        """Nothing to lock and nothing to migrate."""

    def load(self) -> Iterator[Row]:
        return iter([self._rows[seq] for seq in sorted(self._rows)])

    def load_facts(self) -> dict[str, bytes]:
        return dict(self._facts)

    def fetch(self, seqs: Iterable[int]) -> list[Row]:
        return [self._rows[seq] for seq in sorted(set(seqs)) if seq in self._rows]

    def fetch_facts(self, keys: Iterable[str]) -> dict[str, bytes]:
        return {key: self._facts[key] for key in keys if key in self._facts}

    def commit(self, batch: Batch) -> None:
        """Store a batch; changes of rows that do not exist have no effect.

        Raises:
            StoreFailed: a new row has the seq of another one.
        """
        rows = self._rows
        fresh = {row.seq for row in batch.new}
        if len(fresh) < len(batch.new) or not fresh.isdisjoint(rows):
            raise StoreFailed("a new row has the seq of another one")
        rows.update((row.seq, row) for row in batch.new)
        for seq, head in batch.changed:
            if seq in rows:
                rows[seq] = rows[seq]._replace(head=head)
        for seq, body in batch.rebodied:
            if seq in rows:
                rows[seq] = rows[seq]._replace(body=body)
        for seq in batch.gone:
            rows.pop(seq, None)
        for key, value in batch.facts.items():
            if value is None:
                self._facts.pop(key, None)
            else:
                self._facts[key] = value

    def size_bytes(self) -> int:
        rows = sum(len(row.head) + len(row.body) for row in self._rows.values())
        return rows + sum(len(key) + len(value) for key, value in self._facts.items())

    def close(self) -> None:
        """Nothing to let go of; what was stored is still there when it is opened again."""
