"""Logins, what they give, and what becomes of connections when their user changes."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from tests.server.administration import FAST, ROOT, Clerk, clerk, enter, with_user
from tests.server.offline import PATIENCE, GatedStore, Peer, serving, turns, until

from tandemq.commands.access import Hello
from tandemq.commands.control import ListQueues
from tandemq.commands.push import Push
from tandemq.commands.query import Count
from tandemq.commands.table import BROKER
from tandemq.commands.users import (
    AdminChangePassword,
    AdminCreateUser,
    AdminDeleteUser,
    AdminGetUserPermissions,
    AdminGrantPermission,
    AdminListUsers,
)
from tandemq.config import BadSetting
from tandemq.engine import users
from tandemq.server import accounts as module
from tandemq.server import passwords
from tandemq.server.passwords import Passwords
from tandemq.server.runtime import Runtime
from tandemq.stores.base import StoreFailed
from tandemq.stores.memory import MemoryStore

BAD_PASSWORD = ("BadPassword", "Invalid username or password.")
BAD_TOKEN = ("BadCredentials", "Invalid token")
DENIED = "AccessDenied: Access denied."
ALL = ["Publish", "Subscribe", "GetQueueInfo", "ListQueues", "PurgeQueue"]


@pytest.fixture
def hashes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The passwords that were compared in a thread, as they come."""
    seen: list[str] = []
    verify = Passwords._verify

    def counted(self: Passwords, stored: str, password: str) -> bool:
        seen.append(password)
        return verify(self, stored, password)

    monkeypatch.setattr(Passwords, "_verify", counted)
    return seen


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Holds every hash until it is set."""
    opened = threading.Event()
    for name in ("_verify", "made"):
        do: Callable[..., Any] = getattr(Passwords, name)

        def held(*given: Any, do: Callable[..., Any] = do) -> Any:
            assert opened.wait(PATIENCE), "nobody opened the gate"
            return do(*given)

        monkeypatch.setattr(Passwords, name, held)
    yield opened
    opened.set()


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Moments of the loop at which an answer was put off; no answer is put off for long."""
    put_off: list[float] = []
    slowed = Runtime.__init__

    def init(self: Runtime, *given: Any) -> None:
        slowed(self, *given)
        call_later = self.loop.call_later

        def noted(delay: float, *what: Any) -> asyncio.TimerHandle:
            if delay == module.SLOWED:
                put_off.append(self.loop.time())
                delay = 0.0
            return call_later(delay, *what)

        self.loop.call_later = noted  # type: ignore[method-assign]

    monkeypatch.setattr(Runtime, "__init__", init)
    return put_off


# -- the first superuser ---------------------------------------------------------------------------


async def test_the_first_start_makes_the_superuser_and_later_ones_ignore_the_settings() -> None:
    store = MemoryStore()
    store.persistent = True
    async with serving(store, **ROOT) as server:
        assert [u.name for u in server.engine.users.listed()] == ["root"]
        made = server.engine.users.find("root")
        assert made.superuser
        assert "root-pass" not in made.password
    later: list[dict[str, Any]] = [
        {},
        {"superuser": "root"},
        {"superuser": "other", "superuser_password": "x"},
        {"superuser_password_file": "/nowhere"},
    ]
    for settings in later:
        async with serving(store, **settings, **FAST) as server:
            assert server.engine.users.listed() == [made]
            await clerk(server, "root", "root-pass")


async def test_the_superuser_is_stored_before_anybody_can_connect() -> None:
    store = GatedStore()
    async with serving(store, **ROOT):
        assert store.batches[0].facts.keys() == {"user/root"}
        assert store.batches[0].sync


async def test_a_server_whose_superuser_cannot_be_stored_does_not_start() -> None:
    store = GatedStore()
    store.fail()
    with pytest.raises(StoreFailed):
        async with serving(store, **ROOT):
            pass


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"superuser": "root"}, "'root' needs a password, and none is given"),
        ({"superuser": "root", "superuser_password_file": "/nowhere"}, "cannot be read"),
        ({"superuser": "bad name", "superuser_password": "x"}, "Username must be 1-64"),
        ({"superuser": "root", "superuser_password": "x" * 1025}, "longer than 1024"),
    ],
)
async def test_a_first_start_without_what_it_takes_fails_clearly(
    settings: dict[str, Any], says: str
) -> None:
    with pytest.raises(BadSetting, match=says) as caught:
        async with serving(**settings, **FAST):
            pass
    assert "xx" not in str(caught.value)


