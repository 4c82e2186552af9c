"""Connect, Disconnect and Ping of the broker's wires: who comes, who goes, who is still there."""

from __future__ import annotations

from typing import Any

from tandemq.commands.call import SILENCE, Call, Silence
from tandemq.commands.table import BROKER, BrokerRequest, Permission, command


class Connect(BrokerRequest, tag="Connect"):
    """Say who is asking."""

    token: str | None = None
    username: str | None = None
    password: str | None = None


class Disconnect(BrokerRequest, tag="Disconnect"):
    """Go; nothing is answered."""


class Ping(BrokerRequest, tag="Ping"):
    """Ask for a sign of life."""


@command(Permission.OPEN, keeps=False, table=BROKER)
def connect(req: Connect, call: Call) -> Any:
    """Prove who is there, where that has to be proven; refused, a caller stays who it was."""
    call.caller.trusted = True
    return None


@command(Permission.OPEN, keeps=False, table=BROKER)
def disconnect(req: Disconnect, call: Call) -> Silence:
    """Take leave: what is held goes back uncharged."""
    call.caller.leave()
    return SILENCE


@command(Permission.OPEN, keeps=False, table=BROKER)
def ping(req: Ping, call: Call) -> None:
    """Give a sign of life."""
