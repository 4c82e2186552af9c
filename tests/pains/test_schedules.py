"""Reports of schedules that ran twice, not at all, or an hour off.

Where the report spans days or a change of the clock, the engine is asked directly, with a clock
that the test moves and a store that survives its restarts.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgpack
import pytest
from tests.engine.making import put
from tests.support.patience import eventually
from tests.support.proxy import Proxy
from tests.support.restart import Machine
from tests.support.server import Server, figure
from tests.support.wire import Wire

from tandemq.engine import consume, schedules, settle
from tandemq.model.message import State
from tandemq.model.schedule import Schedule

MINUTE, DAY = 60_000, 86_400_000
NEW_YORK, AMSTERDAM, LORD_HOWE = "America/New_York", "Europe/Amsterdam", "Australia/Lord_Howe"


def ms(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def utc(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%MZ")


def upsert(machine: Machine, name: str = "s", **fields: Any) -> None:
    made = Schedule(**{"name": name, "queue": "q", "job_name": "j", "body": b"\x01", **fields})
    schedules.upsert(machine.engine, made, machine.now)
    machine.keep()


def delete(machine: Machine, name: str = "s") -> None:
    schedules.delete(machine.engine, name)
    machine.keep()


def work(machine: Machine) -> None:
    """Complete what is ready."""
    for m in consume.take(machine.engine, "q", None, 1_000, None, machine.now):
        settle.ack(machine.engine, m.id, None, machine.now)
    machine.keep()


def run(machine: Machine, until: str, every: int = MINUTE) -> list[str]:
    """Let time pass with a worker that is always there; return when runs took place, in UTC."""
    end = ms(until)
    while machine.now < end:
        machine.pass_time(min(end, machine.now + every))
        work(machine)
    return [utc(at) for at in machine.runs()]


# -- doubled (P10 to P13, P16) -------------------------------------------------------------------


def test_however_often_a_schedule_is_changed_deleted_and_added_it_runs_once_each_time() -> None:
    machine = Machine(ms("2026-05-01T00:00Z"))
    for n in range(20):
        upsert(machine, every=MINUTE, body=bytes([n]))
    for _ in range(5):
        delete(machine)
        upsert(machine, every=MINUTE)
    assert len(run(machine, "2026-05-01T00:10Z")) == 10


@pytest.mark.parametrize("kill", [False, True])
def test_a_schedule_that_each_boot_deletes_and_adds_runs_once_a_monday_over_a_clock_change(
    kill: bool,
) -> None:
    machine = Machine(ms("2026-10-20T00:00Z"))
    boots = ["2026-10-26T09:59Z", "2026-10-26T10:01Z", "2026-11-01T05:30Z", "2026-11-01T06:30Z"]
    for boot in [*boots, "2026-11-02T10:30Z"]:
        delete(machine)
        upsert(machine, pattern="0 6 * * MON", tz=NEW_YORK)
        run(machine, boot)
        machine.restart(kill=kill)
    assert run(machine, "2026-11-10T00:00Z", every=60 * MINUTE) == [
        "2026-10-26T10:00Z",
        "2026-11-02T11:00Z",
        "2026-11-09T11:00Z",
    ]


@pytest.mark.slow
def test_restarts_of_server_and_client_leave_one_pending_run(
    own_server: Server, queue: str
) -> None:
    planned = set()
    for n in range(figure("TANDEMQ_TEST_RESTARTS", short=4, long=10)):
        with own_server.connect() as wire:
            cron = wire.do("Cron", name="s", queue=queue, data=1, repeatEvery=5 * MINUTE)["cron"]
            planned.add(cron["nextRun"])
            assert len(wire.do("CronList")["crons"]) == 1
            assert wire.do("Count", queue=queue)["count"] == 0
        own_server.kill() if n % 2 else own_server.stop()
        own_server.start()
    assert len(planned) == 1  # and no restart has put it off
    with own_server.connect() as wire:
        assert len(wire.do("CronList")["crons"]) == 1


@pytest.mark.slow
def test_a_run_after_the_links_were_dead_for_a_while_is_on_time(server: Server, queue: str) -> None:
    with Proxy(server.port) as proxy, Wire(proxy.port) as dead:
        cron = dead.do(
            "Cron", name=queue, queue=queue, data=1, repeatEvery=400, preventOverlap=False
        )["cron"]
        dead.send("PULL", queue=queue, owner="dead", timeout=200)
        assert dead.ping()
        proxy.swallow()
        proxy.cut()
        with server.connect() as wire:
            eventually(lambda: wire.do("Count", queue=queue)["count"] >= 3, "three runs")
            wire.do("CronDelete", name=queue)
            first, *rest = [job["createdAt"] for job in wire.jobs(queue)][:3]
    assert abs(first - cron["nextRun"]) < 300
    assert all(abs(at - first - 400 * n) < 300 for n, at in enumerate(rest, 1))


def test_a_local_time_is_not_a_time_in_utc_too() -> None:
    machine = Machine(ms("2026-06-01T00:00Z"))
    upsert(machine, pattern="1 12 * * *", tz="Europe/Rome")
    assert run(machine, "2026-06-02T00:00Z") == ["2026-06-01T10:01Z"]


@pytest.mark.parametrize("gone", [False, True])
def test_a_run_that_outlives_its_interval_is_the_only_one_although_its_client_restarts(
    gone: bool,
) -> None:
    machine = Machine(ms("2026-06-01T00:00Z"))
    upsert(machine, pattern="* * * * *")
    machine.pass_time(machine.now + MINUTE)
    (m,) = consume.take(machine.engine, "q", 1, 1, 120_000, machine.now)
    machine.pass_time(machine.now + 20_000)
    upsert(machine, pattern="* * * * *")  # another client of the same program
    if gone:  # the connection of the worker broke too: that run is over
        consume.disconnect(machine.engine, 1, machine.now)
        assert machine.jobs() == []
        return
    assert m.lease is not None
    for _ in range(5):
        settle.heartbeat(machine.engine, m.id, m.lease.token, machine.now)
        machine.pass_time(machine.now + 10_000)
    assert machine.jobs() == [m]
    settle.ack(machine.engine, m.id, m.lease.token, machine.now)
    machine.pass_time(machine.now + MINUTE)
    assert [each.state for each in machine.jobs()] == [State.DONE, State.READY]


# -- an hour off (P41 to P44) --------------------------------------------------------------------


def test_an_hourly_schedule_runs_in_both_of_two_equal_hours() -> None:
    machine = Machine(ms("2026-11-01T04:30Z"))
    upsert(machine, pattern="0 * * * *", tz=NEW_YORK)
    assert run(machine, "2026-11-01T07:30Z") == [
        "2026-11-01T05:00Z",
        "2026-11-01T06:00Z",
        "2026-11-01T07:00Z",
    ]


def test_a_daily_schedule_is_on_time_on_the_first_day_of_summer_time() -> None:
    machine = Machine(ms("2026-03-07T00:00Z"))
    upsert(machine, pattern="0 9 * * *", tz=NEW_YORK)
    assert run(machine, "2026-03-09T00:00Z") == ["2026-03-07T14:00Z", "2026-03-08T13:00Z"]


def test_a_time_that_comes_twice_is_run_once() -> None:
    machine = Machine(ms("2026-11-01T00:00Z"))
    upsert(machine, pattern="30 1 * * *", tz=NEW_YORK)
    assert run(machine, "2026-11-02T12:00Z") == ["2026-11-01T05:30Z", "2026-11-02T06:30Z"]


def test_a_schedule_knows_its_zone_in_winter_and_in_summer(wire: Wire, queue: str) -> None:
    assert schedules.parse("0 6 * * *", AMSTERDAM).next(ms("2026-01-10T00:00Z")) == ms(
        "2026-01-10T05:00Z"
    )
    assert schedules.parse("0 6 * * *", AMSTERDAM).next(ms("2026-07-10T00:00Z")) == ms(
        "2026-07-10T04:00Z"
    )
    wire.do("Cron", name=queue, queue=queue, data=1, schedule="0 6 * * *", timezone=AMSTERDAM)
    for shown in wire.do("CronGet", name=queue, preview=300)["preview"]:
        assert shown["local"][11:16] == "06:00"
        assert shown["utc"][11:16] == {"+01:00": "05:00", "+02:00": "04:00"}[shown["local"][19:]]
        assert datetime.fromisoformat(shown["utc"]).timestamp() * 1000 == shown["at"]
    wire.do("CronDelete", name=queue)


@pytest.mark.parametrize(
    ("zone", "start", "end", "pattern", "expected"),
    [
        (NEW_YORK, "03-08T05:30", "03-09T12:00", "30 2 * * *", ["03-08T07:00", "03-09T06:30"]),
        (AMSTERDAM, "03-29T00:00", "03-30T12:00", "30 2 * * *", ["03-29T01:00", "03-30T00:30"]),
        (AMSTERDAM, "10-25T00:00", "10-26T12:00", "30 2 * * *", ["10-25T00:30", "10-26T01:30"]),
        (LORD_HOWE, "10-03T14:00", "10-04T16:00", "15 2 * * *", ["10-03T15:30", "10-04T15:15"]),
        (LORD_HOWE, "04-04T14:00", "04-05T16:00", "45 1 * * *", ["04-04T14:45", "04-05T15:15"]),
        (NEW_YORK, "03-08T06:15", "03-08T07:45", "30 * * * *", ["03-08T06:30", "03-08T07:30"]),
        (LORD_HOWE, "04-04T13:30", "04-04T16:00", "0 * * * *", ["04-04T14:00", "04-04T15:30"]),
        (LORD_HOWE, "10-03T15:00", "10-03T16:15", "0 * * * *", ["10-03T15:30", "10-03T16:00"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("restarts", [False, True])
def test_both_changes_of_the_clock_in_three_zones(
    zone: str, start: str, end: str, pattern: str, expected: list[str], restarts: bool
) -> None:
    machine = Machine(ms(f"2026-{start}Z"))
    upsert(machine, pattern=pattern, tz=zone)
    while machine.now < ms(f"2026-{end}Z"):
        machine.pass_time(machine.now + 15 * MINUTE)
        work(machine)
        if restarts:
            machine.restart(kill=True)
    assert [utc(at) for at in machine.runs()] == [f"2026-{at}Z" for at in expected]


# -- far away (P46) ------------------------------------------------------------------------------


def test_a_long_delay_stays_a_delay_and_one_that_is_too_long_is_refused(
    wire: Wire, queue: str
) -> None:
    for delay in (25 * DAY, 365 * DAY):
        job = wire.push(queue, 1, delay=delay)
        assert wire.do("GetState", id=job)["state"] == "delayed"
    for delay in (400 * DAY, 2.0**53 - 1):
        answer = wire.ask("PUSH", queue=queue, data=1, delay=delay)
        assert answer["error"] == "delay must be at most 31536000000"
    assert wire.pull(queue)["job"] is None


@pytest.mark.parametrize("days", [25, 365])
def test_a_long_delay_ends_when_it_is_due(days: int) -> None:
    machine = Machine(ms("2026-01-01T00:00Z"))
    m = put(machine.engine, delay=days * DAY, now=machine.now)
    machine.pass_time(machine.now + days * DAY - 1)
    machine.restart()
    (m,) = machine.jobs()
    assert m.state is State.DELAYED
    machine.pass_time(machine.now + 1)
    assert m.state is State.READY


def test_a_schedule_runs_after_months() -> None:
    machine = Machine(ms("2026-01-01T00:00Z"))
    upsert(machine, every=200 * DAY)
    upsert(machine, "t", pattern="0 0 29 2 *")
    machine.pass_time(ms("2028-03-01T00:00Z"))
    assert utc(next(iter(machine.runs()))) == "2026-07-20T00:00Z"
    assert machine.engine.schedules["t"].executions == 1


# -- over an upgrade (P81, P82) ------------------------------------------------------------------

# As the first release with schedules stored them.
STORED = {
    "cron/nightly": {
        "name": "nightly",
        "queue": "q",
        "job_name": "report",
        "body": b"\x81\xa1a\x01",
        "pattern": "0 3 * * *",
        "tz": "Europe/Rome",
        "priority": 4,
        "job": {"max_attempts": 9, "dedup_keep": True},
        "executions": 7,
        "next": 1_780_275_600_000,
    },
    "cron/often": {
        "name": "often",
        "queue": "q",
        "job_name": "tick",
        "body": b"\x07",
        "every": 60_000,
        "prevent_overlap": False,
        "missed": "once",
        "max_lateness": 600_000,
        "skip_if_no_worker": False,
        "next": 1_780_272_060_000,
    },
    "cron/twice": {
        "name": "twice",
        "queue": "q",
        "job_name": "default",
        "body": b"\xd4\x00\x00",
        "every": 3_600_000,
        "delay": 5,
        "max_runs": 2,
        "next": 1_780_272_000_000,
        "last_job": "id-9",
    },
}


def test_schedules_in_the_file_of_an_earlier_release_all_run() -> None:
    machine = Machine(ms("2026-06-01T00:00Z"))
    machine.facts = {key: msgpack.packb(value) for key, value in STORED.items()}
    machine.restart()
    run(machine, "2026-06-01T01:01Z")
    names = [m.name for m in machine.jobs()]
    assert [names.count(name) for name in ("report", "tick", "default")] == [1, 61, 2]
    assert machine.engine.schedules["nightly"].executions == 8


PAYLOAD = {"text": "naïve ☃", "list": [1, 2.5, None, {"a": []}], "name": {"not": "a text"}}


@pytest.mark.slow
def test_the_payload_of_a_schedule_is_the_same_on_every_run(own_server: Server, queue: str) -> None:
    with own_server.connect() as wire:
        wire.do(
            "Cron", name="s", queue=queue, data=PAYLOAD, repeatEvery=300, skipMissedOnRestart=False
        )
    for kill in (False, True, False):
        with own_server.connect() as wire:
            answer = wire.pull(queue, timeout=10_000)
            assert answer["job"]["data"] == PAYLOAD
            wire.do("ACK", id=answer["job"]["id"], token=answer["token"])
        own_server.kill() if kill else own_server.stop()
        own_server.start()
    with own_server.connect() as wire:
        eventually(lambda: wire.do("Count", queue=queue)["count"], "a run after the restart")
        assert wire.pull(queue)["job"]["data"] == PAYLOAD