@pytest.mark.parametrize("text", ["secret", "secret\n", "secret\r\n"])
async def test_the_password_may_come_from_a_file(text: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(text.encode())
    async with serving(superuser_password_file=str(file), **FAST) as server:
        await clerk(server, "vibemq", "secret")


async def test_an_empty_file_holds_no_password(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("\n")
    with pytest.raises(BadSetting, match="and it is empty"):
        async with serving(superuser="root", superuser_password_file=str(file), **FAST):
            pass


# -- who gets in -----------------------------------------------------------------------------------


async def test_any_credential_closes_the_server_and_none_leaves_it_open() -> None:
    for settings in ({"tokens": ("t",)}, ROOT):
        async with serving(**settings) as server:
            assert (await Peer(server).ask("Ping"))["error"] == "Not authenticated"
            assert await Clerk(server).refused(Hello()) == "Unauthenticated: "
    async with serving() as server:
        await Peer(server).do("Ping")
        stray = {"authToken": "x", "authUsername": "y", "authPassword": "z"}
        assert await Clerk(server).do(enter(stray)) == "welcome"


async def test_a_superuser_may_do_everything_on_both_wires() -> None:
    async with serving(**ROOT) as server:
        root = await clerk(server, "root", "root-pass")
        assert len(await root.do(AdminListUsers())) == 1
        peer = Peer(server)
        await peer.do("Auth", user="root", password="root-pass")
        await peer.do("Stats")
        await peer.push("anything")


async def test_a_token_of_the_server_is_a_superuser_beside_users() -> None:
    async with serving(tokens=("tok",), **ROOT) as server:
        peer, other = Peer(server), Clerk(server)
        await peer.do("Auth", token="tok")
        await peer.do("Stats")
        await other.do(enter({"authToken": "tok"}))
        payload = {"username": "root", "newPassword": "new"}
        await other.do(AdminChangePassword(payload=payload))
        await clerk(server, "root", "new")


@pytest.mark.parametrize(
    ("user", "password"),
    [("root", "Root-pass"), ("Root", "root-pass"), ("nobody", "root-pass"), ("root", "x" * 2000)],
)
async def test_a_wrong_user_and_a_wrong_password_are_refused_alike(
    user: str, password: str
) -> None:
    async with serving(**ROOT) as server:
        stranger = Clerk(server)
        assert await stranger.enter(user, password) == BAD_PASSWORD
        assert await stranger.refused(Hello()) == "Unauthenticated: "
        assert await stranger.enter("root", "root-pass") == ("ok", "welcome")
        peer = Peer(server)
        told = await peer.ask("Auth", user=user, password=password)
        assert told["error"] == "Invalid username or password"


async def test_an_unknown_user_costs_one_hash_like_a_wrong_password(hashes: list[str]) -> None:
    async with serving(login_limit=0, **ROOT) as server:
        stranger = Clerk(server)
        for user in ("nobody", "root", "nobody", "root"):
            assert await stranger.enter(user, "wrong") == BAD_PASSWORD
        assert hashes == ["wrong"] * 4
        for _ in range(2):
            assert await stranger.enter("nobody", "root-pass") == BAD_PASSWORD
        assert hashes[4:] == ["root-pass"] * 2, "also where it is another's password"
        assert [len(found) for found in server.accounts._failures._moments.values()] == [6]


async def test_without_users_a_password_costs_nothing(hashes: list[str]) -> None:
    async with serving(tokens=("t",)) as server:
        peer = Peer(server)
        told = await peer.ask("Auth", user="root", password="x")
        assert told["error"] == "Invalid username or password"
        assert hashes == []


async def test_a_user_s_own_token_gives_the_user_s_rights_and_no_more() -> None:
    async with serving(**ROOT) as server:
        await with_user(server, q=["Publish"])
        digest = sha256(b"tq_secret").digest()
        token = users.create_token(server.engine, "bob", digest, 1)
        peer, other = Peer(server), Clerk(server)
        await peer.do("Auth", token="tq_secret")
        await peer.push("q")
        assert "Publish is not granted" in (await peer.ask("PUSH", queue="r", data=1))["error"]
        assert await other.ask(enter({"authToken": "tq_secret"})) == ("ok", "welcome")
        assert await other.ask(enter({"authToken": "tq_Secret"})) == BAD_TOKEN
        users.revoke_token(server.engine, "bob", token.id)
        server.accounts.changed("bob")
        await peer.closed()
        await until(lambda: not other.alive, "the end of the other")
        assert (await Peer(server).ask("Auth", token="tq_secret"))["error"] == "Invalid token"


async def test_a_superuser_s_token_may_do_everything() -> None:
    async with serving(**ROOT) as server:
        users.create_token(server.engine, "root", sha256(b"tq_root").digest(), 1)
        peer = Peer(server)
        await peer.do("Auth", token="tq_root")
        await peer.do("Stats")


async def test_what_follows_a_login_in_the_same_write_waits_for_it(gate: threading.Event) -> None:
    gate.set()
    async with serving(**ROOT) as server:
        gate.clear()
        peer, other = Peer(server), Clerk(server)
        login = {"cmd": "Auth", "user": "root", "password": "root-pass"}
        first = peer.send_all([login, {"cmd": "Ping"}, {"cmd": "Count", "queue": "q"}])
        headers = {"authUsername": "root", "authPassword": "root-pass"}
        second = other.send(enter(headers), Hello())
        later = peer.send("Ping")
        await turns()
        assert not peer.has(first[1])
        assert not other.answers
        gate.set()
        for req in (*first, later):
            assert (await peer.answer(req))["ok"]
        assert peer.order == [*first, later]
        await other.answer(second[1])
        assert list(other.answers) == second


async def test_a_login_of_whoever_has_left_gives_nobody_anything(gate: threading.Event) -> None:
    gate.set()
    async with serving(**ROOT) as server:
        gate.clear()
        peer = Peer(server)
        peer.send("Auth", user="root", password="root-pass")
        peer.leave()
        await turns()
        gate.set()
        await until(lambda: not server.accounts.passwords._running, "the end of the hash")
        await turns()
        assert not server.accounts._sessions


async def test_a_user_deleted_while_it_logs_in_does_not_get_in(gate: threading.Event) -> None:
    gate.set()
    async with serving(**ROOT) as server:
        await with_user(server)
        gate.clear()
        late = Clerk(server)
        (req,) = late.send(enter({"authUsername": "bob", "authPassword": "bob"}))
        await turns()
        users.delete(server.engine, "bob")
        gate.set()
        assert await late.answer(req) == BAD_PASSWORD


async def test_logins_without_number_stop_nobody_else(gate: threading.Event) -> None:
    """A flood from many connections waits; others are served, and what is too much is refused."""
    gate.set()
    async with serving(login_limit=0, **ROOT) as server:
        root = await clerk(server, "root", "root-pass", "10.0.0.9")
        gate.clear()
        flood = [Clerk(server) for _ in range(passwords.WAITING_OF_ONE + 100)]
        for each in flood:
            each.send(enter({"authUsername": "root", "authPassword": "guess"}))
        await turns()
        refused = [each for each in flood if each.answers]
        assert len(refused) == 100 - passwords.AT_A_TIME
        assert {each.answers["r1"][0] for each in refused} == {"Busy"}
        assert await root.do(Push(queue="q", data=b"\x01")) is None
        (req,) = root.send(AdminCreateUser(payload={"username": "al", "password": "p"}))
        gate.set()
        assert await root.answer(req) == ("ok", {"username": "al"})
        await until(lambda: all(each.answers for each in flood), "all answers")
        assert await refused[0].enter("root", "root-pass") == ("ok", "welcome")


# -- too many failures -----------------------------------------------------------------------------


async def test_the_failure_after_those_that_are_allowed_ends_the_connection() -> None:
    async with serving(login_limit=5, **ROOT) as server:
        stranger, other = Clerk(server), await clerk(server, "root", "root-pass")
        for _ in range(5):
            assert await stranger.enter("root", "x") == BAD_PASSWORD
        assert stranger.alive
        told = await stranger.enter("root", "x")
        assert told == ("Overloaded", "Too many failed logins (5); connect again")
        assert not stranger.alive
        assert other.alive


async def test_tokens_and_passwords_count_together() -> None:
    async with serving(login_limit=3, tokens=("t",), **ROOT) as server:
        peer = Peer(server)
        await peer.ask("Auth", user="root", password="x")
        for token in ("x", "y"):
            await peer.ask("Auth", token=token)
        assert "Too many failed logins" in (await peer.ask("Auth", token="z"))["error"]
        await peer.closed()


async def test_an_address_that_fails_too_often_is_answered_slowly(no_waiting: list[float]) -> None:
    async with serving(tokens=("t",), **ROOT) as server:
        for i in range(19):
            assert await Clerk(server).enter("root", "x") == BAD_PASSWORD
            assert not no_waiting, i
        assert await Clerk(server).ask(enter({"authToken": "x"})) == BAD_TOKEN
        assert len(no_waiting) == 1
        assert await Clerk(server).enter("root", "x") == BAD_PASSWORD
        await clerk(server, "root", "root-pass")
        await Clerk(server).do(enter({"authToken": "t"}))
        assert len(no_waiting) == 4, "right ones wait too"
        await clerk(server, "root", "root-pass", "10.0.0.2")
        assert await Clerk(server, "10.0.0.2").enter("root", "x") == BAD_PASSWORD
        assert len(no_waiting) == 4, "others do not"


async def test_whoever_is_slowed_down_loses_no_request(no_waiting: list[float]) -> None:
    async with serving(tokens=("t",)) as server:
        for _ in range(20):
            await Clerk(server).ask(enter({"authToken": "x"}))
        late = Clerk(server)
        sent = late.send(enter({"authToken": "t"}), Hello(), ListQueues())
        assert not late.answers
        for req in sent:
            assert (await late.answer(req))[0] == "ok"
        assert list(late.answers) == sent
        assert no_waiting


async def test_without_a_limit_nobody_is_slowed_down(no_waiting: list[float]) -> None:
    async with serving(tokens=("t",), login_limit=0) as server:
        stranger = Clerk(server)
        for _ in range(50):
            assert await stranger.ask(enter({"authToken": "x"})) == BAD_TOKEN
        assert not no_waiting


async def test_failed_logins_are_logged_without_names_and_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG):
        async with serving(tokens=("tok-secret",), **ROOT) as server:
            await with_user(server)
            stranger = Clerk(server, "10.0.0.7")
            await stranger.enter("my-password-by-mistake", "hunter2")
            await stranger.ask(enter({"authToken": "tok-wrong"}))
    assert "a login from 10.0.0.7 failed" in caplog.text
    for secret in ("my-password", "hunter2", "tok-", "root-pass", "argon2id"):
        assert secret not in caplog.text


# -- who is who ------------------------------------------------------------------------------------


async def test_a_failed_login_takes_nothing_away() -> None:
    async with serving(**ROOT) as server:
        await with_user(server, q=["Publish"])
        bob = await clerk(server, "bob", "bob")
        assert await bob.enter("root", "wrong") == BAD_PASSWORD
        assert await bob.ask(enter()) == (
            "CredentialsRequired", "Username and password are required.",
        )  # fmt: skip
        await bob.do(Push(queue="q", data=b"\x01"))
        assert await bob.refused(Push(queue="r", data=b"\x01")) == DENIED


async def test_another_login_changes_who_it_is_in_both_directions() -> None:
    async with serving(**ROOT) as server:
        await with_user(server)
        one = await clerk(server, "bob", "bob")
        assert await one.enter("root", "root-pass") == ("ok", "welcome")
        await one.do(AdminListUsers())
        assert await one.enter("bob", "bob") == ("ok", "welcome")
        assert await one.refused(AdminListUsers()) == "NotAuthorized: Superuser access required."
        assert [list(found) for found in server.accounts._sessions.values()]


async def test_users_that_differ_in_case_are_different_people() -> None:
    """S-164: the name in one's own letter case is one's own, any other is somebody else's."""
    async with serving(**ROOT) as server:
        await with_user(server, "Root")
        thief = await clerk(server, "Root", "Root")
        payload = {"username": "root", "newPassword": "owned"}
        told = await thief.refused(AdminChangePassword(payload=payload))
        assert told == "NotAuthorized: You may only change your own password."
        told = await thief.refused(AdminGetUserPermissions(payload={"username": "root"}))
        assert told == "NotAuthorized: You may only view your own permissions."
        await clerk(server, "root", "root-pass")


@pytest.mark.parametrize(
    "request_",
    [
        AdminCreateUser(payload={"username": "eve", "password": "x"}),
        AdminDeleteUser(payload={"username": "bob"}),
        AdminGrantPermission(payload={}),
        AdminListUsers(),
    ],
    ids=lambda request: type(request).__name__,
)
async def test_who_is_no_superuser_may_not_administrate(request_: Any) -> None:
    async with serving(**ROOT) as server:
        await with_user(server)
        bob = await clerk(server, "bob", "bob")
        assert await bob.refused(request_) == "NotAuthorized: Superuser access required."


# -- what changes while they are connected ---------------------------------------------------------


async def test_grants_and_revokes_hold_at_once_for_who_is_there() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server)
        bob, peer = await clerk(server, "bob", "bob"), Peer(server)
        await peer.do("Auth", user="bob", password="bob")
        await peer.do("Ping")
        granted = {"username": "bob", "queuePattern": "e.*"}
        assert await bob.refused(Push(queue="e.x", data=b"\x01")) == DENIED
        await root.administer("GrantPermission", **granted, operations=["publish"])
        await bob.do(Push(queue="e.x", data=b"\x01"))
        await peer.push("e.x")
        await root.administer("GrantPermission", **granted, operations=["Subscribe"])
        assert await bob.refused(Push(queue="e.x", data=b"\x01")) == DENIED
        await peer.pull("e.x")
        await root.administer("RevokePermission", **granted)
        assert "Subscribe is not granted" in (await peer.ask("PULL", queue="e.x"))["error"]
        assert bob.alive


