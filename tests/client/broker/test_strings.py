"""Connection strings: both forms of VibeMQ's clients, and URLs of ours."""

from __future__ import annotations

import contextlib
import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemq.broker import QueueOptions, ReconnectPolicy
from tandemq.client.broker import Broker
from tandemq.client.broker.strings import place
from tandemq.client.errors import BadOption, WrongUrl


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("vibemq://localhost", "localhost", 2925),
        ("VibeMQ://broker.example/", "broker.example", 2925),
        ("vibemq://host:3000/", "host", 3000),
        ("vibemq://host:0", "host", 2925),
        ("vibemq://[::1]:3000", "::1", 3000),
        ("vibemq://[::1]", "::1", 2925),
        ("Host=myhost;Port=3000", "myhost", 3000),
        ("host = myhost ; PORT=3000;", "myhost", 3000),
        ("Port=2925", "localhost", 2925),
        ("Port=0", "localhost", 2925),
        ("Host=a", "a", 2925),
        ("tandemq://server:7000", "server", 7000),
        ("tandemq://server", "server", 6789),
    ],
)
def test_s_293_host_and_port_are_read(text: str, host: str, port: int) -> None:
    assert place(text)[:2] == (host, port)


def test_without_a_text_it_is_our_own_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TANDEMQ_URL", raising=False)
    assert place(None)[:2] == ("127.0.0.1", 6789)


@pytest.mark.parametrize(
    ("text", "login"),
    [
        ("vibemq://user%3Aname:secret@host:2925", ("user:name", "secret")),
        ("vibemq://u:p%40s:s@host", ("u", "p@s:s")),
        ("vibemq://u:@host", ("u", "")),
        ('Host=h;Username=u;Password="a;b=\\"c\\\\"', ("u", 'a;b="c\\')),
        ('Password= "x" ;Username=u', ("u", "x")),
        ("tandemq://u:p@host", ("u", "p")),
    ],
)
def test_user_and_password_are_read(text: str, login: tuple[str, str]) -> None:
    said = place(text)[2]
    assert (said["username"], said["password"]) == login


def test_a_url_of_ours_tells_how_long_to_wait() -> None:
    found = Broker("tandemq://host?timeout=3&ping=7").options
    assert (found.command_timeout, found.keep_alive_interval) == (3, 7)
    usual = Broker("tandemq://host").options
    assert (usual.command_timeout, usual.keep_alive_interval) == (10, 30)


def test_a_token_stands_alone() -> None:
    assert Broker("tandemq://secret@host").options.auth_token == "secret"


@pytest.mark.parametrize(
    ("query", "name", "value"),
    [
        ("tls=true", "use_tls", True),
        ("UseTls=YES", "use_tls", True),
        ("tls=on", "use_tls", False),
        ("skipCertValidation=1", "skip_certificate_validation", True),
        ("keepAlive=60", "keep_alive_interval", 60.0),
        ("keepAliveInterval=0.5", "keep_alive_interval", 0.5),
        ("commandTimeout=3", "command_timeout", 3.0),
        ("compression=none", "preferred_compressions", ()),
        ("compression=GZip, brotli", "preferred_compressions", ("gzip", "brotli")),
        ("compressionThreshold=0", "compression_threshold", 0),
    ],
)
def test_options_are_read_in_both_forms(query: str, name: str, value: Any) -> None:
    assert getattr(Broker(f"vibemq://h?{query}").options, name) == value
    assert getattr(Broker(f"Host=h;{query}").options, name) == value


def test_several_options_make_one_whole() -> None:
    found = Broker("vibemq://localhost?tls=true&keepAlive=60&reconnectMaxAttempts=5")
    assert found.options.use_tls
    assert found.options.keep_alive_interval == 60
    assert found.options.reconnect_policy == ReconnectPolicy(max_attempts=5)


def test_queues_are_declared_by_name() -> None:
    found = Broker("vibemq://localhost?queues=orders, notifications,").options
    assert found.queue_declarations == {"orders": QueueOptions(), "notifications": QueueOptions()}


@pytest.mark.parametrize("count", ["0", "-1"])
def test_no_limit_of_attempts_is_for_ever(count: str) -> None:
    found = Broker(f"ReconnectMaxAttempts={count};reconnectInitialDelay=2").options
    assert found.reconnect_policy == ReconnectPolicy(max_attempts=None, initial_delay=2)


def test_the_whole_policy_is_read() -> None:
    text = "reconnectInitialDelay=0;reconnectMaxDelay=9;reconnectExponentialBackoff=no"
    assert Broker(text).options.reconnect_policy == ReconnectPolicy(
        initial_delay=0, max_delay=9, use_exponential_backoff=False
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "vibemq://h?badparam",
        "vibemq://h:abc",
        "vibemq://h:70000",
        "vibemq://",
        "vibemq://:2925",
        "Port=abc",
        "Port=-1",
        "Host=h;nonsense",
        "=x;Host=h",
        'Password="open',
    ],
)
def test_s_293_what_cannot_be_read_is_an_error(text: str) -> None:
    with pytest.raises(WrongUrl):
        Broker(text)


@pytest.mark.parametrize("item", ["colour=red", "keepAlive=often", "keepAlive=0", "keepAlive=nan"])
def test_what_nobody_knows_is_skipped_and_told(item: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "tandemq.client"):
        assert Broker(f"vibemq://h?{item}").options == Broker("vibemq://h").options
    assert item.partition("=")[0] in caplog.text


def test_a_user_without_a_password_is_told_before_anything_is_sent() -> None:
    with pytest.raises(BadOption, match="must be set together"):
        Broker("vibemq://user@host")


def test_a_plus_is_a_plus() -> None:
    assert place("Password=a+b;Username=u")[2]["password"] == "a+b"
    assert place("vibemq://u:a+b@h")[2]["password"] == "a+b"


@settings(deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_quoted_value_comes_back_whatever_is_in_it(value: str) -> None:
    said = value.replace("\\", "\\\\").replace('"', '\\"')
    assert place(f'Username=u;Password="{said}";Host=h')[2]["password"] == value


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    for whole in (f"vibemq://{text}", f"Host=h;{text}"):
        with contextlib.suppress(WrongUrl):
            place(whole)
