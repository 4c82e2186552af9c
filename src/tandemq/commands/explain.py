"""Explain: why a job is not running, in the order in which the reasons matter."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from tandemq.commands.call import Call, Data
from tandemq.commands.states import name_of
from tandemq.commands.table import Permission, Request, command
from tandemq.engine import explain as reasons
from tandemq.engine.explain import Reason
from tandemq.model.body import number_text

TEXTS: Final = {
    "unknown": "No job has this id. It never had one, or its job was removed.",
    "removed": "The job was completed and removed.",
    "completed": "The job was completed {ago}.",
    "failed": "The job failed for good {ago}: {why}. RetryDlq lets it run again.",
    "key-taken": "It cannot be retried while another job holds its unique key {key}.",
    "automatic-retry": "It is retried by itself {in}.",
    "forgotten": "As a dead letter it is kept for a while; it is forgotten {in}.",
    "active": "The job was handed out {ago} and is held by {holder}; its lease {lease}.",
    "dependencies": "It waits for the completion of {first}; of so many in all: {count}.",
    "stuck": "Of these, {first} failed or was removed, and will not complete by itself; like it: "
    "{count} in all. Retry it, or release the job with RemoveChildDependency.",
    "copies": "Each subscriber has a copy of it. So many have acknowledged theirs: {acknowledged}; "
    "so many have not yet: {count}, of which {waiting} wait for a place in a full window. Waited "
    "for: {names}.",
    "no-children": "It waits for children that nobody has added yet.",
    "follows": "It waits for the end of {first}, which holds its unique key {key}.",
    "back-off": "It failed {attempts} of {maxAttempts} times and is tried again {in}.",
    "delayed": "It is delayed and due {in}.",
    "stopping": "The server is stopping and hands out nothing more.",
    "paused": "The queue {queue} is paused. Resume lets it go on.",
    "group-paused": "The group {group} is paused. ResumeGroup lets it go on.",
    "group-closed": "Nothing of {lane} is handed out for now; it opens {in}.",
    "group-concurrency": "The group {group} may have {limit} running at a time, and has {active}.",
    "group-rate": "The group {group} has used up its rate limit of {max}; it opens {in}.",
    "concurrency": "The queue may have {limit} running at a time, and has {active}.",
    "rate": "The queue has used up its rate limit of {max} in {duration} ms; it opens {in}.",
    "place": "Jobs that go before it: {ahead}.",
    "place-in-group": "Jobs that go before it: {ahead} of its group, {ungrouped} without one; "
    "groups are served in turn.",
    "no-worker": "Nobody waits for a job of the queue {queue}, and no worker is registered for it.",
    "no-pull": "Nobody waits for a job of the queue {queue}. Registered workers: {workers}; "
    "running jobs: {active}. Either all hands are full, or nobody pulls.",
    "no-subscriber": "The queue {queue} fans out to its subscribers, and nobody is subscribed.",
    "no-window": "Every subscriber of the queue {queue} holds as many unanswered messages as it "
    "may, or does not read. Subscribers: {count}; unanswered: {held}; of them do not read: "
    "{stalled}. They are: {names}.",
    "other-groups": "Those who wait take jobs of other groups only; so many wait: {pulls}.",
    "ttl": "It expires {in}, unless it has begun by then.",
    "unique-key": "The unique key {key} is held by {owner}.",
}
"""How each reason reads; ``{in}`` and ``{ago}`` are spans from the moment of the question."""


MOMENTS: Final = ("at", "since", "heartbeat", "leasedUntil")
UNITS: Final = ((86_400_000, "days"), (3_600_000, "hours"), (60_000, "minutes"), (1_000, "seconds"))
LONGEST: Final = 200  # characters of a key or an error that stand in a sentence


class Explain(Request, tag="Explain"):
    """Ask why a job is not running."""

    id: Any = None


@command(Permission.INSPECT, http="GET /jobs/{id}/explain 404")
def explain(req: Explain, call: Call) -> Data:
    """Return why a job is not running, what counts most first; of a running job, who has it."""
    id = req.id if isinstance(req.id, str) else ""
    m = call.engine.messages.get(id)
    if m is None:
        found = [reasons.unknown(call.engine, id)]
        fields: dict[str, Any] = {"id": req.id, "state": "unknown"}
    else:
        found = reasons.explain(call.engine, m, call.now)
        counts = reasons.counters(call.engine, m)
        fields = {
            "id": m.id,
            "queue": m.queue,
            "name": m.name,
            "state": name_of(m),
            "counters": {name: asdict(count) for name, count in counts.items()},
        }
    return Data({**fields, "reasons": [_shown(reason, call.now) for reason in found]})


def _shown(reason: Reason, now: int) -> dict[str, Any]:
    shown = {"code": reason.code, "text": _text(reason, now), "blocks": reason.blocks}
    if reason.until is not None:
        shown["until"] = float(reason.until)
    for name, value in reason.facts.items():
        shown[name] = float(value) if name in MOMENTS and value is not None else value
    if reason.jobs:
        shown["jobs"] = [
            {"id": id, "state": name_of(m) if m else "unknown"} for id, m in reason.jobs
        ]
    return shown


def _text(reason: Reason, now: int) -> str:
    facts, until = reason.facts, reason.until
    past = facts.get("at") or facts.get("since")
    words = {
        **{name: _word(value) for name, value in facts.items()},
        "in": "never" if until is None else f"in {_span(until - now)}",
        "ago": "some time ago" if not past else f"{_span(now - past)} ago",
        "why": _word(facts.get("error") or facts.get("cause")),
        "names": ", ".join(map(_word, facts.get("subscribers", ()))),
        "first": _word(reason.jobs[0][0] if reason.jobs else None),
    }
    if reason.code == "active":
        words |= {"holder": _holder(facts), "lease": _lease(facts, now)}
    elif reason.code == "group-closed":
        group = facts["group"]
        words["lane"] = "what has no group" if group is None else f"the group {_word(group)}"
    elif "ahead" in facts and not facts["exact"]:
        words["ahead"] = f"at least {facts['ahead']}"
    return TEXTS[reason.code].format_map(words)


def _word(value: Any) -> str:
    """Return a fact as it stands in a sentence."""
    if isinstance(value, float):
        return number_text(value)
    text = str(value)
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def _holder(facts: dict[str, Any]) -> str:
    if "subscriber" in facts:
        return f"the subscriber {_word(facts['subscriber'])}"
    if facts["connection"] is None:
        return "somebody, whatever becomes of the connection"
    workers = ", ".join(map(_word, facts["workers"]))
    return f"connection {facts['connection']}" + (f" (worker {workers})" if workers else "")


def _lease(facts: dict[str, Any], now: int) -> str:
    """Return how long a lease lasts."""
    if facts["leasedUntil"] is None:
        return "has no end of its own"
    return f"ends in {_span(facts['leasedUntil'] - now)} after {facts['renewals']} renewals"


def _span(ms: int) -> str:
    """Return a span in the largest unit of which it has one."""
    for size, unit in UNITS:
        if ms >= size:
            return f"{ms / size:.1f} {unit}"
    return f"{max(0, ms)} ms"