async def test_what_a_user_waits_for_ends_with_the_right_to_it() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server, **{"e.*": ALL})
        bob = Peer(server)
        await bob.do("Auth", user="bob", password="bob")
        id = await bob.push("e.y")
        pull = bob.send("PULL", queue="e.x", owner="w", timeout=60_000)
        watch = bob.send("WaitJob", id=id, timeout=60_000)
        await bob.do("SubscribeEvents", queue="e.y")
        await bob.do("Ping")
        kept = bob.send("PULL", queue="f", owner="w", timeout=60_000)
        assert (await bob.answer(kept))["ok"] is False
        await root.administer("RevokePermission", username="bob", queuePattern="e.*")
        assert await bob.answer(pull) == {"ok": True, "job": None, "token": None}
        assert await bob.answer(watch) == {"ok": True, "completed": False}
        await root.do(Push(queue="e.x", data=b"\x01"))
        await root.do(Push(queue="e.y", data=b"\x01"))
        await turns()
        assert bob.read_others() == []
        assert not server.engine.listening
        assert (await root.do(Count(queue="e.x"))) == {"count": 1}


async def test_what_a_user_still_may_goes_on_waiting() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server, **{"a.*": ALL, "b.*": ALL})
        bob = Peer(server)
        await bob.do("Auth", user="bob", password="bob")
        pull = bob.send("PULL", queue="a.x", owner="w", timeout=60_000)
        await bob.do("SubscribeEvents", queue="a.x")
        await root.administer("RevokePermission", username="bob", queuePattern="b.*")
        await root.do(Push(queue="a.x", data=b"\x01"))
        assert (await bob.answer(pull))["job"]
        await until(lambda: bob.read_others(), "the events")


