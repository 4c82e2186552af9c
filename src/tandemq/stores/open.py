"""From the words of a user (``--data``) to an opened store."""

from __future__ import annotations

from pathlib import Path

from tandemq.stores.base import Store, StoreUnusable
from tandemq.stores.memory import MemoryStore


def open_store(data: str) -> Store:
    """Return the store that ``data`` names, opened: ``memory``, or the path of an SQLite file.

    A file called ``memory`` is named ``./memory``.

    Raises:
        StoreUnusable: the name means nothing to us, or the store cannot be opened.
    """
    store = _named(data)
    store.open()
    return store


def _named(data: str) -> Store:
    if data == "memory":
        return MemoryStore()
    if not data or "\0" in data:
        raise StoreUnusable("The place for the data has no name: give a file, or the word memory.")
    if "://" in data:
        raise StoreUnusable(
            f"{data.partition('://')[0]}:// is not a kind of store that this program knows: "
            "give a file, or the word memory."
        )
    from tandemq.stores.sqlite import SQLiteStore

    return SQLiteStore(Path(data).expanduser())
