"""Declared queues: each row of the table of differences, and each thing to do about them."""

from __future__ import annotations

import asyncio
import logging
import pickle
from datetime import timedelta
from typing import Any

import pytest
from tests.client.broker.places import BOTH, QUICK, Script, builder, client, place

from tandemq.broker import DeliveryMode, OverflowStrategy, QueueOptions
from tandemq.broker.messages import QueueInfo
from tandemq.client.broker import OnConflict, QueueConflict, QueueDeclaration, Severity
from tandemq.client.broker.declare import differences
from tandemq.client.errors import Refused
from tandemq.wires.sniff import Wire

INFO, SOFT, HARD = Severity
DLQ = {"enable_dead_letter_queue": True}
REDIRECT = {**DLQ, "overflow_strategy": OverflowStrategy.REDIRECT_TO_DLQ}

# There, declared, and what is found; the table of VibeMQ semantics 15.4.
ROWS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Severity]]] = [
    ({}, {"mode": DeliveryMode.FAN_OUT_WITH_ACK}, {"mode": HARD}),
    ({}, {"max_queue_size": 51}, {"max_queue_size": INFO}),
    ({}, {"message_ttl": 60}, {"message_ttl": SOFT}),
    ({"message_ttl": 60}, {"message_ttl": 30}, {"message_ttl": SOFT}),
    ({"message_ttl": 60}, {}, {"message_ttl": INFO}),
    ({"message_ttl": 60}, {"message_ttl": 90}, {"message_ttl": INFO}),
    ({}, DLQ, {"enable_dead_letter_queue": INFO}),
    (DLQ, {}, {"enable_dead_letter_queue": SOFT}),
    (DLQ, {**DLQ, "dead_letter_queue_name": "x"}, {"dead_letter_queue_name": HARD}),
    ({"dead_letter_queue_name": "y"}, {"dead_letter_queue_name": "x"}, {}),
    (
        {},
        {"overflow_strategy": OverflowStrategy.BLOCK_PUBLISHER},
        {"overflow_strategy": INFO},
    ),
    (DLQ, REDIRECT, {"overflow_strategy": INFO}),
    ({}, REDIRECT, {"enable_dead_letter_queue": INFO, "overflow_strategy": HARD}),
    ({}, {"max_retry_attempts": 9}, {"max_retry_attempts": INFO}),
    ({}, {}, {}),
]
EACH_ROW = pytest.mark.parametrize(("there", "declared", "found"), ROWS)


@EACH_ROW
def test_every_difference_has_its_severity(
    there: dict[str, Any], declared: dict[str, Any], found: dict[str, Severity]
) -> None:
    seen = {d.setting: d.severity for d in differences(info(**there), QueueOptions(**declared))}
    assert seen == found


def info(**options: Any) -> QueueInfo:
    """What a broker tells of a queue that was made so."""
    o = QueueOptions(**options)
    return QueueInfo(
        name="q",
        message_count=0,
        subscriber_count=0,
        delivery_mode=o.mode,
        max_size=o.max_queue_size,
        created_at=None,  # type: ignore[arg-type]
        message_ttl=None if o.message_ttl is None else timedelta(seconds=float(o.message_ttl)),  # type: ignore[arg-type]
        enable_dead_letter_queue=o.enable_dead_letter_queue,
        dead_letter_queue_name=o.dead_letter_queue_name,
        overflow_strategy=o.overflow_strategy,
        max_retry_attempts=o.max_retry_attempts,
    )


@pytest.mark.parametrize("on_conflict", OnConflict)
@EACH_ROW
async def test_s_291_each_policy_does_with_each_difference_what_it_says(
    there: dict[str, Any],
    declared: dict[str, Any],
    found: dict[str, Severity],
    on_conflict: OnConflict,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING, "tandemq.client")
    worst = max(found.values(), default=INFO)
    wanted = QueueDeclaration(options=QueueOptions(**declared), on_conflict=on_conflict)
    async with place() as (server, first):
        await first.create_queue("q", QueueOptions(**there))
        await first.publish("q", 1)
        made = server.get_queue_info("q")
        second = client(server.port, queue_declarations={"q": wanted})
        if worst > INFO and on_conflict is OnConflict.FAIL:
            with pytest.raises(QueueConflict) as caught:
                await second.connect()
            assert caught.value.severity is worst
            assert not second.is_connected
        else:
            await second.connect()
            await second.disconnect()
        replaced = worst > INFO and on_conflict is OnConflict.OVERRIDE
        now = server.get_queue_info("q")
        assert now is not None
        assert (now == made) is not replaced
        assert now.message_count == (0 if replaced else 1)
    logged = {record.levelno for record in caplog.records}
    shown = on_conflict is OnConflict.IGNORE
    levels = {SOFT: logging.WARNING, HARD: logging.ERROR}
    assert logged == {levels[s] for s in found.values() if shown and s in levels}


