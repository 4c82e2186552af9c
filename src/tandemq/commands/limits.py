"""The commands for the limits of a queue, and for when a silent worker's job is taken back."""

from __future__ import annotations

import math
import re
from typing import Any

from msgspec.msgpack import Ext

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import limits
from tandemq.model.errors import BadRequest
from tandemq.model.policy import Stall
from tandemq.model.values import WideInteger

SPAN = 1000  # ms in which a rate limit counts, when nothing else is said

_digits = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)


class RateLimit(Request, tag="RateLimit"):
    """Limit how many jobs a queue hands out in a time."""

    queue: Any = None
    limit: Any = None
    duration: Any = None
    ttl: Any = None


class RateLimitClear(Request, tag="RateLimitClear"):
    """Remove the rate limit."""

    queue: Any = None


class SetConcurrency(Request, tag="SetConcurrency"):
    """Limit how many jobs of a queue are active at a time."""

    queue: Any = None
    limit: Any = None


class ClearConcurrency(Request, tag="ClearConcurrency"):
    """Remove the limit of active jobs."""

    queue: Any = None


class GetQueueLimits(Request, tag="GetQueueLimits"):
    """Ask for the limits of a queue."""

    queue: Any = None
    max_jobs: Any = None


class SetStallConfig(Request, tag="SetStallConfig"):
    """Say when a job without sign of life is taken back."""

    queue: Any = None
    config: Any = None


class GetStallConfig(Request, tag="GetStallConfig"):
    """Ask when a job without sign of life is taken back."""

    queue: Any = None


@command(Permission.CONTROL, http="PUT /queues/{queue}/rate-limit 200")
def rate_limit(req: RateLimit, call: Call) -> None:
    """Hand out at most ``limit`` jobs in ``duration`` ms, for ``ttl`` ms or until it is cleared."""
    queue = check.any_queue(req.queue)
    most = _limit(req.limit)
    span = _optional(req.duration, "duration")
    ttl = _optional(req.ttl, "ttl")
    if span is not None and span <= 0:
        raise BadRequest("duration must be greater than 0")
    if ttl is not None and ttl <= 0:
        raise BadRequest("ttl must be greater than 0")
    whole = None if ttl is None else int(min(ttl, check.EXACT))
    limits.set_rate(call.engine, queue, most, span or SPAN, call.now, whole)
    asked = {"max": most, "duration": span, "ttl": ttl}
    told = {name: value for name, value in asked.items() if value is not None}
    call.remark("ratelimit:set", queue, queue=queue, **told)


@command(Permission.CONTROL, http="DELETE /queues/{queue}/rate-limit 200")
def rate_limit_clear(req: RateLimitClear, call: Call) -> None:
    """Hand out as fast as somebody pulls."""
    queue = check.any_queue(req.queue)
    limits.clear_rate(call.engine, queue, call.now)
    call.remark("ratelimit:cleared", queue, queue=queue)


@command(Permission.CONTROL, http="PUT /queues/{queue}/concurrency 200")
def set_concurrency(req: SetConcurrency, call: Call) -> None:
    """Let at most ``limit`` jobs of a queue be active at a time, those active already included."""
    queue, most = check.any_queue(req.queue), _limit(req.limit)
    limits.set_concurrency(call.engine, queue, most, call.now)
    call.remark("concurrency:set", queue, queue=queue, concurrency=most)


@command(Permission.CONTROL, http="DELETE /queues/{queue}/concurrency 200")
def clear_concurrency(req: ClearConcurrency, call: Call) -> None:
    """Let any number of jobs be active."""
    queue = check.any_queue(req.queue)
    limits.set_concurrency(call.engine, queue, None, call.now)
    call.remark("concurrency:cleared", queue, queue=queue)


@command(Permission.INSPECT, http="GET /queues/{queue}/limits")
def get_queue_limits(req: GetQueueLimits, call: Call) -> Data:
    """Return the limits of a queue; its ``rateLimitTtl`` is the wait for ``maxJobs`` tokens."""
    queue = check.any_queue(req.queue)
    tokens = check.loose_number(req.max_jobs)
    found = limits.view(call.engine, queue, 1 if tokens is None else tokens, call.now)
    rate = found.rate
    return Data(
        {
            "limits": {
                "rateLimit": rate and {"max": _plain(rate.max), "duration": _plain(rate.duration)},
                "rateLimitTtl": found.opens_in,
                "concurrencyLimit": found.concurrency and _plain(found.concurrency),
                "maxed": found.full,
            }
        }
    )


@command(Permission.CONTROL, http="PUT /queues/{queue}/stall-config 200")
def set_stall_config(req: SetStallConfig, call: Call) -> None:
    """Change when a job without sign of life is taken back; rubbish changes nothing."""
    queue = check.any_queue(req.queue)
    config = req.config if isinstance(req.config, dict) else {}
    changes: dict[str, Any] = {}
    if isinstance(config.get("enabled"), bool):
        changes["enabled"] = config["enabled"]
    for name, field in _STALL.items():
        number = _as_number(config.get(name))
        if number is not None and 0 <= number <= check.EXACT:
            changes[field] = int(number)
    if changes:
        limits.set_stall(call.engine, queue, call.now, **changes)
        told = {name: config[name] for name in ("enabled", *_STALL) if name in config}
        call.remark("config:stall-changed", queue, queue=queue, config=told)


@command(Permission.INSPECT, http="GET /queues/{queue}/stall-config 200")
def get_stall_config(req: GetStallConfig, call: Call) -> dict[str, Any]:
    """Return when a job without sign of life is taken back."""
    stall: Stall = limits.stall_of(call.engine, check.any_queue(req.queue))
    shown = {name: getattr(stall, field) for name, field in _STALL.items()}
    return {"config": {"enabled": stall.enabled, **shown}}


_STALL = {"stallInterval": "interval", "maxStalls": "max_stalls", "gracePeriod": "grace"}


# -- numbers as this wire's peers write them -------------------------------------------------------


def _limit(value: Any) -> float:
    number = _as_number(value)
    if number is None:
        raise BadRequest("limit must be a finite number")
    return number


def _optional(value: Any, name: str) -> float | None:
    if value is None or (isinstance(value, Ext) and value.code == 0):
        return None
    number = _as_number(value)
    if number is None:
        raise BadRequest(f"{name} must be a finite number")
    return number


def _as_number(value: Any) -> float | None:
    """Return a number, also one that is written as a text or as true; None for anything else."""
    if isinstance(value, WideInteger):
        return None
    if isinstance(value, str):
        text = value.strip()
        value = float(text) if _digits.fullmatch(text) else None
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    exact = abs(value) <= check.EXACT and value == int(value)  # beyond it no store takes an int
    return int(value) if exact else float(value)


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number
