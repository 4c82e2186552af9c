"""The short way of a request: from bytes to the command and back, past every framework.

Most requests of a program are plain: a method, a path of a command, a length, a body. They are
answered here, at a fraction of what they cost otherwise; whatever is not plain is left to the long
way, which gives the same answers. What stands before a body is read by the same strict parser there
and here, and once only as long as a client repeats it.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httptools

from tandemq.commands.call import Pushed, PushedMany
from tandemq.commands.table import Command, HttpRoute, Permission
from tandemq.model.errors import RateLimited, ShuttingDown, TandemqError
from tandemq.model.outcome import Late, Reply
from tandemq.server.guests import Guest
from tandemq.server.http import jsontext
from tandemq.server.http.face import Face, in_http, shown, status_of
from tandemq.server.http.merge import merged, segment
from tandemq.server.http.plain import plain_push
from tandemq.wires.bunqueue.session import late_reply

if TYPE_CHECKING:
    from tandemq.server.http.line import Line

LONGEST_HEAD: Final = 8 << 10  # bytes that are kept to be recognised
SMALL: Final = 1 << 16  # bytes of an answer that a client that reads takes at once
LARGEST: Final = 4 << 20  # bytes of a body; a larger one takes the long way
NOT_HERE: Final = -1
PLAIN: Final = frozenset(
    (b"host", b"user-agent", b"accept", b"accept-encoding", b"accept-language", b"content-type",
     b"content-length", b"authorization", b"cache-control", b"connection", b"x-forwarded-for",
     b"x-forwarded-proto", b"x-real-ip", b"traceparent", b"tracestate", b"x-request-id")
)  # fmt: skip

_status_lines = {s.value: f"HTTP/1.1 {s.value} {s.phrase}\r\n".encode() for s in HTTPStatus}


class Plan(NamedTuple):
    """What stands before a body, once it is understood."""

    row: Command
    route: HttpRoute
    params: dict[str, str]  # as they are meant
    query: str
    length: int  # of the body
    token: str | None
    origin: str
    is_push: bool  # and nothing stands in the query


class Express(Guest):
    """The requests of one connection that take the short way, one at a time."""

    def __init__(self, face: Face, line: Line) -> None:
        peer = line.client
        title = f"{peer[0]}:{peer[1]}" if peer else "an HTTP client"
        origin = face.origins.of({"client": peer, "headers": ()})
        super().__init__(face.runtime, title, trusted=True, origin=origin, transport=line.transport)
        self.session = self
        self.need = 0  # bytes of which a request consists that has not come as a whole
        self._face, self._line = face, line
        self._head = b""
        self._plan: Plan | None = None
        self._served: tuple[Plan, dict[str, Any]] | None = None  # what is to be answered

    # -- requests ------------------------------------------------------------------------------

    @property
    def unanswered(self) -> bool:
        """A request waits for its answer."""
        return self._served is not None

    def take(self, data: bytes) -> int:
        """Serve the request that ``data`` begins with; return how many bytes it has.

        0 says that it is not there as a whole, ``NOT_HERE`` that it has to take the long way.
        """
        known = self._head and data.startswith(self._head)
        plan = self._plan if known else self._understood(data)
        if plan is None or not self._admitted(plan):
            return NOT_HERE
        begin = len(self._head)
        size = begin + plan.length
        if len(data) < size:
            self.need = size
            return 0
        self._serve(plan, data[begin:size])
        return size

    def _understood(self, data: bytes) -> Plan | None:
        end = data.find(b"\r\n\r\n", 0, LONGEST_HEAD) + 4
        self._head, self._plan = b"", None
        if end < 4:
            return None
        head = data[:end]
        plan = self._read(_Head.of(head))
        if plan is not None:
            self._head, self._plan = head, plan
        return plan

    def _read(self, head: _Head | None) -> Plan | None:
        """Return what a head asks for, if it is plain."""
        if head is None or not head.plain:
            return None
        path, _, query = head.target.partition("?")
        found = self._face.commands.find(head.method, path)
        if found is None:
            return None
        row, route, params = found
        length = int(head.values.get(b"content-length", b"0"))
        if length > self._face.settings.max_frame_bytes:
            return None
        given = head.values.get(b"authorization", b"").decode("latin-1")
        scope = {"client": self._line.client, "headers": head.headers}
        token = given.removeprefix("Bearer ") or None
        origin = self._face.origins.of(scope)
        try:
            params = {name: segment(raw) for name, raw in params.items()}
        except TandemqError:
            return None
        is_push = row.name == "PUSH" and not query
        return Plan(row, route, params, query, length, token, origin, is_push)

    def _admitted(self, plan: Plan) -> bool:
        """Whether whoever asks is nobody in particular, and may do everything.

        What a user may do can change while a request waits, so users take the long way.
        """
        accounts = self.runtime.accounts
        return accounts.open or (plan.token is not None and accounts.tokens.accepts(plan.token))

    def _serve(self, plan: Plan, body: bytes) -> None:
        fields: dict[str, Any] = {}
        self._served = plan, fields
        runtime = self.runtime
        try:
            if self._face.too_many(plan.origin):
                raise RateLimited
            request: Any = None
            if plan.is_push:
                request = plain_push(plan.params["queue"], body)
            if request is None:
                fields = merged(self._face, plan.row, plan.route, plan.query, body, plan.params)
                self._served = plan, fields
                request = self._face.read(plan.row, fields)
        except TandemqError as error:
            runtime.begin()
            runtime.say(self, self.refuse(error, None))  # type: ignore[arg-type]  # it is one
            return
        runtime.received(self, [request])  # type: ignore[arg-type]

    # -- answers, as a session gives them ------------------------------------------------------

    def answer(self, reply: Any, _: Any) -> bytes:
        """Return the good answer of a request."""
        kind = type(reply)
        if kind is Pushed:
            body = b'{"ok":true,"id":%b}' % jsontext.written(reply.id)
            return b"%b%d\r\n\r\n%b" % (self._face.good, len(body), body)
        told: Any
        if kind is PushedMany:
            told = {"ok": True, "ids": reply.ids}
        elif reply is None:
            told = {"ok": True}
        else:
            told = shown(reply)
            assert self._served is not None, "it was asked for"
            plan, fields = self._served
            if (after := self._face.after(plan.row)) is not None:
                told = after(told, fields, self.call)
        return self._written(200, told)

    def refuse(self, error: BaseException, _: Any) -> bytes:
        """Return the answer that tells of an error."""
        refused = 400 if self._served is None else self._served[0].route.refused
        return self._written(status_of(error, refused), {"ok": False, "error": in_http(error)})

    def late(self, effect: Reply | Late) -> tuple[bytes, Any]:
        """Return the answer of a request that had waited."""
        req, reply = late_reply(effect)
        refused = isinstance(reply, TandemqError)
        return (self.refuse if refused else self.answer)(reply, req), req

    def _written(self, status: int, told: Any) -> bytes:
        body = jsontext.written(told)
        return b"%b%bcontent-length: %d\r\n\r\n%b" % (
            _status_lines[status], self._line.common, len(body), body,
        )  # fmt: skip

    # -- for the runtime -----------------------------------------------------------------------

    @property
    def kept_bytes(self) -> int:
        """About what is kept for it: answers that are not read, a request that is not whole."""
        transport: Any = self.transport
        return int(transport.get_write_buffer_size()) + self._line.unfinished

    def flush(self) -> None:
        """Write the answer; the next request may begin."""
        out: Any = self.out
        self.out = []
        self.owed = 0
        if self._served is not None and self._served[0].row.permission is Permission.SUBSCRIBE:
            self.keep()
        self._served = None
        transport: Any = self.transport
        if out and not transport.is_closing():
            data = out[0] if len(out) == 1 else b"".join(out)
            transport.write(data)
            if len(data) > SMALL:
                self.runtime.crowd.grew(len(data))
        self._line.answered()

    def close(self) -> None:
        """The server stops, or who asks may not stay: say so, and hang up when nothing goes on."""
        if self._served is not None and not self.out:
            self.out.append(self.refuse(ShuttingDown(), None))  # type: ignore[arg-type]
        self.flush()
        self._line.shutdown()


class _Head:
    """What a strict parser finds before a body."""

    def __init__(self) -> None:
        self.target = ""
        self.method = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.values: dict[bytes, bytes] = {}
        self.plain = False
        self._url = b""

    @classmethod
    def of(cls, head: bytes) -> _Head | None:
        """Read a head; None is one that cannot be read."""
        found = cls()
        parser = httptools.HttpRequestParser(found)
        try:
            parser.feed_data(head)
            found.target = found._url.decode("ascii")
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, UnicodeDecodeError):
            return None
        found.method = parser.get_method().decode("ascii")
        found.plain = (
            parser.get_http_version() == "1.1"
            and parser.should_keep_alive()
            and found.target.startswith("/")
            and "#" not in found.target
            and len(found.values) == len(found.headers)
            and b"host" in found.values
            and found.values.keys() <= PLAIN
            and _bounded(found.values.get(b"content-length", b"0"))
        )
        return found

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self.headers.append((name, value))
        self.values[name] = value


def _bounded(length: bytes) -> bool:
    return length.isdigit() and len(length) < 10 and int(length) <= LARGEST
