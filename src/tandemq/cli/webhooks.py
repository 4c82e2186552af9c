"""``tandemq webhook``: who is told over HTTP."""

from __future__ import annotations

import click

from tandemq.cli.groups import Verbs
from tandemq.cli.link import Server
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.verb import present, verb

EVENTS = (
    "job.pushed", "job.started", "job.completed", "job.failed", "job.progress", "job.stalled",
)  # fmt: skip
LISTED = columns(
    "id", "url", "events", "queue", "enabled", "successCount", "failureCount", "lastTriggered"
)


@click.group(cls=Verbs, aliases={"delete": "remove"})
def webhook() -> None:
    """List, add, remove and switch webhooks."""


@verb(webhook, "list")
def list_(server: Server) -> Shown:
    """List the webhooks and how their deliveries went.

    Example: tandemq webhook list
    """
    return Rows(LISTED, server.call("ListWebhooks")["webhooks"], "There is no webhook.")


@verb(webhook)
@click.argument("target")
@click.option("--event", "events", multiple=True, type=click.Choice(EVENTS), help="Repeat it.")
@click.option("--queue", help="Only events of this queue.")
@click.option("--secret", envvar="TANDEMQ_WEBHOOK_SECRET", help="Signs what is sent.")
def add(
    server: Server, target: str, events: tuple[str, ...], queue: str | None, secret: str | None
) -> Shown:
    """Have events sent to a URL.

    Example: tandemq webhook add https://example.org/hook --event job.failed --queue mail
    """
    chosen = list(events or ("job.completed", "job.failed"))
    said = server.call(
        "AddWebhook", url=target, events=chosen, **present({"queue": queue, "secret": secret})
    )
    made = {key: said.get(key) for key in ("webhookId", "url", "events", "queue", "createdAt")}
    return Card(made, ("webhookId",))


@verb(webhook, asks="Remove webhook {id}?")
@click.argument("id")
def remove(server: Server, id: str) -> Shown:
    """Remove a webhook; deliveries that wait are not made.

    Example: tandemq webhook remove 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69 --yes
    """
    server.call("RemoveWebhook", webhookId=id)
    return Done(f"Removed {id}.", {"id": id})


@verb(webhook)
@click.argument("id")
def enable(server: Server, id: str) -> Shown:
    """Switch a webhook on.

    Example: tandemq webhook enable 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    server.call("SetWebhookEnabled", id=id, enabled=True)
    return Done(f"{id} is on.", {"id": id, "enabled": True})


@verb(webhook)
@click.argument("id")
def disable(server: Server, id: str) -> Shown:
    """Switch a webhook off.

    Example: tandemq webhook disable 0193a3f0-5a0e-7cc1-8b6e-3f1d2c4b5a69
    """
    server.call("SetWebhookEnabled", id=id, enabled=False)
    return Done(f"{id} is off.", {"id": id, "enabled": False})
