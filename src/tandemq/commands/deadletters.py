"""Dead letters: looking at them, letting them run again, forgetting them, and their rules."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from tandemq.commands import fields as check
from tandemq.commands.answers import Page
from tandemq.commands.bulk import Answer, counted, most, remark_end, run
from tandemq.commands.call import Buried, Call, Data, Later
from tandemq.commands.jobdata import check_data, check_size
from tandemq.commands.manage import body_as
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import bulk, control, deadletters, graves
from tandemq.engine.bulk import ANY, Wanted
from tandemq.engine.queue import Queue, Tallied
from tandemq.engine.sweeps import Sweep
from tandemq.model.errors import BadRequest
from tandemq.model.message import Message, Run, State, Try
from tandemq.model.policy import Burial
from tandemq.model.size import STEP, message_bytes, text_bytes, texts_bytes

CAUSES = (
    "explicit_fail", "max_attempts_exceeded", "timeout", "stalled", "ttl_expired", "worker_lost",
    "unknown",
)  # fmt: skip
LISTED = 10_000  # letters of one answer
NO_RULES = Burial()


class Dlq(Request, tag="Dlq"):
    """Ask for dead letters."""

    queue: Any = None
    count: Any = None
    filter: Any = None


class GetDlqStats(Request, tag="GetDlqStats"):
    """Ask how many dead letters there are, and why."""

    queue: Any = None


class RetryDlq(Request, tag="RetryDlq"):
    """Let dead letters run again."""

    queue: Any = None
    job_id: Any = None
    count: Any = None
    filter: Any = None
    dry_run: Any = False  # ours: only count them
    data: Raw | UnsetType = UNSET  # ours: run a copy of the one with other data

    def opaque(self) -> Iterable[Raw]:
        return () if self.data is UNSET else (self.data,)

    @classmethod
    def read(cls, fields: dict[str, Any]) -> RetryDlq:
        known = {name: fields.get(name) for name in ("queue", "count", "filter")}
        return cls(
            **known,
            job_id=fields.get("jobId"),
            dry_run=fields.get("dryRun"),
            data=fields["data"] if isinstance(fields.get("data"), Raw) else UNSET,
            req_id=fields["reqId"],
        )


class PurgeDlq(Request, tag="PurgeDlq"):
    """Forget dead letters."""

    queue: Any = None
    filter: Any = None  # ours
    dry_run: Any = False  # ours


class RemoveDlqJob(Request, tag="RemoveDlqJob"):
    """Forget one dead letter."""

    queue: Any = None
    job_id: Any = None


class SetDlqConfig(Request, tag="SetDlqConfig"):
    """Change the rules for dead letters."""

    queue: Any = None
    config: Any = None


class GetDlqConfig(Request, tag="GetDlqConfig"):
    """Ask for the rules for dead letters."""

    queue: Any = None


@command(Permission.INSPECT, http="GET /queues/{queue}/dlq 200")
def dlq(req: Dlq, call: Call) -> Buried:
    """Return dead letters of a queue, oldest first, and what is known of each.

    They are fewer where they are large: whoever wants more goes on after the last one.
    """
    queue = check.any_queue(req.queue)
    q = call.engine.queues.get(queue) or Queue(queue)  # its letters may have outlived it
    wanted, rules = _wanted(req.filter), q.settings.burial
    size = _smallest(most(req.count) or None, wanted.limit, LISTED)
    found = (m for m in graves.listed(call.engine, queue) if bulk.fits(m, wanted, q, call.now))
    asked = islice(found, wanted.offset, wanted.offset + size)
    return Buried(Page().take(((m, _entry(m, rules)) for m in asked), _size))


@command(Permission.INSPECT, http="GET /queues/{queue}/dlq/stats 200")
def get_dlq_stats(req: GetDlqStats, call: Call) -> Data | Later:
    """Return how many dead letters a queue has, by cause, and how old they are."""
    queue = check.any_queue(req.queue)
    q = call.engine.queues.get(queue) or Queue(queue)
    there, moved = _stats(q, call.now), Moved()
    sweep = Sweep(graves.moved(call.engine, queue), lambda m, _: moved.count(m))
    return run(call, req, sweep, lambda _: Data({"stats": moved.added_to(there)}))


@command(Permission.CONTROL, large=("data",), http="POST /queues/{queue}/dlq/retry 200")
def retry_dlq(req: RetryDlq, call: Call) -> Answer | Later:
    """Let dead letters run again: one, the oldest ``count``, those that fit ``filter``, or all.

    With ``dryRun`` they are only counted. With ``jobId`` and ``data`` a copy with that data runs,
    and the letter stays where it is.
    """
    queue, dry = check.any_queue(req.queue), req.dry_run is True
    if req.data is not UNSET:
        return _replay(req, call, queue, dry)
    if req.job_id is not None:
        id = check.job_id(req.job_id)
        count = int(_retry_one(call, queue, id, dry))
        if count and not dry:
            call.remark("dlq:retried", queue, queue=queue, count=count, jobId=id)
        return {"count": count}
    wanted = _wanted(req.filter)
    limit = _smallest(most(req.count), wanted.limit)
    sweep = bulk.retry_dead(call.engine, queue, wanted._replace(limit=limit), dry=dry)
    if not dry:
        remark_end(call, sweep, "dlq:retry-all", queue)
    return run(call, req, sweep, counted)


@command(Permission.CONTROL, http="POST /queues/{queue}/dlq/purge 200")
def purge_dlq(req: PurgeDlq, call: Call) -> Answer | Later:
    """Forget all dead letters of a queue, or those that fit ``filter``; ``dryRun`` counts them."""
    queue, dry = check.any_queue(req.queue), req.dry_run is True
    sweep = bulk.purge_dead(call.engine, queue, _wanted(req.filter), dry=dry)
    if not dry:
        remark_end(call, sweep, "dlq:purged", queue)
    return run(call, req, sweep, counted)


@command(Permission.CONTROL, http="DELETE /queues/{queue}/dlq/{jobId}")
def remove_dlq_job(req: RemoveDlqJob, call: Call) -> Data:
    """Forget one dead letter."""
    queue, id = check.any_queue(req.queue), check.job_id(req.job_id)
    m = graves.find(call.engine, queue, id)
    if m is not None:
        graves.forget(call.engine, m, call.now)
    return Data({"removed": m is not None})


@command(Permission.CONTROL, http="PUT /queues/{queue}/dlq-config 200")
def set_dlq_config(req: SetDlqConfig, call: Call) -> None:
    """Change rules for the dead letters of a queue; what is no rule is passed over."""
    queue, config = check.any_queue(req.queue), req.config
    if not isinstance(config, dict):
        raise BadRequest("config must be an object")
    q = call.engine.queue(queue)
    changes = {name: value for name, value in _rules(config).items() if value is not UNSET}
    control.configure(call.engine, q, burial=msgspec.structs.replace(q.settings.burial, **changes))
    call.engine.tidy(q)
    told = {name: config[name] for name in RULES if name in config}
    call.remark("config:dlq-changed", queue, queue=queue, config=told)


@command(Permission.INSPECT, http="GET /queues/{queue}/dlq-config 200")
def get_dlq_config(req: GetDlqConfig, call: Call) -> Answer:
    """Return the rules for the dead letters of a queue."""
    q = call.engine.queues.get(check.any_queue(req.queue))
    rules = q.settings.burial if q is not None else NO_RULES
    return {
        "config": {
            "autoRetry": rules.auto_retry,
            "autoRetryInterval": rules.interval,
            "maxAutoRetries": rules.max_retries,
            "maxAge": rules.max_age,
            "maxEntries": rules.max_entries,
        }
    }


# -- what is known of one -------------------------------------------------------------------------


def _entry(m: Message, rules: Burial) -> Answer:
    run = m.run or Run()
    entry: Answer = {
        "enteredAt": float(graves.ended_at(m)),
        "reason": graves.cause_of(m),
        "error": graves.error_of(m),
        "attempts": [_attempt(tried) for tried in graves.tries_of(m)],
        "retryCount": run.retries,
        "lastRetryAt": float(run.retried) if run.retried else None,
        "nextRetryAt": _moment(graves.next_retry(m, rules)),
        "expiresAt": _moment(graves.expires(m, rules)),
    }
    if run.replays:
        entry["replays"] = list(run.replays)
    if run.replay_of is not None:
        entry["replayOf"] = run.replay_of
    return entry


def _size(listed: tuple[Message, Answer]) -> int:
    m, entry = listed
    tries = sum(STEP + text_bytes(tried["error"]) for tried in entry["attempts"])
    replays = texts_bytes((*entry.get("replays", ()), entry.get("replayOf")))
    return 2 * message_bytes(m) + text_bytes(entry["error"]) + tries + replays


def _attempt(tried: Try) -> Answer:
    return {
        "attempt": tried.attempt,
        "startedAt": float(tried.started),
        "failedAt": float(tried.failed),
        "reason": tried.cause,
        "error": tried.error,
        "duration": tried.failed - tried.started,
    }


def _moment(at: int | None) -> float | None:
    return None if at is None else float(at)


def _stats(q: Queue, now: int) -> Answer:
    """Return what is to be said of the letters that are still in their place."""
    dead, rules = q.members[State.DEAD], q.settings.burial
    assert isinstance(dead, Tallied), "dead letters are counted by cause"
    letters = dead.values()
    pending = expired = 0
    if rules.auto_retry:
        pending = sum(deadletters.next_retry(m, rules) is not None for m in letters)
    for m in letters:  # the oldest come first, and are nearly all gone
        at = deadletters.expires(m, rules)
        if at is None or at > now:
            break
        expired += 1
    return {
        "total": len(dead),
        "byReason": {**dict.fromkeys(CAUSES, 0), **dead.tally},
        "byQueue": {q.name: len(dead)},
        "pendingRetry": pending,
        "expired": expired,
        "oldestEntry": float(graves.ended_at(next(iter(letters)))) if dead else None,
        "newestEntry": float(graves.ended_at(next(reversed(letters)))) if dead else None,
    }


class Moved:
    """What is counted of the letters that moved to a dead letter queue."""

    def __init__(self) -> None:
        self.causes: dict[str, int] = {}
        self.moments: list[int] = []  # the first and the last

    def count(self, m: Message) -> bool:
        """Count one."""
        cause, at = graves.cause_of(m), graves.ended_at(m)
        self.causes[cause] = self.causes.get(cause, 0) + 1
        self.moments = [min(at, *self.moments), max(at, *self.moments)] if self.moments else [at]
        return True

    def added_to(self, stats: Answer) -> Answer:
        """Return figures of both kinds of letters."""
        total = sum(self.causes.values())
        reasons, (queue,) = stats["byReason"], stats["byQueue"]
        both = [at for at in (stats["oldestEntry"], stats["newestEntry"]) if at is not None]
        moments = sorted([*both, *map(float, self.moments)])
        return {
            **stats,
            "total": stats["total"] + total,
            "byReason": {**reasons, **{c: reasons[c] + n for c, n in self.causes.items()}},
            "byQueue": {queue: stats["byQueue"][queue] + total},
            "oldestEntry": moments[0] if moments else None,
            "newestEntry": moments[-1] if moments else None,
        }


# -- what was asked for ---------------------------------------------------------------------------


def _retry_one(call: Call, queue: str, id: str, dry: bool) -> bool:
    m = graves.find(call.engine, queue, id)
    if m is None:
        return False
    return (graves.may_return if dry else graves.retry)(call.engine, m, call.now)


def _replay(req: RetryDlq, call: Call, queue: str, dry: bool) -> Answer:
    """Run a copy of one letter with other data."""
    if req.job_id is None:
        raise BadRequest("data needs a jobId: a copy is made of one dead letter")
    data = bytes(req.data) if isinstance(req.data, Raw) else b"\xc0"
    check_data(data)
    m = graves.find(call.engine, queue, check.job_id(req.job_id))
    if m is None:
        return {"count": 0}
    check_size(data, m.options)
    body = body_as(m, data)
    if dry:
        return {"count": 1}
    return {"count": 1, "id": graves.replay(call.engine, m, body, call.now).id}


def _wanted(filter: Any) -> Wanted:
    """Read which letters are meant; what cannot be read does not restrict, like a limit of 0."""
    if not isinstance(filter, dict):
        return ANY
    limit = check.whole(filter.get("limit"))
    return Wanted(
        cause=check.text(filter.get("reason")),
        before=check.loose_number(filter.get("olderThan")),
        after=check.loose_number(filter.get("newerThan")),
        retried=check.flag(filter.get("retriable")),
        expired=check.flag(filter.get("expired")),
        offset=max(0, check.whole(filter.get("offset")) or 0),
        limit=limit if limit is not None and limit > 0 else None,
    )


def _smallest(*limits: int | None) -> Any:
    """Return the smallest of those limits that there are; None when there is none."""
    return min((limit for limit in limits if limit is not None), default=None)


RULES = ("autoRetry", "autoRetryInterval", "maxAutoRetries", "maxAge", "maxEntries")


def _rules(config: dict[str, Any]) -> dict[str, Any]:
    auto = config.get("autoRetry")
    forever = "maxAge" in config and config["maxAge"] is None
    return {
        "auto_retry": auto if isinstance(auto, bool) else UNSET,
        "interval": _number(config, "autoRetryInterval", 1),
        "max_retries": _number(config, "maxAutoRetries", 0),
        "max_age": None if forever else _number(config, "maxAge", 0),
        "max_entries": _number(config, "maxEntries", 1),
    }


def _number(config: dict[str, Any], name: str, low: int) -> Any:
    """Read a number, which may be written as text; too small ones count as the smallest."""
    value = config.get(name)
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return UNSET
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return UNSET
    return max(low, int(min(value, check.EXACT)))