async def test_who_becomes_another_keeps_only_what_that_one_may() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server, a=ALL)
        peer = Peer(server)
        await peer.do("Auth", user="root", password="root-pass")
        pulls = [peer.send("PULL", queue=q, owner="w", timeout=60_000) for q in ("a", "b")]
        await peer.do("SubscribeEvents", queue="b")
        await peer.do("Auth", user="bob", password="bob")
        assert (await peer.answer(pulls[1]))["job"] is None
        await root.do(Push(queue="b", data=b"\x01"))
        await root.do(Push(queue="a", data=b"\x01"))
        assert (await peer.answer(pulls[0]))["job"]
        assert peer.read_others() == []


async def test_a_deleted_user_s_connections_end_and_others_do_not() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server, q=ALL)
        await root.administer("CreateUser", username="Bob", password="Bob")
        bob, other = await clerk(server, "bob", "bob"), await clerk(server, "Bob", "Bob")
        peer = Peer(server)
        await peer.do("Auth", user="bob", password="bob")
        await root.administer("DeleteUser", username="bob")
        await peer.closed()
        await until(lambda: not bob.alive, "the end of bob")
        assert other.alive
        assert root.alive
        await turns()
        assert server.accounts._sessions.keys() == {"root", "Bob"}
        assert await Clerk(server).enter("bob", "bob") == BAD_PASSWORD


