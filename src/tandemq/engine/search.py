"""Looking for messages among all that are known: newest first, in slices, one search at a time.

No index is kept for this: it would cost every message something, and most are never looked for
(docs/decisions/0011-search-without-an-index.md). A search goes through the messages from the newest
on and stops as soon as its page is full. A short look is done at once. Whoever has to look further
goes on a slice at a time, a millisecond apart, through notes: a list of references to the newest
messages, and if nobody is content with those, to all. Others wait in line meanwhile, so that any
number of searches costs the loop no more than one.

A page ends with the number of the last message it looked at, which is where the next one goes on:
what is published in between comes before the first page, and moves nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from tandemq.engine import inspect
from tandemq.model.errors import TooManySearches
from tandemq.model.message import Message, State

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

SLICE = 4_000  # of effort: a look at a message is 1, and so is each begun KiB of a body it reads
NEWEST = 65_536  # messages that are noted down first: that is quick, and often enough
QUEUES = 20_000  # that are looked through for messages in a state, one by one
LINE = 32  # searches that are on their way

_by_seq = attrgetter("seq")


@dataclass(slots=True, eq=False)
class Search:
    """One page that is being filled."""

    fits: Callable[[Message], bool]  # what costs little to ask
    reads: Callable[[Message], bool] | None  # what has to read the body
    limit: int
    queue: str | None  # if only one is meant
    states: tuple[State, ...]
    before: int | None = None  # only numbers below it; as the page is filled, where it has come to
    answer: Callable[[Search], Any] | None = None
    conn: int = 0  # whom to answer
    req: Any = None
    found: list[Message] = field(default_factory=list)
    looked: int = 0
    notes: list[Message] = field(default_factory=list)  # what is left, the newest last
    all_noted: bool = False  # beyond the notes there is nothing
    done: bool = False


class Line:
    """The searches of an engine, the one that is going on first."""

    def __init__(self) -> None:
        self.gen = 0
        self.waiting: deque[Search] = deque()
        self.shuffled = False  # some message was taken in behind younger ones

    def __len__(self) -> int:
        return len(self.waiting)


def begin(engine: Engine, search: Search, now: int) -> bool:
    """Look at the first messages; False when that was not enough, and the answer comes later.

    Who brings notes knows what is meant and looks at no more.

    Raises:
        TooManySearches
    """
    line = engine.searches
    if search.all_noted or not line.waiting:
        if not search.all_noted:
            _open(engine, search)
        if _slice(engine, search):
            return True
        engine.timers.set(line, now + 1)
    elif len(line.waiting) >= LINE:
        raise TooManySearches
    line.waiting.append(search)
    return False


def go_on(engine: Engine, line: Line, now: int) -> None:
    """Do one slice of the search whose turn it is; answer it if that was the last one."""
    search = line.waiting[0]
    if not search.notes and not search.all_noted:
        _open(engine, search)
    if _slice(engine, search):
        line.waiting.popleft()
        assert search.answer is not None, "who asked has said what to answer"
        engine.tell(search.conn, search.req, search.answer(search))
    if line.waiting:
        engine.timers.set(line, now + 1)


def disconnect(engine: Engine, conn: int) -> None:
    """Forget what a connection looked for."""
    line = engine.searches
    kept = [search for search in line.waiting if search.conn != conn]
    line.waiting = deque(kept)
    if not kept:
        line.gen += 1


def shift_spans(engine: Engine) -> None:
    """The clock was set: who was to go on in a moment still does."""
    line = engine.searches
    if line.waiting:
        line.gen += 1
        engine.timers.set(line, 0)


def _open(engine: Engine, search: Search) -> None:
    """Note down what is looked at first."""
    few = _few(engine, search)
    if few is not None:
        _note(search, few)
        return
    if not engine.searches.shuffled:
        newest = list(islice(reversed(engine.messages.values()), NEWEST))
        _note(search, newest[::-1], whole=len(newest) == len(engine.messages))
    if not search.notes and not search.all_noted:
        _note_all(engine, search)


def _few(engine: Engine, search: Search) -> list[Message] | None:
    """Return the messages of the queue and the states that are asked for, if they are few."""
    states = search.states
    if search.queue is not None:
        q = engine.queues.get(search.queue)
        queues = [] if q is None else [q]
    elif State.READY in states or len(engine.queues) > QUEUES:
        return None
    else:
        queues = list(engine.queues.values())
    size = 0
    for q in queues:
        for state in states:
            size += len(q.ready if state is State.READY else q.members[state])
        if size > inspect.SORTED:
            return None
    if not size:
        return []
    return sorted((m for q in queues for s in states for m in q.within(s)), key=_by_seq)


def _note_all(engine: Engine, search: Search) -> None:
    notes = list(engine.messages.values())
    if engine.searches.shuffled:
        notes.sort(key=_by_seq)
    _note(search, notes)


def _note(search: Search, notes: list[Message], *, whole: bool = True) -> None:
    """Keep notes, by ascending number, of what the page has not come to yet."""
    if search.before is not None:
        del notes[bisect_left(notes, search.before, key=_by_seq) :]
    search.notes, search.all_noted = notes, whole


def _slice(engine: Engine, search: Search) -> bool:
    """Look at some messages; return whether the search is done."""
    fits, reads, found, left = search.fits, search.reads, search.found, SLICE
    while left > 0:
        if not search.notes:
            if search.all_noted:
                search.done, search.before = True, None
                return True
            _note_all(engine, search)
            continue
        m = search.notes.pop()
        search.before = m.seq
        search.looked += 1
        left -= 1
        if m.state is State.GONE or not fits(m):
            continue
        if reads is not None:
            left -= 1 + (len(m.body) >> 10)
            if not reads(m):
                continue
        found.append(m)
        if len(found) == search.limit:
            if not search.notes and search.all_noted:
                search.before = None
            search.notes = []
            search.done = True
            return True
    return False
