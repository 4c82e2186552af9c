"""The broker's commands about users.

Their requests carry one value, which may be anything: what it lacks is told, not cut off
(vibemq-wire 2.8).
"""

from __future__ import annotations

from typing import Any

from tandemq.commands.call import Call, Later
from tandemq.commands.table import BROKER, BrokerRequest, Permission, command
from tandemq.engine import users
from tandemq.model.errors import (
    BadPayload,
    NotAuthorized,
    UnknownCommand,
)
from tandemq.model.permission import operations

PASSWORD_LENGTH = 1_024  # characters


class Administration(BrokerRequest):
    """What these commands have in common."""

    payload: Any = None


class AdminCreateUser(Administration, tag="AdminCreateUser"):
    """Add a user."""


class AdminDeleteUser(Administration, tag="AdminDeleteUser"):
    """Remove a user."""


class AdminChangePassword(Administration, tag="AdminChangePassword"):
    """Give a user another password."""


class AdminGrantPermission(Administration, tag="AdminGrantPermission"):
    """Allow a user something with the queues of a pattern."""


class AdminRevokePermission(Administration, tag="AdminRevokePermission"):
    """Take back what was granted for a pattern."""


class AdminListUsers(Administration, tag="AdminListUsers"):
    """Ask who there is."""


class AdminGetUserPermissions(Administration, tag="AdminGetUserPermissions"):
    """Ask what a user may do."""


# -- users ---------------------------------------------------------------------------------------


@command(Permission.SUPERUSER, table=BROKER)
def admin_create_user(req: AdminCreateUser, call: Call) -> Later:
    """Add a user, who may do nothing yet."""
    _users_exist(req, call)
    name, password = _texts(req.payload, "username", "password")
    users.check_new(call.engine, name)

    def create(made: str, now: int) -> dict[str, str]:
        users.create(call.engine, name, made, now)
        return {"username": name}

    return call.host.accounts.hashed(call.caller, req.req_id, fitting(password), create)


@command(Permission.SUPERUSER, table=BROKER)
def admin_delete_user(req: AdminDeleteUser, call: Call) -> dict[str, str]:
    """Remove a user who is no superuser; its connections end."""
    _users_exist(req, call)
    (name,) = _texts(req.payload, "username")
    users.delete(call.engine, name)
    call.host.accounts.changed(name)
    return {"username": name}


@command(Permission.OPEN, table=BROKER)
def admin_change_password(req: AdminChangePassword, call: Call) -> Later:
    """Give a user, or the caller, another password; the user's other connections end."""
    _users_exist(req, call)
    name, password = _texts(req.payload, "username", "newPassword")
    if not _may_look_after(call, name):
        raise NotAuthorized("You may only change your own password.")
    call.engine.users.find(name)

    def change(made: str, now: int) -> dict[str, str]:
        users.change_password(call.engine, name, made)
        call.host.accounts.changed(name, spare=call.caller)
        return {"username": name}

    return call.host.accounts.hashed(call.caller, req.req_id, fitting(password), change)


@command(Permission.SUPERUSER, table=BROKER)
def admin_grant_permission(req: AdminGrantPermission, call: Call) -> dict[str, Any]:
    """Allow a user these operations, and no others, with the queues that fit a pattern."""
    _users_exist(req, call)
    names = ("username", "queuePattern", "operations")
    payload = _payload(req.payload, names)
    name, pattern = (_text(payload, names, part) for part in names[:2])
    asked = payload.get("operations")
    if not isinstance(asked, list):
        raise BadPayload(_required(names))
    held = operations(asked)
    if not held:
        raise BadPayload("No valid operations specified.")
    users.grant(call.engine, name, pattern, held)
    call.host.accounts.changed(name)
    return {"username": name, "queuePattern": pattern, "operations": list(held)}


@command(Permission.SUPERUSER, table=BROKER)
def admin_revoke_permission(req: AdminRevokePermission, call: Call) -> dict[str, str]:
    """Take back what was granted for a pattern, if anything was."""
    _users_exist(req, call)
    name, pattern = _texts(req.payload, "username", "queuePattern")
    if users.revoke(call.engine, name, pattern):
        call.host.accounts.changed(name)
    return {"username": name, "queuePattern": pattern}


@command(Permission.SUPERUSER, table=BROKER)
def admin_list_users(req: AdminListUsers, call: Call) -> list[dict[str, Any]]:
    """Return all users, the oldest first."""
    _users_exist(req, call)
    return [
        {"username": u.name, "isSuperuser": u.superuser, "createdAt": u.created // 1000}
        for u in call.engine.users.listed()
    ]


@command(Permission.OPEN, table=BROKER)
def admin_get_user_permissions(req: AdminGetUserPermissions, call: Call) -> list[dict[str, Any]]:
    """Return what was granted to a user, or to the caller, by pattern."""
    _users_exist(req, call)
    (name,) = _texts(req.payload, "username")
    if not _may_look_after(call, name):
        raise NotAuthorized("You may only view your own permissions.")
    user = call.engine.users.get(name)
    return [
        {"queuePattern": pattern, "operations": list(held)}
        for pattern, held in (user.entries.items() if user is not None else ())
    ]


def _users_exist(req: BrokerRequest, call: Call) -> None:
    if not len(call.engine.users):
        raise UnknownCommand(f"Unknown command type: {req.__struct_config__.tag}")


def _may_look_after(call: Call, name: str) -> bool:
    """Whether the caller may read and change an account: a superuser any, others their own."""
    return call.caller.trusted or call.caller.user == name


# -- what they carry -----------------------------------------------------------------------------


def _texts(payload: Any, *names: str) -> list[str]:
    """Return texts that have to be there, in the order of their names.

    Raises:
        BadPayload
    """
    fields = _payload(payload, names)
    return [_text(fields, names, name) for name in names]


def _payload(payload: Any, names: tuple[str, ...]) -> dict[str, Any]:
    if not isinstance(payload, dict):
        raise BadPayload(f"Payload required: {{ {', '.join(names)} }}.")
    return payload


def _text(fields: dict[str, Any], names: tuple[str, ...], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise BadPayload(_required(names))
    return value


def _required(names: tuple[str, ...]) -> str:
    *others, last = names
    if not others:
        return f"{last} is required."
    comma = "," if len(others) > 1 else ""
    return f"{', '.join(others)}{comma} and {last} are required."


def fitting(password: str) -> str:
    """Take a password that is not too long to be hashed.

    Raises:
        BadPayload
    """
    if len(password) > PASSWORD_LENGTH:
        raise BadPayload(f"password exceeds maximum length ({PASSWORD_LENGTH}).")
    return password
