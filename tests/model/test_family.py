"""What flows write into the users' data: read and written without touching anything else."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.model import family

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**31), 2**31) | st.text(max_size=5) | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


def packed(value: Any) -> bytes:
    data: bytes = msgpack.packb(value)
    return data


def read(raw: bytes) -> Any:
    return msgpack.unpackb(raw, strict_map_key=False)


def test_a_child_names_its_parent_and_a_parent_its_children() -> None:
    child = family.marks(packed({"x": 1, "__parentId": "p", "__parentQueue": "q"}))
    parent = family.marks(packed({"__childrenIds": ["a", "b"]}))
    assert (child.parent, child.parent_queue, child.children) == ("p", "q", None)
    assert (parent.parent, parent.children) == (None, ["a", "b"])


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\xd4\x00\x00", packed(1), packed([1]), b"\xdf"])
def test_data_that_is_no_map_says_nothing(data: bytes) -> None:
    assert family.marks(data) == family.Marks()


def test_keys_that_are_no_text_do_not_hide_the_marks() -> None:
    data = packed({1: "one", "__parentId": "p", b"bin": 2, "__parentQueue": "q"})
    assert (family.marks(data).parent, family.marks(data).parent_queue) == ("p", "q")


def test_a_mark_that_cannot_be_read_says_nothing() -> None:
    data = packed({1: 1}) + b""
    broken = b"\x82" + data[1:] + packed("__parentId") + b"\xa1\xff"
    assert family.marks(broken) == family.Marks()


def test_a_map_that_breaks_off_says_nothing() -> None:
    assert family.marks(b"\x82\x01\x01\xa3") == family.Marks()


@given(st.dictionaries(st.text(max_size=12), PLAIN, max_size=20))
def test_marks_are_added_to_what_is_there(data: dict[str, Any]) -> None:
    child = read(family.with_parent(packed(data), "p", "q"))
    assert child == {**data, "__parentId": "p", "__parentQueue": "q"}
    parent = read(family.with_children(packed(data), ["a", "b"]))
    assert parent == {**data, "__childrenIds": ["a", "b"]}


@given(st.dictionaries(st.text(max_size=12), PLAIN, max_size=20))
def test_taking_the_parent_out_leaves_the_rest(data: dict[str, Any]) -> None:
    data = {key: value for key, value in data.items() if not key.startswith("__parent")}
    assert read(family.without_parent(family.with_parent(packed(data), "p", "q"))) == data


@pytest.mark.parametrize("size", [15, 16, 70_000])
def test_maps_of_any_size_are_written(size: int) -> None:
    data = {str(n): n for n in range(size)}
    assert read(family.with_children(packed(data), ["c"])) == {**data, "__childrenIds": ["c"]}


@pytest.mark.parametrize("data", [packed(7), packed("text"), packed([1, 2])])
def test_data_that_is_no_map_is_left_alone(data: bytes) -> None:
    assert family.with_parent(data, "p", "q") == data


@pytest.mark.parametrize("data", [b"", b"\xc0", b"\xd4\x00\x00"])
def test_no_data_becomes_a_map(data: bytes) -> None:
    assert read(family.with_children(data, ["c"])) == {"__childrenIds": ["c"]}
