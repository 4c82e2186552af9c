"""Webhooks: URLs that the server tells what happens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tandemq.client.pool import Pool


class Webhooks:
    """The webhooks of a server."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def add(
        self,
        url: str,
        events: Sequence[str],
        *,
        queue: str | None = None,
        secret: str | None = None,
    ) -> str:
        """Have events sent to a URL, of one queue or of all; return the id of the webhook."""
        answer = await self.pool.call(
            "AddWebhook", url=url, events=list(events), queue=queue, secret=secret
        )
        return str(answer["data"]["webhookId"])

    async def remove(self, id: str) -> None:
        """Remove one; deliveries that wait are not made."""
        await self.pool.call("RemoveWebhook", webhookId=id)

    async def list(self) -> list[dict[str, Any]]:
        """Return all of them with their figures; a secret is never shown."""
        return list((await self.pool.call("ListWebhooks"))["data"]["webhooks"])

    async def enable(self, id: str, enabled: bool = True) -> None:
        """Switch one on or off."""
        await self.pool.call("SetWebhookEnabled", id=id, enabled=enabled)
