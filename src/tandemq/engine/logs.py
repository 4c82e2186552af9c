"""Lines that workers write about a message: the newest hundred, kept beside it.

A line is opaque bytes. Logs outlive messages that are removed on completion, up to a bound on the
number of logs and on their size.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from tandemq.model.policy import LOG_LINES

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

FACT = "log/"  # + message id: the key under which a log is stored

_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(list[bytes]).decode


class Logs:
    """Every log, least recently written first."""

    def __init__(self, most: int, most_bytes: int) -> None:
        """Keep ``most`` logs of ``most_bytes`` together; those not written for longest go first."""
        self._most, self._most_bytes = most, most_bytes
        self._logs: OrderedDict[str, list[bytes]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._logs)

    def of(self, id: str) -> list[bytes]:
        """Return the lines of a message, oldest first."""
        return self._logs.get(id, [])

    def ids(self) -> list[str]:
        return list(self._logs)

    def add(self, engine: Engine, id: str, line: bytes, most: int = LOG_LINES) -> None:
        """Add a line; the oldest ones beyond the bounds are dropped, all but ``most`` of them."""
        if most <= 0:
            self.drop(engine, id)
            return
        lines = self._logs.setdefault(id, [])
        self._logs.move_to_end(id)
        lines.append(line)
        self.size_bytes += len(line)
        while len(lines) > most:
            self.size_bytes -= len(lines.pop(0))
        engine.record(FACT + id, _encode(lines))
        while len(self._logs) > self._most or (
            self.size_bytes > self._most_bytes and len(self._logs) > 1
        ):
            self.drop(engine, next(iter(self._logs)))

    def keep(self, engine: Engine, id: str, newest: int) -> None:
        """Keep only the newest lines of a message's log."""
        lines = self._logs.get(id)
        if lines is None or newest >= len(lines):
            return
        if newest <= 0:
            self.drop(engine, id)
            return
        self.size_bytes -= sum(map(len, lines[:-newest]))
        del lines[:-newest]
        engine.record(FACT + id, _encode(lines))

    def drop(self, engine: Engine, id: str) -> None:
        """Forget the log of a message, if it has one."""
        lines = self._logs.pop(id, None)
        if lines is not None:
            self.size_bytes -= sum(map(len, lines))
            engine.record(FACT + id, None)

    def restore(self, id: str, fact: bytes | None) -> None:
        """Take a log as it was stored; None is no log."""
        before = self._logs.pop(id, [])
        self.size_bytes -= sum(map(len, before))
        if fact is not None:
            self._logs[id] = lines = _decode(fact)
            self.size_bytes += sum(map(len, lines))
