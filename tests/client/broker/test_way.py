"""Coming back after a connection is lost, and what waits or fails meanwhile."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Any

import pytest
from tests.client.broker.places import (
    BOTH,
    QUICK,
    Clock,
    Script,
    builder,
    client,
    place,
    turns,
    until,
)

from tandemq.broker import ReconnectPolicy
from tandemq.client.broker import Broker, Message
from tandemq.client.errors import (
    Closed,
    ConnectFailed,
    ConnectionLost,
    NotAuthorized,
    NotSent,
    TandemqError,
    WrongLoop,
)
from tandemq.wires.sniff import Wire

NEVER = ReconnectPolicy(max_attempts=0)
AT_ONCE = ReconnectPolicy(initial_delay=0.0)


class Refusals:
    """Every attempt to connect fails, and is noted with the time since the last one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._loop = asyncio.get_running_loop()
        self.last, self.waits = self._loop.time(), list[float]()
        patch.setattr(self._loop, "create_connection", self._refuse)

    async def _refuse(self, *_: Any, **__: Any) -> None:
        self.waits.append(self._loop.time() - self.last)
        self.last = self._loop.time()
        raise ConnectionRefusedError("nobody is there")


async def lose(broker: Broker, visitor: Any) -> None:
    visitor.break_off()
    await until(lambda: not broker.is_connected, "the loss")
    await turns()  # until it waits


# -- when ------------------------------------------------------------------------------------------


async def test_s_280_attempts_follow_the_series_of_the_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        clock, refusals = Clock(monkeypatch), Refusals(monkeypatch)
        await lose(broker, visitor)
        for n, wait in enumerate((1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300)):
            await clock.move(wait - 0.5)
            assert len(refusals.waits) == n
            await clock.move(0.5)
            assert len(refusals.waits) == n + 1
    assert ReconnectPolicy().get_delay(1_000_000) == 300


async def test_s_281_a_fixed_delay_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = ReconnectPolicy(initial_delay=7, use_exponential_backoff=False)
    async with Script() as script, script.joined(reconnect_policy=policy) as (broker, visitor):
        clock, refusals = Clock(monkeypatch), Refusals(monkeypatch)
        await lose(broker, visitor)
        for n in range(5):
            await clock.move(6.5)
            assert len(refusals.waits) == n
            await clock.move(0.5)
        assert len(refusals.waits) == 5


async def test_jitter_makes_a_wait_longer_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = ReconnectPolicy(initial_delay=10, jitter=0.5)
    monkeypatch.setattr("random.random", lambda: 0.5)
    async with Script() as script, script.joined(reconnect_policy=policy) as (broker, visitor):
        clock, refusals = Clock(monkeypatch), Refusals(monkeypatch)
        await lose(broker, visitor)
        await clock.move(12.4)
        assert refusals.waits == []
        await clock.move(0.2)
        assert len(refusals.waits) == 1
    with pytest.raises(ValueError, match="jitter"):
        ReconnectPolicy(jitter=-1)


async def test_after_a_success_the_series_begins_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        clock = Clock(monkeypatch)
        for _ in range(3):
            await lose(broker, visitor)
            await clock.move(1.1)
            visitor = await script.next()
            await visitor.welcome()
            await until(lambda: broker.is_connected)


async def test_s_281_no_attempt_is_made_where_none_is_allowed() -> None:
    async with Script() as script, script.joined(reconnect_policy=NEVER) as (broker, visitor):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await visitor.answer("Subscribe")
        messages = await coming
        reader = asyncio.create_task(anext(messages))
        await lose(broker, visitor)
        with pytest.raises(ConnectionLost, match="lost for good"):
            await reader
        with pytest.raises(NotSent, match="lost for good"):
            await broker.publish("q", 1)
        assert len(script.came) == 1


async def test_a_client_that_has_given_up_may_be_connected_anew() -> None:
    async with Script() as script, script.joined(reconnect_policy=NEVER) as (broker, visitor):
        await lose(broker, visitor)
        coming = asyncio.create_task(broker.connect())
        again = await script.next()
        await again.welcome()
        assert await coming is broker
        assert broker.is_connected


