"""Users, what they may do and their tokens, for those who administer a server (ours).

The broker's wires have commands of their own about users, with the reference's words; these serve
the job wire, HTTP and the command line, and know tokens as well (ruling 22). They also make the
first user of a server that has none, who has to be a superuser.
"""

from __future__ import annotations

import secrets
from hashlib import sha256
from typing import Any

from tandemq.commands.answers import whole
from tandemq.commands.call import Call, Data, Later
from tandemq.commands.table import Permission, Request, command
from tandemq.commands.users import fitting
from tandemq.engine import users
from tandemq.engine.users import Token, User
from tandemq.model.errors import BadRequest, Forbidden
from tandemq.model.permission import Operation, operations
from tandemq.model.size import texts_bytes

SHOWN = 200  # bytes of a user or a token that is shown, besides its texts
NOTE_LENGTH = 256  # characters
SECRET_BYTES = 32
OPEN = "This server is open to everybody: start it with a token or a superuser to make users"
PREFIX = "tq_"  # of tokens, so that scanners of source code know one when they see it


class CreateUser(Request, tag="CreateUser"):
    """Add a user."""

    name: Any = None
    password: Any = None
    superuser: Any = False


class DeleteUser(Request, tag="DeleteUser"):
    """Remove a user."""

    name: Any = None


class SetPassword(Request, tag="SetPassword"):
    """Give a user another password."""

    name: Any = None
    password: Any = None


class GrantPermission(Request, tag="GrantPermission"):
    """Allow a user something with the queues that fit a pattern."""

    name: Any = None
    pattern: Any = None
    operations: Any = None  # absent: all


class RevokePermission(Request, tag="RevokePermission"):
    """Take back what was granted for a pattern."""

    name: Any = None
    pattern: Any = None


class ListUsers(Request, tag="ListUsers"):
    """Ask who there is."""


class CreateToken(Request, tag="CreateToken"):
    """Ask for a secret that stands for a user."""

    name: Any = None
    note: Any = None  # what it is for


class ListTokens(Request, tag="ListTokens"):
    """Ask which tokens stand for users, or for one of them."""

    name: Any = None


class RevokeToken(Request, tag="RevokeToken"):
    """Let a token stand for nobody any more."""

    name: Any = None
    id: Any = None


@command(Permission.SUPERUSER, http="POST /users body")
def create_user(req: CreateUser, call: Call) -> Later:
    """Add a user, who may do nothing yet, or a superuser; the first user has to be one."""
    if call.host.accounts.open:  # the first credential closes a server: that is its owner's to say
        raise Forbidden(OPEN)
    name, password = _text(req.name, "name"), fitting(_text(req.password, "password"))
    superuser = req.superuser is True
    if not superuser and not len(call.engine.users):
        raise BadRequest("The first user has to be a superuser, or nobody could make others")
    users.check_new(call.engine, name)

    def create(made: str, now: int) -> Data:
        users.create(call.engine, name, made, now, superuser=superuser)
        return Data({"name": name, "superuser": superuser})

    return call.host.accounts.hashed(call.caller, req.req_id, password, create)


@command(Permission.SUPERUSER, http="DELETE /users/{name}")
def delete_user(req: DeleteUser, call: Call) -> Data:
    """Remove a user who is no superuser; its connections end."""
    name = _text(req.name, "name")
    users.delete(call.engine, name)
    call.host.accounts.changed(name)
    return Data({"name": name})


@command(Permission.SUPERUSER, http="PUT /users/{name}/password body")
def set_password(req: SetPassword, call: Call) -> Later:
    """Give a user another password; the user's other connections end."""
    name, password = _text(req.name, "name"), fitting(_text(req.password, "password"))
    call.engine.users.find(name)

    def change(made: str, now: int) -> Data:
        users.change_password(call.engine, name, made)
        call.host.accounts.changed(name, spare=call.caller)
        return Data({"name": name})

    return call.host.accounts.hashed(call.caller, req.req_id, password, change)


