"""Progress and the three commands of a job's log: what a worker tells while it runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw

from tandemq.commands import fields as check
from tandemq.commands.answers import Page
from tandemq.commands.call import Call, Data
from tandemq.commands.query import active, find
from tandemq.commands.table import (
    ABSENT,
    UNDEFINED,
    Permission,
    Request,
    command,
    queues_of,
)
from tandemq.model.errors import BadRequest
from tandemq.model.policy import log_lines

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

LINE_LIMIT = 1 << 20  # bytes of one log line

_encode = msgspec.msgpack.encode


class Progress(Request, tag="Progress"):
    """Tell how far a job is."""

    id: Any = None
    progress: Any = None
    message: Any = UNSET  # null takes the message away, absent leaves it


class AddLog(Request, tag="AddLog"):
    """Write a line into a job's log."""

    id: Any = None
    message: Raw = ABSENT  # of any type
    level: Raw = ABSENT

    def opaque(self) -> Iterable[Raw]:
        return (self.message, self.level)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> AddLog:
        try:
            parts = {
                name: Raw(_encode(fields[name])) for name in ("message", "level") if name in fields
            }
        except (TypeError, ValueError, RecursionError) as problem:
            raise BadRequest("message and level must be values that can be kept") from problem
        return cls(id=fields.get("id"), req_id=fields.get("reqId", ABSENT), **parts)


class OfLog(Request):
    """What the commands about a job's log have in common."""

    id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str] | None:
        """A log may outlive its job: nobody knows then which queue it was of."""
        found = tuple(queues_of(engine, (self.id,)))
        left = isinstance(self.id, str) and not found and engine.logs.of(self.id)
        return None if left else found


class GetLogs(OfLog, tag="GetLogs"):
    """Ask for a job's log."""

    start: Any = 0
    end: Any = None  # inclusive


class ClearLogs(OfLog, tag="ClearLogs"):
    """Shorten a job's log."""

    keep_logs: Any = 0  # newest lines that stay


@command(Permission.SUBSCRIBE, http="POST /jobs/{id}/progress")
def progress(req: Progress, call: Call) -> None:
    """Set how far an active job is, from 0 to 100; a message that is absent stays as it was."""
    m = active(find(call, req.id))
    assert m.run is not None, "an active job has run"
    value = check.loose_number(req.progress)
    if value is None:
        raise BadRequest("progress must be a number from 0 to 100")
    m.run.progress = min(100.0, max(0.0, value))
    if req.message is None or isinstance(req.message, str):
        m.run.progress_message = req.message
    call.engine.touched(m)
    if call.engine.listening:
        told = {"progress": m.run.progress, "message": m.run.progress_message}
        call.engine.say("progress", m, call.now, progress=m.run.progress, data=told)


@command(Permission.SUBSCRIBE, http="POST /jobs/{id}/logs")
def add_log(req: AddLog, call: Call) -> Data:
    """Write a line into a job's log; its newest hundred stay, or as few as ``keepLogs`` says."""
    m = find(call, req.id)
    level, message = bytes(req.level), bytes(req.message)
    if len(level) + len(message) > LINE_LIMIT:
        raise BadRequest(f"Log line too large (max {LINE_LIMIT} bytes)")
    line = {"timestamp": float(call.now), "level": Raw(level), "message": Raw(message)}
    if level in (UNDEFINED, b"\xc0"):
        line["level"] = "info"
    if message == UNDEFINED:
        del line["message"]
    call.engine.logs.add(call.engine, m.id, _encode(line), log_lines(m.options))
    return Data({"added": True})


@command(Permission.INSPECT, http="GET /jobs/{id}/logs")
def get_logs(req: GetLogs, call: Call) -> Data:
    """Return lines ``start`` to ``end`` of a job's log, both inclusive, and how many there are.

    They are fewer where they are long: whoever wants more goes on after the last one.
    """
    lines = call.engine.logs.of(req.id) if isinstance(req.id, str) else []
    start, end = check.whole(req.start) or 0, check.whole(req.end)
    stop = len(lines) if end is None else end + 1  # negative ones count from the end
    page = Page().take(lines[start:stop], len)
    return Data({"logs": [Raw(line) for line in page], "count": len(lines)})


@command(Permission.CONTROL, http="DELETE /jobs/{id}/logs")
def clear_logs(req: ClearLogs, call: Call) -> None:
    """Keep only the newest ``keepLogs`` lines of a job's log, none unless said otherwise."""
    if isinstance(req.id, str):
        call.engine.logs.keep(call.engine, req.id, check.whole(req.keep_logs) or 0)
