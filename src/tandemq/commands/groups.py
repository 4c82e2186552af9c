"""The commands for groups: counts, limits, pause, closures and weights."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET
from msgspec.msgpack import Ext

from tandemq.commands import fields as check
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import groups
from tandemq.model.errors import BadRequest


class InGroup(Request):
    """What the commands for one group have in common."""

    queue: Any = None
    group_id: Any = UNSET

    @property
    def place(self) -> tuple[str, str]:
        """The queue and the group, checked in this order.

        Raises:
            BadRequest
        """
        queue = check.queue_name(self.queue)
        group = self.group_id
        if group is UNSET or (isinstance(group, Ext) and group.code == 0):
            raise BadRequest("groupId is required")
        return queue, check.group_id(group)


class GetGroupJobsCount(InGroup, tag="GetGroupJobsCount"):
    """Ask how many jobs of a group wait."""


class GetGroupsJobsCount(Request, tag="GetGroupsJobsCount"):
    """Ask how many jobs of all groups wait."""

    queue: Any = None


class GetGroupActiveCount(InGroup, tag="GetGroupActiveCount"):
    """Ask how many jobs of a group are active."""


class SetGroupRateLimit(InGroup, tag="SetGroupRateLimit"):
    """Replace the rate limit that pulls bring along, for one group."""

    max: Any = None
    duration: Any = None


class GetGroupRateLimit(InGroup, tag="GetGroupRateLimit"):
    """Ask for the rate limit set for a group."""


class RemoveGroupRateLimit(InGroup, tag="RemoveGroupRateLimit"):
    """Forget the rate limit set for a group."""


class GetGroupRateLimitTtl(InGroup, tag="GetGroupRateLimitTtl"):
    """Ask how long a group's rate limit keeps it shut."""

    max_jobs: Any = None


class SetGroupConcurrency(InGroup, tag="SetGroupConcurrency"):
    """Replace the concurrency that pulls bring along, for one group."""

    concurrency: Any = None


class GetGroupConcurrency(InGroup, tag="GetGroupConcurrency"):
    """Ask for the concurrency set for a group."""


class RemoveGroupConcurrency(InGroup, tag="RemoveGroupConcurrency"):
    """Forget the concurrency set for a group."""


class PauseGroup(InGroup, tag="PauseGroup"):
    """Stop delivery of a group."""


class ResumeGroup(InGroup, tag="ResumeGroup"):
    """Go on with delivery of a group."""


class IsGroupPaused(InGroup, tag="IsGroupPaused"):
    """Ask whether delivery of a group is stopped."""


class RateLimitGroup(InGroup, tag="RateLimitGroup"):
    """Stop delivery of a group for a while."""

    duration: Any = None


class SetGroupWeight(InGroup, tag="SetGroupWeight"):
    """Give a group a larger share (ours)."""

    weight: Any = None


class GetGroupWeight(InGroup, tag="GetGroupWeight"):
    """Ask for the share of a group (ours)."""


# -- counts --------------------------------------------------------------------------------------


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/count")
def get_group_jobs_count(req: GetGroupJobsCount, call: Call) -> Data:
    """Return how many jobs of a group are ready or delayed."""
    return Data({"count": groups.waiting(call.engine, *req.place)})


@command(Permission.INSPECT, http="GET /queues/{queue}/groups")
def get_groups_jobs_count(req: GetGroupsJobsCount, call: Call) -> Data:
    """Return how many jobs with a group are ready or delayed."""
    return Data({"count": groups.waiting(call.engine, check.queue_name(req.queue))})


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/active")
def get_group_active_count(req: GetGroupActiveCount, call: Call) -> Data:
    """Return how many jobs of a group are active."""
    return Data({"count": groups.leased(call.engine, *req.place)})


# -- limits --------------------------------------------------------------------------------------


@command(Permission.CONTROL, http="PUT /queues/{queue}/groups/{groupId}/rate-limit")
def set_group_rate_limit(req: SetGroupRateLimit, call: Call) -> None:
    """Hand out ``max`` jobs of a group in ``duration`` ms to pulls that bring a rate limit."""
    queue, group = req.place
    most = check.positive(req.max, "max")
    duration = check.positive(req.duration, "duration")
    groups.change(call.engine, queue, group, call.now, max=most, duration=duration)


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/rate-limit")
def get_group_rate_limit(req: GetGroupRateLimit, call: Call) -> Data:
    """Return the rate limit set for a group, null for none."""
    rule = groups.rule_of(call.engine, *req.place)
    limit = None if rule.max is None else {"max": rule.max, "duration": rule.duration}
    return Data({"limit": limit})


