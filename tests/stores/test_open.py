"""The words after --data lead to the right store."""

from __future__ import annotations

from pathlib import Path

import pytest

from tandemq.stores.base import Batch, Row, StoreUnusable
from tandemq.stores.memory import MemoryStore
from tandemq.stores.open import open_store
from tandemq.stores.sqlite import SQLiteStore


def test_memory_is_a_store_that_forgets() -> None:
    store = open_store("memory")
    assert isinstance(store, MemoryStore)
    assert not store.persistent


def test_a_path_is_a_file_that_is_opened(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "data.db"))
    assert isinstance(store, SQLiteStore)
    assert store.persistent
    store.commit(Batch(new=[Row(1, b"head", b"body")]))
    store.close()
    assert (tmp_path / "data.db").exists()


def test_a_file_may_be_called_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("./memory").close()
    assert (tmp_path / "memory").is_file()


def test_a_tilde_is_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_store("~/data.db").close()
    assert (tmp_path / "data.db").is_file()


@pytest.mark.parametrize("name", ["odd name?mode=ro#x%20.db", "ünï.db", "-.db", "a'b\".db"])
def test_any_file_name_is_taken_literally(tmp_path: Path, name: str) -> None:
    open_store(str(tmp_path / name)).close()
    assert (tmp_path / name).is_file()


@pytest.mark.parametrize("data", ["", "postgres://host/name", "a\0b"])
def test_what_names_no_store_is_refused_with_a_sentence(data: str) -> None:
    with pytest.raises(StoreUnusable, match="give a file, or the word memory"):
        open_store(data)
