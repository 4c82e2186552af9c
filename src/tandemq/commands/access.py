"""Hello, Auth and Ping: who talks to whom."""

from __future__ import annotations

from typing import Any

from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.model.errors import BadRequest

PROTOCOL = 3
CAPABILITIES = ("pipelining", "separate-job-name")
SERVER, COMPATIBLE_WITH = "bunqueue", "2.9.5"  # clients choose what they may send by these


class Hello(Request, tag="Hello"):
    """Greet the server; what a client says of itself changes nothing."""


class Auth(Request, tag="Auth"):
    """Prove who is asking."""

    token: Any = None
    user: Any = None  # ours: a name and a password instead
    password: Any = None


class Ping(Request, tag="Ping"):
    """Ask for a sign of life."""


@command(Permission.OPEN, keeps=False, http=None)
def hello(req: Hello, call: Call) -> dict[str, Any]:
    """Return the protocol version and the capabilities of the server."""
    return {
        "protocolVersion": PROTOCOL,
        "capabilities": CAPABILITIES,
        "server": SERVER,
        "version": COMPATIBLE_WITH,
    }


@command(Permission.ANYBODY, keeps=False, http=None)
def auth(req: Auth, call: Call) -> Any:
    """Prove by a token, or by user and password, who asks; a wrong one takes nothing away."""
    accounts, caller = call.host.accounts, call.caller
    if req.user is not None and req.token is None:
        if not isinstance(req.user, str) or not isinstance(req.password, str):
            raise BadRequest("user and password must be strings")
        return accounts.by_password(caller, req.req_id, req.user, req.password, None)
    token = str(req.token) if isinstance(req.token, (int, float)) else req.token
    if not isinstance(token, str):
        raise BadRequest("token must be a string")
    return accounts.by_token(caller, req.req_id, token, None)


@command(Permission.OPEN, keeps=False, http="GET /ping")
def ping(req: Ping, call: Call) -> Data:
    """Return a sign of life with the server's time in ms."""
    return Data({"pong": True, "time": float(call.now)})
