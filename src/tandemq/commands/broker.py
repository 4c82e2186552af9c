"""Publish, Subscribe, Unsubscribe, Ack and Nack: messages that are pushed to who wants them."""

from __future__ import annotations

from tandemq.commands.call import LATER, SILENCE, Call, Later, Silence
from tandemq.commands.table import BROKER, BrokerRequest, Permission, command, together
from tandemq.engine import entrance, overflow, post, straight, subscriptions
from tandemq.model.broker import NORMAL, WINDOW
from tandemq.model.errors import MustWait, ShuttingDown
from tandemq.model.message import Letter


class Publish(BrokerRequest, tag="Publish"):
    """Put a message into a queue."""

    queue: str
    id: str  # which its publisher chose
    payload: bytes = b""  # JSON text, as it came; b"" for none
    headers: dict[str, str] | None = None
    level: int = NORMAL


class Subscribe(BrokerRequest, tag="Subscribe"):
    """Want the messages of a queue."""

    queue: str
    window: int = WINDOW  # how many of them may be unanswered


class Unsubscribe(BrokerRequest, tag="Unsubscribe"):
    """Want them no more."""

    queue: str


class Ack(BrokerRequest, tag="Ack"):
    """Messages are done; nothing else was asked between them."""

    messages: list[str]


class Nack(BrokerRequest, tag="Nack"):
    """Give a message back."""

    message: str
    delay: int = 0  # ms


@command(Permission.PUBLISH, last=True, table=BROKER)
def publish(req: Publish, call: Call) -> Later | None:
    """Put a message into a queue; the answer waits until it is kept, and until there is room.

    Raises:
        NotFound, QueueFull, MemoryFull, ShuttingDown
    """
    engine = call.engine
    if not engine.granting:
        raise ShuttingDown
    if not engine.pressure.level:
        try:
            _post(req, call, call.now)
        except MustWait:
            pass
        else:
            return None

    def accept(now: int) -> bool:
        _post(req, call, now)
        return True

    until = call.now + call.host.publish_wait
    size_bytes = len(req.payload)
    b = overflow.Blocked(req.queue, call.caller.id, req.req_id, accept, until, size_bytes)
    return None if entrance.enter(engine, b, call.now) else LATER


@together(Publish)
def publish_together(reqs: list[Publish], call: Call) -> list[None]:
    """Put messages into one queue from which they go straight to those who want them."""
    engine, now, queue = call.engine, call.now, reqs[0].queue
    q = engine.queues.get(queue)
    if q is None or not q.straight:
        return []
    count = 0
    for req in reqs:
        letter = Letter(req.id, req.headers)
        if req.queue != queue or not straight.post(engine, q, letter, req.payload, req.level, now):
            break
        count += 1
    return [None] * count


def _post(req: Publish, call: Call, now: int) -> None:
    engine = call.engine
    q = engine.queues.get(req.queue)
    if q is None or not q.straight:
        q = post.opened(engine, req.queue, now, call.host.queue_policy)
    post.post(engine, q, Letter(req.id, req.headers), req.payload, req.level, now)


@command(Permission.SUBSCRIBE, keeps=False, table=BROKER)
def subscribe(req: Subscribe, call: Call) -> None:
    """Have the messages of a queue from now on, and what waits there."""
    queue, engine = req.queue, call.engine
    post.found(engine, queue, call.now, call.host.queue_policy)
    subscriptions.subscribe(engine, queue, call.caller.id, req.window, call.now, call.caller.title)


@command(Permission.OPEN, keeps=False, table=BROKER)
def unsubscribe(req: Unsubscribe, call: Call) -> None:
    """Have them no more; what is held goes back."""
    subscriptions.unsubscribe(call.engine, req.queue, call.caller.id, call.now)


@command(Permission.OPEN, table=BROKER)
def ack(req: Ack, call: Call) -> Silence:
    """Settle the oldest message of each id that the caller holds; nothing is ever answered."""
    subscriptions.acknowledge(call.engine, call.caller.id, req.messages, call.now)
    return SILENCE


@command(Permission.OPEN, table=BROKER)
def nack(req: Nack, call: Call) -> Silence:
    """Give such a message back, for another try; nothing is ever answered."""
    subscriptions.refuse(call.engine, call.caller.id, req.message, req.delay, call.now)
    return SILENCE
