"""The job wire's commands about users and tokens."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import pytest
from tests.commands.desk import NOW, WAYS, Answer, Desk, packed, shown

from tandemq.commands.users import PASSWORD_LENGTH
from tandemq.engine import users
from tandemq.model.permission import Operation


class Office(Desk):
    """A desk of a server with a superuser and a user."""

    def __init__(self, way: str) -> None:
        super().__init__(way)
        users.create(self.engine, "root", "h", NOW - 5000, superuser=True)
        users.create(self.engine, "bob", "h", NOW)
        self.engine.take()

    def ask(self, cmd: str, conn: int = 1, **fields: Any) -> Answer:
        return asked(self, cmd, **fields)


def asked(desk: Desk, cmd: str, **fields: Any) -> Answer:
    """The answer to a command, also when it comes as an effect."""
    body = desk.hand_in(packed(cmd, **fields))
    if body:
        return shown(body)
    ((_, answer),) = desk.told()
    return answer


@pytest.fixture(params=WAYS)
def office(request: pytest.FixtureRequest) -> Office:
    return Office(request.param)


def test_a_user_is_made_listed_and_deleted(office: Office) -> None:
    made = office.ask("CreateUser", name="eve", password="secret")
    assert made["data"] == {"name": "eve", "superuser": False}
    assert office.engine.users.find("eve").password == "hash of secret"
    listed = office.ask("ListUsers")["data"]["users"]
    assert [user["name"] for user in listed] == ["root", "bob", "eve"]
    assert listed[0] == {
        "name": "root",
        "superuser": True,
        "createdAt": float(NOW - 5000),
        "permissions": [],
        "tokens": 0,
    }
    assert office.ask("DeleteUser", name="eve")["ok"]
    assert office.engine.users.get("eve") is None
    assert office.host.accounts.changes == [("eve", None)]


def test_another_password_ends_the_other_connections(office: Office) -> None:
    assert office.ask("SetPassword", name="bob", password="new")["ok"]
    assert office.engine.users.find("bob").password == "hash of new"
    ((name, spared),) = office.host.accounts.changes
    assert name == "bob"
    assert spared is not None


def test_grants_hold_until_they_are_revoked(office: Office) -> None:
    said = office.ask("GrantPermission", name="bob", pattern="mail.*", operations=["publish"])
    assert said["data"]["operations"] == ["Publish"]
    assert office.engine.users.allowed("bob", "mail.a") == {Operation.PUBLISH}
    assert office.ask("RevokePermission", name="bob", pattern="mail.*")["data"]["revoked"] is True
    assert office.ask("RevokePermission", name="bob", pattern="mail.*")["data"]["revoked"] is False
    assert not office.engine.users.allowed("bob", "mail.a")
    assert len(office.host.accounts.changes) == 2


def test_without_operations_everything_is_granted(office: Office) -> None:
    office.ask("GrantPermission", name="bob", pattern="*")
    assert office.engine.users.allowed("bob", "any") == set(Operation)


def test_a_token_is_told_once_and_stands_for_its_user(office: Office) -> None:
    made = office.ask("CreateToken", name="bob", note="of the build")["data"]
    digest = sha256(made["token"].encode()).digest()
    assert made["token"].startswith("tq_")
    assert office.engine.users.holder(digest) is office.engine.users.find("bob")
    expected = {"id": made["id"], "name": "bob", "note": "of the build", "createdAt": float(NOW)}
    assert office.ask("ListTokens")["data"]["tokens"] == [expected]
    assert office.ask("ListTokens", name="root")["data"]["tokens"] == []
    assert office.ask("RevokeToken", name="bob", id=made["id"])["ok"]
    assert office.engine.users.holder(digest) is None
    assert office.host.accounts.changes == [("bob", None)]


def test_two_tokens_are_never_equal(office: Office) -> None:
    made = {office.ask("CreateToken", name="bob")["data"]["token"] for _ in range(20)}
    assert len(made) == 20


@pytest.mark.parametrize(
    ("command", "fields", "says"),
    [
        ("CreateUser", {"name": "bob", "password": "p"}, "already exists"),
        ("CreateUser", {"name": "a b", "password": "p"}, "Username must be"),
        ("CreateUser", {"password": "p"}, "name must be a text"),
        ("CreateUser", {"name": "eve"}, "password must be a text"),
        ("CreateUser", {"name": "eve", "password": "p" * (PASSWORD_LENGTH + 1)}, "maximum length"),
        ("DeleteUser", {"name": "root"}, "Cannot delete a superuser"),
        ("DeleteUser", {"name": "ghost"}, "not found"),
        ("SetPassword", {"name": "ghost", "password": "p"}, "not found"),
        ("GrantPermission", {"name": "ghost", "pattern": "*"}, "not found"),
        ("GrantPermission", {"name": "bob", "pattern": "*", "operations": []}, "must be some of"),
        ("GrantPermission", {"name": "bob", "pattern": "*", "operations": ["Fly"]}, "some of"),
        ("GrantPermission", {"name": "bob", "pattern": "*", "operations": "Publish"}, "a list of"),
        ("GrantPermission", {"name": "bob", "pattern": "*" * 257}, "maximum length"),
        ("RevokePermission", {"name": "ghost", "pattern": "*"}, "not found"),
        ("CreateToken", {"name": "ghost"}, "not found"),
        ("CreateToken", {"name": "bob", "note": "n" * 257}, "at most 256"),
        ("ListTokens", {"name": "ghost"}, "not found"),
        ("RevokeToken", {"name": "bob", "id": "none"}, "Token not found"),
    ],
)
def test_what_cannot_be_done_is_told(
    office: Office, command: str, fields: dict[str, Any], says: str
) -> None:
    said: Answer = office.ask(command, **fields)
    assert said["ok"] is False
    assert says in said["error"]
    assert office.host.accounts.changes == []


def test_a_server_that_is_open_is_not_closed_by_whoever_comes_first(office: Office) -> None:
    office.host.accounts.open = True
    said = office.ask("CreateUser", name="eve", password="p", superuser=True)
    assert "open to everybody" in said["error"]
    assert office.engine.users.get("eve") is None


def test_the_first_user_has_to_be_a_superuser() -> None:
    desk = Desk()
    refused = asked(desk, "CreateUser", name="eve", password="p")
    assert "has to be a superuser" in refused["error"]
    assert asked(desk, "CreateUser", name="eve", password="p", superuser=True)["ok"]
    assert desk.engine.users.find("eve").superuser
