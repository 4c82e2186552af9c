"""Where the broker is and how to speak to it, from one text.

``vibemq://user:password@host:2925/?keepAlive=60`` and ``Host=host;Port=2925;KeepAlive=60`` are the
connection strings of VibeMQ's own clients (semantics 15.5). Any other text, or none, is a URL of
ours. What a connection string says that nobody knows is skipped with a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

from tandemq.broker.options import QueueOptions, ReconnectPolicy
from tandemq.client.errors import WrongUrl
from tandemq.client.url import Options, target

log = logging.getLogger("tandemq.client")

PORT: Final = 2925
SCHEME: Final = "vibemq://"

Place = tuple[str, int, dict[str, Any]]
"""Host, port, and what is said of ``ClientOptions``."""


def place(url: str | None) -> Place:
    """Return what a connection string says.

    Raises:
        WrongUrl: it cannot be read.
    """
    given: object = url
    if given is not None and not isinstance(given, str):
        raise WrongUrl(f"{given!r} is no connection string; write vibemq://host:2925")
    if url is not None and not url.strip():
        raise WrongUrl("the connection string is empty; write vibemq://host:2925")
    if url is not None and url.lower().startswith(SCHEME):
        return _from_url(url[len(SCHEME) :])
    if url is not None and "://" not in url and "=" in url:
        return _from_pairs(url)
    found = target(url)
    login = {"username": found.user, "password": found.token} if found.user else {}
    own: dict[str, Any] = {
        **(login or {"auth_token": found.token}),
        "use_tls": bool(found.tls),
        "skip_certificate_validation": not found.verify,
        "certificate_authority": found.ca,
    }
    said, usual = found.options, Options()
    if said.command_timeout != usual.command_timeout:
        own["command_timeout"] = said.command_timeout
    if said.ping_interval != usual.ping_interval:
        own["keep_alive_interval"] = said.ping_interval
    return found.host, found.port, own


# -- a URL ---------------------------------------------------------------------------------------


def _from_url(text: str) -> Place:
    where, _, query = text.partition("?")
    login, at, address = where.rpartition("@")
    host, port = _address(address.removesuffix("/"))
    said: dict[str, Any] = {}
    if at:
        user, colon, password = login.partition(":")
        said["username"] = unquote(user)
        said["password"] = unquote(password) if colon else None
    return host, port, _options(_items(query), said)


def _address(text: str) -> tuple[str, int]:
    """Read a host and a port, an IPv6 address in brackets among them."""
    bracket = text.rfind("]") + 1
    name, colon, port = text[bracket:].partition(":")
    host = text[:bracket].strip("[]") + name
    if not host:
        raise WrongUrl("the connection string names no host; write vibemq://host:2925")
    return host, _port(port) if colon else PORT


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= 65_535):
        raise WrongUrl(f"{text!r} is no port; write a number up to 65535")
    return int(text) or PORT


def _items(query: str) -> Iterator[tuple[str, str]]:
    for item in query.split("&") if query else ():
        name, equals, value = item.partition("=")
        if not equals:
            raise WrongUrl(f"{item!r} has no value; write name=value")
        yield name, unquote(value)


# -- pairs ---------------------------------------------------------------------------------------


def _from_pairs(text: str) -> Place:
    host, port, rest = "localhost", PORT, []
    said: dict[str, Any] = {}
    for name, value in _pairs(text):
        match name.lower():
            case "host":
                host = value or host
            case "port":
                port = _port(value)
            case "username" | "password" as key:
                said[key] = value
            case _:
                rest.append((name, value))
    return host, port, _options(iter(rest), said)


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and values; in quotes a value may hold what else would end it."""
    rest = text
    while rest := rest.lstrip("; "):
        name, equals, rest = rest.partition("=")
        if not equals or not name.strip() or ";" in name:
            raise WrongUrl(f"{name.strip()!r} has no value; write name=value;name=value")
        rest = rest.lstrip()
        if rest.startswith('"'):
            value, rest = _quoted(rest[1:])
        else:
            value, _, rest = rest.partition(";")
            value = value.strip()
        yield name.strip(), value


def _quoted(text: str) -> tuple[str, str]:
    """Return what stands before the closing quote, and what follows it."""
    said = []
    at = 0
    while at < len(text) and text[at] != '"':
        if text[at] == "\\" and text[at + 1 : at + 2] in ('"', "\\", ";", "="):
            at += 1
        said.append(text[at])
        at += 1
    if at == len(text):
        raise WrongUrl("a value in the connection string has no closing quote")
    return "".join(said), text[at + 1 :].lstrip().removeprefix(";")


# -- options -------------------------------------------------------------------------------------


def _truth(text: str) -> bool:
    return text.lower() in ("true", "1", "yes")


def _span(text: str, *, least: float = 0.001) -> float:
    if not (value := float(text)) >= least:
        raise ValueError("too short")
    return value


def _attempts(text: str) -> int | None:
    return int(text) if int(text) > 0 else None


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))


def _compressions(text: str) -> tuple[str, ...]:
    return tuple(name for name in map(str.lower, _names(text)) if name != "none")


def _queues(text: str) -> dict[str, QueueOptions]:
    return {name: QueueOptions() for name in _names(text)}


def _delay(text: str) -> float:
    return _span(text, least=0.0)


_READ: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "tls": ("use_tls", _truth),
    "usetls": ("use_tls", _truth),
    "skipcertvalidation": ("skip_certificate_validation", _truth),
    "keepalive": ("keep_alive_interval", _span),
    "keepaliveinterval": ("keep_alive_interval", _span),
    "commandtimeout": ("command_timeout", _span),
    "compression": ("preferred_compressions", _compressions),
    "compressionthreshold": ("compression_threshold", int),
    "queues": ("queue_declarations", _queues),
}
_RECONNECT: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "reconnectmaxattempts": ("max_attempts", _attempts),
    "reconnectinitialdelay": ("initial_delay", _delay),
    "reconnectmaxdelay": ("max_delay", _delay),
    "reconnectexponentialbackoff": ("use_exponential_backoff", _truth),
}


def _options(items: Iterator[tuple[str, str]], said: dict[str, Any]) -> dict[str, Any]:
    reconnect: dict[str, Any] = {}
    for name, text in items:
        key = name.lower()
        known = _READ.get(key) or _RECONNECT.get(key)
        if known is None:
            log.warning("connection string: %r is not known and skipped", name)
            continue
        try:
            (said if key in _READ else reconnect)[known[0]] = known[1](text)
        except ValueError:
            log.warning("connection string: %s=%r makes no sense and is skipped", name, text)
    if reconnect:
        said["reconnect_policy"] = ReconnectPolicy(**reconnect)
    return said
