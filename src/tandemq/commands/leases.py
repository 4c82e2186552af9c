"""ExtendLock, ExtendLocks, JobHeartbeat and JobHeartbeatB: saying that work goes on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command, queues_of
from tandemq.engine import settle
from tandemq.model.errors import BadRequest, NotFound

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

NO_LOCK = "Lock not found or invalid token"
NOT_WORKED_ON = "Job not found or not active (or invalid token)"


class ExtendLock(Request, tag="ExtendLock"):
    """Renew a lease."""

    id: Any = None
    token: Any = None
    duration: Any = None


class ExtendLocks(Request, tag="ExtendLocks"):
    """Renew several leases."""

    ids: Any = None
    tokens: Any = None
    durations: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, self.ids)


class JobHeartbeat(Request, tag="JobHeartbeat"):
    """Show a sign of life for a job."""

    id: Any = None
    token: Any = None
    duration: Any = None


class JobHeartbeatMany(Request, tag="JobHeartbeatB"):
    """Show a sign of life for several jobs."""

    ids: Any = None
    tokens: Any = None
    name_lost: Any = False  # ours: tell which of them are not being worked on any more

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, self.ids)


@command(Permission.SUBSCRIBE, http="POST /jobs/{id}/extend-lock")
def extend_lock(req: ExtendLock, call: Call) -> None:
    """Renew a lease for ``duration`` ms from now."""
    if not settle.extend(
        call.engine, check.job_id(req.id), req.token, call.now, _span(req.duration)
    ):
        raise NotFound(NO_LOCK)


@command(Permission.SUBSCRIBE, http="POST /jobs/extend-locks")
def extend_locks(req: ExtendLocks, call: Call) -> dict[str, Any]:
    """Renew leases and return how many could be."""
    lists = []
    for name, value in (("ids", req.ids), ("tokens", req.tokens), ("durations", req.durations)):
        if not isinstance(value, list):
            raise BadRequest(f"{name} must be a list")
        lists.append(value[: len(req.ids)])
    return {
        "count": sum(
            settle.extend(call.engine, check.job_id(id), token, call.now, _span(duration))
            for id, token, duration in zip_longest(*lists)
        )
    }


@command(Permission.SUBSCRIBE, http="POST /jobs/{id}/heartbeat")
def job_heartbeat(req: JobHeartbeat, call: Call) -> Data:
    """Say that a job is being worked on; with its token the lease is renewed too."""
    if not settle.heartbeat(
        call.engine, check.job_id(req.id), req.token, call.now, _span(req.duration)
    ):
        raise NotFound(NOT_WORKED_ON)
    return Data({"ok": True})


@command(Permission.SUBSCRIBE, http="POST /jobs/heartbeat-batch")
def job_heartbeat_many(req: JobHeartbeatMany, call: Call) -> Data:
    """Say that jobs are being worked on and return for how many it was true."""
    if not isinstance(req.ids, list):
        raise BadRequest("ids must be a list")
    tokens = req.tokens[: len(req.ids)] if isinstance(req.tokens, list) else []
    lost = [
        id
        for id, token in zip_longest(req.ids, tokens)
        if not settle.heartbeat(call.engine, check.job_id(id), token, call.now)
    ]
    told: dict[str, Any] = {"ok": True, "count": len(req.ids) - len(lost)}
    return Data({**told, "lost": lost} if req.name_lost is True else told)


def _span(duration: Any) -> int | None:
    """Return a span in ms; what is none asks for the span of the lease itself."""
    ms = check.loose_number(duration)
    return max(1, int(ms)) if ms is not None and 0 < ms <= check.YEAR else None
