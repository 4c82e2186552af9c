"""What is done to many jobs of a queue: Drain, Clean, Obliterate, PromoteJobs, RetryCompleted.

A queue of millions takes longer than one turn; then the answer comes when all is done, and others
are served in between.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from tandemq.commands import fields as check
from tandemq.commands.call import LATER, Call, Later
from tandemq.commands.query import known
from tandemq.commands.table import BrokerRequest, Permission, Request, command
from tandemq.engine import bulk, deadletters, sweeps
from tandemq.engine.sweeps import Sweep
from tandemq.model.message import State

CLEANED = 1000  # jobs that Clean takes unless told otherwise

# What Clean may be asked for; anything else cleans nothing (quirk 39).
CLEANABLE = {
    **dict.fromkeys(("waiting", "wait", "delayed", "prioritized", "paused"), State.READY),
    "completed": State.DONE,
    "failed": State.DEAD,
}

Answer = dict[str, Any]
T = TypeVar("T")


class Drain(Request, tag="Drain"):
    """Take away what waits."""

    queue: Any = None


class Clean(Request, tag="Clean"):
    """Take away what is old."""

    queue: Any = None
    grace: Any = None  # ms
    state: Any = None
    limit: Any = CLEANED


class Obliterate(Request, tag="Obliterate"):
    """Take away a queue with everything in it."""

    queue: Any = None


class PromoteJobs(Request, tag="PromoteJobs"):
    """Let delayed jobs run now."""

    queue: Any = None
    count: Any = None


class RetryCompleted(Request, tag="RetryCompleted"):
    """Let completed jobs run again."""

    queue: Any = None
    id: Any = None
    count: Any = None
    timestamp: Any = None  # completed before


@command(Permission.CONTROL, http="POST /queues/{queue}/drain 200")
def drain(req: Drain, call: Call) -> Answer | Later:
    """Take away the ready and delayed jobs of a queue and return how many there were."""
    queue = check.any_queue(req.queue)
    sweep = bulk.drain(call.engine, queue)
    remark_end(call, sweep, "queue:drained", queue)
    return run(call, req, sweep, counted)


@command(Permission.CONTROL, http="POST /queues/{queue}/clean 200")
def clean(req: Clean, call: Call) -> Answer | Later:
    """Take away jobs older than ``grace`` ms, and return how many and which."""
    queue, grace = check.any_queue(req.queue), check.loose_number(req.grace)
    state = CLEANABLE.get("waiting" if req.state is None else check.text(req.state) or "")
    limit = check.whole(req.limit)
    if grace is None or state is None:
        return {"count": 0, "ids": []}
    most = CLEANED if limit is None else max(0, limit)
    sweep = bulk.clean(call.engine, queue, state, call.now - grace, most)
    remark_end(call, sweep, "queue:cleaned", queue, state=req.state or "waiting")
    return run(call, req, sweep, lambda sweep: {"count": sweep.count, "ids": sweep.ids})


@command(Permission.DELETE, http="POST /queues/{queue}/obliterate 200")
def obliterate(req: Obliterate, call: Call) -> Later | None:
    """Take away all jobs of a queue, active ones too, and everything that was set for it."""
    queue, engine = check.any_queue(req.queue), call.engine
    sweep = bulk.obliterate(engine, queue)

    def finish(_: int, now: int) -> None:
        bulk.wipe(engine, queue, now)
        engine.remark("queue:obliterated", queue, now, queue=queue)

    sweep.finish = finish
    return run(call, req, sweep, lambda _: None)


@command(Permission.CONTROL, http="POST /queues/{queue}/promote-jobs 200")
def promote_jobs(req: PromoteJobs, call: Call) -> Answer | Later:
    """Let up to ``count`` delayed jobs of a queue run now and return how many there were."""
    sweep = bulk.promote(call.engine, check.any_queue(req.queue), most(req.count))
    return run(call, req, sweep, counted)


@command(Permission.CONTROL, http="POST /queues/{queue}/retry-completed 200")
def retry_completed(req: RetryCompleted, call: Call) -> Answer | Later:
    """Let completed jobs of a queue, or one of them, run again and return how many there were."""
    queue, engine = check.any_queue(req.queue), call.engine
    if req.id is not None:
        m = known(call, req.id)
        done = m is not None and m.queue == queue and m.state is State.DONE
        again = m is not None and done and deadletters.run_again(engine, m, call.now)
        return {"count": int(again)}
    before = check.loose_number(req.timestamp)
    sweep = bulk.retry_completed(engine, queue, before, most(req.count))
    return run(call, req, sweep, counted)


def run(
    call: Call, req: Request | BrokerRequest, sweep: Sweep, answer: Callable[[Sweep], T]
) -> T | Later:
    """Begin a sweep; return its answer if it is done at once."""
    sweep.conn, sweep.req, sweep.answer = call.caller.id, req.req_id, answer
    if sweeps.begin(call.engine, sweep, call.now):
        return answer(sweep)
    return LATER


def remark_end(call: Call, sweep: Sweep, name: str, queue: str, **fields: Any) -> None:
    """See to it that those who look at the server are told of how many a sweep has met."""
    engine = call.engine

    def finish(count: int, now: int) -> None:
        engine.remark(name, queue, now, queue=queue, **fields, count=count)

    sweep.finish = finish


def counted(sweep: Sweep) -> Answer:
    """Answer how many it were."""
    return {"count": sweep.count}


def most(count: Any) -> int | None:
    """Return how many are wanted at most: all when nothing is said, none when it is no number."""
    if count is None:
        return None
    return max(0, check.whole(count) or 0)
