"""What holds for every request: pages of other origins, preflights, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.server import Server, is_own
from tests.support.web import Web

pytestmark = pytest.mark.skipif(not is_own(), reason="the HTTP of this server is tested")
HERE, OTHER = "https://board.example", "https://evil.example"


@pytest.fixture
def web(server: Server) -> Iterator[Web]:
    web = Web(server.http_port)
    yield web
    web.close()


def test_without_origins_no_page_may_read_an_answer(web: Web) -> None:
    for method, path in (("GET", "/ping"), ("GET", "/nowhere"), ("OPTIONS", "/ping")):
        web.ask(method, path, headers={"Origin": HERE})
        assert "access-control-allow-origin" not in web.headers


def test_the_origin_that_asks_is_named_if_it_is_allowed(new_server: Callable[..., Server]) -> None:
    environment = {"TANDEMQ_CORS_ORIGINS": f"{HERE},https://two.example"}
    web = Web(new_server(environment=environment).start().http_port)
    for method, path in (("GET", "/ping"), ("GET", "/nowhere"), ("OPTIONS", "/ping")):
        web.ask(method, path, headers={"Origin": HERE})
        assert web.headers["access-control-allow-origin"] == HERE
        assert web.headers["vary"] == "Origin"
        web.ask(method, path, headers={"Origin": OTHER})
        assert "access-control-allow-origin" not in web.headers
        assert web.headers["vary"] == "Origin"
        web.ask(method, path)
        assert web.headers["vary"] == "Origin"
    web.close()


def test_a_page_of_another_origin_changes_nothing(server: Server, web: Web) -> None:
    status, told = web.ask(
        "POST", "/queues/forged/jobs", b"{}", {"Origin": OTHER, "Content-Type": "text/plain"}
    )
    assert (status, told["ok"]) == (403, False)
    status, told = web.get("/queues/forged/jobs", {"Sec-Fetch-Site": "cross-site"})
    assert (status, told["ok"]) == (403, False)
    own = {"Origin": f"http://127.0.0.1:{server.http_port}", "Sec-Fetch-Site": "same-origin"}
    assert web.ask("POST", "/queues/forged/jobs", {"data": 1}, own)[0] == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example:6790", 403),
        ("localhost.evil.example", 403),
        ("[", 403),
        ("localhost", 200),
        ("a.localhost:1", 200),
        ("192.0.2.1", 200),
        ("[::1]:1", 200),
    ],
)
def test_a_page_under_a_name_that_means_this_machine_is_foreign_too(
    web: Web, host: str, status: int
) -> None:
    own = {"Host": host, "Origin": f"http://{host}"}
    assert web.ask("POST", "/queues/forged/jobs", {"data": 1}, own)[0] == status


def test_a_server_that_wants_a_token_may_have_any_name(new_server: Callable[..., Server]) -> None:
    web = Web(new_server(environment={"TANDEMQ_TOKEN": "alpha"}).start().http_port, "alpha")
    own = {"Host": "board.example", "Origin": HERE}
    assert web.ask("POST", "/queues/named/jobs", {"data": 1}, own)[0] == 200
    web.close()


def test_a_preflight_is_answered_for_any_path(web: Web) -> None:
    assert web.ask("OPTIONS", "/anything") == (204, "")
    assert web.headers["access-control-allow-methods"] == "GET, POST, PUT, DELETE, OPTIONS"
    assert web.headers["access-control-allow-headers"] == "Content-Type, Authorization"
    assert web.headers["access-control-max-age"] == "86400"


@pytest.mark.parametrize("headers", [{}, {"X-Long-Way": "1"}], ids=["short", "long"])
def test_requests_of_an_address_are_limited(
    new_server: Callable[..., Server], headers: dict[str, str]
) -> None:
    web = Web(new_server(environment={"TANDEMQ_REQUESTS_PER_MINUTE": "3"}).start().http_port)
    said = [web.get("/ping", headers)[0] for _ in range(4)]
    assert said == [200, 200, 200, 429]
    assert web.get("/healthz")[0] == 200
    web.close()
