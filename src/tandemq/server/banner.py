"""The first lines on the terminal: what runs where, what it keeps, who may connect, how to stop."""

from __future__ import annotations

import os

from tandemq import __version__
from tandemq.config import Settings

SURVIVES = {
    "memory": "nothing survives the process",
    "buffered": "an answer survives a clean stop",
    "commit": "an answer survives kill -9 of the server",
    "sync": "an answer survives a power loss",
}


def banner(
    settings: Settings,
    tcp_ports: list[int],
    http_port: int | None,
    tls: bool,
    store_text: str,
    users: int = 0,
    health_port: int | None = None,
) -> str:
    """The banner; the ports are those that are really open, ``http_port`` None when it is not."""
    pid = os.getpid()
    where = " and ".join(_address(settings.host, port) for port in tcp_ports)
    secured = " with or without TLS" if settings.tls_optional else " with TLS"
    lines = [
        f"tandemq {__version__}, pid {pid}",
        f"  tcp    {where}{secured if tls else ''}",
        f"  store  {store_text}",
        f"  keeps  durability {settings.durability}: {SURVIVES[settings.durability]}",
        f"  auth   {_authentication(settings, users)}",
        f"  stop   Ctrl-C or kill {pid}; a second time stops at once",
    ]
    if health_port is not None:
        lines.insert(2, f"  health http://{_address(settings.host, health_port)}/health/")
    if http_port is not None:
        scheme = "https" if tls else "http"
        at = f"{scheme}://{_address(settings.host, http_port)}"
        lines[2:2] = [f"  http   {at}", f"  page   {at}/ui"]
    return "\n".join(lines)


def _authentication(settings: Settings, users: int) -> str:
    counts = {"token": len(settings.tokens), "user": users}
    known = [
        f"{count} {name}{'' if count == 1 else 's'}" for name, count in counts.items() if count
    ]
    if known:
        return f"on, {', '.join(known)}"
    if settings.on_loopback:
        return "off; only this machine can connect"
    return "off. WARNING: whoever reaches this address may do everything (--token sets one)"


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
