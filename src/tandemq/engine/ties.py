"""What binds a draft to messages that are there: its key, what it depends on, its parent.

First everything is checked, then everything is done, so that a refusal leaves no trace. Checks come
in the order of the reference: dependencies, the message's own id, its key, its parent
(bunqueue wire-commands 2).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from tandemq.engine import flows, keys
from tandemq.engine.core import Engine
from tandemq.engine.keyring import Holder
from tandemq.model.errors import BadRequest
from tandemq.model.message import ENDED, Message, State
from tandemq.model.uniqueness import Verdict

PARKED = State.PARKED
KEEPING = (Verdict.DROP, Verdict.EXTEND, Verdict.COALESCE)


class Ties(NamedTuple):
    """What was found out about a draft."""

    judged: tuple[Verdict, Holder] | None = None  # None: it has no key, or its key is free
    parent: Message | None = None  # to be linked to
    fresh: Collection[str] = ()  # ids that are about to be published beside it


def check(engine: Engine, m: Message, fresh: Collection[str], now: int) -> Ties:
    """Find out what binds a draft, and do nothing yet.

    ``fresh`` are the ids of drafts that are published together with it.

    Raises:
        BadRequest: what it depends on or its parent does not exist, its key cannot be taken, or
            its parent cannot have children now.
    """
    links = m.links
    if links is not None and links.depends_on:
        absent = flows.missing(engine, links.depends_on, fresh)
        if absent is not None:
            raise BadRequest(f"Dependency job not found: {absent}")
    known = engine.messages.get(m.id)
    if known is not None and known.state not in ENDED:
        return Ties()
    judged = keys.judge(engine, m, now) if m.options.unique_key is not None else None
    if judged is not None and judged[0] in KEEPING:
        return Ties(judged)
    return Ties(judged, flows.parent_to_link(engine, m), fresh)


def duplicate(engine: Engine, m: Message, ties: Ties, now: int) -> Message | None:
    """Return the message that stands for a draft whose key it keeps."""
    if ties.judged is None or ties.judged[0] not in KEEPING:
        return None
    return keys.keep(engine, m, *ties.judged, now)


def stands_for(engine: Engine, m: Message, now: int) -> bool:
    """Whether another message will stand for a draft, since it keeps the draft's key."""
    try:
        judged = keys.judge(engine, m, now)
    except BadRequest:
        return True  # it will be refused for that
    return judged is not None and judged[0] in KEEPING


def first_state(engine: Engine, m: Message, ties: Ties, state: State, now: int) -> State:
    """Take the key of a draft and return its first state: ``state`` if it waits for nothing."""
    follows = m.options.unique_key is not None and keys.take(engine, m, ties.judged, now)
    links = m.links
    if links is not None and links.depends_on:
        links.open = flows.still_open(engine, links, ties.fresh)
    return PARKED if follows or (links is not None and links.open) else state


def check_all(engine: Engine, drafts: Sequence[Message], now: int) -> None:
    """Check drafts that are to be published together, before any of them is.

    Raises:
        BadRequest: the text begins with the draft's place, as ``jobs[3]: ``.
    """
    fresh = {m.id for m in drafts if m.id}
    for i, m in enumerate(drafts):
        if m.links is None and m.options.unique_key is None:
            continue
        try:
            if m.links is not None and m.id and m.id in m.links.depends_on:
                raise BadRequest(f"Job cannot depend on itself: {m.id}")
            check(engine, m, fresh, now)
        except BadRequest as refused:
            raise BadRequest(f"jobs[{i}]: {refused}") from None
    if fresh:
        _check_circles(drafts, fresh)


def _check_circles(drafts: Sequence[Message], fresh: set[str]) -> None:
    waits = {
        m.id: [id for id in m.links.depends_on if id in fresh]
        for m in drafts
        if m.id and m.links is not None
    }
    found = flows.circle(waits)
    if found is not None:
        i = next(i for i, m in enumerate(drafts) if m.id == found)
        raise BadRequest(f"jobs[{i}]: Job depends on itself through others: {found}")
