"""The connection of a verb: calls to a server, and the exit codes of what goes wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import click

from tandemq.cli.exits import Refused, TimedOut, Unauthorised, Unreachable
from tandemq.cli.verb import Common
from tandemq.client import errors

LONGEST_CONNECT = 5.0  # s, the wait for a connection and its greeting


class Server(Protocol):
    """What verbs want of a server."""

    def call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        """Send a command of the job wire and return its answer, with the fields of its ``data``."""


class Linked:
    """A server behind a client."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def call(self, command: str, /, **fields: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self._client.call(command, **fields)
        inner = answer.get("data")
        return {**answer, **inner} if isinstance(inner, dict) else answer


def asked(common: Common, run: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Run a verb with a server; every failure has its exit code."""
    from tandemq.client.sync import Client

    with failures(), Client(**target(common)) as client:
        client.connect()
        return run(Linked(client), **given)


def talked(common: Common, run: Callable[..., Any], given: dict[str, Any]) -> Any:
    """Run an asynchronous verb with a broker; every failure has its exit code."""
    import asyncio

    from tandemq.broker.options import ReconnectPolicy
    from tandemq.client.broker import Broker

    options: dict[str, Any] = {"reconnect_policy": ReconnectPolicy(max_attempts=0)}
    if common.token is not None:
        options |= {"auth_token": common.token, "username": None, "password": None}

    async def talk() -> Any:
        wait = max(common.timeout / 1000, 0.001)
        async with Broker(common.url, command_timeout=wait, **options) as broker:
            return await run(broker, **given)

    with failures():
        return asyncio.run(talk())


def target(common: Common) -> dict[str, Any]:
    """Return the arguments of a client; what is not said it looks up in the environment."""
    return {
        "url": common.url,
        "token": common.token,
        "command_timeout": common.timeout / 1000,
        "connect_timeout": min(common.timeout / 1000, LONGEST_CONNECT),
        "pool_size": 1,
        "reconnect": False,
    }


@contextmanager
def failures() -> Iterator[None]:
    """Turn what a client raises into one line and its exit code."""
    try:
        yield
    except (errors.WrongUrl, errors.BadOption, errors.Unencodable) as problem:
        raise click.UsageError(str(problem)) from None
    except errors.Timeout as problem:
        raise TimedOut(str(problem)) from None
    except errors.LinkError as problem:
        raise Unreachable(str(problem)) from None
    except errors.NotAuthorized as problem:
        raise Unauthorised(f"{problem.text}. {_who()}") from None
    except errors.Refused as problem:
        raise Refused(problem.text) from None
    except errors.TandemqError as problem:
        raise Refused(str(problem)) from None


def _who() -> str:
    return "Give --token (or TANDEMQ_TOKEN), or a user in the URL: tandemq://name:password@host."
