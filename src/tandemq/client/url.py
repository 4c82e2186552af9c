"""Where the server is and how to speak to it: one URL, or the options beside it.

``tandemq://user:token@host:6789/?tls=1&pool=4`` says it all; what is missing has a default. Without
a URL the environment is asked: ``TANDEMQ_URL``, and ``TANDEMQ_TOKEN`` where the URL has no token.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from tandemq.client.errors import BadOption, WrongUrl, no_option
from tandemq.client.spans import Span, seconds, seconds_of_text

L = TypeVar("L", bound=asyncio.Protocol)

PORT = 6789
DEFAULT_URL = "tandemq://127.0.0.1:6789"
_SHAPE = "write tandemq://user:token@host:6789/?tls=1&pool=4"
_TRUTHS = {
    **dict.fromkeys(("1", "true", "yes", "on", ""), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How links behave; spans are in seconds, and a count or an interval of 0 switches off.

    Attributes:
        pool_size: links to the server, opened as they are needed.
        max_in_flight: calls of a link that wait for their answers.
        pipelining: False: one call at a time on each link.
        command_timeout: for one answer; waiting for a link before counts by itself.
        connect_timeout: for a connection and its greeting.
        ping_interval: between two signs of life that are asked for.
        max_ping_failures: pings without an answer, one after the other, that end a link.
        max_command_timeouts: calls without an answer, one after the other, that end a link.
        reconnect: False: a lost link stays lost until the next call.
        reconnect_delay: before the first attempt; it doubles with each.
        max_reconnect_delay: the longest of these.
        max_reconnect_attempts: after which calls fail at once; None: no limit.
    """

    pool_size: int = 4
    max_in_flight: int = 100
    pipelining: bool = True
    command_timeout: Span = 30.0
    connect_timeout: Span = 5.0
    ping_interval: Span = 30.0
    max_ping_failures: int = 3
    max_command_timeouts: int = 3
    reconnect: bool = True
    reconnect_delay: Span = 0.1
    max_reconnect_delay: Span = 30.0
    max_reconnect_attempts: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "Span":
                object.__setattr__(self, each.name, seconds(value, each.name))
            elif each.type == "bool":
                if not isinstance(value, bool):
                    raise BadOption(f"{each.name} is {value!r}; give True or False")
            elif value is not None or "None" not in str(each.type):
                self._check_count(each.name, value)

            if each.name.endswith("_timeout") and not getattr(self, each.name):
                raise BadOption(f"{each.name} is {value!r}; give more than nothing")

    @staticmethod
    def _check_count(name: str, value: Any) -> None:
        least = 1 if name in ("pool_size", "max_in_flight") else 0
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise BadOption(f"{name} is {value!r}; give a whole number, {least} or more")

    @property
    def window(self) -> int:
        """Calls that a link may have unanswered."""
        return self.max_in_flight if self.pipelining else 1


class Dial(Protocol):
    """Connects a protocol that it makes, and returns it."""

    async def __call__(self, make: Callable[[], L], /) -> L:
        """Connect.

        Raises:
            LinkError: there is nobody to connect to.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server, who asks, and how.

    Attributes:
        tls: True to trust what the system trusts, or a context of your own.
        ca: a file with the certificates to trust instead.
        verify: False: whoever answers is believed. For tests only.
        dial: how to connect instead, for a server that needs no network.
    """

    host: str = "127.0.0.1"
    port: int = PORT
    user: str | None = None
    token: str | None = field(default=None, repr=False)
    tls: bool | ssl.SSLContext = False
    ca: str | None = None
    verify: bool = True
    dial: Dial | None = field(default=None, repr=False)
    options: Options = Options()

    def __post_init__(self) -> None:
        texts = ("host", "user", "token", "ca")
        kinds: dict[str, Any] = {**dict.fromkeys(texts, (str, type(None))), "verify": bool}
        for name, kind in {**kinds, "tls": (bool, ssl.SSLContext)}.items():
            if not isinstance(value := getattr(self, name), kind):
                secret = "something" if name == "token" else repr(value)
                words = "a text" if name in texts else "True or False"
                raise BadOption(f"{name} is {secret} of type {type(value).__name__}; give {words}")

    def __str__(self) -> str:
        if self.dial is not None:
            return self.host
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def context(self) -> ssl.SSLContext | None:
        """Return what TLS needs, None for a plain connection.

        Raises:
            BadOption: the file of certificates cannot be used.
        """
        if isinstance(self.tls, ssl.SSLContext) or not self.tls:
            return self.tls or None
        try:
            context = ssl.create_default_context(cafile=self.ca)
        except (OSError, ssl.SSLError) as error:
            raise BadOption(f"ca={self.ca} cannot be read as certificates: {error}") from None
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return context

    def but(self, **options: Any) -> Target:
        """Return the same with other options; one that is None stays as it was.

        Raises:
            BadOption: there is no such option, or its value cannot be.
        """
        given = {name: value for name, value in options.items() if value is not None}
        own = {name: given.pop(name) for name in _OWN if name in given}
        for name in given:
            if name not in _OPTIONS:
                raise no_option(name, (*_OWN, *_OPTIONS))
        return replace(self, **own, options=replace(self.options, **given))