@command(Permission.SUPERUSER, http="POST /users/{name}/permissions body")
def grant_permission(req: GrantPermission, call: Call) -> Data:
    """Allow a user these operations, and no others, with the queues that fit a pattern."""
    name, pattern = _text(req.name, "name"), _text(req.pattern, "pattern")
    held = tuple(Operation) if req.operations is None else _operations(req.operations)
    users.grant(call.engine, name, pattern, held)
    call.host.accounts.changed(name)
    return Data({"name": name, "pattern": pattern, "operations": list(held)})


@command(Permission.SUPERUSER, http="DELETE /users/{name}/permissions")
def revoke_permission(req: RevokePermission, call: Call) -> Data:
    """Take back what was granted to a user for a pattern; say whether there was anything."""
    name, pattern = _text(req.name, "name"), _text(req.pattern, "pattern")
    call.engine.users.find(name)
    revoked = users.revoke(call.engine, name, pattern)
    if revoked:
        call.host.accounts.changed(name)
    return Data({"name": name, "pattern": pattern, "revoked": revoked})


@command(Permission.SUPERUSER, http="GET /users")
def list_users(req: ListUsers, call: Call) -> Data:
    """Return all users with what was granted to each, the oldest first."""
    found = whole(call.engine.users.listed(), _user_size)
    return Data({"users": list(map(_user, found))})


@command(Permission.SUPERUSER, http="POST /users/{name}/tokens")
def create_token(req: CreateToken, call: Call) -> Data:
    """Make a token for a user; the secret is told now and never again."""
    name = _text(req.name, "name")
    note = "" if req.note is None else _text(req.note, "note", NOTE_LENGTH)
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    digest = sha256(secret.encode()).digest()
    token = users.create_token(call.engine, name, digest, call.now, note)
    return Data({"token": secret, **_token(name, token)})


@command(Permission.SUPERUSER, http=("GET /users/{name}/tokens", "GET /tokens"))
def list_tokens(req: ListTokens, call: Call) -> Data:
    """Return the tokens of a user, or of all, without their secrets."""
    registry = call.engine.users
    asked = registry.listed() if req.name is None else [registry.find(_text(req.name, "name"))]
    found = ((user.name, token) for user in asked for token in user.tokens)
    shown = whole(found, lambda each: SHOWN + texts_bytes((each[0], each[1].note)))
    return Data({"tokens": [_token(name, token) for name, token in shown]})


@command(Permission.SUPERUSER, http="DELETE /users/{name}/tokens/{id}")
def revoke_token(req: RevokeToken, call: Call) -> Data:
    """Let a token stand for nobody any more; connections that came by it end."""
    name, id = _text(req.name, "name"), _text(req.id, "id")
    users.revoke_token(call.engine, name, id)
    call.host.accounts.changed(name)
    return Data({"id": id, "name": name})


# -- fields ---------------------------------------------------------------------------------------


def _text(value: Any, field: str, most: int | None = None) -> str:
    """Take a text that has to be there.

    Raises:
        BadRequest
    """
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{field} must be a text that is not empty")
    if most is not None and len(value) > most:
        raise BadRequest(f"{field} must be a text of at most {most} characters")
    return value


def _operations(value: Any) -> tuple[Operation, ...]:
    known = ", ".join(Operation)
    if not isinstance(value, list):
        raise BadRequest(f"operations must be a list of: {known}")
    held = operations(value)
    if not held or len(held) != len(set(map(_lower, value))):
        raise BadRequest(f"operations must be some of: {known}")
    return held


def _lower(value: Any) -> str:
    return value.lower() if isinstance(value, str) else ""


def _user(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "superuser": user.superuser,
        "createdAt": float(user.created),
        "permissions": [
            {"pattern": pattern, "operations": list(held)} for pattern, held in user.entries.items()
        ],
        "tokens": len(user.tokens),
    }


def _user_size(user: User) -> int:
    return SHOWN + sum(SHOWN + texts_bytes((pattern,)) for pattern in user.entries)


def _token(name: str, token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "name": name,
        "note": token.note,
        "createdAt": float(token.created),
    }
