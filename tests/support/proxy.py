"""A TCP proxy that can do what networks do.

It cuts links, delays bytes, swallows them without saying so, closes one direction, lets bytes
through in drips, and lets nobody in.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType

Pair = tuple[socket.socket, socket.socket]


class Proxy:
    """Forwards 127.0.0.1:`port` to 127.0.0.1:`target` until told otherwise."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.accepted = 0
        """Links so far."""
        self._delay = 0.0
        self._drip = 0
        self._swallowing = threading.Event()
        self._refusing = threading.Event()
        self._links: list[Pair] = []
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    # What networks do; each lasts until `heal`, a cut is over at once.

    def cut(self) -> None:
        """Break every link that exists now; new ones are welcome."""
        for link in self._take_links():
            for end in link:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()

    def half_close(self) -> None:
        """Close the way to the client of every link that exists now; the other one stays open."""
        with self._lock:
            links = list(self._links)
        for client, _ in links:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_WR)

    def swallow(self) -> None:
        """From now on nothing passes in either direction, and nobody is told."""
        self._swallowing.set()

    def delay(self, seconds: float) -> None:
        """From now on every piece waits so long before it passes."""
        self._delay = seconds

    def drip(self, size: int) -> None:
        """From now on bytes pass in pieces of `size`, a millisecond apart."""
        self._drip = size

    def refuse(self) -> None:
        """Break every link, and each new one as soon as it comes."""
        self._refusing.set()
        self.cut()

    def heal(self) -> None:
        """Forward everything again. A link that lost bytes stays silent, so it is broken."""
        lost = self._swallowing.is_set()
        self._swallowing.clear()
        self._refusing.clear()
        self._delay, self._drip = 0.0, 0
        if lost:
            self.cut()

    def _take_links(self) -> list[Pair]:
        with self._lock:
            links, self._links = self._links, []
        return links

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.accepted += 1
            try:
                if self._refusing.is_set():
                    raise ConnectionRefusedError
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                client.close()
                continue
            with self._lock:
                self._links.append((client, server))
            for source, sink in ((client, server), (server, client)):
                threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                if self._delay:
                    time.sleep(self._delay)
                self._pass(chunk, sink)
            if not self._swallowing.is_set():
                sink.shutdown(socket.SHUT_WR)

    def _pass(self, chunk: bytes, sink: socket.socket) -> None:
        while chunk and not self._swallowing.is_set():
            size = self._drip or len(chunk)
            sink.sendall(chunk[:size])
            chunk = chunk[size:]
            if chunk:
                time.sleep(0.001)