async def test_jobs_of_a_connection_that_was_ended_go_back_and_nothing_is_charged() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server, q=ALL)
        peer = Peer(server)
        await peer.do("Auth", user="bob", password="bob")
        id = await peer.push("q")
        await peer.pull("q")
        await root.administer("DeleteUser", username="bob")
        await until(lambda: peer.connection.id not in server.connections, "the end")
        m = server.engine.messages[id]
        assert (m.state.name, m.attempts) == ("READY", 0)
        assert m.run is not None
        assert m.run.interruptions == 0


async def test_who_has_to_go_does_nothing_more_however_long_the_last_answer_takes() -> None:
    """Not even what waits in the server, while a peer that does not read keeps the socket open."""
    async with serving(in_flight=1, **ROOT) as server:
        root = await with_user(server)
        peer = Peer(server)
        await peer.do("Auth", user="root", password="root-pass")
        peer.send("PULL", queue="q", owner="w", timeout=60_000)
        peer.send("PUSH", queue="other", data=1)
        peer.transport.close = lambda: setattr(peer.transport, "closing", True)  # type: ignore[method-assign]
        await root.administer("ChangePassword", username="root", newPassword="new")
        await root.do(Push(queue="q", data=b"\x01"))  # makes room in its window
        await turns(20)
        assert peer.transport.closing
        assert "other" not in server.engine.queues
        assert (peer.connection.trusted, peer.connection.user) == (False, None)
        server.lost(peer.connection)


