"""Where a request comes from: nobody names an address but proxies that we trust."""

from __future__ import annotations

import pytest

from tandemq.config import BadSetting, Settings
from tandemq.server.http.origin import Origins

PROXY, CLIENT, LIAR = "10.0.0.7", "203.0.113.5", "198.51.100.9"


def origin(settings: Settings, peer: str | None, *forwarded: str) -> str:
    headers = [(b"x-forwarded-for", value.encode()) for value in forwarded]
    return Origins(settings).of({"client": peer and (peer, 1), "headers": headers})


TRUSTING = Settings(trusted_proxy=("10.0.0.0/8",))


def test_without_trusted_proxies_the_peer_counts() -> None:
    assert origin(Settings(), PROXY, CLIENT) == PROXY


def test_a_stranger_names_nobody() -> None:
    assert origin(TRUSTING, LIAR, CLIENT) == LIAR


@pytest.mark.parametrize(
    "forwarded",
    [(CLIENT,), (f"{LIAR}, {CLIENT}",), (LIAR, CLIENT), (f"{LIAR}, {CLIENT}, 10.1.1.1",)],
)
def test_a_trusted_proxy_names_whom_it_heard(forwarded: tuple[str, ...]) -> None:
    assert origin(TRUSTING, PROXY, *forwarded) == CLIENT


@pytest.mark.parametrize("forwarded", [(), ("",), ("unknown",), ("10.2.2.2",)])
def test_a_proxy_that_names_nobody_stands_for_itself(forwarded: tuple[str, ...]) -> None:
    assert origin(TRUSTING, PROXY, *forwarded) == PROXY


def test_addresses_of_one_network_of_ipv6_are_one() -> None:
    first, second = (origin(Settings(), f"2001:db8::{n}") for n in (1, 2))
    assert first == second != ""


def test_requests_of_each_address_are_counted() -> None:
    origins = Origins(Settings(requests_per_minute=2))
    assert [origins.admit(CLIENT, 0) for _ in range(3)] == [True, True, False]
    assert origins.admit(LIAR, 0)
    assert origins.admit(CLIENT, 60_001)


def test_a_network_that_is_none_is_refused() -> None:
    with pytest.raises(BadSetting, match="trusted_proxy must be addresses or networks"):
        Settings(trusted_proxy=("proxy.example",))
