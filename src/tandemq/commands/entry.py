"""How PUSH, PUSHB and PUSHF wait where they cannot come in at once.

Each tries to publish first; only what meets a wall, a full queue or a memory that is not calm,
comes here (ruling 19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from typing import TypeVar

from tandemq.commands.call import LATER, Call, Later
from tandemq.commands.table import Request
from tandemq.engine import entrance
from tandemq.engine.core import Engine
from tandemq.engine.overflow import Blocked
from tandemq.engine.pressure import Level
from tandemq.model.errors import MemoryFull

T = TypeVar("T")


def enter(
    call: Call, req: Request, queue: str, bodies: Iterable[bytes], publish: Callable[[int], T]
) -> T | Later:
    """Publish jobs as soon as there is memory and room, and answer then.

    ``publish`` is told the moment, and changes nothing where it raises; it holds ``bodies``.

    Raises:
        TandemqError: they are refused.
    """
    engine = call.engine

    def accept(now: int) -> T:
        if engine.pressure.level is Level.FULL:
            raise MemoryFull  # a job drops nothing, and nothing may be dropped for it
        return publish(now)

    until = call.now + call.host.publish_wait
    size_bytes = sum(map(len, bodies))
    b = Blocked(queue, call.caller.id, req.req_id, accept, until, size_bytes)
    reply: T | None = entrance.enter(engine, b, call.now)
    return LATER if reply is None else reply


def remark_batch(
    engine: Engine, queue: str, asked: Sequence[T], accepted: Sequence[T], now: int
) -> None:
    """Tell those who look at the server of a batch; what was there before is not what was asked."""
    if engine.remarking:
        total, new = len(asked), sum(map(is_, asked, accepted))
        counts = {"total": total, "inserted": new, "duplicates": total - new}
        engine.remark("batch:pushed", queue, now, queue=queue, **counts)
