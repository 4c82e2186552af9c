"""A message in the hands of a subscriber, without a connection."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from tandemq.broker import MessagePriority
from tandemq.client.broker import Message
from tandemq.client.errors import BadOption, Unencodable
from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind


class Source:
    """Notes what is said."""

    def __init__(self) -> None:
        self.down: str | None = None
        self.said: list[Any] = []
        self.held = 0

    def ack(self, id: str) -> None:
        self.said.append(("ack", id))

    def give_back(self, id: str, delay_ms: int) -> None:
        self.said.append(("back", id, delay_ms))

    def hold(self, change: int) -> None:
        self.held += change


def message(payload: bytes | None = b"1", **headers: str) -> tuple[Message, Source]:
    source = Source()
    frame = Frame(Kind.DELIVER, "m", "q", payload, headers or None)
    return Message(frame, source).begin(), source


async def test_it_is_settled_once() -> None:
    given, source = message()
    assert source.held == 1
    await given.ack()
    await given.ack()
    await given.give_back()
    assert source.said == [("ack", "m")]
    assert (given.settled, source.held) == (True, 0)


async def test_what_was_settled_inside_its_block_is_not_settled_again() -> None:
    given, source = message()
    async with given:
        await given.give_back(delay=1.5)
    assert source.said == [("back", "m", 1500)]


async def test_a_cancellation_says_nothing() -> None:
    given, source = message()
    with pytest.raises(KeyboardInterrupt):
        async with given:
            raise KeyboardInterrupt
    assert (source.said, source.held) == ([], 0)


async def test_settling_after_the_connection_is_lost_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    given, source = message()
    source.down = "the cable is cut"
    with caplog.at_level(logging.WARNING):
        await given.ack()
    assert (source.said, source.held, given.lost) == ([], 0, True)
    assert "cannot acknowledge message 'm' of q, which will be delivered again" in caplog.text


async def test_a_delay_that_makes_no_sense_is_refused_and_settles_nothing() -> None:
    given, _ = message()
    with pytest.raises(BadOption, match="delay"):
        await given.give_back(delay=-1)
    assert not given.settled


@pytest.mark.parametrize(
    ("said", "priority"),
    [
        ({}, MessagePriority.NORMAL),
        ({"priority": "CRITICAL"}, MessagePriority.CRITICAL),
        ({"priority": "0"}, MessagePriority.LOW),
        ({"priority": "soon"}, MessagePriority.NORMAL),
    ],
)
def test_headers_tell_how_urgent_it_is(said: dict[str, str], priority: MessagePriority) -> None:
    assert message(**said)[0].priority is priority


def test_no_payload_is_none() -> None:
    given, _ = message(None)
    assert (given.payload, given.decode(int | None), given.correlation_id) == (None, None, None)
    with pytest.raises(Unencodable, match="message m of q"):
        given.decode(int)
    assert repr(given) == "<Message m of q>"