@pytest.mark.parametrize("how", ["it leaves", "it has to go"])
async def test_what_is_being_hashed_for_who_is_gone_is_not_done(
    how: str, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "AT_A_TIME", 1)  # in the order in which they were asked for
    gate.set()
    async with serving(**ROOT) as server:
        root, other = await clerk(server, "root", "root-pass"), Clerk(server)
        await other.enter("root", "root-pass")
        gate.clear()
        if how == "it has to go":
            payload = {"username": "root", "newPassword": "new"}
            root.send(AdminChangePassword(payload=payload))
            other.transport.close = lambda: setattr(other.transport, "closing", True)  # type: ignore[method-assign]
        other.send(AdminCreateUser(payload={"username": "eve", "password": "eve"}))
        await turns()
        if how == "it leaves":
            other.transport.close()
            await turns()
        gate.set()
        await until(lambda: not server.accounts.passwords._running, "the end of the hashes")
        await turns()
        assert [user.name for user in server.engine.users.listed()] == ["root"]
        assert not other.answers.get("r2")
        server.lost(other.connection)


async def test_what_was_sent_before_the_end_is_not_done_after_it() -> None:
    async with serving(in_flight=1, **ROOT) as server:
        root = await with_user(server, q=ALL)
        peer = Peer(server)
        await peer.do("Auth", user="bob", password="bob")
        peer.send("PULL", queue="q", owner="w", timeout=60_000)
        peer.send("PUSH", queue="q", data=1)  # waits for room in the window
        await turns()
        await root.administer("DeleteUser", username="bob")
        peer.send("PUSH", queue="q", data=1)
        await turns(20)
        assert not server.engine.messages