async def test_a_server_that_does_not_read_does_not_keep_a_client_from_going(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tandemq.client.broker.way.FAREWELL", 0.05)
    async with Script() as script, script.joined() as (broker, _):
        body = "x" * 1_000_000
        going = [asyncio.create_task(broker.publish("q", body)) for _ in range(40)]
        await turns()
        await broker.disconnect()
        failed = await asyncio.gather(*going, return_exceptions=True)
        assert {type(each) for each in failed} <= {ConnectionLost, NotSent}


async def test_a_limit_of_attempts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = ReconnectPolicy(max_attempts=3, initial_delay=0.0)
    async with Script() as script, script.joined(reconnect_policy=policy) as (broker, visitor):
        refusals = Refusals(monkeypatch)
        await lose(broker, visitor)
        await until(lambda: len(refusals.waits) == 3)
        with pytest.raises(NotSent, match="nobody is there"):
            await broker.publish("q", 1)
        assert len(refusals.waits) == 3


@BOTH
async def test_one_line_is_logged_for_each_attempt(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with Script(wire) as script, script.joined() as (broker, visitor):
        clock, refusals = Clock(monkeypatch), Refusals(monkeypatch)
        caplog.clear()
        await lose(broker, visitor)
        for wait in (1, 2, 4, 8, 16, 32):
            await clock.move(wait)
        assert len(refusals.waits) == 6
    lines = [record for record in caplog.records if record.name == "tandemq.client"]
    assert len(lines) == 7
    assert all("attempt" in record.message for record in lines)


# -- what fails, and what waits --------------------------------------------------------------------


@BOTH
async def test_what_was_written_and_what_was_not_are_told_apart(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=NEVER) as (broker, visitor):
        written = asyncio.create_task(broker.publish("q", 1))
        await visitor.expect("Publish")
        unwritten = asyncio.create_task(broker.publish("q", 2))
        await asyncio.sleep(0)  # it stands in line for this turn's write
        broker._way.link.end("the cable is cut")  # type: ignore[union-attr]
        with pytest.raises(ConnectionLost, match="the cable is cut"):
            await written
        with pytest.raises(NotSent, match="the cable is cut"):
            await unwritten


async def test_what_a_full_socket_does_not_take_was_not_sent() -> None:
    async with Script() as script, script.joined(command_timeout=0.2) as (broker, visitor):
        body = "x" * 1_000_000
        going = [asyncio.create_task(broker.publish("q", body, id=f"{n}")) for n in range(40)]
        await turns()
        more = [asyncio.create_task(broker.publish("q", n)) for n in range(5)]
        failed = await asyncio.gather(*more, return_exceptions=True)
        assert [type(each) for each in failed] == [NotSent] * 5
        assert "does not read" in str(failed[0])
        visitor.break_off()
        await asyncio.gather(*going, return_exceptions=True)


@BOTH
async def test_a_publish_waits_for_the_next_connection(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=QUICK) as (broker, visitor):
        await lose(broker, visitor)
        going = asyncio.create_task(broker.publish("q", 1))
        again = await script.next()
        await again.welcome()
        await again.answer("Publish")
        await going


async def test_but_no_longer_than_for_an_answer() -> None:
    options = {"command_timeout": 0.05}
    async with Script() as script, script.joined(**options) as (broker, visitor):
        await lose(broker, visitor)
        with pytest.raises(NotSent, match=r"no connection to 127.* for 0\.05 s"):
            await broker.publish("q", 1)


async def test_closing_ends_the_attempts() -> None:
    async with Script() as script, script.joined() as (broker, visitor):
        await lose(broker, visitor)
        waiting = asyncio.create_task(broker.publish("q", 1))
        await turns()
        await broker.disconnect()
        with pytest.raises(Closed):
            await waiting
        assert len(script.came) == 1


@BOTH
async def test_nothing_is_sent_a_second_time_by_itself(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        lost = asyncio.create_task(broker.publish("q", "once"))
        await first.expect("Publish")
        first.break_off()
        second = await script.next()
        await second.welcome()
        with pytest.raises(ConnectionLost):
            await lost
        other = asyncio.create_task(broker.publish("q", "other"))
        assert (await second.answer("Publish"))["payload"] == "other"
        await other


# -- subscriptions ---------------------------------------------------------------------------------


@BOTH
async def test_s_282_subscriptions_are_back_before_the_client_calls_itself_connected(
    wire: Wire,
) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        for queue in ("a", "b"):
            coming = asyncio.create_task(broker.subscribe(queue).__aenter__())
            await first.answer("Subscribe")
            messages = await coming
        await lose(broker, first)
        second = await script.next()
        await second.welcome()
        assert (await second.answer("Subscribe"))["queue"] == "a"
        await turns()
        assert not broker.is_connected
        assert (await second.answer("Subscribe"))["queue"] == "b"
        await until(lambda: broker.is_connected)
        second.send("Deliver", "m", queue="b", payload=1)
        async with await anext(messages) as message:
            assert message.payload == 1
        assert (await second.expect("Ack"))["id"] == "m"


@BOTH
async def test_s_282_a_refused_subscription_is_a_failed_attempt(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await first.answer("Subscribe")
        await coming
        first.break_off()
        second = await script.next()
        await second.welcome()
        asked = await second.expect("Subscribe")
        second.send("Error", asked["id"], code="NOT_AUTHORIZED", text="Access denied.")
        with pytest.raises(ConnectionError):
            await second.read()
        third = await script.next()
        await third.welcome()
        await third.answer("Subscribe")
        await until(lambda: broker.is_connected)


@BOTH
async def test_s_296_a_subscription_that_ends_meanwhile_is_not_restored(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=QUICK) as (broker, first):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await first.answer("Subscribe")
        await coming
        await lose(broker, first)
        await broker.unsubscribe("q")
        second = await script.next()
        await second.welcome()
        going = asyncio.create_task(broker.publish("q", 1))
        await second.answer("Publish")  # and neither Subscribe nor Unsubscribe before it
        await going


@BOTH
async def test_what_nobody_began_is_dropped_with_its_connection(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await first.answer("Subscribe")
        messages = await coming
        for n in range(3):
            first.send("Deliver", f"m{n}", queue="q", payload=n)
        begun = await anext(messages)
        await until(lambda: messages.waiting == 2)
        first.break_off()
        second = await script.next()
        await second.welcome()
        await second.answer("Subscribe")
        for n in range(3):
            second.send("Deliver", f"m{n}", queue="q", payload=n)
        await until(lambda: messages.waiting == 3)
        assert begun.lost
        await begun.ack()  # nobody hears it; above all the second connection does not
        for n in range(3):
            async with await anext(messages) as message:
                assert message.payload == n
            assert (await second.expect("Ack"))["id"] == f"m{n}"


@BOTH
async def test_twenty_subscriptions_survive_a_restart_of_the_broker(wire: Wire) -> None:
    async with builder().build() as server:
        port = server.port
        broker = await client(port, wire, reconnect_policy=QUICK).connect()
        all = [await broker.subscribe(f"q{n}").__aenter__() for n in range(20)]
    async with builder().use_port(port).build():
        await until(lambda: broker.is_connected)
        for n, messages in enumerate(all):
            await broker.publish(f"q{n}", n)
            async with await anext(messages) as message:
                assert message.payload == n
        await broker.disconnect()


# -- goodbyes of the server ------------------------------------------------------------------------


@BOTH
async def test_s_283_a_goodbye_of_the_server_begins_the_next_connection(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=QUICK) as (broker, first):
        first.send("Disconnect", "x", headers={"reason": "server_shutdown"})
        second = await script.next()  # the first one is still open on that side
        await second.welcome()
        await until(lambda: broker.is_connected)
        assert (await first.expect("Disconnect"))["type"] == "Disconnect"
        with pytest.raises(ConnectionError):
            await first.read()


@BOTH
async def test_work_that_is_begun_is_acknowledged_after_a_goodbye(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(reconnect_policy=QUICK) as (broker, first):
        coming = asyncio.create_task(broker.subscribe("q").__aenter__())
        await first.answer("Subscribe")
        messages = await coming
        first.send("Deliver", "begun", queue="q", payload=1)
        first.send("Deliver", "not begun", queue="q", payload=1)
        message = await anext(messages)
        first.send("Disconnect", "x", headers={"reason": "server_shutdown"})
        await until(lambda: not broker.is_connected)
        first.send("Deliver", "too late", queue="q", payload=1)
        await turns()
        assert messages.waiting == 0
        await message.ack()
        assert (await first.expect("Ack"))["id"] == "begun"
        await first.expect("Disconnect")
        second = await script.next()
        await second.welcome()
        await second.answer("Subscribe")
        await until(lambda: broker.is_connected)


async def test_a_server_that_stops_waits_for_the_work_and_nothing_is_delivered_twice() -> None:
    async with builder().build() as server:
        broker = await client(server.port, reconnect_policy=NEVER).connect()
        messages = await broker.subscribe("q").__aenter__()
        await broker.publish("q", 1)
        message = await anext(messages)
        stopping = asyncio.create_task(server.stop())
        await until(lambda: not broker.is_connected)
        assert not stopping.done()
        await message.ack()
        async with asyncio.timeout(10):  # it would wait 30 s for what is not acknowledged
            await stopping
        await broker.disconnect()


# -- signs of life ---------------------------------------------------------------------------------


@BOTH
async def test_a_sign_of_life_is_asked_for_at_each_interval(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(keep_alive_interval=0.02) as (broker, first):
        ids = {(await first.answer("Ping"))["id"] for _ in range(5)}
        assert len(ids) == 5
        assert broker.is_connected


async def test_the_first_one_is_due_after_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Script() as script:
        clock = Clock(monkeypatch)
        async with script.joined() as (_, visitor):
            await clock.move(29)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await visitor.read()
            await clock.move(2)
            await visitor.answer("Ping")


@BOTH
async def test_a_connection_without_a_sign_of_life_is_lost(
    wire: Wire, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Script(wire) as script, script.joined(keep_alive_interval=0.05) as (broker, first):
        await first.expect("Ping")
        await until(lambda: not broker.is_connected)
        await until(lambda: "gave no sign of life for 0.05 s" in caplog.text)


@BOTH
async def test_whatever_comes_is_a_sign_of_life(wire: Wire) -> None:
    async with Script(wire) as script, script.joined(keep_alive_interval=0.05) as (broker, first):
        for _ in range(3):
            await first.expect("Ping")
            first.send("Pong", "of an old ping")
        assert broker.is_connected


# -- again and again ------------------------------------------------------------------------------


@BOTH
async def test_s_295_many_connections_leave_one_reader_and_one_pinger(wire: Wire) -> None:
    """Old connections neither read the new stream nor go on asking for signs of life."""
    payloads: Counter[int] = Counter()
    rounds = 1000

    async def work(message: Message) -> None:
        payloads[message.payload] += 1
        await asyncio.sleep(0)

    async with Script(wire) as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        visitor = first
        coming = asyncio.create_task(broker.attach(work, "q", concurrency=3))
        await visitor.answer("Subscribe")
        await coming
        before = len(asyncio.all_tasks())
        for n in range(rounds):
            visitor.send("Deliver", f"m{n}", queue="q", payload=n)
            visitor.writer.write(b"\0\0")  # half of a frame, which is never completed
            await until(lambda n=n: payloads[n])  # type: ignore[misc]
            visitor.break_off()
            visitor = await script.next()
            await visitor.welcome()
            await visitor.answer("Subscribe")
        await until(lambda: broker.is_connected)
        assert payloads == Counter(range(rounds))
        await turns()
        assert len(asyncio.all_tasks()) == before


# -- where it belongs ------------------------------------------------------------------------------


async def test_a_client_is_of_use_in_its_own_loop_only() -> None:
    async with place() as (_, broker):

        def elsewhere() -> None:
            asyncio.run(broker.publish("q", 1))

        with pytest.raises(WrongLoop, match="make one for each"):
            await asyncio.to_thread(elsewhere)


async def test_a_forked_process_needs_a_client_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with place() as (_, broker):
        with monkeypatch.context() as forked:
            forked.setattr("tandemq.client.broker.way.generation", lambda: -1)
            with pytest.raises(WrongLoop, match="forked"):
                await broker.publish("q", 1)
        await broker.publish("q", 1)


# -- refusals --------------------------------------------------------------------------------------


async def test_a_login_that_is_refused_later_is_tried_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with Script() as script, script.joined(reconnect_policy=AT_ONCE) as (broker, first):
        first.break_off()
        second = await script.next()
        asked = await second.expect("Connect")
        second.send("Error", asked["id"], code="AUTH_FAILED", text="Not today.")
        third = await script.next()
        await third.welcome()
        await until(lambda: broker.is_connected)
        assert "Connect: Not today." in caplog.text


async def test_errors_of_a_connect_are_of_one_family() -> None:
    for error in (ConnectFailed, ConnectionLost, NotSent, NotAuthorized, Closed):
        assert issubclass(error, TandemqError)
    async with place() as (_, broker):
        assert broker.is_connected
