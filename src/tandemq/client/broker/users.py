"""Users of a broker and what they may do: for a superuser, and for everybody about himself."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from tandemq.wires.vibemq.frames import Frame
from tandemq.wires.vibemq.kinds import Kind


@dataclass(frozen=True, slots=True)
class User:
    """Somebody who may log in."""

    name: str
    superuser: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Permission:
    """What somebody may do with the queues that a pattern names."""

    pattern: str  # of queue names; * is any run of letters
    operations: tuple[str, ...]


class Users:
    """``broker.users``; each command raises ``Refused`` for what the broker refuses.

    Operations are Publish, Subscribe, CreateQueue, DeleteQueue, PurgeQueue, GetQueueInfo and
    ListQueues.
    """

    def __init__(self, ask: Callable[[Kind, bytes | None], Awaitable[Frame]]) -> None:
        self._send = ask

    async def create(self, name: str, password: str) -> None:
        """Let somebody log in."""
        await self._ask(Kind.ADMIN_CREATE_USER, username=name, password=password)

    async def delete(self, name: str) -> None:
        """Let somebody log in no more; whoever is logged in by that name is cut off."""
        await self._ask(Kind.ADMIN_DELETE_USER, username=name)

    async def change_password(self, name: str, password: str) -> None:
        """Change a password: anybody's, or one's own."""
        await self._ask(Kind.ADMIN_CHANGE_PASSWORD, username=name, newPassword=password)

    async def grant(self, name: str, pattern: str, operations: Iterable[str]) -> None:
        """Let somebody do this with such queues, and nothing else that was granted for them."""
        said = list(operations)
        await self._ask(
            Kind.ADMIN_GRANT_PERMISSION, username=name, queuePattern=pattern, operations=said
        )

    async def revoke(self, name: str, pattern: str) -> None:
        """Take back what was granted for a pattern."""
        await self._ask(Kind.ADMIN_REVOKE_PERMISSION, username=name, queuePattern=pattern)

    async def all(self) -> list[User]:
        """Return everybody who may log in."""
        return [
            User(each["username"], each["isSuperuser"], _moment(each["createdAt"]))
            for each in await self._ask(Kind.ADMIN_LIST_USERS)
        ]

    async def permissions(self, name: str) -> list[Permission]:
        """Return what was granted to somebody, nothing for nobody."""
        return [
            Permission(each["queuePattern"], tuple(each["operations"]))
            for each in await self._ask(Kind.ADMIN_GET_USER_PERMISSIONS, username=name)
        ]

    async def _ask(self, kind: Kind, **payload: Any) -> Any:
        answer = await self._send(kind, msgspec.json.encode(payload) if payload else None)
        return msgspec.json.decode(answer.payload) if answer.payload else []


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
