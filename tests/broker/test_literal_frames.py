"""The literal frames of the scenarios, byte by byte, where they are at hand (TANDEMQ_SHARED)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.broker.room import ROOT, Guest, Room, room
from tests.support.vibe import BOTH, fits
from tests.wires.vibemq.corpus import lines, needed

from tandemq.wires.sniff import Wire

Peers = dict[str, Guest]
Given = Callable[[Room, Peers], Awaitable[None]]

UNCONNECTED = {
    "S-001", "S-003", "S-004", "S-005", "S-006", "S-007", "S-009", "S-014", "S-181", "S-182",
}  # fmt: skip
SERVERS: dict[str, dict[str, Any]] = {
    "S-003": {"tokens": ("Secret",)},
    "S-004": {"tokens": ("Secret",)},
    "S-031": {"auto_create": False},
    "S-181": {"compression": ("brotli", "gzip")},
}
USERS = {"S-005", "S-006", "S-007", *(f"S-{n}" for n in range(150, 169))}
ONLY_BINARY, ONLY_JSON = {"S-181", "S-182"}, {"S-271"}
# What happens before or between the frames of these needs more than the frames; they have tests of
# their own: a leaver, a redelivery, a shutdown, a third connection, a subscriber that comes later.
ELSEWHERE = {"S-040", "S-043", "S-053", "S-080", "S-112", "S-213", "S-220"}


def given(*, subscribed: str = "", queue: str = "q", **options: Any) -> Given:
    """A queue of these options with these subscribers."""

    async def prepare(r: Room, peers: Peers) -> None:
        if options:
            await (await r.guest()).create(queue, **options)
        for name in subscribed:
            await peers[name].subscribe(queue)

    return prepare


async def full(r: Room, peers: Peers) -> None:
    p = await r.guest()
    await p.create("q", maxQueueSize=2, overflowStrategy=1)
    await p.publish("q", "a", "b")


async def carol(r: Room, peers: Peers) -> None:
    await peers["S"].ask("AdminCreateUser", payload={"username": "carol", "password": "x"})


async def delivered(r: Room, peers: Peers) -> None:
    await given(subscribed="A", mode=1)(r, peers)
    await (await r.guest()).publish("q", "f1")
    await peers["A"].delivered()


PREPARED: dict[str, Given] = {
    "S-022": given(subscribed="A"),
    "S-027": given(subscribed="A"),
    "S-050": given(subscribed="ABC", mode=1),
    "S-051": delivered,
    "S-111": full,
    "S-159": carol,
}
NAMES = {"S-151": "bob", "S-161": "bob", "S-164": "Admin"}


def literal() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in lines("scenario_frames.jsonl"):
        found.setdefault(line["scenario"], []).append(line)
    return found


CASES = [
    pytest.param(wire, name, id=f"{wire.value}-{name}")
    for name in literal()
    for wire in BOTH
    if name not in ELSEWHERE
    and not (wire is Wire.JSON and name in ONLY_BINARY)
    and not (wire is Wire.BINARY and name in ONLY_JSON)
]


async def enter(r: Room, name: str, peer: str) -> Guest:
    """The peer of a scenario, as far as it has come before that begins."""
    if name in UNCONNECTED:
        return r.stranger()
    if name not in USERS:
        return await r.guest()
    if peer == "S":
        return await r.admin()
    user = NAMES.get(name, "bob")
    return await r.guest(authUsername=user, authPassword=user)


async def populate(r: Room) -> None:
    await r.user("bob", **{"orders.*": ["Publish", "Subscribe"]})
    for name in ("eve", "Admin"):
        await r.user(name)
    admin = await r.admin()
    await admin.ask("AdminCreateUser", payload={"username": "alice", "password": "s3cret"})


@needed
@pytest.mark.parametrize(("wire", "name"), CASES)
async def test_the_frames_of_a_scenario_are_answered_as_it_says(wire: Wire, name: str) -> None:
    steps = literal()[name]
    settings = {**(ROOT if name in USERS else {}), **SERVERS.get(name, {})}
    async with room(wire, **settings) as r:
        if name in USERS:
            await populate(r)
        names = sorted({step["peer"] for step in steps} | set("ABC"))
        peers = {peer: await enter(r, name, peer) for peer in names}
        await PREPARED.get(name, given())(r, peers)
        for step in steps:
            peer = peers[step["peer"]]
            if step["dir"] == "send":
                peer.send_raw(frame(wire, step))
                continue
            members = {"type": "*", **step["message"]}
            got = await peer._wait_for(lambda _: True)
            assert got["type"].lower() == members.pop("type").lower(), got
            assert fits(members, {k: v for k, v in got.items() if k != "type"}), got
        for peer in peers.values():
            await r.settle()
            left = [frame for frame in peer.read() if frame["type"] != "Deliver"]
            assert left == []


def frame(wire: Wire, step: dict[str, Any]) -> bytes:
    """The bytes of a frame."""
    text = step.get("json_hex" if wire is Wire.JSON else "binary_hex")
    if text is None:
        assert step["message"]["type"] == "teleport"
        return unknown(step)
    return bytes.fromhex(text)


def unknown(step: dict[str, Any]) -> bytes:
    """A type that is none has no name on the binary wire, but a number that no command has."""
    id = step["message"]["id"].encode()
    body = b"\x01\x4d" + len(id).to_bytes(2, "big") + id + bytes(8)
    return len(body).to_bytes(4, "big") + b"\0" + body
