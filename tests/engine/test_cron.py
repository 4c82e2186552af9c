"""Cron expressions: what they may say, and which moments they name when clocks are set."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tandemq.engine.cron import ALIASES, LENGTH, BadPattern, parse, shown

NEW_YORK, AMSTERDAM, LORD_HOWE = "America/New_York", "Europe/Amsterdam", "Australia/Lord_Howe"


def ms(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)


def runs(expression: str, zone: str | None, after: str, count: int) -> list[str]:
    """The next runs, in UTC."""
    pattern, at, found = parse(expression, zone), ms(after), []
    for _ in range(count):
        following = pattern.next(at)
        assert following is not None
        assert following > at
        at = following
        found.append(datetime.fromtimestamp(at / 1000, UTC).strftime("%m-%dT%H:%M:%SZ"))
    return found


# -- what may be said ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "first"),
    [
        ("*/15 * * * *", "01-01T00:15:00Z"),
        ("0 9-17/2,20 * * *", "01-01T09:00:00Z"),
        ("0 0 1,15 * *", "01-15T00:00:00Z"),
        ("0 0 * * MON-FRI", "01-02T00:00:00Z"),
        ("0 0 * mar sun", "03-01T00:00:00Z"),
        ("0 0 * * 0", "01-04T00:00:00Z"),
        ("0 0 * * 7", "01-04T00:00:00Z"),
        ("0 0 13 * FRI", "01-02T00:00:00Z"),  # either day will do
        ("0 0 L * *", "01-31T00:00:00Z"),
        ("0 0 * * MON#1", "01-05T00:00:00Z"),
        ("* * * * * *", "01-01T00:00:01Z"),
        ("*/20 30 4 * * *", "01-01T04:30:00Z"),
        ("@hourly", "01-01T01:00:00Z"),
        ("@Daily", "01-02T00:00:00Z"),
        ("@MIDNIGHT", "01-02T00:00:00Z"),
        ("@weekly", "01-04T00:00:00Z"),
        ("@monthly", "02-01T00:00:00Z"),
        (" @yearly ", "01-01T00:00:00Z"),
        ("@annually", "01-01T00:00:00Z"),
    ],
)
def test_an_expression_names_its_moments(expression: str, first: str) -> None:
    assert runs(expression, None, "2026-01-01T00:00Z", 1) == [first]


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "* * * *",
        "* * * * * * *",
        "every day",
        "@never",
        "60 * * * *",
        "0 24 * * *",
        "0 0 32 * *",
        "0 0 0 * *",
        "0 0 1 13 *",
        "0 0 * * 8",
        "61 * * * * *",
        "30-10 * * * * *",
        "*/0 * * * *",
        "1- * * * *",
        ", * * * *",
        "-1 * * * *",
        "1.5 * * * *",
        "\u0661 * * * *",
        "9" * 5000 + " * * * *",
        "0 0 30 2 *",
        "0 0 31 2,4,6,9,11 *",
        "0 0 * * L",
    ],
)
def test_what_is_no_expression_or_never_matches_is_refused(expression: str) -> None:
    with pytest.raises(BadPattern):
        parse(expression)


def test_a_refusal_says_what_is_wrong() -> None:
    with pytest.raises(BadPattern, match="it has 4 fields"):
        parse("* * * *")
    with pytest.raises(BadPattern, match="bad hour"):
        parse("0 24 * * *")
    with pytest.raises(BadPattern, match=f"longer than {LENGTH}"):
        parse("*" * (LENGTH + 1))


def test_a_pattern_that_matches_by_weekday_alone_is_not_refused_for_its_date() -> None:
    assert runs("0 0 30 2 MON", None, "2026-01-31T00:00Z", 1) == ["02-02T00:00:00Z"]


def test_the_29th_of_february_is_waited_for() -> None:
    assert parse("0 12 29 2 *").next(ms("2026-01-01T00:00Z")) == ms("2028-02-29T12:00Z")
    assert parse("0 * 29 2 *", NEW_YORK).next(ms("2026-01-01T00:00Z")) == ms("2028-02-29T05:00Z")


def test_every_alias_is_an_expression() -> None:
    for alias, meaning in ALIASES.items():
        at = ms("2026-05-05T05:05Z")
        assert parse(alias.upper()).next(at) == parse(meaning).next(at)


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "America", "../etc/passwd", "x\0y", "é", "a" * 300]
)
def test_an_unknown_time_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadPattern, match="unknown time zone"):
        parse("0 0 * * *", zone)


def test_a_time_zone_may_be_written_in_any_case() -> None:
    assert runs("0 6 * * *", "europe/AMSTERDAM", "2026-01-01T00:00Z", 1) == ["01-01T05:00:00Z"]


@pytest.mark.parametrize("zone", [None, ""])
def test_without_a_time_zone_it_is_utc(zone: str | None) -> None:
    assert runs("0 6 * * *", zone, "2026-07-01T00:00Z", 1) == ["07-01T06:00:00Z"]


@pytest.mark.parametrize("at", [2**53, -(2**53), ms("9999-12-31T23:59Z")])
def test_moments_that_no_calendar_reaches_have_no_next(at: int) -> None:
    assert parse("0 0 * * *", NEW_YORK).next(at) is None
    assert parse("* * * * *", NEW_YORK).next(at) is None


def test_parts_of_a_second_do_not_hide_the_next_one() -> None:
    assert parse("* * * * * *").next(1_500) == 2_000
    assert parse("* * * * * *").next(2_000) == 3_000


def test_a_moment_is_shown_in_two_zones() -> None:
    at = ms("2026-07-01T04:00Z")
    assert shown(at) == "2026-07-01T04:00:00+00:00"
    assert shown(at, AMSTERDAM) == "2026-07-01T06:00:00+02:00"
    assert shown(at, "Mars/Olympus") == shown(at)
    assert shown(2**53) is None


# -- clocks are set back -------------------------------------------------------------------------


@pytest.mark.parametrize("expression", ["30 1 * * *", "0 30 1 * * *"])
def test_a_local_time_that_occurs_twice_fires_at_its_first_occurrence(expression: str) -> None:
    assert runs(expression, NEW_YORK, "2026-10-31T12:00Z", 2) == [
        "11-01T05:30:00Z",
        "11-02T06:30:00Z",
    ]


def test_in_the_second_of_two_equal_hours_its_times_are_over() -> None:
    assert runs("30 1 * * *", NEW_YORK, "2026-11-01T06:10Z", 1) == ["11-02T06:30:00Z"]
    assert runs("*/20 1 * * *", NEW_YORK, "2026-11-01T05:30Z", 2) == [
        "11-01T05:40:00Z",
        "11-02T06:00:00Z",
    ]


def test_an_hourly_pattern_fires_in_both_of_two_equal_hours() -> None:
    expected = ["11-01T05:00:00Z", "11-01T06:00:00Z", "11-01T07:00:00Z"]
    for expression in ("0 * * * *", "0 0-23 * * *", "0 */1 * * *", "@hourly", "0 0 * * * *"):
        assert runs(expression, NEW_YORK, "2026-11-01T04:30Z", 3) == expected


def test_in_amsterdam_the_hour_from_two_to_three_comes_twice() -> None:
    assert runs("30 2 * * *", AMSTERDAM, "2026-10-24T12:00Z", 2) == [
        "10-25T00:30:00Z",
        "10-26T01:30:00Z",
    ]
    assert runs("30 * * * *", AMSTERDAM, "2026-10-25T00:00Z", 3) == [
        "10-25T00:30:00Z",
        "10-25T01:30:00Z",
        "10-25T02:30:00Z",
    ]


def test_on_lord_howe_half_an_hour_comes_twice() -> None:
    assert runs("45 1 * * *", LORD_HOWE, "2026-04-04T00:00Z", 2) == [
        "04-04T14:45:00Z",
        "04-05T15:15:00Z",
    ]
    assert runs("0 * * * *", LORD_HOWE, "2026-04-04T13:30Z", 3) == [
        "04-04T14:00:00Z",  # 01:00; it is 01:30 again at 15:00Z
        "04-04T15:30:00Z",
        "04-04T16:30:00Z",
    ]
    assert runs("*/10 * * * *", LORD_HOWE, "2026-04-04T14:45Z", 3) == [
        "04-04T14:50:00Z",
        "04-04T15:00:00Z",
        "04-04T15:10:00Z",
    ]


# -- clocks are set forward ----------------------------------------------------------------------


@pytest.mark.parametrize("expression", ["30 2 * * *", "15,30,45 2 * * *", "0 0,30 2 * * *"])
def test_local_times_that_do_not_occur_fire_once_when_the_clock_goes_on(expression: str) -> None:
    found = runs(expression, NEW_YORK, "2026-03-08T05:00Z", 2)
    assert found[0] == "03-08T07:00:00Z"
    assert found[1].startswith("03-09T06:")


def test_a_skipped_time_and_the_next_one_are_one_run_if_they_are_one_moment() -> None:
    assert runs("0 2,3 * * *", NEW_YORK, "2026-03-08T05:00Z", 2) == [
        "03-08T07:00:00Z",
        "03-09T06:00:00Z",
    ]


def test_nothing_is_made_up_for_an_hour_that_is_left_out() -> None:
    assert runs("30 * * * *", NEW_YORK, "2026-03-08T05:45Z", 2) == [
        "03-08T06:30:00Z",
        "03-08T07:30:00Z",
    ]


def test_in_amsterdam_the_hour_from_two_to_three_is_left_out() -> None:
    assert runs("30 2 * * *", AMSTERDAM, "2026-03-28T12:00Z", 2) == [
        "03-29T01:00:00Z",
        "03-30T00:30:00Z",
    ]
    assert runs("0 * * * *", AMSTERDAM, "2026-03-29T00:00Z", 2) == [
        "03-29T01:00:00Z",
        "03-29T02:00:00Z",
    ]


def test_on_lord_howe_half_an_hour_is_left_out_and_its_hour_still_has_its_run() -> None:
    assert runs("15 2 * * *", LORD_HOWE, "2026-10-03T00:00Z", 2) == [
        "10-03T15:30:00Z",  # 02:30 local
        "10-04T15:15:00Z",
    ]
    assert runs("0 * * * *", LORD_HOWE, "2026-10-03T14:00Z", 3) == [
        "10-03T14:30:00Z",
        "10-03T15:30:00Z",  # 02:30 local: the clock never showed 02:00
        "10-03T16:00:00Z",
    ]
    assert runs("*/10 * * * *", LORD_HOWE, "2026-10-03T15:15Z", 3) == [
        "10-03T15:20:00Z",
        "10-03T15:30:00Z",
        "10-03T15:40:00Z",
    ]


def test_a_zone_may_leave_out_midnight() -> None:
    assert runs("0 0 * * *", "America/Havana", "2026-03-07T12:00Z", 2) == [
        "03-08T05:00:00Z",
        "03-09T04:00:00Z",
    ]


# -- against the clock itself --------------------------------------------------------------------

ZONES = st.sampled_from([NEW_YORK, AMSTERDAM, LORD_HOWE, "UTC", "Asia/Kathmandu", "America/Havana"])
CHANGES = st.sampled_from(
    [
        "2026-03-08T04:00Z",
        "2026-03-29T00:00Z",
        "2026-04-04T13:00Z",
        "2026-10-03T13:00Z",
        "2026-10-25T00:00Z",
        "2026-11-01T04:00Z",
    ]
)


def clock_shows(at: int, zone: str) -> tuple[int, int, int]:
    local = datetime.fromtimestamp(at // 1000, ZoneInfo(zone))
    return local.hour, local.minute, local.second


@settings(max_examples=60, deadline=None)
@given(ZONES, CHANGES, st.sets(st.integers(0, 59), min_size=1, max_size=3), st.integers(0, 180))
def test_an_hourly_pattern_fires_whenever_the_clock_shows_its_minute(
    zone: str, change: str, minutes: set[int], later: int
) -> None:
    expression = ",".join(map(str, sorted(minutes))) + " * * * *"
    start = ms(change) + later * 60_000
    end = start + 6 * 3_600_000
    pattern, at, found = parse(expression, zone), start, set()
    while (following := pattern.next(at)) is not None and following <= end:
        found.add(following)
        at = following
    showing = {
        t for t in range(start + 60_000, end + 1, 60_000) if clock_shows(t, zone)[1] in minutes
    }
    assert showing <= found
    for t in found - showing:  # made up for what half an hour left out
        assert zone == LORD_HOWE
        assert clock_shows(t, zone) == (2, 30, 0)


@settings(max_examples=60, deadline=None)
@given(ZONES, st.integers(0, 23), st.integers(0, 59), st.integers(0, 364))
@example("America/Havana", 0, 0, 62)  # where a day has no midnight
def test_a_daily_pattern_fires_once_on_every_day(
    zone: str, hour: int, minute: int, day: int
) -> None:
    pattern = parse(f"{minute} {hour} * * *", zone)
    first = datetime(2026, 1, 1, tzinfo=ZoneInfo(zone)) + timedelta(days=day)
    at: int | None = int(first.timestamp() * 1000) - 1
    for n in range(5):
        assert at is not None
        at = pattern.next(at)
        assert at is not None
        local = datetime.fromtimestamp(at // 1000, ZoneInfo(zone))
        assert local.date() == (first + timedelta(days=n)).date()
        assert (local.hour, local.minute) >= (hour, minute)
        if (local.hour, local.minute) != (hour, minute):
            wanted = datetime.combine(local, time(hour, minute))
            before = datetime.fromtimestamp(at // 1000 - 1, ZoneInfo(zone)).replace(tzinfo=None)
            assert before < wanted  # the clock jumped over it
