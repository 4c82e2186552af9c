"""WhoAmI, Pulse, FindQueues and ListSubscribers: what a page about the server asks besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nlargest, nsmallest
from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.bulk import run
from tandemq.commands.call import Call, Later
from tandemq.commands.states import states_of
from tandemq.commands.table import Permission, Request, command
from tandemq.engine.consumers import Subscription
from tandemq.engine.queue import Queue
from tandemq.engine.sweeps import Sweep
from tandemq.model.errors import BadRequest
from tandemq.model.message import State
from tandemq.model.permission import Operation

PAGE, MOST = 50, 200  # of a list
SORTS: dict[str, Callable[[Queue], int]] = {
    "waiting": lambda q: len(q.ready),
    "active": lambda q: len(q.members[State.LEASED]),
    "delayed": lambda q: len(q.members[State.DELAYED]),
    "completed": lambda q: len(q.members[State.DONE]),
    "failed": lambda q: len(q.members[State.DEAD]),
}


BY_NAME = (None, "", "name")
SHOWN = ("waiting", "waiting-children", "delayed", "active", "completed", "failed")


class WhoAmI(Request, tag="WhoAmI"):
    """Ask who one is to the server, and what one may do."""

    queue: Any = None


class Pulse(Request, tag="Pulse"):
    """Ask how the server is doing, every other second."""


class FindQueues(Request, tag="FindQueues"):
    """Ask for queues by name or by what is in them."""

    text: Any = None  # part of the name, in any letter case
    sort: Any = None  # "name", or a state of which the queue with most comes first
    offset: Any = None
    limit: Any = None


class ListSubscribers(Request, tag="ListSubscribers"):
    """Ask who is subscribed to queues."""

    queue: Any = None
    offset: Any = None
    limit: Any = None


@command(Permission.OPEN, keeps=False, http="GET /whoami")
def who_am_i(req: WhoAmI, call: Call) -> dict[str, Any]:
    """Return the caller's name and what it may do, with one queue or with any.

    Nobody has to prove anything to an ``open`` server; a superuser may do everything.
    """
    caller, users = call.caller, call.engine.users
    every = list(Operation)
    if caller.trusted:
        may = every
    elif isinstance(req.queue, str):
        may = [operation for operation in every if call.may(operation, req.queue)]
    else:
        user = users.get(caller.user or "")
        held = set().union(*user.entries.values()) if user is not None else set()
        may = [operation for operation in every if operation in held]
    return {
        "user": caller.user,
        "superuser": caller.trusted,
        "open": call.host.accounts.open,
        "may": [str(operation) for operation in may],
    }


@command(Permission.LIST, keeps=False, http="GET /pulse")
def pulse(req: Pulse, call: Call) -> dict[str, Any] | Later:
    """Return in few bytes how many jobs are where; to superusers rates and more of the server.

    Counted are the queues that the caller may list.
    """
    sums = dict.fromkeys(SHOWN, 0)

    def count(q: Queue, now: int) -> bool:
        if not _listed(call, q):
            return False
        _, parked, delayed, _, leased, done, dead, _ = q.members  # by state
        sums["waiting"] += len(q.ready)
        sums["waiting-children"] += len(parked)
        sums["delayed"] += len(delayed)
        sums["active"] += len(leased)
        sums["completed"] += len(done)
        sums["failed"] += len(dead)
        return True

    def told(sweep: Sweep) -> dict[str, Any]:
        return {"queues": sweep.count, "counts": sums, **_of_server(call)}

    return run(call, req, Sweep(list(call.engine.queues.values()), count), told)


@command(Permission.LIST, keeps=False, http="GET /queues/find")
def find_queues(req: FindQueues, call: Call) -> dict[str, Any] | Later:
    """Return a page of the queues that the caller may list, and how many there are in all."""
    text, found = (check.text(req.text) or "").lower(), []
    offset, limit = _part(req.offset, req.limit)
    _check_sort(req.sort)

    def fits(q: Queue, now: int) -> bool:
        if (text and text not in q.name.lower()) or not (q.ready or not q.blank):
            return False
        if _listed(call, q):
            found.append(q)
        return True

    def told(sweep: Sweep) -> dict[str, Any]:
        shown = [_line(q) for q in _sorted(found, req.sort, offset, limit)]
        return {"queues": shown, "total": len(found), "offset": offset, "limit": limit}

    return run(call, req, Sweep(list(call.engine.queues.values()), fits), told)


@command(Permission.LIST, keeps=False, http="GET /subscribers")
def list_subscribers(req: ListSubscribers, call: Call) -> dict[str, Any]:
    """Return a page of the subscriptions to queues that the caller may look into."""
    queue = check.text(req.queue)
    found = call.engine.queues
    queues = [
        q
        for q in ([found[queue]] if queue in found else [] if queue else found.values())
        if q.subscriptions and call.may(Operation.GET_QUEUE_INFO, q.name)
    ]
    offset, limit = _part(req.offset, req.limit)
    shown = []
    for place, (q, sub) in enumerate(_subscriptions(queues)):
        if place >= offset + limit:
            break
        if place >= offset:
            shown.append(_subscription(q, sub))
    total = sum(len(q.subscriptions) for q in queues)
    return {"subscribers": shown, "total": total, "offset": offset, "limit": limit}


def _listed(call: Call, q: Queue) -> bool:
    return call.caller.trusted or call.may(Operation.LIST_QUEUES, q.name)


def _of_server(call: Call) -> dict[str, Any]:
    """Return the rest of a pulse."""
    engine, host = call.engine, call.host
    schedules = engine.schedules.values()
    told: dict[str, Any] = {
        "schedules": sum(call.may(Operation.LIST_QUEUES, s.queue) for s in schedules),
        "timestamp": float(call.now),
    }
    if call.caller.trusted:
        told |= {
            "rates": host.monitor.rates(),
            "workers": len(engine.workers.listed(call.now)),
            "connections": host.monitor.connections(),
            "memoryBytes": float(host.monitor.memory()["rss"]),
            "storage": host.storage(),
            "uptime": host.stats()["uptime"],
        }
    return told


def _subscriptions(queues: list[Queue]) -> Iterator[tuple[Queue, Subscription]]:
    for q in sorted(queues, key=lambda q: q.name):
        for sub in q.subscriptions:
            yield q, sub


def _subscription(q: Queue, sub: Subscription) -> dict[str, Any]:
    policy = q.settings.broker
    return {
        "queue": q.name,
        "connection": sub.conn,
        "name": sub.name,
        "window": sub.prefetch,
        "held": sub.held,
        "heldBytes": sub.held_bytes,
        "stalled": sub.stalled,
        "mode": None if policy is None else policy.mode.name.lower().replace("_", "-"),
    }


def _sorted(found: list[Queue], sort: Any, offset: int, limit: int) -> list[Queue]:
    """Return one page, without sorting what is not on it."""
    if sort in BY_NAME:
        return nsmallest(offset + limit, found, key=lambda q: q.name)[offset:]
    return nlargest(offset + limit, found, key=SORTS[sort])[offset:]


def _check_sort(sort: Any) -> None:
    """Refuse an order that is none.

    Raises:
        BadRequest
    """
    if sort not in BY_NAME and not (isinstance(sort, str) and sort in SORTS):
        raise BadRequest(f"sort must be name or one of {', '.join(SORTS)}")


def _part(offset: Any, limit: Any) -> tuple[int, int]:
    most = check.whole(limit)
    return max(0, check.whole(offset) or 0), min(MOST, PAGE if most is None else max(0, most))


def _line(q: Queue) -> dict[str, Any]:
    subscribers = len(q.subscriptions)
    return {
        "name": q.name,
        "paused": q.settings.paused,
        "counts": states_of(q),
        "pulls": sum(not isinstance(c, Subscription) for c in q.ring),
        "subscribers": subscribers,
    }
