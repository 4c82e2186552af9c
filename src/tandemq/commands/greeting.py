"""Connect, Disconnect and Ping of the broker's wires: who comes, who goes, who is still there."""

from __future__ import annotations

from typing import Any

from tandemq.commands.call import SILENCE, Call, Silence
from tandemq.commands.table import BROKER, BrokerRequest, Permission, command
from tandemq.model.errors import CredentialsRequired

NO_TOKEN = "Authentication token is required."
NO_PASSWORD = "Username and password are required."


class Connect(BrokerRequest, tag="Connect"):
    """Say who is asking."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


class Disconnect(BrokerRequest, tag="Disconnect"):
    """Go; nothing is answered."""


class Ping(BrokerRequest, tag="Ping"):
    """Ask for a sign of life."""


@command(Permission.ANYBODY, keeps=False, table=BROKER)
def connect(req: Connect, call: Call) -> Any:
    """Let the caller be whom it names; refused, it stays who it was.

    A token is one of the server or of a user; with users a name and a password go first. Where
    nobody has to prove anything all of it is ignored.

    Raises:
        CredentialsRequired, BadCredentials, BadPassword, Busy, Overloaded
    """
    accounts, caller, req_id = call.host.accounts, call.caller, req.req_id
    if accounts.open:
        caller.trusted = True
        return True
    if len(call.engine.users):
        if req.username and req.password:
            return accounts.by_password(caller, req_id, req.username, req.password, True)
        if req.username or req.password or not req.token:
            raise CredentialsRequired(NO_PASSWORD)
    if not req.token:
        raise CredentialsRequired(NO_TOKEN)
    return accounts.by_token(caller, req_id, req.token, True)


@command(Permission.OPEN, keeps=False, table=BROKER)
def disconnect(req: Disconnect, call: Call) -> Silence:
    """Take leave: what is held goes back uncharged."""
    call.caller.leave()
    return SILENCE


@command(Permission.ANYBODY, keeps=False, table=BROKER)
def ping(req: Ping, call: Call) -> None:
    """Give a sign of life."""
