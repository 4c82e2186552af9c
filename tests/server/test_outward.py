"""Connections that go outward only."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_network
from typing import Any

import pytest
from httpcore2 import ConnectError

from tandemq.server.outward import Outward

LOOPBACK = (ip_network("127.0.0.0/8"),)


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (a, port)) for a in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


async def test_a_name_that_leads_inward_is_refused_whatever_it_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "10.0.0.1", "169.254.169.254")
    with pytest.raises(ConnectError, match=r"leads to 169\.254\.169\.254"):
        await Outward(LOOPBACK).connect_tcp("hooks.example.com", 80)


async def test_the_address_that_was_judged_is_the_one_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server = await asyncio.start_server(lambda r, w: w.close(), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        way = Outward(LOOPBACK)

        async def addresses(host: str, port: int) -> list[str]:
            return ["10.0.0.1", "127.0.0.1"]

        monkeypatch.setattr(way, "_addresses", addresses)
        stream = await way.connect_tcp("hooks.example.com", port, timeout=5)
        await stream.aclose()


async def test_a_name_without_an_address_is_said_to_be_so() -> None:
    with pytest.raises(ConnectError, match="cannot be resolved"):
        await Outward(()).connect_tcp("no such name.invalid", 80)


async def test_nobody_there_is_a_refusal_too(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectError):
            await Outward(LOOPBACK).connect_tcp("127.0.0.1", taken.getsockname()[1], timeout=5)
