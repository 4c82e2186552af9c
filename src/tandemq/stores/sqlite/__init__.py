"""Messages in one SQLite file."""

from __future__ import annotations

from tandemq.stores.sqlite.store import SQLiteStore

__all__ = ["SQLiteStore"]