@command(Permission.CONTROL, http="DELETE /queues/{queue}/groups/{groupId}/rate-limit")
def remove_group_rate_limit(req: RemoveGroupRateLimit, call: Call) -> Data:
    """Forget the rate limit set for a group; return whether there was one, as 0 or 1."""
    queue, group = req.place
    removed = groups.change(call.engine, queue, group, call.now, max=None, duration=None)
    return Data({"removed": int(removed)})


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/rate-limit/ttl")
def get_group_rate_limit_ttl(req: GetGroupRateLimitTtl, call: Call) -> Data:
    """Return the ms for which a rate limit or RateLimitGroup shuts a group, -2 for neither."""
    queue, group = req.place
    most = check.loose_number(req.max_jobs)
    return Data({"ttl": groups.opens_in(call.engine, queue, group, most, call.now)})


@command(Permission.CONTROL, http="PUT /queues/{queue}/groups/{groupId}/concurrency")
def set_group_concurrency(req: SetGroupConcurrency, call: Call) -> None:
    """Let ``concurrency`` jobs of a group be active at a time, for pulls that bring a limit."""
    queue, group = req.place
    most = check.positive(req.concurrency, "concurrency")
    groups.change(call.engine, queue, group, call.now, concurrency=most)


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/concurrency")
def get_group_concurrency(req: GetGroupConcurrency, call: Call) -> Data:
    """Return the concurrency set for a group, null for none."""
    return Data({"concurrency": groups.rule_of(call.engine, *req.place).concurrency})


@command(Permission.CONTROL, http="DELETE /queues/{queue}/groups/{groupId}/concurrency")
def remove_group_concurrency(req: RemoveGroupConcurrency, call: Call) -> Data:
    """Forget the concurrency set for a group; return whether there was one, as 0 or 1."""
    removed = groups.change(call.engine, *req.place, call.now, concurrency=None)
    return Data({"removed": int(removed)})


# -- what shuts a group, and its share -------------------------------------------------------------


@command(Permission.CONTROL, http="POST /queues/{queue}/groups/{groupId}/pause")
def pause_group(req: PauseGroup, call: Call) -> Data:
    """Stop handing out jobs of a group; return whether that was new."""
    return Data({"changed": groups.change(call.engine, *req.place, call.now, paused=True)})


@command(Permission.CONTROL, http="POST /queues/{queue}/groups/{groupId}/resume")
def resume_group(req: ResumeGroup, call: Call) -> Data:
    """Hand out jobs of a group again; return whether it was paused."""
    return Data({"changed": groups.change(call.engine, *req.place, call.now, paused=False)})


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/paused")
def is_group_paused(req: IsGroupPaused, call: Call) -> Data:
    """Return whether a group is paused."""
    return Data({"paused": groups.rule_of(call.engine, *req.place).paused})


@command(Permission.CONTROL, http="POST /queues/{queue}/groups/{groupId}/hold")
def rate_limit_group(req: RateLimitGroup, call: Call) -> None:
    """Hand out no job of a group for ``duration`` ms."""
    queue, group = req.place
    span = check.positive(req.duration, "duration")
    groups.close(call.engine, queue, group, span, call.now)


@command(Permission.CONTROL, http="PUT /queues/{queue}/groups/{groupId}/weight")
def set_group_weight(req: SetGroupWeight, call: Call) -> None:
    """Let a group have up to ``weight`` jobs in each of its turns; 1 is usual."""
    queue, group = req.place
    weight = check.positive(req.weight, "weight")
    groups.change(call.engine, queue, group, call.now, weight=weight)


@command(Permission.INSPECT, http="GET /queues/{queue}/groups/{groupId}/weight")
def get_group_weight(req: GetGroupWeight, call: Call) -> Data:
    """Return how many jobs a group may have in each of its turns."""
    return Data({"weight": groups.rule_of(call.engine, *req.place).weight})
