"""What a PUSH says of a job's key, its debounce fields and its family, made part of the message.

The reference checks none of it beyond what ``engine/ties.py`` checks, so odd values count as
absent, as far as that is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec

from tandemq.commands import fields as check
from tandemq.engine import flows
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message
from tandemq.model.uniqueness import POLICIES


class Dedup(msgspec.Struct):
    """What a job says of its unique key."""

    ttl: float | None = None  # ms
    extend: bool | None = False
    replace: bool | None = False
    policy: str | None = None  # ours: one of POLICIES
    keep: bool | None = False  # ours


FLAGS = {
    "fail_parent_on_failure": flows.FAIL,
    "continue_parent_on_failure": flows.CONTINUE,
    "ignore_dependency_on_failure": flows.IGNORE,
    "remove_dependency_on_failure": flows.REMOVE,
}
_KEYS = ("unique_key", "dedup", "debounce_id", "debounce_ttl")
_LINKS = (
    "depends_on", "parent_id", "children_ids", *FLAGS, "cascade_on_failure", "fail_on_removal",
)  # fmt: skip
_keys = attrgetter(*_KEYS)
_links = attrgetter(*_LINKS)
asked = attrgetter(*_KEYS, *_LINKS)
LETTERS = 100  # of a text that stands for a list of ids
NOTHING = (None,) * (len(_KEYS) + 3) + (False,) * (len(_LINKS) - 3)
"""What ``asked`` finds in a job that says nothing of all this."""


def bind(job: Any, m: Message) -> None:
    """Give a draft the key and the links that its job asks for.

    Raises:
        BadRequest: the policy for duplicates is none of ours.
    """
    if any(_keys(job)):
        _bind_key(job, m)
    if any(_links(job)):
        m.links = Links(
            parent=job.parent_id or None,
            children=tuple(job.children_ids or ()),
            depends_on=tuple(job.depends_on or ()),
            on_failure=next((policy for flag, policy in FLAGS.items() if getattr(job, flag)), None),
            cascade=bool(job.cascade_on_failure),
            removal_fails=bool(job.fail_on_removal),
        )


def _bind_key(job: Any, m: Message) -> None:
    dedup = job.dedup or Dedup()
    if dedup.policy is not None and dedup.policy not in POLICIES:
        raise BadRequest(f"dedup.policy must be one of {', '.join(POLICIES)}")
    # A key is one of a kind, so these options are not shared with other jobs.
    m.options = msgspec.structs.replace(
        m.options,
        unique_key=job.unique_key or None,
        dedup_ttl=check.loose_number(dedup.ttl),
        dedup_extend=bool(dedup.extend),
        dedup_replace=bool(dedup.replace),
        dedup_policy=dedup.policy,
        dedup_keep=bool(dedup.keep),
        debounce_id=job.debounce_id,
        debounce_ttl=check.loose_number(job.debounce_ttl),
    )


# -- reading what did not fit at once ------------------------------------------------------------


def read_identity(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Read those of these fields that are there, of a job whose frame did not fit at once.

    Raises:
        BadRequest: a list of ids is none.
    """
    return {to: read(fields[name]) for name, to, read in _READ if name in fields}


def _read_dedup(value: Any) -> Dedup | None:
    if not isinstance(value, Mapping) or not value:
        return None
    return Dedup(
        check.loose_number(value.get("ttl")),
        bool(value.get("extend")),
        bool(value.get("replace")),
        check.text(value.get("policy")),
        bool(value.get("keep")),
    )


def _ids(name: str, value: Any) -> list[str] | None:
    """Take a list of ids; the letters of a text are one each, as a JavaScript peer reads it."""
    if value is None or value is False or value == "" or value == 0:
        return None
    if not isinstance(value, (str, list)) or (isinstance(value, str) and len(value) > LETTERS):
        raise BadRequest(f"{name} must be a list of job ids")
    ids = [check.identifier(item) for item in value]
    if None in ids:
        raise BadRequest(f"{name} must be a list of job ids")
    return [id for id in ids if id is not None]


def camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(map(str.capitalize, rest))


_READ: list[tuple[str, str, Callable[[Any], Any]]] = [
    ("uniqueKey", "unique_key", check.identifier),
    ("dedup", "dedup", _read_dedup),
    ("debounceId", "debounce_id", check.identifier),
    ("debounceTtl", "debounce_ttl", check.loose_number),
    ("parentId", "parent_id", check.identifier),
    ("dependsOn", "depends_on", partial(_ids, "dependsOn")),
    ("childrenIds", "children_ids", partial(_ids, "childrenIds")),
    *((camel(name), name, bool) for name in _LINKS[3:]),
]
