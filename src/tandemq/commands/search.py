"""Search: jobs of all queues by what is known of them, a page at a time, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.call import LATER, Call, Later
from tandemq.commands.states import STATES, name_of
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import graves, search
from tandemq.engine.core import Engine
from tandemq.engine.search import Search as Page
from tandemq.model.errors import BadRequest
from tandemq.model.matching import Text
from tandemq.model.message import Message, Run, State
from tandemq.model.permission import Operation, matches

PAGE = 50
MOST = 200  # jobs of one page
LONGEST = 256  # characters of what is looked for
ERROR = 200  # characters of an error that stand in a list
TAGS = 10  # of a job that stand in a list
NAMES = (*STATES, "prioritized", "paused")
_IDLE = Run()

Filter = Callable[[Message], bool]


class Search(Request, tag="Search"):
    """Ask for jobs; what is not given does not restrict. Numbers may come as texts."""

    queue: Any = None
    state: Any = None  # a name, several with commas in between, or a list of names
    name: Any = None  # of the job; * is any run of characters
    id: Any = None  # of one job, or how ids begin
    tag: Any = None
    text: Any = None  # part of a text, or a whole number, in its data; or in its last error
    after: Any = None  # ms, published then or later
    before: Any = None  # ms, published earlier
    limit: Any = None
    cursor: Any = None  # as the page before has it

    def concerns(self, engine: Engine) -> Iterable[Any]:
        """Name the one queue that is asked for; of all queues only what may be seen is shown."""
        return () if self.queue in (None, "") else (self.queue,)


@command(Permission.INSPECT, http="GET /jobs/search")
def find(req: Search, call: Call) -> dict[str, Any] | Later:
    """Return jobs that fit what is given, the newest first, at most ``limit`` of them.

    With more to come there is a ``cursor`` for the next page; ``looked`` says how many jobs were
    looked at for this one.
    """
    engine = call.engine
    queue, id = _word(req.queue, "queue"), _word(req.id, "id")
    text = _word(req.text, "text")
    states = _states(req.state)
    page = Page(
        _fits(_filters(req, call, states)),
        None if text is None else Text(text).occurs_in,
        _number(req.limit, "limit", PAGE, 1, MOST),
        queue,
        _kinds(states),
        before=_given(req.cursor, "cursor"),
        answer=_shown,
        conn=call.caller.id,
        req=req.req_id,
    )
    if id is not None and id in engine.messages:  # ours are unique: no other begins so
        page.notes, page.all_noted = [engine.messages[id]], True
    return _shown(page) if search.begin(engine, page, call.now) else LATER


def _filters(req: Search, call: Call, states: frozenset[str] | None) -> Iterable[Filter]:
    """Yield what is asked for, the cheapest and most telling first."""
    queue, engine = _word(req.queue, "queue"), call.engine
    name, id, tag = _word(req.name, "name"), _word(req.id, "id"), _word(req.tag, "tag")
    after, before = _given(req.after, "after"), _given(req.before, "before")
    if queue is not None:
        yield lambda m: m.queue == queue
    elif not call.caller.trusted:
        yield lambda m: call.may(Operation.GET_QUEUE_INFO, m.queue)
    if states is not None:
        kinds = frozenset(_kinds(states))
        yield lambda m: m.state in kinds
        if states & {"waiting", "prioritized", "paused"}:
            yield lambda m: m.state is not State.READY or _ready_name(engine, m) in states
    if id is not None:
        yield lambda m: m.id.startswith(id) or (m.letter is not None and m.letter.id.startswith(id))
    if name is not None:
        yield (lambda m: matches(name, m.name)) if "*" in name else (lambda m: m.name == name)
    if tag is not None:
        yield lambda m: tag in m.options.tags
    if after is not None:
        yield lambda m: m.created >= after
    if before is not None:
        yield lambda m: m.created < before


def _fits(filters: Iterable[Filter]) -> Filter:
    every = tuple(filters)
    if len(every) == 1:
        return every[0]
    return lambda m: all(fits(m) for fits in every)


def _ready_name(engine: Engine, m: Message) -> str:
    q = engine.queues.get(m.queue)
    return "paused" if q is not None and q.settings.paused else name_of(m)


def _states(value: Any) -> frozenset[str] | None:
    """Return the names that are asked for; None means any.

    Raises:
        BadRequest
    """
    names = value.split(",") if isinstance(value, str) else value
    if names is None or names == [""]:
        return None
    if not isinstance(names, list) or not all(name in NAMES for name in names):
        raise BadRequest(f"state must be one or several of {', '.join(NAMES)}")
    return frozenset(names) or None


def _kinds(names: frozenset[str] | None) -> tuple[State, ...]:
    """Return the states that bear one of these names."""
    if names is None:
        return tuple(STATES.values())
    return tuple(sorted({STATES.get(name, State.READY) for name in names}))


def _word(value: Any, label: str) -> str | None:
    """Take a text that is looked for; an empty one does not restrict.

    Raises:
        BadRequest
    """
    if value is None or value == "":
        return None
    word = check.identifier(value)  # in a query, a number may well be meant as a text
    if word is None or len(word) > LONGEST:
        raise BadRequest(f"{label} must be a text of at most {LONGEST} characters")
    return word


def _given(value: Any, label: str) -> int | None:
    return None if value is None or value == "" else _number(value, label, 0)


def _number(value: Any, label: str, default: int, low: int = 0, high: int = 2**53) -> int:
    """Take a whole number, or a text that says one.

    Raises:
        BadRequest
    """
    if value is None or value == "":
        return default
    if isinstance(value, str):
        digits = value.isascii() and value.isdigit() and len(value) <= 16
        found: int | None = int(value) if digits else None
    else:
        found = check.whole(value)
    if found is None or not low <= found <= high:
        raise BadRequest(f"{label} must be a whole number from {low} to {high}")
    return found


def _shown(page: Page) -> dict[str, Any]:
    jobs = [brief(m) for m in page.found if m.state is not State.GONE]
    cursor = None if page.before is None else str(page.before)
    return {"jobs": jobs, "cursor": cursor, "looked": page.looked}


def brief(m: Message) -> dict[str, Any]:
    """Return a job as it stands in a list: without its data, whose length is told."""
    run, options = m.run or _IDLE, m.options
    return {
        "id": m.id,
        "queue": m.queue,
        "name": m.name,
        "state": name_of(m),
        "priority": m.priority,
        "attempts": m.attempts,
        "maxAttempts": options.max_attempts,
        "createdAt": float(m.created),
        "runAt": float(m.due),
        "startedAt": float(run.started) if run.started else None,
        "finishedAt": float(run.finished) if run.finished else None,
        "progress": run.progress,
        "failedReason": None if run.error is None else run.error[:ERROR],
        "cause": graves.cause_of(m) if m.state is State.DEAD else None,
        "tags": list(options.tags[:TAGS]),
        "groupId": options.group,
        "messageId": None if m.letter is None else m.letter.id,
        "deadFrom": None if (death := graves.death_of(m)) is None else death.queue,
        "dataBytes": len(m.body),
        "resultBytes": len(run.result or b""),
    }
