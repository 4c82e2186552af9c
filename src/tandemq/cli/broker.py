"""``tandemq broker``: messages that are pushed to whoever subscribes, and their queues."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import click

from tandemq.broker.messages import QueueInfo
from tandemq.broker.names import DeliveryMode, MessagePriority, OverflowStrategy
from tandemq.cli import output
from tandemq.cli.exits import Refused
from tandemq.cli.groups import Verbs
from tandemq.cli.output import Card, Done, Rows, Shown, columns
from tandemq.cli.types import DURATION, PAYLOAD
from tandemq.cli.verb import current, verb

if TYPE_CHECKING:
    from tandemq.client.broker import Broker
    from tandemq.client.broker.message import Message

MODES = {name.replace("_", "-").lower(): mode for name, mode in DeliveryMode.__members__.items()}
STRATEGIES = {
    name.replace("_", "-").lower(): each for name, each in OverflowStrategy.__members__.items()
}
LEVELS = [name.lower() for name in MessagePriority.__members__]
LISTED = columns("name", "messageCount", "subscriberCount", "deliveryMode", "maxSize", "createdAt")
AT_ONCE = 100  # queues that are asked about at a time


@click.group(cls=Verbs, aliases={"list": "queues", "show": "info", "declare": "create"})
def broker() -> None:
    """Publish and subscribe, and look after the queues of the broker."""


@verb(broker, link="broker")
async def queues(broker: Broker) -> Shown:
    """List the queues of the broker, with what waits in each and who is subscribed.

    Example: tandemq broker queues
    """
    names = sorted(await broker.list_queues())
    found: list[QueueInfo | None] = []
    for start in range(0, len(names), AT_ONCE):
        part = names[start : start + AT_ONCE]
        found += await asyncio.gather(*(broker.queue_info(name) for name in part))
    return Rows(LISTED, [_shown(each) for each in found if each is not None], "There is no queue.")


@verb(broker, link="broker")
@click.argument("queue")
async def info(broker: Broker, queue: str) -> Shown:
    """Show how a queue delivers, and what is in it.

    Example: tandemq broker info orders
    """
    found = await broker.queue_info(queue)
    if found is None:
        raise Refused(f"There is no queue {queue}.")
    return Card(_shown(found), ("name",))


@verb(broker, link="broker")
@click.argument("queue")
@click.option("--mode", type=click.Choice(list(MODES)), help="To whom a message goes.")
@click.option("--max-size", "max_queue_size", type=click.IntRange(1), help="Messages that wait.")
@click.option("--ttl", "message_ttl", type=DURATION, help="How long a message is good.")
@click.option("--overflow", type=click.Choice(list(STRATEGIES)), help="What a full queue does.")
@click.option("--max-attempts", "max_retry_attempts", type=click.IntRange(0), help="Deliveries.")
@click.option("--dead-letters", is_flag=True, help="Keep what nobody acknowledges.")
@click.option("--dead-letter-queue", help="Where; QUEUE.dlq if not said.")
async def create(broker: Broker, queue: str, **options: Any) -> Shown:
    """Make a queue; one that exists stays as it is.

    Example: tandemq broker create orders --mode fan-out-with-ack --dead-letters
    """
    from tandemq.broker.options import QueueOptions

    said = {key: options[key] for key in ("max_queue_size", "max_retry_attempts")}
    said["mode"] = MODES.get(options["mode"])
    said["overflow_strategy"] = STRATEGIES.get(options["overflow"])
    said["dead_letter_queue_name"] = options["dead_letter_queue"]
    if options["message_ttl"] is not None:
        said["message_ttl"] = options["message_ttl"] / 1000
    if options["dead_letters"] or options["dead_letter_queue"]:
        said["enable_dead_letter_queue"] = True
    given = {key: value for key, value in said.items() if value is not None}
    try:
        wanted = QueueOptions(**given) if given else None
    except ValueError as problem:
        raise click.UsageError(f"{problem}.") from None
    await broker.create_queue(queue, wanted)
    made = await broker.queue_info(queue)
    return Card({"name": queue} if made is None else _shown(made), ("name",))


@verb(broker, asks="Delete queue {queue} with everything in it?", link="broker")
@click.argument("queue")
async def delete(broker: Broker, queue: str) -> Shown:
    """Remove a queue with everything in it.

    Example: tandemq broker delete orders --yes
    """
    await broker.delete_queue(queue)
    return Done(f"{queue} is gone.", {"queue": queue})


@verb(broker, link="broker")
@click.argument("queue")
@click.argument("payload", type=PAYLOAD, required=False)
@click.option("--priority", type=click.Choice(LEVELS), help="How urgent it is.")
@click.option("--header", "headers", multiple=True, metavar="NAME=VALUE", help="Repeat it.")
@click.option("--correlation-id", help="What it belongs to.")
async def publish(
    broker: Broker,
    queue: str,
    payload: Any,
    priority: str | None,
    headers: tuple[str, ...],
    correlation_id: str | None,
) -> Shown:
    """Publish a message and print its id, once the broker has it. PAYLOAD is JSON, @FILE or -.

    Example: tandemq broker publish orders '{"number": 7}' --priority high --header source=shop
    """
    id = await broker.publish(
        queue,
        payload,
        priority=priority,
        correlation_id=correlation_id,
        headers=_headers(headers),
    )
    return Done(id, {"id": id, "queue": queue})


@verb(broker, link="broker")
@click.argument("queue")
@click.option("--count", type=click.IntRange(1), help="End after so many.")
@click.option("--for", "within", type=DURATION, help="End after so long.")
@click.option("--prefetch", type=click.IntRange(1, 1000), help="Most that are on their way.")
async def subscribe(
    broker: Broker, queue: str, count: int | None, within: int | None, prefetch: int | None
) -> Shown | None:
    """Print the messages of a queue as they come, and acknowledge each one; Ctrl-C ends it.

    Example: tandemq broker subscribe orders --count 10 --jsonl
    """
    style = current().style
    if style == "json" and count is None and within is None:
        raise click.UsageError("--json is one document: add --count or --for, or take --jsonl.")
    kept: list[Mapping[str, Any]] = []
    seen = 0
    span = None if within is None else within / 1000
    with suppress(TimeoutError):
        async with broker.subscribe(queue, prefetch=prefetch) as messages, asyncio.timeout(span):
            async for message in messages:
                async with message:
                    _print(_told(message), style, kept)
                seen += 1
                if seen == count:
                    break
    return Rows((), kept) if style == "json" else None


def _told(message: Message) -> dict[str, Any]:
    return {
        "id": message.id,
        "queue": message.queue,
        "payload": message.payload,
        "headers": message.headers,
    }


def _print(record: Mapping[str, Any], style: str, kept: list[Mapping[str, Any]]) -> None:
    """Print a message, or keep it for the document at the end."""
    if style == "json":
        kept.append(record)
    elif style == "jsonl":
        output.line(record)
    elif style == "people":
        click.echo(output.printable(output.compact(record["payload"])))


def _headers(given: tuple[str, ...]) -> dict[str, str]:
    """Read headers.

    Raises:
        UsageError: one is not written as it has to be.
    """
    pairs = [each.partition("=") for each in given]
    for name, equals, _ in pairs:
        if not (name and equals):
            raise click.UsageError(f"--header {name!r}: write NAME=VALUE.")
    return {name: value for name, _, value in pairs}


def _shown(info: QueueInfo) -> dict[str, Any]:
    """Return what a queue is like under the names of the wire; spans are ms."""
    return {_camel(key): _plain(value) for key, value in asdict(info).items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _plain(value: Any) -> Any:
    if isinstance(value, (DeliveryMode, OverflowStrategy)):
        return value.name.replace("_", "-").lower()
    if isinstance(value, timedelta):
        return round(value / timedelta(milliseconds=1))
    if isinstance(value, datetime):
        return value.astimezone(UTC).timestamp() * 1000
    return value
