"""The life of a message as a table. ``move`` is the only writer of a state.

The table is the documentation: what is not in it cannot happen, and an attempt is a bug of the
engine, never an error of a client.
"""

from __future__ import annotations

from tandemq.model.message import Message, State

NEW, PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = State


class IllegalMove(AssertionError):
    """The engine tried an edge that the table does not have."""


EDGES: dict[State, dict[str, frozenset[State]]] = {
    state: {verb: frozenset(targets) for verb, targets in verbs.items()}
    for state, verbs in {
        NEW: {"publish": {PARKED, DELAYED, READY}, "overflow": {DEAD}, "dead-letter": {GONE}},
        PARKED: {
            "settled": {DELAYED, READY, DONE, DEAD, GONE},
            "child-failed": {DEAD},
            "expire": {DEAD, GONE},
            "cancel": {GONE},
            "discard": {DEAD},
            "dead-letter": {GONE},
        },
        DELAYED: {
            "due": {READY},
            "promote": {READY},
            "reschedule": {DELAYED, READY},
            "park": {PARKED},  # it was linked to a child
            "ack": {DONE, GONE},
            "expire": {DEAD, GONE},
            "cancel": {GONE},
            "discard": {DEAD},
            "dead-letter": {GONE},
        },
        READY: {
            "lease": {LEASED},
            "fan-out": {PARKED},
            "hand-off": {GONE},
            "overflow": {GONE},
            "reschedule": {DELAYED, READY},
            "park": {PARKED},
            "ack": {DONE, GONE},
            "expire": {DEAD, GONE},
            "cancel": {GONE},
            "discard": {DEAD},
            "dead-letter": {GONE},
        },
        LEASED: {
            "ack": {DONE, GONE},
            "fail": {DELAYED, READY, DEAD, GONE},
            "release": {READY, DEAD, GONE},
            "extend": {LEASED},
            "redeliver": {LEASED},
            "reschedule": {DELAYED, READY},
            "park": {PARKED},
            "cancel": {GONE},
            "discard": {DEAD},
            "dead-letter": {GONE},
        },
        DONE: {"retry": {READY}, "forget": {GONE}},
        DEAD: {"retry": {READY}, "forget": {GONE}},
        GONE: {},
    }.items()
}


def move(m: Message, verb: str, to: State) -> None:
    """Take ``m`` along one edge of the table; the lease ends with the state LEASED."""
    targets = EDGES[m.state].get(verb)
    if targets is None or to not in targets:
        raise IllegalMove(f"{m.id}: {m.state.name} --{verb}--> {to.name}")
    if to is not LEASED:
        m.lease = None
    m.state = to
    m.gen += 1
