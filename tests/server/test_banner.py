"""The first lines on the terminal."""

from __future__ import annotations

import os

from tandemq import __version__
from tandemq.config import Settings
from tandemq.server.banner import banner


def shown(settings: Settings, http_port: int | None = 6790, tls: bool = False) -> str:
    return banner(settings, [6789], http_port, tls, "./tandemq.db, 7 messages")


def test_it_says_what_runs_where_what_is_kept_and_how_to_stop() -> None:
    text = shown(Settings())
    assert f"tandemq {__version__}, pid {os.getpid()}" in text
    assert "tcp    127.0.0.1:6789\n" in text
    assert "http   http://127.0.0.1:6790\n" in text
    assert "page   http://127.0.0.1:6790/ui\n" in text
    assert "store  ./tandemq.db, 7 messages\n" in text
    assert "durability commit: an answer survives kill -9" in text
    assert f"kill {os.getpid()}" in text


def test_a_port_that_is_not_open_is_not_shown() -> None:
    assert "http" not in shown(Settings(), http_port=None)


def test_the_health_port_is_shown_where_it_is_open() -> None:
    text = banner(Settings(), [6789], None, False, "memory", health_port=8081)
    assert "health http://127.0.0.1:8081/health/\n" in text


def test_tls_is_shown_and_ipv6_addresses_are_bracketed() -> None:
    text = shown(Settings(host="::1"), tls=True)
    assert "[::1]:6789 with TLS" in text
    assert "page   https://[::1]:6790/ui\n" in text


def test_no_token_is_fine_on_loopback_and_a_warning_elsewhere() -> None:
    assert "auth   off; only this machine" in shown(Settings())
    assert "WARNING" not in shown(Settings())
    assert "auth   off. WARNING" in shown(Settings(host="0.0.0.0", insecure=True))


def test_tokens_are_counted_and_never_shown() -> None:
    text = shown(Settings(host="0.0.0.0", tokens=("hunter2", "hunter3")))
    assert "auth   on, 2 tokens" in text
    assert "hunter" not in text
    assert "auth   on, 1 token\n" in shown(Settings(tokens=("hunter2",)))


def test_users_are_counted_too() -> None:
    settings = Settings(tokens=("hunter2",))
    text = banner(settings, [6789], None, False, "memory", users=3)
    assert "auth   on, 1 token, 3 users\n" in text
    assert "auth   on, 1 user\n" in banner(Settings(), [6789], None, False, "memory", users=1)
