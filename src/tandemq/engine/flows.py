"""Messages that wait for others: what an end means to those that wait, and how they are linked.

A message is PARKED while ``links.open`` names messages it waits for. Each of them that completes
is taken off; when none is left the message is released. A child that fails may do more, as its
policy says; one that was cancelled or discarded leaves its parent waiting, unless it asked to be
counted as failed then. Nothing that waits is ever deleted for its age.

Sources: bunqueue semantics 10, quirks 50 to 55.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence

from tandemq.engine.core import Engine
from tandemq.engine.timeline import add_steps, run_for
from tandemq.model import family
from tandemq.model.crossing import Uncarriable, body_for, data_of
from tandemq.model.errors import BadRequest
from tandemq.model.message import WAITING, Links, Message, State, Step
from tandemq.model.policy import TOLD_LENGTH, cut

PARKED, DELAYED, READY, DONE, DEAD, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.DONE,
    State.DEAD,
    State.GONE,
)
FAIL, CONTINUE, IGNORE, REMOVE = "fail", "continue", "ignore", "remove"
POLICIES = (FAIL, CONTINUE, IGNORE, REMOVE)
"""What the failure of a child does to its parent: ``Links.on_failure``."""


# -- dependencies --------------------------------------------------------------------------------


def completed(engine: Engine, id: str) -> bool:
    """Whether a message has ended well, kept or not."""
    m = engine.messages.get(id)
    return engine.dependents.remembers(id) if m is None else m.state is DONE


def missing(engine: Engine, ids: Iterable[str], fresh: Container[str] = ()) -> str | None:
    """Return the first id that names nothing; ``fresh`` are about to be published too."""
    for id in ids:
        if id not in engine.messages and id not in fresh and not engine.dependents.remembers(id):
            return id
    return None


def still_open(engine: Engine, links: Links, fresh: Container[str] = ()) -> tuple[str, ...]:
    """Return what a message with these links has to wait for, each once."""
    ids = dict.fromkeys(links.depends_on)
    return tuple(id for id in ids if id in fresh or not completed(engine, id))


def recount(engine: Engine, m: Message) -> None:
    """Take off what has completed while a message was not parked, because it is to be parked."""
    if m.links is not None and m.links.open:
        m.links.open = tuple(id for id in m.links.open if not completed(engine, id))


# -- ends ----------------------------------------------------------------------------------------


def settle(engine: Engine, m: Message, now: int, *, well: bool, parent_told: bool) -> list[Message]:
    """Tell those that wait for a message that it has ended; return the parents that died of it.

    ``parent_told`` False: it did not fail, somebody took it away.
    """
    if well:
        if m.state is GONE:
            engine.dependents.remember(m.id)
            engine.dependents.leave_value(engine, m)
        for waiter in engine.dependents.of(m.id):
            satisfy(engine, waiter, m.id, now)
        return []
    links = m.links
    if links is None or not (parent_told or links.removal_fails):
        return []
    dead: list[Message] = []
    child: Message | None = m
    error = _error_of(m)
    while child is not None:
        parent = _fail(engine, child, error, now)
        if parent is not None:
            dead.append(parent)
            # Those further up are told of the first death, not of the whole line of them.
            error = cut(_error_of(dead[0]), TOLD_LENGTH)
        # Only with the option does the failure of a parent concern the parent's own parent.
        child = parent if child.links is not None and child.links.cascade else None
    return dead


def _fail(engine: Engine, child: Message, error: str, now: int) -> Message | None:
    """Do to the parent what the failed child's policy says; return the parent if it died.

    ``error`` is what began it all.
    """
    links = child.links
    parent = engine.messages.get(links.parent) if links is not None and links.parent else None
    if links is None or parent is None or parent.state is not PARKED or parent.links is None:
        return None
    if child.id not in parent.links.open:
        return None
    if links.on_failure == FAIL:
        _bury(engine, parent, cut(f"Child job {child.id} failed: {error}"), now)
        return parent
    error = cut(_error_of(child), TOLD_LENGTH)
    if links.on_failure == CONTINUE:
        parent.links.failures[f"{child.queue}:{child.id}"] = error
        engine.dependents.drop(parent)
        parent.links.open = parent.links.depends_on = ()
        release(engine, parent, now)
    elif links.on_failure in (IGNORE, REMOVE):
        if links.on_failure == IGNORE:
            parent.links.ignored[f"{child.queue}:{child.id}"] = error
        parent.links.depends_on = _without(parent.links.depends_on, child.id)
        engine.touched(parent)
        satisfy(engine, parent, child.id, now)
    return None


def _error_of(m: Message) -> str:
    if m.run is not None and m.run.error is not None:
        return m.run.error
    return "the job was removed" if m.state is GONE else "the job was discarded"


def _bury(engine: Engine, parent: Message, error: str, now: int) -> None:
    run = run_for(parent)
    run.error, run.cause, run.finished = error, "unknown", now
    engine.counters.failed += 1
    engine.tallies.count(engine, parent.queue, now, well=False)
    engine.shift(parent, "child-failed", DEAD)
    if engine.listening:
        engine.say("failed", parent, now, error=error, data=data_of(parent))


def satisfy(engine: Engine, waiter: Message, id: str, now: int) -> None:
    """A parked message need not wait for ``id`` any more."""
    links = waiter.links
    assert links is not None, "what waits has links"
    engine.dependents.pull(id, waiter)
    at = links.open.index(id)
    links.open = links.open[:at] + links.open[at + 1 :]
    if links.open:
        engine.dependents.keep(engine, waiter, id)
    else:
        release(engine, waiter, now)


def release(engine: Engine, m: Message, now: int) -> None:
    """Let a parked message go on: to its moment, if that lies ahead, else to the consumers.

    One that also waits for its key is let go by whoever owns that.
    """
    if engine.keyring.follows(m):
        return
    to = DELAYED if m.due > now else READY
    note(m, to, now)
    engine.shift(m, "settled", to)
    if to is READY:
        engine.match(engine.queues[m.queue], now)


def note(m: Message, state: State, now: int) -> None:
    """Write a move into the timeline that no moment of the message tells."""
    add_steps(run_for(m), Step(state, now))


def _without(ids: tuple[str, ...], id: str) -> tuple[str, ...]:
    return tuple(other for other in ids if other != id) if id in ids else ids


# -- results of children -------------------------------------------------------------------------


def values(engine: Engine, parent: Message) -> dict[str, bytes]:
    """Return the results of the children: of kept ones under queue:id, of others under the id."""
    links = parent.links
    if links is None:
        return {}
    found: dict[str, bytes] = {}
    for id in links.children:
        child = engine.messages.get(id)
        if child is not None and child.state is DONE and child.run is not None:
            if child.run.result is not None:
                found[f"{child.queue}:{id}"] = child.run.result
        elif id in links.values:
            found[id] = links.values[id]
    return found


# -- links ---------------------------------------------------------------------------------------


def parent_to_link(engine: Engine, m: Message) -> Message | None:
    """Return the parent that a draft is to be linked to, if its data asks for that.

    A parent's id alone is kept without any check; together with the same id and a queue in the
    data it makes a link.

    Raises:
        BadRequest: there is no such parent, or it cannot have children now.
    """
    if m.links is None or m.links.parent is None:
        return None
    id, marks = m.links.parent, family.marks(m.body)
    if marks.parent != id or not isinstance(marks.parent_queue, str):
        return None
    if m.id == id:
        raise BadRequest("A job cannot be its own parent")
    parent = engine.messages.get(id)
    if parent is None:
        raise BadRequest(f"Parent job not found: {id}")
    if parent.queue != marks.parent_queue:
        raise BadRequest(
            f"Parent job {id} belongs to queue {parent.queue}, not {marks.parent_queue}"
        )
    check_linkable(engine, parent)
    return parent


def check_linkable(engine: Engine, parent: Message) -> None:
    """Check that a message may get a child now.

    Raises:
        BadRequest: it runs, is out with subscribers, or has ended.
    """
    if parent.state not in WAITING or parent.seq in engine.fanouts:
        raise BadRequest(f"Parent job {parent.id} is not linkable")
    _check_rewritable(parent)


def _check_rewritable(m: Message) -> None:
    """Refuse what could not be written again after a change: JSON has no word for infinity.

    Raises:
        BadRequest
    """
    if m.letter is not None:
        try:
            body_for(m, data_of(m))
        except Uncarriable as odd:
            raise BadRequest(f"Job {m.id} is not linkable: JSON cannot carry {odd}") from None


def _write(engine: Engine, m: Message, data: bytes) -> None:
    """Give a message other data, in the language of its body."""
    engine.rebody(m, body_for(m, data))


def adopt(engine: Engine, parent: Message, child: Message, now: int) -> None:
    """Let a parent wait for a child that has not completed, and name it in the parent's data."""
    engine.dependents.drop(parent)
    links = parent.links
    if links is None:
        links = parent.links = Links()
    recount(engine, parent)
    if child.id not in links.children:
        links.children += (child.id,)
    if child.id not in links.depends_on:
        links.depends_on += (child.id,)
    if child.state is not DONE and child.id not in links.open:
        links.open += (child.id,)
    _write(engine, parent, family.with_children(data_of(parent), links.children))
    engine.dependents.add(parent)
    if links.open and parent.state is not PARKED:
        note(parent, PARKED, now)
        engine.shift(parent, "park", PARKED)


