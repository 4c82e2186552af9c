"""What the job object of a letter has besides, in every way to encode a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgpack
import pytest

from tandemq.model.message import Letter, Message, Repeat, Run, State
from tandemq.wires.bunqueue import codec, letters, shapes

NOW = 1_700_000_000_000


def spliced(m: Message) -> bytes:
    return codec.spliced(shapes.job(m))[4:]


WAYS: dict[str, Callable[[Message], bytes]] = {
    "pulled": spliced,
    "at rest": shapes.job_at_rest,
    "read": shapes.job_read,
    "read by its custom id": shapes.job_without_state,
    "of a flow": lambda m: codec.spliced(shapes.jobs_at_rest([m]))[4:],
}
every_way = pytest.mark.parametrize("way", WAYS)


def job(run: Run | None = None, **fields: Any) -> Message:
    state = State.READY if run is None else State.LEASED
    fields = {"run": run, "state": state, "born": State.READY, **fields}
    return Message("id", "q", "default", b"\x93\x01\x02\x03", 1, NOW, NOW, **fields)


def letter(headers: dict[str, str] | None, **fields: Any) -> Message:
    m = job(letter=Letter("mine", headers), **fields)
    m.body = b"[1,2,3]"
    return m


def shown(way: str, m: Message) -> dict[str, Any]:
    found: dict[str, Any] = msgpack.unpackb(WAYS[way](m), strict_map_key=False)
    return found


@every_way
@pytest.mark.parametrize("run", [None, Run(NOW, 0, NOW), Run(NOW, 0, NOW, 5)])
@pytest.mark.parametrize("headers", [None, {"a": "b"}, {str(n): "é" for n in range(40)}])
@pytest.mark.parametrize("more", [{}, {"priority": 2}, {"repeat": Repeat(5.0)}])
def test_it_is_a_job_with_two_keys_more(
    way: str, run: Run | None, headers: dict[str, str] | None, more: dict[str, Any]
) -> None:
    found = shown(way, letter(headers, run=run, **more))
    assert found.pop("headers") == (headers or {})
    assert found.pop("messageId") == "mine"
    assert found == shown(way, job(run=run, **more))


@every_way
def test_a_job_has_neither(way: str) -> None:
    assert not {"headers", "messageId"} & shown(way, job()).keys()
    assert letters.fields_of(job()) == b""
