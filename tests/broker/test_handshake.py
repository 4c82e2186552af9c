"""Section 1 of the scenarios: who is there, and what comes of saying so wrongly."""

from __future__ import annotations

from itertools import count

import pytest
from tests.broker.room import ROOT, Guest, room

from tandemq.server import accounts
from tandemq.wires.sniff import Wire

TOKEN = {"tokens": ("Secret",)}
ALICE = {"authUsername": "alice", "authPassword": "alice"}
WRONG = {"authUsername": "alice", "authPassword": "wrong"}


async def test_s_001_nothing_precedes_the_answer_to_connect(wire: Wire) -> None:
    async with room(wire) as r:
        a = r.stranger()
        await a.silence()
        a.send("Connect", "c")
        await a.expect("ConnectAck")
        await a.silence()


async def test_s_003_a_missing_token_is_asked_for_and_may_still_come(wire: Wire) -> None:
    async with room(wire, **TOKEN) as r:
        a = r.stranger()
        refused = await a.refused("Connect", "c")
        assert refused == ("AUTH_REQUIRED", "Authentication token is required.")
        assert (await a.connect(authToken="Secret"))["type"] == "ConnectAck"
        await a.publish("q", "m")


@pytest.mark.parametrize("token", ["secret", "SECRET", "Secre", "Secrets", "Secret ", "Secret\0"])
async def test_s_004_a_token_has_to_be_exact(wire: Wire, token: str) -> None:
    async with room(wire, **TOKEN) as r:
        a = r.stranger()
        refused = await a.refused("Connect", "c", headers={"authToken": token})
        assert refused == ("AUTH_FAILED", "Invalid authentication token.")
        assert await a.refused("Publish", "m", queue="q", payload=1) == (
            "NOT_AUTHENTICATED",
            "Please send a Connect command first.",
        )


async def test_s_005_a_user_is_let_in_by_name_and_password(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        await r.user("alice", **{"*": ["Publish"]})
        alice = r.stranger()
        assert (await alice.connect(**ALICE))["type"] == "ConnectAck"
        await alice.publish("q", "m")


@pytest.mark.parametrize("said", [{}, {"authUsername": "alice"}, {"authPassword": "alice"}])
async def test_s_006_a_user_needs_both(wire: Wire, said: dict[str, str]) -> None:
    async with room(wire, **ROOT) as r:
        await r.user("alice")
        refused = await r.stranger().refused("Connect", "c", headers=said)
        assert refused == ("AUTH_REQUIRED", "Username and password are required.")


async def test_s_007_an_unknown_user_and_a_wrong_password_cost_and_say_the_same(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with room(wire, **ROOT) as r:
        await r.user("alice")
        hashed = count()
        check = r.server.accounts.passwords.check
        monkeypatch.setattr(
            r.server.accounts.passwords, "check", lambda *said: (next(hashed), check(*said))[1]
        )
        a = r.stranger()
        for said in (WRONG, {"authUsername": "nobody", "authPassword": "x"}):
            refused = await a.refused("Connect", "c", headers=said)
            assert refused == ("AUTH_FAILED", "Invalid username or password.")
        assert next(hashed) == 2  # the unknown one was compared with somebody's


async def test_s_009_a_ping_is_answered_before_connect(wire: Wire) -> None:
    async with room(wire, **TOKEN) as r:
        assert await r.stranger().ask("Ping", "k1") == {"type": "Pong", "id": "k1"}


@pytest.mark.parametrize(
    "frame",
    [
        ("Publish", {"queue": "q", "payload": 1}),
        ("Subscribe", {"queue": "q"}),
        ("Unsubscribe", {"queue": "q"}),
        ("CreateQueue", {"queue": "q"}),
        ("QueueInfo", {"queue": "q"}),
        ("ListQueues", {}),
        ("AdminListUsers", {}),
        ("Ack", {}),
    ],
    ids=lambda frame: frame[0],
)
async def test_a_frame_before_connect_is_refused_and_connect_may_follow(wire, frame) -> None:
    async with room(wire) as r:
        a = r.stranger()
        kind, members = frame
        code, _ = await a.refused(kind, "early", **members)
        assert code == "NOT_AUTHENTICATED"
        assert not r.engine.queues
        assert (await a.connect())["type"] == "ConnectAck"


async def test_s_010_a_second_connect_is_welcome_and_keeps_subscriptions(wire: Wire) -> None:
    async with room(wire) as r:
        a, b = await r.many(2)
        await a.subscribe("q")
        assert (await a.ask("Connect", "c2"))["type"] == "ConnectAck"
        await b.publish("q", "m1")
        assert await a.delivered() == ["m1"]


async def test_s_011_a_failed_login_leaves_the_old_identity(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        alice = await r.user("alice", **{"a.*": ["Publish"]})
        code, _ = await alice.refused("Connect", "c", headers=WRONG)
        assert code == "AUTH_FAILED"
        await alice.publish("a.x", "m")
        code, _ = await alice.refused("Publish", "n", queue="b", payload=1)
        assert code == "NOT_AUTHORIZED"


async def test_s_012_the_sixth_wrong_login_ends_the_connection(wire: Wire) -> None:
    async with room(wire, login_limit=5, **TOKEN) as r:
        a = r.stranger()
        for _ in range(5):
            code, _ = await a.refused("Connect", "c", headers={"authToken": "no"})
            assert code == "AUTH_FAILED"
        assert a.alive
        a.send("Connect", "c", headers={"authToken": "no"})
        await a.closed()


async def test_s_012_an_address_that_fails_often_is_answered_slowly(wire: Wire) -> None:
    async with room(wire, login_limit=5, **TOKEN) as r:
        wrong = {"authToken": "no"}
        for _ in range(4):
            a = r.stranger()
            for _ in range(5):
                a.send("Connect", "c", headers=wrong)
            await r.pass_time(1)
        slowed, other = r.stranger(), r.stranger(address="10.0.0.2")
        for guest in (slowed, other):
            guest.send("Connect", "c", headers=wrong)
        await r.settle()
        assert len(other.read()) == 1
        assert not slowed.read()
        await r.pass_time(accounts.SLOWED)
        await slowed.expect("Error", "c", errorCode="AUTH_FAILED", errorMessage="*")


async def test_s_013_a_silent_peer_of_the_broker_port_is_cut_after_ten_seconds() -> None:
    async with room(Wire.JSON, max_connections=1) as r:
        silent = Guest(r, Wire.JSON, greets=True)
        await r.pass_time(9)
        assert silent.alive
        await r.pass_time(2)
        assert not silent.alive
        assert not r.server.connections


async def test_s_014_where_nobody_has_to_prove_anything_credentials_are_ignored(wire) -> None:
    async with room(wire) as r:
        said = {"authToken": "whatever", "authUsername": "x", "authPassword": "y"}
        assert (await r.stranger().connect(**said))["type"] == "ConnectAck"
