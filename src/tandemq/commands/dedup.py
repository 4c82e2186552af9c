"""What may be asked of unique keys: who holds one, and to let it go."""

from __future__ import annotations

from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.query import known
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import keys


class GetDeduplicationJobId(Request, tag="GetDeduplicationJobId"):
    """Ask which job holds a key."""

    queue: Any = None
    deduplication_id: Any = None


class RemoveDeduplicationKey(Request, tag="RemoveDeduplicationKey"):
    """Let go of a key."""

    queue: Any = None
    deduplication_id: Any = None


class RemoveJobDeduplicationKey(Request, tag="RemoveJobDeduplicationKey"):
    """Let go of the key that a job holds."""

    id: Any = None


@command(Permission.INSPECT, http="GET /queues/{queue}/deduplication/{deduplicationId}")
def get_deduplication_job_id(req: GetDeduplicationJobId, call: Call) -> Data:
    """Return the id of the job that holds a unique key, or null."""
    queue, key = check.any_queue(req.queue), check.identifier(req.deduplication_id)
    held = None if key is None else keys.owner(call.engine, queue, key, call.now)
    return Data({"jobId": held})


@command(Permission.CONTROL, http="DELETE /queues/{queue}/deduplication/{deduplicationId}")
def remove_deduplication_key(req: RemoveDeduplicationKey, call: Call) -> Data:
    """Free a unique key, whoever holds it; the job itself stays."""
    queue, key = check.any_queue(req.queue), check.identifier(req.deduplication_id)
    freed = key is not None and keys.free(call.engine, queue, key, call.now)
    return Data({"count": int(freed)})


@command(Permission.CONTROL, http="DELETE /jobs/{id}/deduplication")
def remove_job_deduplication_key(req: RemoveJobDeduplicationKey, call: Call) -> Data:
    """Free the unique key of a job, if the job holds it."""
    m = known(call, req.id)
    return Data({"removed": m is not None and keys.free_own(call.engine, m, call.now)})
