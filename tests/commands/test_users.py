"""The broker's commands about users."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.commands.desk import NOW, Desk

from tandemq.commands import users as rows
from tandemq.commands.call import LATER, Call
from tandemq.commands.table import BROKER, BY_REQUEST, Request
from tandemq.commands.users import PASSWORD_LENGTH
from tandemq.engine import users
from tandemq.model.errors import (
    BadPayload,
    Forbidden,
    NotAuthorized,
    TandemqError,
    UnknownCommand,
    UserExists,
    UserNotFound,
)
from tandemq.model.permission import Operation

ADMIN = {name: row for name, row in BROKER.items() if name.startswith("Admin")}
each = pytest.mark.parametrize("name", ADMIN)

NEEDS = {
    "AdminCreateUser": ("username", "password"),
    "AdminDeleteUser": ("username",),
    "AdminChangePassword": ("username", "newPassword"),
    "AdminGrantPermission": ("username", "queuePattern", "operations"),
    "AdminRevokePermission": ("username", "queuePattern"),
    "AdminGetUserPermissions": ("username",),
}
each_with_payload = pytest.mark.parametrize("name", NEEDS)
RIGHT: dict[str, Any] = {
    "username": "bob",
    "password": "p",
    "newPassword": "p",
    "queuePattern": "*",
    "operations": ["Publish"],
}


class Office:
    """A superuser, a user, and a counter for the commands about them."""

    def __init__(self, *, empty: bool = False) -> None:
        self.desk = Desk()
        self.engine = self.desk.engine
        self.accounts = self.desk.host.accounts
        if not empty:
            users.create(self.engine, "root", "h", NOW - 5000, superuser=True)
            users.create(self.engine, "bob", "h", NOW)
        self.engine.take()

    def call(self, user: str | None, trusted: bool) -> Call:
        caller = self.desk.caller(1)
        caller.user, caller.trusted = user, trusted
        return Call(self.engine, self.desk.host, caller, NOW)

    def ask(self, name: str, payload: Any = None, *, user: str | None = None) -> Any:
        """Ask as a user, or as somebody who may do everything; the late answer, if it is one."""
        row = ADMIN[name]
        request: Request = row.request(payload=payload, req_id="r")  # type: ignore[call-arg]
        reply = row.run(request, self.call(user, user is None))
        if reply is not LATER:
            return reply
        (effect,) = self.engine.take().effects
        assert (effect.conn, effect.req) == (1, "r")
        if isinstance(effect.reply, TandemqError):
            raise effect.reply
        return effect.reply


def right(name: str, **changes: Any) -> dict[str, Any]:
    given = {part: RIGHT[part] for part in NEEDS[name]}
    return {**given, **changes}


# -- payloads --------------------------------------------------------------------------------------


@each_with_payload
@pytest.mark.parametrize("payload", [None, 5, "x", [], ["username"], True, 1.5, b"x"])
def test_a_payload_that_is_no_object_is_refused_and_the_members_are_named(
    name: str, payload: Any
) -> None:
    with pytest.raises(BadPayload) as caught:
        Office().ask(name, payload)
    assert str(caught.value) == f"Payload required: {{ {', '.join(NEEDS[name])} }}."


@each_with_payload
@pytest.mark.parametrize(
    "wrong", ["missing", None, "", 5, 1.5, True, [], ["x"], {}, b"x"], ids=repr
)
def test_a_member_that_is_missing_empty_or_no_text_is_refused(name: str, wrong: Any) -> None:
    office = Office()
    *others, last = NEEDS[name]
    comma = ", and" if len(others) > 1 else " and"
    says = f"{', '.join(others)}{comma} {last} are required." if others else f"{last} is required."
    for part in NEEDS[name]:
        payload = right(name, **{part: wrong})
        if wrong == "missing":
            del payload[part]
        if part == "operations" and isinstance(wrong, list):
            continue
        with pytest.raises(BadPayload) as caught:
            office.ask(name, payload)
        assert str(caught.value) == says
    assert office.engine.quiet


@each_with_payload
def test_names_of_members_respect_letter_case_and_others_are_ignored(name: str) -> None:
    office = Office()
    with pytest.raises(BadPayload):
        office.ask(name, {part.upper(): value for part, value in right(name).items()})
    fresh = {"username": "new"} if name == "AdminCreateUser" else {}
    office.ask(name, {**right(name, **fresh), "surplus": [], "": None})


@pytest.mark.parametrize("asked", [[], ["fly"], [None, 5, ["Publish"]], ["*"], [""]])
def test_a_grant_needs_an_operation_that_exists(asked: list[Any]) -> None:
    with pytest.raises(BadPayload, match=r"^No valid operations specified\.$"):
        Office().ask("AdminGrantPermission", right("AdminGrantPermission", operations=asked))


def test_a_pattern_of_257_characters_is_refused() -> None:
    payload = right("AdminGrantPermission", queuePattern="x" * 257)
    with pytest.raises(BadPayload, match=r"queuePattern exceeds maximum length \(256\)"):
        Office().ask("AdminGrantPermission", payload)


@pytest.mark.parametrize(
    "name", ["bad user", "bad/user", "bad@user", "x" * 65, "bad name!", "zoë", "bob\n"]
)
def test_a_bad_user_name_is_refused_in_these_words(name: str) -> None:
    with pytest.raises(BadPayload) as caught:
        Office().ask("AdminCreateUser", {"username": name, "password": "x"})
    assert str(caught.value) == (
        "Username must be 1-64 characters: alphanumeric, hyphens, underscores, dots."
    )


@pytest.mark.parametrize("name", ["AdminCreateUser", "AdminChangePassword"])
def test_a_password_is_bounded(name: str) -> None:
    office = Office()
    part, user = NEEDS[name][1], "new" if name == "AdminCreateUser" else "bob"
    office.ask(name, {"username": user, part: "x" * PASSWORD_LENGTH})
    other = "other" if name == "AdminCreateUser" else "bob"
    with pytest.raises(BadPayload, match="password exceeds maximum length"):
        office.ask(name, {"username": other, part: "x" * (PASSWORD_LENGTH + 1)})


# -- who may ---------------------------------------------------------------------------------------


@each
def test_without_users_these_commands_do_not_exist(name: str) -> None:
    with pytest.raises(UnknownCommand, match=f"^Unknown command type: {name}$"):
        Office(empty=True).ask(name, right(name) if name in NEEDS else None)


OWN: list[tuple[str, str]] = [
    ("AdminChangePassword", "You may only change your own password."),
    ("AdminGetUserPermissions", "You may only view your own permissions."),
]


@pytest.mark.parametrize(("name", "says"), OWN)
@pytest.mark.parametrize("other", ["root", "Bob", "BOB", "ghost", "bob "])
def test_a_user_may_look_after_itself_only_whatever_the_letter_case(
    name: str, says: str, other: str
) -> None:
    office = Office()
    office.ask(name, right(name), user="bob")
    before = office.engine.users.listed()
    with pytest.raises(NotAuthorized) as caught:
        office.ask(name, right(name, username=other), user="bob")
    assert str(caught.value) == says
    assert office.engine.users.listed() == before


# -- what they do ----------------------------------------------------------------------------------


def test_users_are_created_and_listed_in_seconds() -> None:
    office = Office()
    assert office.ask("AdminCreateUser", {"username": "al", "password": "p"}) == {"username": "al"}
    assert office.engine.users.find("al").password == "hash of p"
    assert office.ask("AdminListUsers") == [
        {"username": "root", "isSuperuser": True, "createdAt": (NOW - 5000) // 1000},
        {"username": "al", "isSuperuser": False, "createdAt": NOW // 1000},
        {"username": "bob", "isSuperuser": False, "createdAt": NOW // 1000},
    ]


def test_a_user_that_exists_is_refused_before_anything_is_hashed() -> None:
    office = Office()
    with pytest.raises(UserExists, match="User 'bob' already exists"):
        office.ask("AdminCreateUser", {"username": "bob", "password": "p"})
    assert office.engine.quiet


def test_a_user_that_came_into_being_meanwhile_is_not_overwritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    office = Office()
    later: list[Callable[[str, int], Any]] = []

    def hashed(caller: Any, req: Any, password: str, then: Any) -> Any:
        later.append(then)
        return LATER

    monkeypatch.setattr(office.accounts, "hashed", hashed)
    for password in ("first", "second"):
        request = rows.AdminCreateUser(payload={"username": "al", "password": password})
        BY_REQUEST[type(request)].run(request, office.call(None, True))
    assert later[0]("first", NOW) == {"username": "al"}
    with pytest.raises(UserExists):
        later[1]("second", NOW)
    assert office.engine.users.find("al").password == "first"


def test_a_deleted_user_is_gone_and_its_connections_are_looked_at() -> None:
    office = Office()
    assert office.ask("AdminDeleteUser", {"username": "bob"}) == {"username": "bob"}
    assert office.engine.users.get("bob") is None
    assert office.accounts.changes == [("bob", None)]


@pytest.mark.parametrize(
    ("name", "user", "error", "says"),
    [
        ("AdminDeleteUser", "root", Forbidden, "Cannot delete a superuser account."),
        ("AdminDeleteUser", "ghost", UserNotFound, "User 'ghost' not found."),
        ("AdminDeleteUser", "Bob", UserNotFound, "User 'Bob' not found."),
        ("AdminChangePassword", "ghost", UserNotFound, "User 'ghost' not found."),
        ("AdminGrantPermission", "ghost", UserNotFound, "User 'ghost' not found."),
    ],
)
def test_what_cannot_be_done_to_a_user(
    name: str, user: str, error: type[TandemqError], says: str
) -> None:
    office = Office()
    with pytest.raises(error) as caught:
        office.ask(name, right(name, username=user))
    assert (type(caught.value), str(caught.value)) == (error, says)
    assert office.engine.quiet
    assert office.accounts.changes == []


def test_a_changed_password_spares_the_connection_that_changed_it() -> None:
    office = Office()
    payload = right("AdminChangePassword")
    assert office.ask("AdminChangePassword", payload, user="bob") == {"username": "bob"}
    assert office.engine.users.find("bob").password == "hash of p"
    assert office.accounts.changes == [("bob", office.desk.caller(1))]


def test_a_grant_answers_what_it_took_and_replaces_what_the_pattern_allowed() -> None:
    office = Office()
    asked = ["publish", "Nonsense", "Subscribe", 5, "PUBLISH"]
    payload = {"username": "bob", "queuePattern": "e.*", "operations": asked}
    told = {"username": "bob", "queuePattern": "e.*", "operations": ["Publish", "Subscribe"]}
    assert office.ask("AdminGrantPermission", payload) == told
    office.ask("AdminGrantPermission", {**payload, "operations": ["ListQueues"]})
    assert office.engine.users.allowed("bob", "e.x") == {Operation.LIST_QUEUES}
    assert office.accounts.changes == [("bob", None)] * 2


def test_a_revoke_succeeds_also_where_nothing_was_granted() -> None:
    office = Office()
    office.ask("AdminGrantPermission", right("AdminGrantPermission"))
    for user, pattern in (("bob", "*"), ("bob", "nothing"), ("ghost", "*")):
        payload = {"username": user, "queuePattern": pattern}
        assert office.ask("AdminRevokePermission", payload) == payload
    assert not office.engine.users.allowed("bob", "q")
    assert office.accounts.changes == [("bob", None)] * 2


def test_permissions_are_told_by_pattern_in_the_order_of_their_grants() -> None:
    office = Office()
    for pattern, held in (("orders.*", ["Subscribe", "Publish"]), ("own", ["PurgeQueue"])):
        payload = {"username": "bob", "queuePattern": pattern, "operations": held}
        office.ask("AdminGrantPermission", payload)
    told = [
        {"queuePattern": "orders.*", "operations": ["Subscribe", "Publish"]},
        {"queuePattern": "own", "operations": ["PurgeQueue"]},
    ]
    assert office.ask("AdminGetUserPermissions", {"username": "bob"}) == told
    assert office.ask("AdminGetUserPermissions", {"username": "bob"}, user="bob") == told
    assert office.ask("AdminGetUserPermissions", {"username": "ghost"}) == []
