"""Whether the jobs of a PUSHF are good, each by itself and together (bunqueue wire-commands 4.1).

Every refusal has the words and the place in the order that the reference has.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.identity import FLAGS, camel
from tandemq.commands.jobdata import check_data
from tandemq.engine.flows import circle
from tandemq.model import family
from tandemq.model.body import is_map
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message

ID_LENGTH = 1024
_usual = re.compile(r"[\w\-.]{1,64}\Z", re.ASCII).match  # ids that need no closer look
_all_usual = re.compile(r"(?:[\w\-.]{1,64}:)*\Z", re.ASCII).match
TAG_LENGTH = 256

# field, how the refusal calls it, from, to, whole numbers only
NUMBERS: tuple[tuple[str, str, int, int, bool], ...] = (
    ("delay", "delay", 0, check.YEAR, False),
    ("timeout", "timeout", 0, check.DAY, False),
    ("maxAttempts", "attempts", 1, 1000, True),
    ("ttl", "ttl", 0, check.YEAR, False),
    ("stallTimeout", "stallTimeout", 0, check.DAY, False),
    ("stackTraceLimit", "stackTraceLimit", 0, 10_000, True),
    ("keepLogs", "keepLogs", 0, 1_000_000, True),
    ("sizeLimit", "sizeLimit", 0, 10_485_760, True),
    ("timestamp", "timestamp", 0, 2**53 - 1, False),
    ("maxStalls", "maxStalls", 0, 1000, True),
    ("maxInterruptions", "maxInterruptions", 0, 1000, True),
)
POLICIES = tuple(camel(flag) for flag in FLAGS)
BOOLEANS = (
    "lifo", "durable", "removeOnComplete", "removeOnFail", *POLICIES, "cascadeOnFailure",
    "failOnRemoval",
)  # fmt: skip


def good_id(value: Any) -> str:
    """Check the id that a flow plans for a job."""
    if type(value) is str and _usual(value):
        return value
    if not isinstance(value, str):
        raise BadRequest("flow job id must be a string")
    if not _well_formed(value):
        raise BadRequest("flow job id is invalid or is not well-formed Unicode")
    if ":" in value:
        raise BadRequest("flow job id cannot contain a colon")
    return value


def all_usual(jobs: Sequence[Any]) -> bool:
    """Whether all ids are usual ones, no two alike, and all queues good; if not, look at each."""
    ids = [job.id for job in jobs]
    joined = ":".join((*ids, ""))
    if len(set(ids)) < len(ids) or joined.count(":") > len(ids) or not _all_usual(joined):
        return False
    try:
        for queue in {job.queue for job in jobs}:
            good_queue(queue)
    except BadRequest:
        return False
    return True


def good_queue(value: Any) -> str:
    """Check the queue of a job of a flow."""
    name = value if isinstance(value, str) else ""
    try:
        check.good_queue(name)  # cheap for a name that was seen before
    except BadRequest:
        raise BadRequest(f"invalid flow queue: {check.shown(value)}") from None
    return name


def good_input(id: str, job: Mapping[str, Any]) -> None:
    """Check everything that a job says for itself; ``data`` is its bytes.

    Raises:
        BadRequest
    """
    for field in ("customId", "jobId"):
        if job.get(field) not in (None, id):
            raise BadRequest(f"custom id does not match planned id: {id}")
    parent = job.get("parentId")
    if parent is not None and not (isinstance(parent, str) and _well_formed(parent)):
        raise BadRequest(f"flow parent id is invalid: {id}")
    for field in ("dependsOn", "childrenIds"):
        _check_ids(job.get(field), field)
    if "name" in job:
        check.job_name(job["name"])
    _check_data(bytes(job.get("data", b"")))
    _check_numbers(job)
    for field in BOOLEANS:
        if field in job and not isinstance(job[field], bool):
            raise BadRequest(f"{field} must be a boolean")
    _check_tags(job.get("tags"))
    _check_unsupported(job)
    chosen = [field for field in POLICIES if job.get(field)]
    if len(chosen) > 1:
        raise BadRequest("flow failure policies are mutually exclusive")
    if chosen and parent is None:
        raise BadRequest("a flow failure policy requires a parent")


def _well_formed(id: str) -> bool:
    if not 0 < len(id) <= ID_LENGTH:
        return False
    return id.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in id)


def _check_ids(value: Any, field: str) -> None:
    if value is None:
        return
    good = isinstance(value, (list, tuple)) and all(
        isinstance(id, str) and _well_formed(id) for id in value
    )
    if not good:
        raise BadRequest(f"{field} must be an array of valid string job ids")


def _check_data(data: bytes) -> None:
    if not data or not is_map(data[0]):
        raise BadRequest("flow job data must be an object")
    check_data(data)


def _check_numbers(job: Mapping[str, Any]) -> None:
    if job.get("groupId") is not None:
        check.group_id(job["groupId"])
        _check_number(job.get("priority"), "group.priority", 0, check.GROUP_PRIORITY, whole=True)
        _check_number(job.get("groupMaxSize"), "group.maxSize", 1, check.SAFE, whole=True)
    else:
        _check_number(job.get("priority"), "priority", *check.PRIORITIES, whole=True)
    for field, label, low, high, whole in NUMBERS:
        _check_number(job.get(field), label, low, high, whole=whole)
    backoff = job.get("backoff")
    if isinstance(backoff, Mapping):
        if backoff.get("type") not in ("fixed", "exponential"):
            raise BadRequest("backoff.type must be 'fixed' or 'exponential'")
        if backoff.get("delay") is None:
            raise BadRequest("backoff.delay is required")
        _check_number(backoff["delay"], "backoff.delay", 0, check.DAY)
    else:
        _check_number(backoff, "backoff", 0, check.DAY)


def _check_number(value: Any, label: str, low: int, high: int, *, whole: bool = False) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadRequest(f"{label} must be a finite number")
    if whole and value != int(value):
        raise BadRequest(f"{label} must be an integer")
    if not low <= value <= high:
        raise BadRequest(f"{label} must be between {low} and {high}")


def _check_tags(value: Any) -> None:
    if value is None:
        return
    good = isinstance(value, (list, tuple)) and all(
        isinstance(tag, str) and len(tag) <= TAG_LENGTH for tag in value
    )
    if not good:
        raise BadRequest(f"tags must be an array of strings of at most {TAG_LENGTH} characters")


def _check_unsupported(job: Mapping[str, Any]) -> None:
    for what, fields in (
        ("repeat", ("repeat",)),
        ("deduplication", ("uniqueKey", "dedup")),
        ("debounce", ("debounceId", "debounceTtl")),
    ):
        if any(job.get(field) is not None for field in fields):
            raise BadRequest(f"{what} is not supported inside an atomic flow")


# -- together ------------------------------------------------------------------------------------


def check_topology(drafts: Sequence[Message]) -> None:
    """Check how the jobs of a flow are tied to each other.

    Raises:
        BadRequest
    """
    jobs = {m.id: m for m in drafts}
    for m in drafts:
        if m.links is not None and (m.links.depends_on or m.links.children):
            _check_links(m, m.links, jobs)
    owned = {
        m.id: frozenset(m.links.children)
        for m in drafts
        if m.links is not None and m.links.children
    }
    for m in drafts:
        links = m.links
        if links is not None and (links.children or links.parent is not None):
            _check_family(m, links, jobs, owned)
    waits = {m.id: m.links.depends_on for m in drafts if m.links is not None and m.links.depends_on}
    if not all(map(waits.keys().isdisjoint, waits.values())) and circle(waits) is not None:
        raise BadRequest("flow contains a dependency cycle")


def _check_links(m: Message, links: Links, jobs: Mapping[str, Message]) -> None:
    needs, children = frozenset(links.depends_on), frozenset(links.children)
    if len(needs) < len(links.depends_on):
        raise BadRequest(f"duplicate dependency in flow job: {m.id}")
    if len(children) < len(links.children):
        raise BadRequest(f"duplicate child in flow job: {m.id}")
    for id in links.depends_on:
        if id not in jobs:
            raise BadRequest(f"flow dependency not found: {id}")
        if id == m.id:
            raise BadRequest(f"flow job cannot depend on itself: {id}")
    for id in links.children:
        if id not in needs:
            raise BadRequest(f"flow child is missing from dependencies: {id}")
        child = jobs.get(id)
        if child is None:
            raise BadRequest(f"flow child not found: {id}")
        if child.links is None or child.links.parent != m.id:
            raise BadRequest(f"flow child {id} does not point back to parent {m.id}")


def _check_family(
    m: Message, links: Links, jobs: Mapping[str, Message], owned: Mapping[str, frozenset[str]]
) -> None:
    """Check that a job's data and its parent tell the same of it as the job itself."""
    marks, id = family.marks(m.body), links.parent
    if id is not None:
        parent = jobs.get(id)
        if parent is None:
            raise BadRequest(f"flow parent not found: {id}")
        if id not in owned or m.id not in owned[id]:
            raise BadRequest(f"flow parent {id} does not own child {m.id}")
        if marks.parent != id or marks.parent_queue != parent.queue:
            raise BadRequest(f"flow child {m.id} metadata does not match parent {id}")
        if not links.children:
            return
    if links.children and marks.children != list(links.children):
        raise BadRequest(f"flow parent {m.id} children does not match the canonical flow topology")