def link(engine: Engine, parent: Message, child: Message, now: int) -> None:
    """Make a message the child of another; it leaves the parent that it had.

    Raises:
        BadRequest: the parent cannot have children now, or waits for itself then.
    """
    check_linkable(engine, parent)
    _check_rewritable(child)
    if waits_for(engine, child, parent.id):
        raise BadRequest(f"Job {child.id} waits for job {parent.id} and cannot be its child")
    if child.links is None:
        child.links = Links()
    elif child.links.parent not in (None, parent.id):
        _disown(engine, child, now)
    child.links.parent = parent.id
    _write(engine, child, family.with_parent(data_of(child), parent.id, parent.queue))
    adopt(engine, parent, child, now)


def unlink(engine: Engine, child: Message, now: int) -> None:
    """Make a message nobody's child; its parent waits for it no longer."""
    assert child.links is not None, "a child has links"
    _disown(engine, child, now)
    child.links.parent = None
    _write(engine, child, family.without_parent(data_of(child)))


def _disown(engine: Engine, child: Message, now: int) -> None:
    links = child.links
    parent = engine.messages.get(links.parent) if links is not None and links.parent else None
    if parent is None or parent.links is None or child.id not in parent.links.children:
        return
    held = parent.links
    held.children = _without(held.children, child.id)
    held.depends_on = _without(held.depends_on, child.id)
    held.values.pop(child.id, None)
    _write(engine, parent, family.with_children(data_of(parent), held.children))
    if parent.state is not PARKED:
        held.open = _without(held.open, child.id)
    elif child.id in held.open:
        satisfy(engine, parent, child.id, now)
        if parent.state is not PARKED and engine.listening:
            engine.say("waiting", parent, now, prev="waiting-children")


def waits_for(engine: Engine, m: Message, id: str) -> bool:
    """Whether a message waits for ``id``, directly or through others, or is it."""
    seen: set[str] = set()
    line = [m.id]
    while line:
        at = line.pop()
        if at == id:
            return True
        found = engine.messages.get(at)
        if at not in seen and found is not None and found.links is not None:
            seen.add(at)
            line.extend(found.links.open)
    return False


def circle(waits: Mapping[str, Sequence[str]]) -> str | None:
    """Return one of those that wait for themselves through others, None where nobody does."""
    missing = {id: len(ids) for id, ids in waits.items()}
    waiters: dict[str, list[str]] = {}
    for id, ids in waits.items():
        for other in ids:
            waiters.setdefault(other, []).append(id)
    line = [id for id, count in missing.items() if not count]
    line += [id for id in waiters if id not in waits]
    while line:
        for waiter in waiters.get(line.pop(), ()):
            missing[waiter] -= 1
            if not missing[waiter]:
                line.append(waiter)
    return next((id for id, count in missing.items() if count), None)
