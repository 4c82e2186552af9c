"""How full the memory is: what is accounted, and when the level changes."""

from __future__ import annotations

import pytest
from tests.engine.making import hold, make_engine, put, token_of
from tests.engine.office import BURY, FAN_OUT, HAND_OVER, A, B, Office

from tandemq.engine import deadletters, manage, recovery, settle
from tandemq.engine.pressure import OVERHEAD, Level, Pressure, weight
from tandemq.model.message import Letter, Message

LIMIT = 100_000


def level_at(pressure: Pressure, used: int) -> Level:
    pressure.grow(make_engine(), used - pressure.used)
    return pressure.level


@pytest.mark.parametrize(
    ("used", "level"),
    [(79_999, 0), (80_000, 80), (89_999, 80), (90_000, 90), (94_999, 90), (95_000, 95)],
)
def test_a_level_is_entered_at_its_share(used: int, level: int) -> None:
    assert level_at(Pressure(LIMIT), used) == level


@pytest.mark.parametrize(
    ("used", "level"),
    [(90_000, 95), (89_999, 90), (85_000, 90), (84_999, 80), (75_000, 80), (74_999, 0), (0, 0)],
)
def test_it_is_left_five_points_lower(used: int, level: int) -> None:
    """S-126."""
    pressure = Pressure(LIMIT)
    level_at(pressure, 99_000)
    assert level_at(pressure, used) == level


def test_it_does_not_flap() -> None:
    """S-126."""
    pressure = Pressure(LIMIT)
    for used in (79_500, 80_500, 79_500, 80_500, 79_500):
        level_at(pressure, used)
    assert pressure.changes == 1


def test_without_a_limit_there_is_no_level() -> None:
    pressure = Pressure(0)
    assert level_at(pressure, 1 << 60) is Level.CALM
    assert pressure.share == 0.0


def test_the_fuller_the_later_are_answers() -> None:
    pressure = Pressure(LIMIT)
    spans = []
    for used in (80_000, 85_000, 89_999):
        level_at(pressure, used)
        spans.append(pressure.lateness)
    assert spans == [10, 250, 499]


def test_a_message_weighs_its_body_its_headers_and_something_more() -> None:
    m = Message("a", "q", "n", b"12345", 1, 0, 0)
    assert weight(m) == OVERHEAD + 5
    m.letter = Letter("a")
    assert weight(m) == OVERHEAD + 5
    m.letter = Letter("a", {"key": "value"})
    assert weight(m) == OVERHEAD + 5 + 108


def recount(office: Office) -> bool:
    engine = office.engine
    return engine.pressure.used == sum(map(weight, engine.messages.values()))


@pytest.mark.parametrize("policy", [BURY, {**FAN_OUT, **BURY}, HAND_OVER, {"max_size": 3}])
def test_what_is_in_use_is_what_is_there(policy: dict[str, object]) -> None:
    office = Office()
    office.make(**policy)
    office.post("a", "b", headers={"x": "y"})
    put(office.engine, "job", body=b"\x01")
    assert recount(office)
    office.subscribe(A, B)
    office.ack(A, "a", "b")
    office.leave(B)
    assert recount(office)
    for seconds in (30, 4, 8):
        office.later(seconds)
        assert recount(office)
    office.leave(A)
    for m in list(office.engine.messages.values()):
        recovery.roll_back(office.engine, [m], [], office.now)
        assert recount(office)
    assert office.engine.pressure.used == 0


def test_changes_of_a_job_are_accounted() -> None:
    office = Office()
    engine = office.engine
    put(engine, "job", body=b"\x01")
    put(engine, "other", remove_on_complete=True)
    manage.update(engine, engine.messages["job"], b"\xa5hello")
    assert recount(office)
    m = hold(engine)
    settle.fail(engine, m.id, token_of(m), office.now, unrecoverable=True)
    assert recount(office)
    deadletters.retry(engine, m, office.now)
    m = hold(engine)
    settle.ack(engine, m.id, token_of(m), office.now)
    m = hold(engine)
    settle.ack(engine, m.id, token_of(m), office.now)
    assert recount(office)
    for m in list(engine.messages.values()):
        engine.forget(m) if m.state >= 5 else manage.remove(engine, m, office.now)
    assert engine.pressure.used == 0
