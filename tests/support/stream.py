"""Reads Server-Sent Events, and opens WebSockets, for tests."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from websockets.sync.client import ClientConnection, connect

PATIENCE = 20.0  # s

Told = dict[str, Any]


class Stream:
    """One reader of events."""

    def __init__(self, port: int, path: str = "/events", **headers: str) -> None:
        """``headers`` have underscores for their dashes."""
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", path, headers=named)
        self._answer = self._connection.getresponse()
        self.status = self._answer.status
        self.headers = {name.lower(): value for name, value in self._answer.getheaders()}

    def next(self) -> Told:
        """Return the next event or comment.

        Raises:
            EOFError: the stream has ended.
        """
        told: Told = {}
        while line := self._answer.readline().decode().rstrip("\n"):
            name, _, value = line.partition(":")
            told[name or "comment"] = json.loads(value) if name in ("data", "id") else value.strip()
        if not told:
            raise EOFError
        return told

    def take(self, event: str) -> Told:
        """Return the next event of a name."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if (told := self.next()).get("event") == event:
                return told
        raise AssertionError(f"no {event} within {PATIENCE:g} s")

    def rest(self) -> str:
        """Return what comes until the stream ends."""
        return self._answer.read().decode()

    def close(self) -> None:
        self._answer.close()
        self._connection.close()

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Socket:
    """One WebSocket of a client that knows JSON."""

    def __init__(self, port: int, path: str = "/ws", **headers: str) -> None:
        """Raise websockets.InvalidStatus where the server does not want it."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._open = connect(
            f"ws://127.0.0.1:{port}{path}",
            additional_headers=named,
            open_timeout=PATIENCE,
            compression=None,
            proxy=None,
        )
        self.raw: ClientConnection = self._open.__enter__()

    def send(self, cmd: str, **fields: Any) -> None:
        self.raw.send(json.dumps({"cmd": cmd, **fields}))

    def next(self) -> Told:
        """Return the next message."""
        told: Told = json.loads(self.raw.recv(PATIENCE))
        return told

    def ask(self, cmd: str, **fields: Any) -> Told:
        """Send a command and return its answer; what is told meanwhile is passed over."""
        self.send(cmd, **fields, reqId="asked")
        while (told := self.next()).get("reqId") != "asked":
            pass
        del told["reqId"]
        return told

    def take(self, name: str) -> Told:
        """Return the next event of a name, in whichever form."""
        while name not in ((told := self.next()).get("event"), told.get("eventType")):
            pass
        return told

    def close(self) -> None:
        self._open.__exit__(None, None, None)

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