_OPTIONS = {each.name: str(each.type) for each in fields(Options)}
_OWN = tuple(
    each.name for each in fields(Target) if each.name not in ("host", "port", "dial", "options")
)
_SHORT = {"pool": "pool_size", "timeout": "command_timeout", "ping": "ping_interval"}


def target(url: str | Target | None = None, **options: Any) -> Target:
    """Return the server that a URL and options name, or the environment where there is no URL.

    Raises:
        WrongUrl, BadOption
    """
    if isinstance(url, Target):
        return url.but(**options)
    given: object = url
    if given is not None and not isinstance(given, str):
        raise WrongUrl(f"{given!r} is no URL; {_SHAPE}")
    found = _parsed(url or os.environ.get("TANDEMQ_URL") or DEFAULT_URL).but(**options)
    token = os.environ.get("TANDEMQ_TOKEN")
    return replace(found, token=token) if found.token is None and token else found


def _parsed(url: str) -> Target:
    parts, port = _split(url)
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    read = {_SHORT.get(name, name.replace("-", "_")): value for name, value in given.items()}
    secure = parts.scheme == "tandemqs"
    if secure and read.get("tls", "1") not in _TRUTHS:
        raise WrongUrl(f"tls={read['tls']}: write 1 or 0")
    options = {name: _value(name, text) for name, text in read.items()}
    user, token = _credentials(parts)
    found = Target(host=parts.hostname or "127.0.0.1", port=port or PORT, user=user, token=token)
    return found.but(**({"tls": True} if secure else {}), **options)


def _split(url: str) -> tuple[SplitResult, int | None]:
    text = url if "://" in url else f"tandemq://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise WrongUrl(f"{_hidden(url)}: {error}; {_SHAPE}") from None
    if parts.scheme not in ("tandemq", "tandemqs", "bunqueue"):
        other = "; it is one for Broker" if parts.scheme == "vibemq" else ""
        raise WrongUrl(f"{parts.scheme}:// is no scheme of ours{other}; {_SHAPE}")
    if port == 0:
        raise WrongUrl(f"{_hidden(url)}: nobody can be reached at port 0; {_SHAPE}")
    if parts.path not in ("", "/") or parts.fragment:
        raise WrongUrl(f"{_hidden(url)}: nothing belongs behind host and port but ?; {_SHAPE}")
    return parts, port


def _credentials(parts: SplitResult) -> tuple[str | None, str | None]:
    """Return user and token; alone it is a token, with or without its colon."""
    user, token = parts.username, parts.password
    if not token:
        user, token = None, user
    return (unquote(user) if user else None), (unquote(token) if token else None)


def _value(name: str, text: str) -> Any:
    kind = _OPTIONS.get(name) or {"tls": "bool", "verify": "bool"}.get(name, "str")
    if kind == "Span":
        return seconds_of_text(text, name)
    if kind == "bool":
        if text.lower() not in _TRUTHS:
            raise WrongUrl(f"{name}={text}: write 1 or 0")
        return _TRUTHS[text.lower()]
    if kind.startswith("int"):
        if not text.isdecimal():
            raise WrongUrl(f"{name}={text}: write a whole number")
        return int(text)
    return text


def _hidden(url: str) -> str:
    """Return a URL without its secret."""
    head, at, tail = url.rpartition("@")
    return f"...@{tail}" if at and head else url
