"""Section 12 of the scenarios: users, and what each may do with which queues."""

from __future__ import annotations

from typing import Any

import pytest
from tests.broker.room import ROOT, Guest, Room, grant, room
from tests.server.offline import GatedStore

from tandemq.config import BadSetting
from tandemq.wires.sniff import Wire

DENIED = ("NOT_AUTHORIZED", "Access denied.")
NOT_YOURS = "You may only change your own password."
EVERYTHING = [
    "Publish", "Subscribe", "CreateQueue", "DeleteQueue", "PurgeQueue", "GetQueueInfo",
    "ListQueues",
]  # fmt: skip


async def bob(r: Room) -> Guest:
    return await r.user("bob", **{"orders.*": ["Publish", "Subscribe"]})


async def test_s_150_and_151_publishing_is_granted_by_pattern(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        b = await bob(r)
        await b.publish("orders.new", "m")
        errors = r.counters.errors
        assert await b.refused("Publish", "x1", queue="invoices", payload=1) == DENIED
        assert r.counters.errors == errors + 1
        assert "invoices" not in r.engine.queues


async def test_s_152_who_may_subscribe_may_not_publish(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        reader = await r.user("reader", q=["Subscribe"])
        await reader.subscribe("q")
        assert await reader.refused("Publish", "x", queue="q", payload=1) == DENIED
        writer = await r.user("writer", q=["Publish"])
        await writer.publish("q", "m")
        assert await writer.refused("Subscribe", queue="q") == DENIED
        assert await reader.delivered() == ["m"]


async def test_s_153_entries_add_up(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        u = await r.user("u", **{"a.*": ["Publish"], "*.x": ["Subscribe"]})
        await u.subscribe("a.x")
        await u.publish("a.x", "m")
        assert await u.refused("Subscribe", queue="a.y") == DENIED
        assert await u.refused("Publish", queue="b.x", payload=1) == DENIED


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("orders.*", ["orders.new", "orders.a.b"], ["orders", "ORDERS.NEW", "Orders.new"]),
        ("*", ["q", "orders.new", "X"], []),
        ("q*", ["q", "q1"], ["Q", "xq"]),
        ("a.b", ["a.b"], ["axb", "A.B", "a.b.c"]),
    ],
)
async def test_s_154_patterns(wire, pattern, fitting, others) -> None:
    async with room(wire, **ROOT) as r:
        u = await r.user("u", **{pattern: ["Publish"]})
        for queue in fitting:
            await u.publish(queue, "m")
        for queue in others:
            assert await u.refused("Publish", queue=queue, payload=1) == DENIED


@pytest.mark.parametrize("operation", EVERYTHING)
async def test_s_155_each_command_needs_its_own_operation(wire: Wire, operation: str) -> None:
    needs = {
        "Publish": "Publish", "Subscribe": "Subscribe", "CreateQueue": "CreateQueue",
        "QueueInfo": "GetQueueInfo", "DeleteQueue": "DeleteQueue",
    }  # fmt: skip
    async with room(wire, **ROOT) as r:
        u = await r.user("u", q=[operation])
        for command, needed in needs.items():
            said = await u.ask(command, queue="q")
            assert (said["type"] == "Error") is (needed != operation), said


async def test_s_156_queues_are_listed_for_who_may_list_them(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        admin = await r.admin()
        for queue in ("orders.a", "orders.b", "invoices"):
            await admin.create(queue)
        u = await r.user("u", **{"orders.a": ["ListQueues"], "*": ["Publish"]})
        assert (await u.ask("ListQueues"))["payload"] == ["orders.a"]
        assert len((await admin.ask("ListQueues"))["payload"]) == 3


async def test_s_157_publishing_makes_a_missing_queue(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        b = await bob(r)
        await b.publish("orders.zzz", "m")
        info = await (await r.admin()).info("orders.zzz")
        assert info is not None
        assert (info["messageCount"], info["maxSize"]) == (1, 10_000)


async def test_s_158_and_159_a_user_is_made_once_and_logs_in(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s = await r.admin()
        payload = {"username": "carol", "password": "Secret123"}
        s.send("AdminCreateUser", "a1", payload=payload)
        await s.expect("AdminCreateUser", "a1", payload={"username": "carol"})
        await r.guest(authUsername="carol", authPassword="Secret123")
        refused = await s.refused("AdminCreateUser", "a2", payload={**payload, "password": "x"})
        assert refused == ("USER_EXISTS", "User 'carol' already exists.")


@pytest.mark.parametrize(
    "name", ["bad user", "bad/user", "bad@user", "a" * 65, "é", "a\n", "\u0430dmin", "a\u0301"]
)
async def test_s_160_a_bad_name_is_refused(wire: Wire, name: str) -> None:
    async with room(wire, **ROOT) as r:
        s = await r.admin()
        refused = await s.refused("AdminCreateUser", payload={"username": name, "password": "x"})
        assert refused == (
            "INVALID_PAYLOAD",
            "Username must be 1-64 characters: alphanumeric, hyphens, underscores, dots.",
        )


@pytest.mark.parametrize(
    ("command", "payload"),
    [
        ("AdminListUsers", None),
        ("AdminCreateUser", {"username": "x", "password": "x"}),
        ("AdminDeleteUser", {"username": "eve"}),
        ("AdminGrantPermission", grant("bob", "*", "Publish")),
        ("AdminRevokePermission", {"username": "eve", "queuePattern": "*"}),
    ],
)
async def test_s_161_only_a_superuser_administers(wire, command, payload) -> None:
    async with room(wire, **ROOT) as r:
        b = await bob(r)
        refused = await b.refused(command, "a4", payload=payload)
        assert refused == ("NOT_AUTHORIZED", "Superuser access required.")


async def test_s_162_users_are_deleted_with_their_connections(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, b = await r.admin(), await bob(r)
        await b.subscribe("orders.x")
        await s.publish("orders.x", "m")
        assert await b.delivered() == ["m"]
        refused = await s.refused("AdminDeleteUser", "a5", payload={"username": "admin"})
        assert refused == ("FORBIDDEN", "Cannot delete a superuser account.")
        code, _ = await s.refused("AdminDeleteUser", payload={"username": "ghost"})
        assert code == "USER_NOT_FOUND"
        said = await s.ask("AdminDeleteUser", payload={"username": "bob"})
        assert said["payload"] == {"username": "bob"}
        await b.closed()
        await r.settle()
        assert await s.waiting("orders.x") == 1  # what was held went back
        code, _ = await r.stranger().refused(
            "Connect", "c", headers={"authUsername": "bob", "authPassword": "bob"}
        )
        assert code == "AUTH_FAILED"


async def test_a_user_deleted_while_its_publish_waits_has_published_nothing(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, b = await r.admin(), await bob(r)
        await s.create("orders.x", maxQueueSize=1, overflowStrategy=2)
        await s.publish("orders.x", "m")
        b.send("Publish", "held", queue="orders.x", payload=1)
        await r.settle()
        await s.ask("AdminDeleteUser", payload={"username": "bob"})
        await b.closed()
        await s.subscribe("orders.x")
        assert await s.delivered() == ["m"]


async def test_s_163_everybody_changes_the_own_password_only(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        b, eve = await bob(r), await r.user("eve")
        other = await r.guest(authUsername="bob", authPassword="bob")
        said = await b.ask("AdminChangePassword", payload={"username": "bob", "newPassword": "new"})
        assert said["payload"] == {"username": "bob"}
        await other.closed()
        assert b.alive
        await r.guest(authUsername="bob", authPassword="new")
        refused = await eve.refused(
            "AdminChangePassword", payload={"username": "bob", "newPassword": "owned"}
        )
        assert refused == ("NOT_AUTHORIZED", NOT_YOURS)
        s = await r.admin()
        await s.ask("AdminChangePassword", payload={"username": "bob", "newPassword": "newer"})
        await b.closed()


async def test_s_164_names_that_differ_in_case_are_different_users(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        capital = await r.user("Admin")
        refused = await capital.refused(
            "AdminChangePassword", "a6", payload={"username": "admin", "newPassword": "owned"}
        )
        assert refused == ("NOT_AUTHORIZED", NOT_YOURS)
        refused = await capital.refused("AdminListUsers")
        assert refused[0] == "NOT_AUTHORIZED"


async def test_s_165_a_grant_holds_at_once_and_replaces_the_one_before(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, eve = await r.admin(), await r.user("eve")
        assert await eve.refused("Publish", queue="e.x", payload=1) == DENIED
        payload = grant("eve", "e.*", "publish", "Nonsense", "Subscribe")
        s.send("AdminGrantPermission", "a7", payload=payload)
        told = grant("eve", "e.*", "Publish", "Subscribe")
        await s.expect("AdminGrantPermission", "a7", payload=told)
        await eve.publish("e.x", "m")
        await eve.subscribe("e.x")
        assert await eve.delivered() == ["m"]
        await s.ask("AdminGrantPermission", payload=grant("eve", "e.*", "Publish"))
        await eve.publish("e.x", "n")
        await eve.silence()  # it may subscribe no more
        assert await s.waiting("e.x") == 2


async def test_a_revoked_permission_ends_at_once(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, b = await r.admin(), await bob(r)
        await b.subscribe("orders.x")
        said = await s.ask(
            "AdminRevokePermission", payload={"username": "bob", "queuePattern": "orders.*"}
        )
        assert said["payload"] == {"username": "bob", "queuePattern": "orders.*"}
        assert await b.refused("Publish", queue="orders.x", payload=1) == DENIED
        await s.publish("orders.x", "m")
        await b.silence()


async def test_s_166_a_grant_needs_an_operation(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, _ = await r.admin(), await r.user("eve")
        refused = await s.refused("AdminGrantPermission", "a8", payload=grant("eve", "e.*", "fly"))
        assert refused == ("INVALID_PAYLOAD", "No valid operations specified.")


async def test_s_167_nobody_has_no_permissions(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s = await r.admin()
        s.send("AdminGetUserPermissions", "a9", payload={"username": "ghost"})
        await s.expect("AdminGetUserPermissions", "a9", payload=[])


WRONG: list[Any] = [None, 1, True, [], {}, "", "text", [1]]
MEMBERS = {
    "AdminCreateUser": {"username": "dave", "password": "x"},
    "AdminDeleteUser": {"username": "bob"},
    "AdminChangePassword": {"username": "bob", "newPassword": "x"},
    "AdminGrantPermission": grant("bob", "q", "Publish"),
    "AdminRevokePermission": {"username": "bob", "queuePattern": "q"},
    "AdminGetUserPermissions": {"username": "bob"},
}


@pytest.mark.parametrize("command", MEMBERS)
async def test_s_168_a_payload_of_any_kind_is_answered(wire: Wire, command: str) -> None:
    async with room(wire, **ROOT) as r:
        s, _ = await r.admin(), await bob(r)
        full = MEMBERS[command]
        payloads = [p for p in WRONG if p != {}]
        payloads += [{k: v for k, v in full.items() if k != missing} for missing in full]
        payloads += [{**full, name: bad} for name in full for bad in WRONG if bad != "text"]
        for payload in payloads:
            # The names of operations that are none are passed over; a list without any is refused.
            code, text = await s.refused(command, "a10", payload=payload)
            assert code == "INVALID_PAYLOAD", (payload, code, text)
        said = await s.ask(command, "a10", payload=full)
        assert said["type"] == command, said


@pytest.mark.parametrize("settings", [{}, {"tokens": ("Secret",)}], ids=["open", "token"])
async def test_s_169_without_users_there_is_nothing_to_administer(wire, settings) -> None:
    async with room(wire, **settings) as r:
        a = await r.guest(**({"authToken": "Secret"} if settings else {}))
        refused = await a.refused("AdminListUsers", "a11")
        assert refused == ("UNKNOWN_COMMAND", "Unknown command type: AdminListUsers")


async def test_s_170_a_pattern_has_at_most_256_characters(wire: Wire) -> None:
    async with room(wire, **ROOT) as r:
        s, b = await r.admin(), await bob(r)
        code, _ = await s.refused(
            "AdminGrantPermission", payload=grant("bob", "x" * 257, "Publish")
        )
        assert code == "INVALID_PAYLOAD"
        said = await s.ask("AdminGrantPermission", payload=grant("bob", "x" * 256, "Publish"))
        assert said["type"] == "AdminGrantPermission"
        await b.publish("x" * 256, "m")


async def test_s_171_the_first_start_needs_a_password_and_later_ones_ignore_it(wire) -> None:
    store = GatedStore()
    with pytest.raises(BadSetting, match="needs a password"):
        async with room(wire, store, superuser="admin"):
            pass
    async with room(wire, store, **ROOT) as r:
        await r.admin()
    async with room(wire, store, **{**ROOT, "superuser_password": "another"}) as r:
        await r.admin()  # the first one still holds
    async with room(wire, store) as r:
        assert (await r.stranger().refused("Connect", "c"))[0] == "AUTH_REQUIRED"
