"""Peers that cost a server memory, over real sockets: who does not read, and who sends bombs."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from tests.support.patience import eventually
from tests.support.server import Server, figure, room
from tests.support.vibe import Vibe, encoded, framed, joined

from tandemq.wires.sniff import Wire
from tandemq.wires.vibemq import compression

COUNT = figure("TANDEMQ_TEST_SLOW_READERS", short=8_000, long=100_000)
AT_A_TIME = 100
WITH_ACK, WITHOUT = 1, 2


def subscribers(client: Vibe, queue: str) -> int:
    info = client.ask("QueueInfo", queue=queue)["payload"]
    return int(info["subscriberCount"])


# What is to be acknowledged fills the window of who does not read, unless it is large.
@pytest.mark.parametrize(
    ("mode", "count", "size"),
    [(WITH_ACK, COUNT // 8, 20_000), (WITHOUT, COUNT, 2_000)],
    ids=["with ack", "without"],
)
def test_one_that_stops_reading_delays_nobody_and_is_cut(
    new_server: Callable[..., Server], wire: Wire, mode: int, count: int, size: int
) -> None:
    server = new_server(environment={"TANDEMQ_SLOW_TIMEOUT": "1"}).start()
    before, text = server.memory(), "x" * size
    with (
        joined(server.port, wire, receive_buffer=4096) as stuck,
        joined(server.port, wire, timeout=60) as reader,
        joined(server.port, wire) as publisher,
    ):
        publisher.ask("CreateQueue", queue="q", payload={"mode": mode, "maxQueueSize": count})
        stuck.subscribe("q")
        reader.subscribe("q")
        got: list[str] = []

        def read() -> None:
            while len(got) < count:
                frame = reader.receive()
                got.append(frame["id"])
                reader.ack(frame["id"])

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        for first in range(0, count, AT_A_TIME):
            ids = [f"m{n}" for n in range(first, first + AT_A_TIME)]
            publisher.send_raw(
                b"".join(encoded(wire, "Publish", id, queue="q", payload=text) for id in ids)
            )
            assert [publisher.receive()["type"] for _ in ids] == ["PublishAck"] * AT_A_TIME
        thread.join(60)
        assert got == [f"m{n}" for n in range(count)]
        eventually(lambda: subscribers(publisher, "q") == 1, "the one that does not read is cut")
        assert server.memory() - before < room(100)


@pytest.mark.parametrize("name", compression.AVAILABLE)
def test_s_188_bombs_cost_no_more_than_what_a_message_may_be(
    new_server: Callable[..., Server], name: str
) -> None:
    server = new_server().start()
    bomb = compression.deflate(name, bytes(256 << 20))
    frame = framed(Wire.BINARY, bomb, compression.FLAGS[name])
    with joined(server.port, Wire.BINARY) as other:
        server.forget_peak()
        before = server.memory()
        for _ in range(5):
            with joined(server.port, Wire.BINARY) as attacker:
                attacker.send_raw(frame)
                attacker.ended()
        assert server.peak_memory() - before < room(40)
        other.quiet()