async def test_a_changed_password_ends_the_user_s_other_connections() -> None:
    async with serving(**ROOT) as server:
        root = await with_user(server)
        users.create_token(server.engine, "bob", sha256(b"tok").digest(), 1)
        one, two = await clerk(server, "bob", "bob"), await clerk(server, "bob", "bob")
        three = Peer(server)
        await three.do("Auth", token="tok")
        payload = {"username": "bob", "newPassword": "new"}
        assert await one.do(AdminChangePassword(payload=payload)) == {"username": "bob"}
        await three.closed()
        await until(lambda: not two.alive, "the end of the other")
        assert one.alive
        assert await Clerk(server).enter("bob", "bob") == BAD_PASSWORD
        await clerk(server, "bob", "new")
        await root.administer("ChangePassword", username="bob", newPassword="by root")
        await until(lambda: not one.alive, "the end of all")
        assert root.alive
        await root.administer("ChangePassword", username="root", newPassword="x")
        assert root.alive


async def test_an_answer_to_who_changes_users_waits_until_it_is_kept() -> None:
    store = GatedStore()
    async with serving(store, **ROOT) as server:
        root = await clerk(server, "root", "root-pass")
        store.close_gate()
        (req,) = root.send(AdminCreateUser(payload={"username": "bob", "password": "bob"}))
        await until(lambda: server.engine.users.get("bob"), "bob")
        await turns(20)
        assert req not in root.answers
        store.open_gate()
        assert await root.answer(req) == ("ok", {"username": "bob"})


async def test_what_could_not_be_kept_is_told_and_undone() -> None:
    store = GatedStore()
    async with serving(store, **ROOT) as server:
        root = await with_user(server, q=["Publish"])
        bob = await clerk(server, "bob", "bob")
        before = server.engine.users.listed()
        store.fail()
        changes: list[tuple[str, dict[str, Any]]] = [
            ("AdminCreateUser", {"username": "eve", "password": "x"}),
            ("AdminGrantPermission", {"username": "bob", "queuePattern": "*", "operations": ALL}),
            ("AdminRevokePermission", {"username": "bob", "queuePattern": "q"}),
        ]
        for name, payload in changes:
            request: Any = BROKER[name].request
            told = await root.refused(request(payload=payload))
            assert told.startswith("StorageFailed"), told
            assert server.engine.users.listed() == before
        assert bob.alive
        store.recover()
        await bob.do(Push(queue="q", data=b"\x01"))
        assert await bob.refused(Push(queue="r", data=b"\x01")) == DENIED


async def test_who_came_in_by_what_was_undone_is_out_again() -> None:
    store = GatedStore()
    async with serving(store, **ROOT) as server:
        root = await clerk(server, "root", "root-pass")
        store.close_gate()
        store.fail()
        (req,) = root.send(AdminCreateUser(payload={"username": "eve", "password": "eve"}))
        await until(lambda: server.engine.users.get("eve"), "eve")
        eve = await clerk(server, "eve", "eve")
        store.open_gate()
        assert (await root.answer(req))[0] == "StorageFailed"
        await until(lambda: not eve.alive, "the end of eve")
        assert root.alive


async def test_users_survive_a_restart() -> None:
    store = MemoryStore()
    store.persistent = True
    async with serving(store, **ROOT) as server:
        await with_user(server, q=["Publish"])
    async with serving(store, **FAST) as server:
        bob = await clerk(server, "bob", "bob")
        await bob.do(Push(queue="q", data=b"\x01"))
        assert await bob.refused(Push(queue="r", data=b"\x01")) == DENIED
        assert (await Peer(server).ask("Ping"))["error"] == "Not authenticated"


async def test_connections_that_are_gone_are_not_remembered() -> None:
    async with serving(**ROOT) as server:
        await with_user(server)
        for _ in range(20):
            bob = await clerk(server, "bob", "bob")
            bob.transport.close()
        await turns()
        assert server.accounts._sessions.keys() == {"root"}


async def test_the_usual_request_knows_nothing_of_users() -> None:
    """A connection that may do everything is asked nothing: one look at ``trusted``."""
    async with serving(**ROOT) as server:
        peer = Peer(server)
        await peer.do("Auth", user="root", password="root-pass")
        server.engine.users = None  # type: ignore[assignment]  # whoever looks here fails
        await peer.push("q")
        await peer.pull("q")