@BOTH
async def test_what_is_missing_is_made_and_what_is_there_stays(wire: Wire) -> None:
    declared = {
        "one": QueueOptions(mode=DeliveryMode.PRIORITY_BASED, max_queue_size=5),
        "two": QueueDeclaration(),
    }
    async with builder().build() as server:
        for _ in range(2):
            async with client(server.port, wire, queue_declarations=declared) as broker:
                one = await broker.queue_info("one")
                assert one is not None
                assert (one.delivery_mode, one.max_size) == (DeliveryMode.PRIORITY_BASED, 5)
                assert sorted(await broker.list_queues()) == ["one", "two"]


def test_s_291_redirecting_without_dead_letters_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="REDIRECT_TO_DLQ needs enable_dead_letter_queue"):
        QueueOptions(overflow_strategy=OverflowStrategy.REDIRECT_TO_DLQ)


async def test_a_declaration_can_be_made_at_any_time() -> None:
    async with place() as (_, broker):
        await broker.declare("q", QueueOptions(max_queue_size=5))
        await broker.declare("q", QueueOptions(max_queue_size=6))
        with pytest.raises(QueueConflict, match="on_conflict=OnConflict"):
            await broker.declare("q", QueueOptions(message_ttl=1))
        await broker.declare("q", QueueOptions(message_ttl=1), OnConflict.OVERRIDE)
        there = await broker.queue_info("q")
        assert there is not None
        assert there.message_ttl == timedelta(seconds=1)


@pytest.mark.parametrize("fails", [True, False])
async def test_what_else_goes_wrong_ends_the_connect_or_is_logged(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = QueueDeclaration(fail_on_provisioning_error=fails)
    async with builder().build() as server:
        broker = client(server.port, queue_declarations={"no name": wanted, "good": QueueOptions()})
        if fails:
            with pytest.raises(Refused, match="QueueInfo: Queue name contains"):
                await broker.connect()
            assert server.list_queues() == []
        else:
            await broker.connect()
            assert server.list_queues() == ["good"]
            assert "queue 'no name' could not be declared" in caplog.text
            await broker.disconnect()


async def test_after_a_reconnect_no_conflict_matters(caplog: pytest.LogCaptureFixture) -> None:
    wanted = QueueDeclaration(options=QueueOptions(max_queue_size=5), on_conflict=OnConflict.FAIL)
    async with Script() as script:
        broker = client(script.port, queue_declarations={"q": wanted}, reconnect_policy=QUICK)
        coming = asyncio.create_task(broker.connect())
        first = await script.next()
        await first.welcome()
        await first.answer("QueueInfo")
        await first.answer("CreateQueue")
        await coming
        first.break_off()
        second = await script.next()
        await second.welcome()
        fan = {"deliveryMode": 1, "maxSize": 5, "createdAt": "2026-01-01T00:00:00.1234567Z"}
        facts = {"name": "q", "messageCount": 0, "subscriberCount": 0, **fan}
        await second.answer("QueueInfo", payload=facts)
        sent = asyncio.create_task(broker.publish("q", 1))
        await second.answer("Publish")
        await sent
        await broker.disconnect()
    assert "mode is FAN_OUT_WITH_ACK, declared is ROUND_ROBIN" in caplog.text


def test_a_conflict_can_be_sent_to_another_process() -> None:
    found = tuple(differences(info(), QueueOptions(mode=DeliveryMode.FAN_OUT_WITH_ACK)))
    again = pickle.loads(pickle.dumps(QueueConflict("q", found)))
    assert (again.queue, again.differences, again.severity) == ("q", found, HARD)
