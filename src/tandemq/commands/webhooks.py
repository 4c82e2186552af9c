"""AddWebhook, RemoveWebhook, ListWebhooks and SetWebhookEnabled: being told over HTTP."""

from __future__ import annotations

from typing import Any

from tandemq.commands import fields as check
from tandemq.commands.answers import whole
from tandemq.commands.call import Call, Data
from tandemq.commands.table import Permission, Request, command
from tandemq.engine.webhooks import EVENTS, Webhook
from tandemq.model import webhook_url
from tandemq.model.body import well_formed
from tandemq.model.errors import BadRequest, NotFound
from tandemq.model.size import texts_bytes

NAMED = ("job.pushed", "job.started", "job.completed", "job.failed", "job.progress")
ACCEPTED = frozenset(EVENTS.values())  # job.stalled too, which the refusal does not name
UNKNOWN = "Webhook not found"
SECRET_LENGTH = 4_096  # characters
WEBHOOK = 400  # bytes of one that is shown, besides its texts


class AddWebhook(Request, tag="AddWebhook"):
    """Ask that events are sent to a URL."""

    url: Any = None
    events: Any = None
    queue: Any = None  # absent: of every queue
    secret: Any = None  # signs what is sent


class RemoveWebhook(Request, tag="RemoveWebhook"):
    """Ask that nothing is sent there any more."""

    webhook_id: Any = None


class ListWebhooks(Request, tag="ListWebhooks"):
    """Ask what is sent where."""


class SetWebhookEnabled(Request, tag="SetWebhookEnabled"):
    """Switch a webhook on or off."""

    id: Any = None
    enabled: Any = None


@command(Permission.SUPERUSER, http="POST /webhooks body")
def add_webhook(req: AddWebhook, call: Call) -> Data:
    """Register a URL for events of one queue or of all; private addresses are refused."""
    webhook_url.check(req.url)
    if not isinstance(req.events, list):
        raise BadRequest("events must be a list")
    names = [name if isinstance(name, str) else "?" for name in req.events]
    unknown = [name for name in names if name not in ACCEPTED]
    if unknown:
        shown = ", ".join(name[:100] for name in unknown[:10])
        raise BadRequest(f"Invalid webhook event(s): {shown}. Valid: {', '.join(NAMED)}")
    hooks = call.engine.webhooks
    if len(hooks) >= hooks.most:
        raise BadRequest(f"There are {len(hooks)} webhooks already; remove some first")
    hook = Webhook(
        id=call.engine.new_id(call.now),
        url=req.url,
        events=tuple(dict.fromkeys(names)),
        queue=_text(req.queue, "queue", check.QUEUE_LENGTH),
        secret=_text(req.secret, "secret", SECRET_LENGTH),
        created=call.now,
    )
    hooks.put(call.engine, hook)
    call.host.observers.hooked()
    told = _shown(hook)
    named = {name: told[name] for name in ("url", "events", "queue", "createdAt")}
    call.remark("webhook:added", None, id=hook.id, url=hook.url, events=hook.events)
    return Data({"webhookId": hook.id, **named})


@command(Permission.SUPERUSER, http="DELETE /webhooks/{webhookId} 404")
def remove_webhook(req: RemoveWebhook, call: Call) -> Data:
    """Remove a webhook; deliveries that wait are not made."""
    if not call.engine.webhooks.remove(call.engine, check.job_id(req.webhook_id)):
        raise NotFound(UNKNOWN)
    call.remark("webhook:removed", None, id=req.webhook_id)
    return Data({"removed": True})


@command(Permission.SUPERUSER, http="GET /webhooks")
def list_webhooks(req: ListWebhooks, call: Call) -> Data:
    """Return every webhook with its figures; a secret is never shown."""
    hooks = call.engine.webhooks
    return Data(
        {
            "webhooks": [_shown(hook) for hook in whole(hooks.listed(), _size)],
            "stats": {"total": len(hooks), "enabled": hooks.enabled},
        }
    )


@command(Permission.SUPERUSER, http="PUT /webhooks/{id}/enabled")
def set_webhook_enabled(req: SetWebhookEnabled, call: Call) -> None:
    """Switch a webhook on or off."""
    hook = call.engine.webhooks.get(check.job_id(req.id))
    if hook is None:
        raise NotFound(UNKNOWN)
    hook.enabled = bool(req.enabled)
    call.engine.webhooks.put(call.engine, hook)
    call.remark(f"webhook:{'enabled' if hook.enabled else 'disabled'}", None, id=hook.id)


def _shown(hook: Webhook) -> dict[str, Any]:
    return {
        "id": hook.id,
        "url": hook.url,
        "events": hook.events,
        "queue": hook.queue,
        "createdAt": float(hook.created),
        "lastTriggered": float(hook.last) if hook.last else None,
        "successCount": hook.succeeded,
        "failureCount": hook.failed,
        "enabled": hook.enabled,
    }


def _size(hook: Webhook) -> int:
    return WEBHOOK + texts_bytes((hook.url, hook.queue))


def _text(value: Any, name: str, limit: int) -> str | None:
    """Take an optional text that will be stored; what is empty counts as absent."""
    if not value:
        return None
    if not isinstance(value, str) or len(value) > limit:
        raise BadRequest(f"{name} must be a text of at most {limit} characters")
    return well_formed(value)
