"""CreateQueue, DeleteQueue, QueueInfo and ListQueues: queues as the broker's wires know them."""

from __future__ import annotations

from tandemq.commands.bulk import run
from tandemq.commands.call import Call, Later, QueueShown
from tandemq.commands.table import BROKER, BrokerRequest, Permission, command
from tandemq.engine import bulk, overflow, post
from tandemq.model.broker import JOBS, Policy
from tandemq.model.permission import Operation


class CreateQueue(BrokerRequest, tag="CreateQueue"):
    """Make a queue, unless there is one of that name."""

    queue: str
    policy: Policy | None = None  # None: the server's default


class DeleteQueue(BrokerRequest, tag="DeleteQueue"):
    """Remove a queue and what is in it."""

    queue: str


class QueueInfo(BrokerRequest, tag="QueueInfo"):
    """Ask what a queue is like."""

    queue: str


class ListQueues(BrokerRequest, tag="ListQueues"):
    """Ask for the names of all queues."""


@command(Permission.CREATE, table=BROKER)
def create_queue(req: CreateQueue, call: Call) -> None:
    """Make a queue; one that exists stays as it is."""
    policy = req.policy or call.host.queue_policy or Policy()
    post.opened(call.engine, req.queue, call.now, policy)


@command(Permission.DELETE, table=BROKER)
def delete_queue(req: DeleteQueue, call: Call) -> Later | None:
    """Remove a queue with everything in it; who is subscribed stays so, for the next one."""
    queue, engine = req.queue, call.engine
    sweep = bulk.obliterate(engine, queue)

    def finish(_: int, now: int) -> None:
        bulk.wipe(engine, queue, now)
        overflow.refuse_all(engine, queue)

    sweep.finish = finish
    return run(call, req, sweep, lambda _: None)


@command(Permission.INSPECT, table=BROKER)
def queue_info(req: QueueInfo, call: Call) -> QueueShown | None:
    """Return what a queue is like, nothing where there is none."""
    q = call.engine.queues.get(req.queue)
    if q is None or not post.exists(call.engine, req.queue):
        return None
    policy = q.settings.broker
    if policy is None:
        policy = JOBS if any(q.counts) else call.host.queue_policy or Policy()
    return QueueShown(q.name, overflow.waiting(q), len(q.subscriptions), policy)


@command(Permission.LIST, table=BROKER)
def list_queues(req: ListQueues, call: Call) -> list[str]:
    """Return the names of all queues that the caller may know."""
    engine = call.engine
    names = [name for name in engine.queues if post.exists(engine, name)]
    return [name for name in names if call.may(Operation.LIST_QUEUES, name)]
