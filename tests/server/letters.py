"""A VibeMQ client of the JSON wire, without a socket."""

from __future__ import annotations

import itertools
import struct
from typing import Any

import msgspec
from tests.server.offline import FakeTransport, turns
from tests.support.wire import frame

from tandemq.server.connections import Connection
from tandemq.server.runtime import Runtime

Said = dict[str, Any]


class Correspondent:
    """Sends frames without waiting, and keeps what it is told in order."""

    def __init__(self, runtime: Runtime) -> None:
        self.connection = Connection(runtime, runtime.next_id())
        self.transport = FakeTransport(self.connection)
        self.connection.connection_made(self.transport)
        self._numbers = itertools.count(1)

    def send(self, type: str, **fields: Any) -> str:
        id = str(fields.pop("id", f"r{next(self._numbers)}"))
        said = {"id": id, "type": type, **fields}
        self.connection.data_received(frame(msgspec.json.encode(said)))
        return id

    async def connect(self) -> Correspondent:
        self.send("connect")
        await turns()
        assert self.told("connectAck")
        return self

    async def do(self, type: str, **fields: Any) -> Said:
        """Send a frame; return what is told under its id."""
        id = self.send(type, **fields)
        await turns()
        return next(said for said in self.heard() if said["id"] == id)

    def heard(self) -> list[Said]:
        """Everything so far."""
        data, found = bytes(self.transport.written), []
        while data:
            (size,) = struct.unpack_from(">I", data)
            found.append(msgspec.json.decode(data[4 : 4 + size]))
            data = data[4 + size :]
        return found

    def told(self, type: str) -> list[Said]:
        return [said for said in self.heard() if said["type"] == type]
