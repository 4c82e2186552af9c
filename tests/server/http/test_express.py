"""The short way and the long way: random requests, each sent to two servers, end in the same.

One server gets them plain, so that they may take the short way; the other gets each with a header
that no plain request has. Times in the answers are left out, what is random is numbered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import closing
from random import Random
from typing import Any

import pytest
from tests.support.server import Server, figure, is_own
from tests.support.web import Web

from tandemq.commands.all import COMMANDS
from tandemq.commands.table import HttpRoute
from tandemq.server.http.schema import fields_of

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")

PLAIN: dict[str, str] = {}
LONG = {"X-Long-Way": "1"}
SEEDS = range(figure("TANDEMQ_TEST_WAYS", short=3, long=100))
REQUESTS = 400  # of one seed
FIGURES = frozenset(("/dashboard", "/storage", "/pulse", "/workers/stats", "/ping"))
OURS = {"password", "url", "timeout"}  # fields that cost time, or leave the machine
RANDOM = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|tq_[\w-]+|[0-9a-f]{32,64}")
TIMES = re.compile(
    rb'\b1[789]\d{11}(\.\d+)?\b|20\d\d-\d\d-\d\dT[\d:.]+Z?|"(uptime|ageMs)":-?\d+|0\.1:\d+'
)

Asked = tuple[str, str, bytes | None, str]


class Requests:
    """What a clumsy program might ask of all routes that there are."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        rows = [(row, route) for row in COMMANDS.values() for route in row.http]
        self._rows = [(row, route) for row, route in rows if route.path not in FIGURES]
        self._popular = [pair for pair in self._rows if pair[0].name in POPULAR]

    def __iter__(self) -> Iterator[Asked]:
        for _ in range(REQUESTS):
            row, route = self._some(self._popular if self._chance(2) else self._rows)
            fields = {name: self._value(name) for name in fields_of(row.request)}
            fields = {name: value for name, value in fields.items() if self._chance(2)}
            yield route.method, self._path(route, fields), self._body(route, fields), self._token()

    def _path(self, route: HttpRoute, fields: dict[str, Any]) -> str:
        path = re.sub(r"{(\w+)}", lambda found: self._segment(found[1]), route.path)
        if route.method in ("GET", "DELETE") and self._chance(2):
            pairs = (f"{name}={self._some((value, *ODD))}" for name, value in fields.items())
            path += "?" + self._some("&&&&&;#").join(UNSAYABLE.sub("+", pair) for pair in pairs)
        return path + (self._some(("#x", "/", "?", "?queue=q2", "%", "?a#b")) if self._rare else "")

    def _segment(self, name: str) -> str:
        said = self._some(ODD) if self._rare else self._value(name)
        return UNSAYABLE.sub("+", str(said))

    def _body(self, route: HttpRoute, fields: dict[str, Any]) -> bytes | None:
        if route.method in ("GET", "DELETE") and not self._rare:
            return None
        if self._rare:
            return self._some((b"", b"{", b"null", b"[]", b"7", b'{"data":1e999}', b"\xff", b"{}x"))
        return json.dumps(fields, ensure_ascii=self._chance(2)).encode()

    def _value(self, name: str) -> Any:
        if name in OURS or self._rare:
            return self._some(
                (0, -1, None, True, "x", [], {}, 2**60 + 1, 1.5, "<b>", "ü", "x" * 5000)
            )
        if name in KNOWN:
            return self._some(KNOWN[name])
        return self._some((1, 2, 10, "a", True, {"a": [1, "b"]}, ["j1", "j2"], 2**40, None))

    def _token(self) -> str:
        return self._some(TOKENS) if self._chance(2) else "root"

    @property
    def _rare(self) -> bool:
        return self._random.random() < 0.06

    def _chance(self, of: int) -> bool:
        return self._random.randrange(of) == 0

    def _some(self, of: Any) -> Any:
        return self._random.choice(of)


