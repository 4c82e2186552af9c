"""Reading: one job, many jobs, states, results, progress, counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tandemq.commands import fields as check
from tandemq.commands.answers import Page, check_length
from tandemq.commands.call import Call, Found, Listed, Result
from tandemq.commands.states import in_state, name_of, priorities_of, states_of
from tandemq.commands.table import Permission, Request, command, queues_of
from tandemq.engine import inspect
from tandemq.model.errors import NotActive, NotFound
from tandemq.model.message import ENDED, Message, State
from tandemq.model.size import NUMBER, message_bytes

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

PAGE = 100
LISTED = 10_000  # jobs of one answer, however small: others wait while it is made


class GetJob(Request, tag="GetJob"):
    """Ask for a job."""

    id: Any = None


class GetJobByCustomId(Request, tag="GetJobByCustomId"):
    """Ask for a live job by the id its publisher chose."""

    custom_id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, (self.custom_id,))


class GetState(Request, tag="GetState"):
    """Ask where a job is."""

    id: Any = None


class GetResult(Request, tag="GetResult"):
    """Ask what a job came to."""

    id: Any = None


class GetProgress(Request, tag="GetProgress"):
    """Ask how far a job is."""

    id: Any = None


class GetJobs(Request, tag="GetJobs"):
    """Ask for jobs of a queue."""

    queue: Any = None
    state: Any = None  # a name or a list of names; none: all
    offset: Any = 0
    limit: Any = PAGE
    asc: Any = True


class GetJobCounts(Request, tag="GetJobCounts"):
    """Ask how many jobs of a queue are where."""

    queue: Any = None


class GetCountsPerPriority(Request, tag="GetCountsPerPriority"):
    """Ask how many jobs of each priority wait."""

    queue: Any = None


class Count(Request, tag="Count"):
    """Ask how many jobs wait."""

    queue: Any = None


@command(Permission.INSPECT, http="GET /jobs/{id} 404")
def get_job(req: GetJob, call: Call) -> Found:
    """Return a job with its state, its result and its last error."""
    return Found(find(call, req.id))


@command(Permission.INSPECT, http="GET /jobs/custom/{customId} 404")
def get_job_by_custom_id(req: GetJobByCustomId, call: Call) -> Found:
    """Return the live job that bears an id chosen by its publisher."""
    m = find(call, req.custom_id)
    if not m.options.custom_id or m.state in ENDED:
        raise NotFound("Job not found")
    return Found(m, with_state=False)


@command(Permission.INSPECT, http="GET /jobs/{id}/state")
def get_state(req: GetState, call: Call) -> dict[str, Any]:
    """Return the state of a job, ``unknown`` for one that does not exist."""
    m = known(call, req.id)
    return {"id": req.id, "state": name_of(m) if m else "unknown"}


@command(Permission.INSPECT, http="GET /jobs/{id}/result")
def get_result(req: GetResult, call: Call) -> Result:
    """Return the result of a completed job, nothing when there is none."""
    m = known(call, req.id)
    if m is None or m.run is None or m.state is not State.DONE:
        return Result(req.id, None)
    check_length(len(m.run.result or b""))
    return Result(req.id, m.run.result)


@command(Permission.INSPECT, http="GET /jobs/{id}/progress 404")
def get_progress(req: GetProgress, call: Call) -> dict[str, Any]:
    """Return how far an active job is, from 0 to 100, and its message."""
    run = active(find(call, req.id)).run
    assert run is not None, "an active job has run"
    return {"progress": run.progress, "message": run.progress_message}


@command(Permission.INSPECT, http="GET /queues/{queue}/jobs/list 200")
def get_jobs(req: GetJobs, call: Call) -> Listed:
    """Return jobs of a queue by order of publication, at most ``limit`` from ``offset`` on.

    They are fewer where they are large: whoever wants more goes on after the last one.
    """
    names = [req.state] if isinstance(req.state, str) else req.state
    names = names if isinstance(names, list) else []
    queue = check.any_queue(req.queue)
    q = call.engine.queues.get(queue)
    if q is None:
        return Listed([])
    wanted = [name for name in names if isinstance(name, str)]
    offset = check.whole(req.offset) or 0
    limit = check.whole(req.limit)
    size = min(PAGE if limit is None else limit, LISTED)
    descending = req.asc is False
    if not names:
        found = inspect.page(call.engine, queue, list(State), offset, size, descending)
    else:
        found = in_state(call.engine, q, wanted, offset, size, descending)
    return Listed(Page().take(found, message_bytes))


@command(Permission.INSPECT, http="GET /queues/{queue}/counts 200")
def get_job_counts(req: GetJobCounts, call: Call) -> dict[str, Any]:
    """Return how many jobs of a queue are in each state."""
    return {"counts": states_of(call.engine.queues.get(check.any_queue(req.queue)))}


@command(Permission.INSPECT, http="GET /queues/{queue}/priority-counts 200")
def get_counts_per_priority(req: GetCountsPerPriority, call: Call) -> dict[str, Any]:
    """Return how many jobs of each priority are ready or delayed."""
    queue = check.any_queue(req.queue)
    counts = priorities_of(call.engine.queues.get(queue))
    check_length(len(counts) * 2 * NUMBER)
    return {"queue": queue, "counts": counts}


@command(Permission.INSPECT, http="GET /queues/{queue}/count 200")
def count(req: Count, call: Call) -> dict[str, Any]:
    """Return how many jobs of a queue are ready or delayed."""
    return {"count": inspect.count(call.engine, check.any_queue(req.queue))}


def known(call: Call, id: Any) -> Message | None:
    """Return a message, None when there is none; what cannot be an id names nothing."""
    return call.engine.messages.get(id) if isinstance(id, str) else None


def find(call: Call, id: Any) -> Message:
    """Return a message.

    Raises:
        NotFound
    """
    m = known(call, id)
    if m is None:
        raise NotFound("Job not found")
    return m


def active(m: Message) -> Message:
    """Return a message that somebody holds.

    Raises:
        NotActive: the text names the state it is in.
    """
    if m.state is not State.LEASED:
        raise NotActive(f"Job is not active (current state: {name_of(m)})")
    return m
