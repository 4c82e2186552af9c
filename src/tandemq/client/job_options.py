"""What may be asked for one job, in types of Python, and its names on the wire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypedDict

from tandemq.client.errors import BadOption, no_option
from tandemq.client.spans import Span, millis, moment_ms

OnDuplicate = Literal["drop", "extend", "replace", "coalesce", "queue-one"]
OnFailure = Literal["fail", "continue", "ignore", "remove"]


class Repeat(TypedDict, total=False):
    """A job that publishes its own successor when it is completed: ``every`` or ``pattern``."""

    every: Span
    pattern: str
    tz: str
    limit: int
    start: datetime
    end: datetime


class JobOptions(TypedDict, total=False):
    """Options of one job; a span is a ``timedelta`` or seconds, a moment a datetime with a zone."""

    id: str
    """An id of your own: while a job with it lives, adding another one changes nothing."""
    priority: int
    """Higher ones first, from -1,000,000 to 1,000,000; 0 is usual."""
    delay: Span
    """Not before this time has gone by."""
    run_at: datetime
    """Not before this moment."""
    attempts: int
    """Failures after which it is a dead letter; 3 is usual."""
    backoff: Span
    """Wait after the first failure; it doubles with each, unless ``backoff_kind`` is fixed."""
    backoff_kind: Literal["exponential", "fixed"]
    ttl: Span
    """It is worth nothing if it has not begun by then."""
    timeout: Span
    """How long one attempt may take."""
    lifo: bool
    """Before those that wait, instead of behind them."""
    durable: bool
    """It is on the disk before it is confirmed, whatever the server does with others."""
    remove_on_complete: bool
    """Forget it, and its result, when it is completed."""
    remove_on_fail: bool
    """Forget it when it failed for good, instead of keeping a dead letter."""
    stall_timeout: Span
    """A worker that is silent for so long is taken for dead."""
    tags: Iterable[str]
    group: str
    """Groups take turns, and may have limits of their own."""
    group_max_size: int
    """Refuse it when its group holds so many already."""
    cost: float
    """What it counts against a rate limit; 1 is usual."""
    unique_key: str
    """While a job holds the key, its queue accepts no second one."""
    unique_for: Span
    """Not longer than this."""
    on_duplicate: OnDuplicate
    """What becomes of the one that holds the key, and of this one."""
    keep_key: bool
    """Hold the key through retries, too."""
    debounce_id: str
    """Kept and shown with it, as ``debounce_ttl`` is; nothing more."""
    debounce_ttl: Span
    depends_on: Iterable[str]
    """Ids of jobs that must be completed first."""
    parent_id: str
    """The job that waits for this one; ``Step`` sets this and ``children_ids`` by itself."""
    children_ids: Iterable[str]
    on_failure: OnFailure
    """What its final failure does to its parent."""
    cascade_on_failure: bool
    """If its parent dies of its failure, the parent's own parent is told in turn."""
    fail_on_removal: bool
    """To be taken away counts as a failure for its parent, too."""
    max_stalls: int
    """So often its worker may fall silent before it is a dead letter; 0 is no limit."""
    max_interruptions: int
    """So often the connection of its worker may break before that; 10 is usual."""
    keep_logs: int
    """Lines of its log that stay, at most 100."""
    stack_trace_limit: int
    """Lines of a failure's stack that stay; 10 is usual."""
    size_limit: int
    """Refuse it when its data takes more bytes of JSON text."""
    created_at: datetime
    """When it was made, if that was not now."""
    repeat: Repeat
    """It comes again when it is completed; ``queue.schedules`` needs no completion."""


Writer = Callable[[Any, str], Any]
"""Returns an option's value as the wire has it, or raises ``BadOption`` with the option's name."""
Table = Mapping[str, tuple[str, Writer]]
"""Options: each with its name on the wire, and how it is written."""


def _texts(value: Any, name: str) -> list[str]:
    listed = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    found: list[Any] = list(value) if listed else [None]
    if not all(isinstance(each, str) for each in found):
        raise BadOption(f"{name} is {value!r}; give a list of texts")
    return found


def _as_it_is(kind: type | tuple[type, ...], words: str) -> Writer:
    def checked(value: Any, name: str) -> Any:
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BadOption(f"{name} is {value!r}; give {words}")
        return value

    return checked


_map = _as_it_is(Mapping, "a map of every or pattern, and what goes with it")
TEXT = _as_it_is(str, "a text")
WHOLE = _as_it_is(int, "a whole number")
NUMBER = _as_it_is((int, float), "a number")
FLAG = _as_it_is(bool, "True or False")