ENVIRONMENT = {
    "TANDEMQ_LOGIN_LIMIT": "0",
    "TANDEMQ_PASSWORD_HASH_BYTES": "8KiB",
    "TANDEMQ_PASSWORD_HASH_ROUNDS": "1",
}
UNSAYABLE = re.compile(r"[^!-~]")  # in the first line of a request
POPULAR = (
    "PUSH", "PUSHB", "PULL", "PULLB", "ACK", "FAIL", "GetJob", "GetState", "GetJobs", "Obliterate",
    "WhoAmI",
)  # fmt: skip
WRONG: tuple[Any, ...] = (0, -1, None, True, "x", [], {}, 2**60 + 1, 1.5, "<b>", "ü", "x" * 5_000)
ODD = (
    "%2e%2e",
    "a%2Fb",
    "%00",
    "%c0%ae",
    "%zz",
    "%",
    "..",
    "",
    "%c3%bc",
    "a#b",
    "a%23b",
    "a;b",
    "+",
)
IDS = [f"j{n}" for n in range(8)]
KNOWN: dict[str, Any] = {
    "queue": ["q1", "q2", "q%31"], "id": IDS, "jobId": IDS, "customId": IDS, "childId": IDS,
    "data": [1, "text", {"a": 1}, None, [2**33], "é"], "name": ["n", "m", ""],
    "jobs": [[{"data": 1, "jobId": "j1"}, {"data": 2}], [{"data": 3}], []],
    "count": [1, 3], "ids": [["j1", "j2"], ["j3"]], "delay": [0, 86_400_000],
    "priority": [0, 1, 5], "state": ["waiting", "delayed,active", "failed"], "queues": [["q1"]],
    "workerId": ["w1"], "groupId": ["g1", "g2"], "limit": [1, 5], "every": [86_400_000],
    "pattern": ["0 0 1 1 *"], "token": ["none"], "durations": [[1000, 1000]],
}  # fmt: skip
TOKENS = ("boss", "reader", "wrong", "", "Bearer root")
USERS = {"boss": {"superuser": True}, "reader": {}}
GRANT = {"pattern": "q1", "operations": ["Publish", "Subscribe", "GetQueueInfo"]}


@pytest.mark.parametrize("seed", SEEDS)
def test_random_requests_end_in_the_same_on_both_ways(
    new_server: Callable[..., Server], seed: int
) -> None:
    environment = ENVIRONMENT | ({"TANDEMQ_TOKEN": "root"} if seed % 3 else {})
    servers = [new_server(environment=environment).start() for _ in range(2)]
    with closing(Told(servers[0])) as short, closing(Told(servers[1])) as long:
        if seed % 3:
            short.add_users()
            long.add_users()
        for asked in Requests(seed):
            assert short.shown(*asked) == long.shown(*asked, LONG), asked


class Told:
    """What one of the servers has told so far."""

    def __init__(self, server: Server) -> None:
        self._web = Web(server.http_port, "root")
        self._known: dict[bytes, bytes] = {}
        self._tokens: dict[str, str] = {}
        self.close = self._web.close

    def add_users(self) -> None:
        """Let there be a superuser and one who may do a little, each with a token."""
        for name, said in USERS.items():
            self._web.post("/users", {"name": name, "password": "password", **said})
            made = self._web.post(f"/users/{name}/tokens")[1]
            self._tokens[name] = made.get("token") or made["data"]["token"]
        assert self._web.post("/users/reader/permissions", GRANT)[0] == 200

    def shown(
        self, method: str, path: str, body: bytes | None, token: str, more: dict[str, str] = PLAIN
    ) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body of an answer, as both servers have to give it."""
        web, proof = self._web, f"Bearer {self._tokens.get(token, token)}"
        status, told = web.ask(method, path, body, {"Authorization": proof} | more)
        fixed = {name: value for name, value in web.headers.items() if name not in VARIES}
        text = TIMES.sub(b"<time>", json.dumps(told, separators=(",", ":")).encode())
        return status, fixed, RANDOM.sub(self._named, text)

    def _named(self, found: re.Match[bytes]) -> bytes:
        return self._known.setdefault(found[0], b"<%d>" % len(self._known))


VARIES = ("date", "content-length", "connection")
