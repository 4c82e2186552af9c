"""Who asks over HTTP, what they may, and that refusals give nothing away."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")

PASSWORD, TOKEN = "admin-pass-1", "tok-alpha"
UNAUTHORIZED = (401, {"ok": False, "error": "Unauthorized"})
WAYS: dict[str, dict[str, str]] = {"short": {}, "long": {"X-Long-Way": "1"}}


def basic(name: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


ADMIN = basic("admin", PASSWORD)


@pytest.fixture
def guarded(new_server: Callable[..., Server]) -> Server:
    environment = {
        "TANDEMQ_SUPERUSER": "admin",
        "TANDEMQ_SUPERUSER_PASSWORD": PASSWORD,
        "TANDEMQ_TOKENS": TOKEN,
        "TANDEMQ_PASSWORD_HASH_BYTES": "8192",
        "TANDEMQ_LOGIN_LIMIT": "0",
    }
    return new_server(environment=environment).start()


def added(web: Web, name: str, *granted: tuple[str, list[str]]) -> str:
    """Add a user with permissions and return a token of it."""
    made = web.ask("POST", "/users", {"name": name, "password": "user-pass-1"}, ADMIN)
    assert made[0] == 200, made
    for pattern, operations in granted:
        body = {"pattern": pattern, "operations": operations}
        assert web.ask("POST", f"/users/{name}/permissions", body, ADMIN)[0] == 200
    status, told = web.ask("POST", f"/users/{name}/tokens", {"note": "test"}, ADMIN)
    assert status == 200
    token: str = told["data"]["token"]
    return token


@pytest.mark.parametrize("way", WAYS)
def test_only_who_has_proved_it_gets_in(guarded: Server, way: str) -> None:
    web = Web(guarded.http_port)

    def ask(headers: dict[str, str], path: str = "/queues/q/count") -> tuple[int, Any]:
        return web.get(path, {**headers, **WAYS[way]})

    for good in (bearer(TOKEN), {"Authorization": TOKEN}, ADMIN):
        assert ask(good) == (200, {"ok": True, "count": 0})
    for bad in (
        {},
        {"Authorization": ""},
        bearer("nope"),
        {"Authorization": f"bearer {TOKEN}"},
        basic("admin", "wrong"),
        basic("nobody", PASSWORD),
        {"Authorization": "Basic !!!"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff\xfe").decode()},
        {"Authorization": f"Basic {base64.b64encode(TOKEN.encode()).decode()}"},
    ):
        assert ask(bad) == UNAUTHORIZED
        assert ask(bad, "/nowhere") == UNAUTHORIZED
    assert ask({}, "/healthz") == (200, "OK")
    web.close()


@pytest.mark.parametrize("way", WAYS)
def test_a_user_may_what_was_granted_and_no_more(guarded: Server, way: str) -> None:
    web = Web(guarded.http_port)
    user = {**bearer(added(web, "bob", ("mine.*", ["Publish"]))), **WAYS[way]}
    assert web.ask("POST", "/queues/mine.a/jobs", {"data": 1}, user)[0] == 200
    for method, path in (
        ("POST", "/queues/other/jobs"),
        ("GET", "/queues/mine.a/jobs"),
        ("POST", "/queues/mine.a/obliterate"),
        ("GET", "/workers"),
        ("GET", "/queues/mine.a/workers"),
        ("GET", "/users"),
    ):
        status, told = web.ask(method, path, {} if method == "POST" else None, user)
        assert (status, told["ok"]) == (403, False), (method, path)
    assert web.get("/queues", user)[1]["queues"] == []
    assert web.get("/queues/summary", user) == (200, [])
    web.close()


@pytest.mark.parametrize("way", WAYS)
def test_what_is_taken_away_holds_at_once(guarded: Server, way: str) -> None:
    web = Web(guarded.http_port)
    user = {**bearer(added(web, "eve", ("*", ["Publish"]))), **WAYS[way]}
    assert web.ask("POST", "/queues/q/jobs", {"data": 1}, user)[0] == 200
    assert web.ask("DELETE", "/users/eve/permissions?pattern=*", headers=ADMIN)[0] == 200
    assert web.ask("POST", "/queues/q/jobs", {"data": 1}, user)[0] == 403
    assert web.ask("DELETE", "/users/eve", headers=ADMIN)[0] == 200
    assert web.ask("POST", "/queues/q/jobs", {"data": 1}, user) == UNAUTHORIZED
    web.close()


def test_a_waiting_pull_ends_with_its_user(guarded: Server) -> None:
    web, other = Web(guarded.http_port), Web(guarded.http_port)
    user = bearer(added(web, "kim", ("*", ["Subscribe"])))
    other.send("GET", "/queues/q/jobs?timeout=30000", headers=user)
    assert web.get("/healthz")[0] == 200
    assert web.ask("DELETE", "/users/kim", headers=ADMIN)[0] == 200
    assert other.answer()[0] == 503
    web.close()
    other.close()


def test_nothing_secret_is_answered_or_logged(guarded: Server) -> None:
    web = Web(guarded.http_port)
    secret = "tok-that-nobody-has"
    said = [
        web.get("/queues", bearer(secret)),
        web.get("/queues", basic("admin", secret)),
        web.ask("POST", "/queues/q/jobs", b"{" + secret.encode(), bearer(TOKEN)),
        web.get(f"/nowhere?token={secret}", bearer(TOKEN)),
    ]
    assert all(status in (400, 401, 404) for status, _ in said)
    log = guarded.log_tail(1_000_000)
    for text in (str(said), log):
        assert secret not in text
        assert TOKEN not in text
        assert PASSWORD not in text
    assert "Traceback" not in log
    web.close()


def test_a_refusal_repeats_little_of_what_was_sent(guarded: Server) -> None:
    web = Web(guarded.http_port)
    long = "x" * 5_000
    _, told = web.post(f"/jobs/{long}/ack")
    assert told == {"ok": False, "error": "Unauthorized"}
    status, told = web.ask("POST", f"/jobs/{long}/ack", {}, bearer(TOKEN))
    assert status == 400
    assert len(told["error"]) < 500
    web.close()
