"""The table of commands: one row is one typed request and one function.

The name on the wire is the tag of the request class, which is the first annotation of the
function; permission and documentation hang on the row, so that nothing has to be kept equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from types import EllipsisType
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

import msgspec
from msgspec import Raw, Struct

from tandemq.model.errors import BadRequest
from tandemq.model.permission import Operation

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

UNDEFINED = b"\xd4\x00\x00"  # how the bunqueue wire writes a value that is not there
ABSENT = Raw(UNDEFINED)


class Permission(Enum):
    """The operation that a command is, for whoever may or may not do it (ruling 22)."""

    ANYBODY = "anybody"  # even before a connection has proved who it is
    OPEN = "open"  # needs no more than a proven connection
    PUBLISH = "publish"
    SUBSCRIBE = "subscribe"
    INSPECT = "queue info"
    LIST = "list queues"  # open too: what is listed are the queues that the caller may list
    CONTROL = "control"
    CREATE = "create queue"
    DELETE = "delete queue"
    SUPERUSER = "superuser"

    @property
    def operation(self) -> Operation | None:
        """What has to be granted for the queues that a request concerns, if anything does."""
        return _OPERATIONS.get(self)


_OPERATIONS = {
    Permission.PUBLISH: Operation.PUBLISH,
    Permission.SUBSCRIBE: Operation.SUBSCRIBE,
    Permission.INSPECT: Operation.GET_QUEUE_INFO,
    Permission.LIST: Operation.LIST_QUEUES,
    Permission.CONTROL: Operation.PURGE_QUEUE,
    Permission.CREATE: Operation.CREATE_QUEUE,
    Permission.DELETE: Operation.DELETE_QUEUE,
}


class Request(Struct, tag_field="cmd", rename="camel", kw_only=True):
    """What every request has: an id that its answer repeats, of whatever type the client likes."""

    req_id: Raw = ABSENT

    def opaque(self) -> Iterable[Raw]:
        """Return the users' data it carries, which goes on to other clients as it came."""
        return ()

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        """Return the names of the queues it does something with; None is the whole server.

        Asked only of those who may not do everything. What is named but does not exist concerns
        no queue; a name that is no text is given as it came.
        """
        if hasattr(self, "queue"):
            return (self.queue,)
        return queues_of(engine, (self.id,)) if hasattr(self, "id") else None

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Any:
        """Make a request of a frame that did not fit at once; the text of a refusal names why.

        Raises:
            BadRequest: a field is missing, of the wrong type or out of range.
        """
        try:
            return msgspec.convert(fields, cls, strict=False)
        except msgspec.ValidationError as exc:
            raise BadRequest(f"{fields['cmd']}: {exc}") from exc


class BrokerRequest(Struct, tag_field="type", kw_only=True, gc=False):
    """What every request of a broker's wire has: whatever that needs to find it again."""

    req_id: Any = None

    def concerns(self, engine: Engine) -> Iterable[Any] | None:
        """Return the names of the queues it does something with; None is the whole server."""
        return (self.queue,) if hasattr(self, "queue") else None


def queues_of(engine: Engine, ids: Any) -> Iterable[str]:
    """Return the queues of those messages that exist; what cannot be an id names none."""
    known = engine.messages
    asked = ids if isinstance(ids, (list, tuple)) else ()
    found = (known.get(id) for id in asked if isinstance(id, str))
    return (m.queue for m in found if m is not None)


Together = Callable[[list[Any], Any], list[Any]]
"""``(requests, call) -> replies`` to the first of them, as many as nothing unusual happens to."""


@dataclass(frozen=True, slots=True)
class HttpRoute:
    """Where a command is found over HTTP, written ``METHOD /path/{field} [status] [body]``."""

    method: str
    path: str  # its parameters are fields of the request
    refused: int = 400  # the status of a refusal that has none of its own
    body: bool = False  # there has to be one

    @classmethod
    def parse(cls, text: str) -> HttpRoute:
        method, path, *rest = text.split()
        status = next((int(word) for word in rest if word.isdigit()), 400)
        return cls(method, path, status, "body" in rest)


@dataclass(frozen=True, slots=True)
class Command:
    """One row."""

    name: str
    request: type[Request] | type[BrokerRequest]
    run: Callable[[Any, Any], Any]
    permission: Permission
    keeps: bool  # the answer promises that something is kept, or shows what is not kept yet
    large: frozenset[str]  # fields that hold users' data or many members, so they may be large
    last: bool = False  # its answer comes behind what it has delivered to the same peer
    http: tuple[HttpRoute, ...] = ()
    decided: bool = True  # about HTTP
    together: Together | None = None  # runs several that follow each other

    @property
    def summary(self) -> str:
        return (self.run.__doc__ or "").partition("\n")[0]


COMMANDS: dict[str, Command] = {}  # of the job queue's wire and of HTTP
BROKER: dict[str, Command] = {}  # of the broker's wires
BY_REQUEST: dict[type[Any], Command] = {}
F = TypeVar("F", bound=Callable[..., Any])


def command(
    permission: Permission,
    *,
    keeps: bool = True,
    large: Iterable[str] = (),
    last: bool = False,
    http: str | tuple[str, ...] | EllipsisType | None = ...,
    table: dict[str, Command] | None = None,
) -> Callable[[F], F]:
    """Register a function ``(request, call) -> reply``; its first annotation is the request.

    ``keeps=False`` lets the answer leave before what it grew on is stored: right for leases,
    which a crash may forget, and for figures, which are needed most when nothing can be stored.
    ``large`` names the fields that may take as much as a frame may hold; all others are small.
    ``http`` are its routes, see ``HttpRoute``; None is for what HTTP has no use for, or serves in
    a way of its own. A command of the job queue's wire has to decide that.
    """

    texts = (http,) if isinstance(http, str) else http
    routes = tuple(map(HttpRoute.parse, texts)) if isinstance(texts, tuple) else ()
    decided = http is not ...

    def register(run: F) -> F:
        request = next(iter(get_type_hints(run).values()))
        name = request.__struct_config__.tag
        rows = COMMANDS if table is None else table
        assert name not in rows, f"{name} is registered twice"
        row = Command(
            name, request, run, permission, keeps, frozenset(large), last, routes, decided
        )
        rows[name] = BY_REQUEST[request] = row
        return run

    return register


def variant(run: F) -> F:
    """Register a function for a narrower shape of a command that is in the table already."""
    request = next(iter(get_type_hints(run).values()))
    row = COMMANDS[request.__struct_config__.tag]
    BY_REQUEST[request] = replace(row, request=request, run=run, together=None)
    return run


def together(request: type[Any]) -> Callable[[Together], Together]:
    """Register what runs requests of one type that one peer has sent one behind the other.

    That is a short cut for what is asked by the thousand. It gives what the same requests would
    have come to one by one, raises nothing, and stops before whatever takes a closer look.
    """

    def register(run: Together) -> Together:
        row = BY_REQUEST[request] = replace(BY_REQUEST[request], together=run)
        for rows in (COMMANDS, BROKER):
            if row.name in rows and rows[row.name].request is request:
                rows[row.name] = row
        return run

    return register