_OPTIONS: Table = {
    "priority": ("priority", WHOLE),
    "delay": ("delay", millis),
    "attempts": ("maxAttempts", WHOLE),
    "backoff": ("backoff", millis),
    "ttl": ("ttl", millis),
    "timeout": ("timeout", millis),
    "lifo": ("lifo", FLAG),
    "durable": ("durable", FLAG),
    "remove_on_complete": ("removeOnComplete", FLAG),
    "remove_on_fail": ("removeOnFail", FLAG),
    "stall_timeout": ("stallTimeout", millis),
    "tags": ("tags", _texts),
    "group": ("groupId", TEXT),
    "group_max_size": ("groupMaxSize", WHOLE),
    "cost": ("cost", NUMBER),
    "unique_key": ("uniqueKey", TEXT),
    "debounce_id": ("debounceId", TEXT),
    "debounce_ttl": ("debounceTtl", millis),
    "depends_on": ("dependsOn", _texts),
    "parent_id": ("parentId", TEXT),
    "children_ids": ("childrenIds", _texts),
    "cascade_on_failure": ("cascadeOnFailure", FLAG),
    "fail_on_removal": ("failOnRemoval", FLAG),
    "max_stalls": ("maxStalls", WHOLE),
    "max_interruptions": ("maxInterruptions", WHOLE),
    "keep_logs": ("keepLogs", WHOLE),
    "stack_trace_limit": ("stackTraceLimit", WHOLE),
    "size_limit": ("sizeLimit", WHOLE),
    "created_at": ("timestamp", moment_ms),
}
_REPEAT: Table = {
    "every": ("every", millis),
    "pattern": ("pattern", TEXT),
    "tz": ("tz", TEXT),
    "limit": ("limit", WHOLE),
    "start": ("startDate", moment_ms),
    "end": ("endDate", moment_ms),
}
_FLAGS = {
    "fail": "failParentOnFailure",
    "continue": "continueParentOnFailure",
    "ignore": "ignoreDependencyOnFailure",
    "remove": "removeDependencyOnFailure",
}
_SPECIAL = (  # more than a name and a value; they stand in ``wire``
    "id", "run_at", "backoff_kind", "unique_for", "on_duplicate", "keep_key", "on_failure",
    "repeat",
)  # fmt: skip
NAMES = frozenset((*_OPTIONS, *_SPECIAL))


def wire(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options under their names on the wire; one that is None counts as not given.

    Raises:
        BadOption: there is no such option, or its value has the wrong type.
    """
    given = {name: value for name, value in options.items() if value is not None}
    plain = {name: value for name, value in given.items() if name not in _SPECIAL}
    fields = named(plain, _OPTIONS, NAMES)
    if "id" in given:
        fields["jobId"] = fields["customId"] = TEXT(given["id"], "id")
    if "run_at" in given:
        if "delay" in given:
            raise BadOption("delay and run_at are two words for one thing: give one of them")
        fields["delay"] = max(0, moment_ms(given["run_at"], "run_at") - round(time.time() * 1000))
    if "backoff_kind" in given:
        kind = one_of(given["backoff_kind"], "backoff_kind", ("exponential", "fixed"))
        fields["backoff"] = {"type": kind, "delay": fields.get("backoff", 1000)}
    if "on_failure" in given:
        fields[_FLAGS[one_of(given["on_failure"], "on_failure", _FLAGS)]] = True
    if "repeat" in given:
        fields["repeat"] = named(_map(given["repeat"], "repeat"), _REPEAT)
    if dedup := _dedup(given):
        fields["dedup"] = dedup
    return fields


def _dedup(given: Mapping[str, Any]) -> dict[str, Any]:
    names = [name for name in ("unique_for", "on_duplicate", "keep_key") if name in given]
    if names and "unique_key" not in given:
        raise BadOption(f"{names[0]} says how a unique key is held: give unique_key too")
    found: dict[str, Any] = {}
    if "unique_for" in given:
        found["ttl"] = millis(given["unique_for"], "unique_for")
    if "keep_key" in given:
        found["keep"] = FLAG(given["keep_key"], "keep_key")
    if "on_duplicate" in given:
        word = one_of(given["on_duplicate"], "on_duplicate", OnDuplicate.__args__)  # type: ignore[attr-defined]
        flags = {"extend": {"extend": True}, "replace": {"replace": True}, "drop": {}}
        found |= flags.get(word, {"policy": word})  # the flags are what other servers know
    return found


def named(given: Mapping[str, Any], table: Table, known: Iterable[str] = ()) -> dict[str, Any]:
    """Return options under their names on the wire; one that is None counts as not given.

    Raises:
        BadOption: there is no such option (``known`` are all, if not those of the table), or its
            value has the wrong type.
    """
    fields = {}
    for name, value in given.items():
        if value is None:
            continue
        if name not in table:
            raise no_option(name, known or table)
        wire_name, written = table[name]
        fields[wire_name] = written(value, name)
    return fields


def one_of(value: Any, name: str, allowed: Iterable[str]) -> str:
    """Return a value that is one of several words.

    Raises:
        BadOption: it is another one.
    """
    if not isinstance(value, str) or value not in allowed:
        raise BadOption(f"{name} is {value!r}; give one of {', '.join(allowed)}")
    return value
