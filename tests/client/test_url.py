"""One URL says where the server is and how to speak to it; what cannot be is named."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from tandemq.client.errors import BadOption, TandemqError, WrongUrl
from tandemq.client.url import Options, Target, target


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TANDEMQ_URL", "TANDEMQ_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("tandemq://", Target()),
        ("", Target()),
        ("example.org", Target(host="example.org")),
        ("example.org:7000", Target(host="example.org", port=7000)),
        ("tandemq://[::1]:7000/", Target(host="::1", port=7000)),
        ("tandemq://anna:s3cret@h", Target(host="h", user="anna", token="s3cret")),
        ("tandemq://:s3cret@h", Target(host="h", token="s3cret")),
        ("tandemq://s3cret@h", Target(host="h", token="s3cret")),
        ("tandemq://a%40b:p%2Fw@h", Target(host="h", user="a@b", token="p/w")),
        ("tandemqs://h", Target(host="h", tls=True)),
        ("tandemq://h?tls=1&verify=0&ca=/x", Target(host="h", tls=True, verify=False, ca="/x")),
        (
            "tandemq://h?pool=2&timeout=500ms&ping=2m&max_in_flight=7&pipelining=0",
            Target(
                host="h",
                options=Options(
                    pool_size=2,
                    command_timeout=0.5,
                    ping_interval=120.0,
                    max_in_flight=7,
                    pipelining=False,
                ),
            ),
        ),
    ],
)
def test_a_url_says_it_all(url: str, expected: Target) -> None:
    assert target(url) == expected


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://h:6790", "no scheme of ours"),
        ("tandemq://h:port", "port"),
        ("tandemq://h:99999", "ort"),
        ("tandemq://h:0", "port 0"),
        ("tandemq://h/space", "nothing belongs behind host and port"),
        ("tandemq://h?pool=many", "whole number"),
        ("tandemq://h?pool=0", "1 or more"),
        ("tandemq://h?tls=perhaps", "write 1 or 0"),
        ("tandemq://h?timeout=soon", "30s"),
        ("tandemq://h?pool_sise=3", "did you mean pool_size?"),
    ],
)
def test_what_cannot_be_is_named(url: str, words: str) -> None:
    with pytest.raises((WrongUrl, BadOption)) as caught:
        target(url)
    assert words in str(caught.value)


def test_no_secret_is_shown() -> None:
    with pytest.raises(TandemqError) as caught:
        target("tandemq://anna:s3cret@h/path")
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(target("tandemq://anna:s3cret@h"))


def test_the_environment_says_what_the_program_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TANDEMQ_URL", "tandemq://h:1?pool=2")
    monkeypatch.setenv("TANDEMQ_TOKEN", "t")
    assert target() == Target(host="h", port=1, token="t", options=Options(pool_size=2))
    assert target("tandemq://:own@g").token == "own"


def test_options_beside_the_url_win() -> None:
    given = target("tandemq://h?pool=2", pool_size=3, command_timeout=timedelta(seconds=2))
    assert given.options == Options(pool_size=3, command_timeout=2.0)
    assert target(given, pool_size=None) == given


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pool_size", 0),
        ("pool_size", "4"),
        ("max_in_flight", 0),
        ("pipelining", 1),
        ("command_timeout", -1),
        ("ping_interval", "soon"),
        ("max_ping_failures", 1.5),
        ("pool_sise", 3),
        ("command_timeout", 0),
        ("connect_timeout", 0),
        ("tls", 1),
        ("verify", "no"),
        ("ca", 5),
        ("token", b"secret"),
    ],
)
def test_an_option_of_the_wrong_type_is_refused(name: str, value: Any) -> None:
    with pytest.raises(BadOption, match=name):
        target("h", **{name: value})


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(WrongUrl, match="is no URL"):
        target(6789)  # type: ignore[arg-type]


def test_the_numbers_of_the_founding_document() -> None:
    options = Options()
    assert (options.pipelining, options.max_in_flight, options.pool_size) == (True, 100, 4)
    assert (options.command_timeout, options.ping_interval) == (30.0, 30.0)
    assert (options.max_command_timeouts, options.max_ping_failures) == (3, 3)
    assert (options.reconnect_delay, options.max_reconnect_delay) == (0.1, 30.0)
    assert options.max_reconnect_attempts is None
    assert options.window == 100
    assert Options(pipelining=False).window == 1


def test_tls_is_verified_unless_told_otherwise(tmp_path: Path) -> None:
    authority = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(authority)
    context = target("h?tls=1", ca=str(authority)).context()
    assert context is not None
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    loose = target("h?tls=1&verify=0").context()
    assert loose is not None
    assert (loose.verify_mode, loose.check_hostname) == (ssl.CERT_NONE, False)
    assert target("h").context() is None
    own = ssl.create_default_context()
    assert target("h", tls=own).context() is own
    with pytest.raises(BadOption, match="ca="):
        target("h?tls=1&ca=/nowhere").context()
