"""The quick reading of pushes means what the usual one does."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tandemq.commands.plain import PlainPush
from tandemq.model.errors import BadRequest
from tandemq.server.http.jsontext import packed
from tandemq.server.http.plain import DEEP, SMALL, plain_push
from tandemq.wires.bunqueue.session import read

leaves = (
    st.none()
    | st.booleans()
    | st.text()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8
)
bodies = st.fixed_dictionaries(
    {}, optional={"data": values, "name": st.text(max_size=300) | leaves}
)


@given(bodies)
def test_it_reads_what_a_frame_would_be_read_as(body: dict[str, Any]) -> None:
    quick = plain_push("q", msgspec.json.encode(body))
    usual = read(packed({**body, "cmd": "PUSH", "queue": "q"}))
    if quick is None:
        return
    assert isinstance(usual, PlainPush)
    assert (quick.queue, quick.name, bytes(quick.data)) == ("q", usual.name, bytes(usual.data))


def test_most_pushes_are_read_quickly() -> None:
    for body in (b"{}", b'{"data":1}', b'{"data":{"at":1700000000000},"name":"mail"}'):
        assert plain_push("q", body) is not None


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[1]",
        b'{"data":1',
        b'{"data":1,"delay":5}',
        b'{"name":5}',
        b'{"name":""}',
        b'{"data":' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"data":"' + b"x" * SMALL + b'"}',
    ],
)
def test_everything_else_is_left_to_the_usual_reading(body: bytes) -> None:
    assert plain_push("q", body) is None


def test_a_number_that_would_change_is_refused() -> None:
    with pytest.raises(BadRequest, match="send it as text"):
        plain_push("q", b'{"data":9007199254740993}')
