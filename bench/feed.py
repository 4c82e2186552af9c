"""What it costs to tell many readers of events: server CPU, deliveries, delay.

    .venv/bin/python bench/feed.py [--readers 1000] [--rate 100] [--seconds 10] [--websocket]

One job is pushed at a time, so that every event is a turn of its own.
"""

from __future__ import annotations

import argparse
import json
import selectors
import socket
import sys
import tempfile
import time
from pathlib import Path
from statistics import quantiles

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "tests")]

from tests.support.server import Server  # noqa: E402

ASK = b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n"
UPGRADE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


def connected(port: int, count: int, ask: bytes, welcome: bytes) -> list[socket.socket]:
    """Return so many readers, each with the head of its answer read."""
    readers = []
    for _ in range(count):
        reader = socket.create_connection(("127.0.0.1", port))
        reader.sendall(ask)
        readers.append(reader)
    for reader in readers:
        head = b""
        while welcome not in head:
            head += reader.recv(4096)
        reader.setblocking(False)
    return readers


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ask.add_argument("--readers", type=int, default=1_000)
    ask.add_argument("--rate", type=int, default=100, help="events a second")
    ask.add_argument("--seconds", type=float, default=10.0)
    ask.add_argument("--websocket", action="store_true", help="over WebSockets")
    given = ask.parse_args()
    way = (UPGRADE, b"\r\n\r\n") if given.websocket else (ASK, b"connected")
    mark = b'"eventType":"pushed"' if given.websocket else b"event: job:pushed"
    with tempfile.TemporaryDirectory() as folder, Server(Path(folder)) as server:
        readers = connected(server.http_port, given.readers, *way)
        watch = selectors.DefaultSelector()
        for reader in readers:
            watch.register(reader, selectors.EVENT_READ)
        first = readers[0]
        told, delays, pushed = 0, [], 0
        wire = server.connect()
        began, cpu = time.monotonic(), server.cpu_seconds()
        while (now := time.monotonic()) < began + given.seconds:
            if now >= began + pushed / given.rate:
                wire.ask("PUSH", queue="feed", data=1)
                pushed += 1
            for key, _ in watch.select(0.001):
                data = key.fileobj.recv(1 << 16)  # type: ignore[union-attr]
                told += data.count(mark)
                if key.fileobj is first:
                    delays += delays_of(data)
        spent, took = server.cpu_seconds() - cpu, time.monotonic() - began
    print(f"readers {given.readers}, events {pushed / took:.0f}/s, deliveries {told / took:.0f}/s")
    print(f"server CPU {spent / took:.2f} of a core")
    if len(delays) > 1:
        print(f"delay of the first reader, p50 {quantiles(delays)[1]:.0f} ms, max {max(delays)} ms")


def delays_of(data: bytes) -> list[int]:
    """Return how old the events in some chunks are, in ms."""
    now = time.time_ns() // 1_000_000
    lines = (line for line in data.split(b"\n") if line.startswith(b'data: {"queue"'))
    found = (json.loads(line[6:]) for line in lines if line.endswith(b"}"))
    return [now - fields["timestamp"] for fields in found if "timestamp" in fields]


if __name__ == "__main__":
    main()
