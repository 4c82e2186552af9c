"""What people and programs get to read."""

from __future__ import annotations

import json
from typing import Any

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tandemq.cli import output
from tandemq.cli.output import Card, Done, Rows, Shown, Text, columns

AT = 1_700_000_000_123.0  # 2023-11-14 22:13:20.123 UTC
ROWS = Rows(columns("id", "createdAt"), [{"id": "a", "createdAt": AT, "more": 1.0}, {"id": "b"}])


def printed(shown: Shown, style: str = "people", *, colour: bool = False) -> str:
    @click.command()
    def run() -> None:
        output.show(shown, style)

    return CliRunner().invoke(run, color=colour).stdout


@pytest.fixture
def in_rome(monkeypatch: pytest.MonkeyPatch) -> Any:
    import time

    monkeypatch.setenv("TZ", "Europe/Rome")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("in_rome")
def test_people_get_a_table_with_the_time_of_their_zone() -> None:
    assert printed(ROWS).splitlines() == [
        "ID  CREATED AT",
        "a   2023-11-14 23:13:20",
        "b   -",
    ]
    assert printed(Rows(columns("id"), [], "None here.")) == "None here.\n"


@pytest.mark.usefixtures("in_rome")
def test_programs_get_everything_with_moments_in_utc() -> None:
    first, second = json.loads(printed(ROWS, "json"))
    assert first == {"id": "a", "createdAt": "2023-11-14T22:13:20.123Z", "more": 1}
    assert second == {"id": "b"}
    lines = printed(ROWS, "jsonl").splitlines()
    assert [json.loads(line) for line in lines] == [first, second]


def test_quiet_prints_nothing() -> None:
    for shown in (ROWS, Card({"a": 1}), Done("done"), Text("x")):
        assert printed(shown, "quiet") == ""


def test_a_card_leaves_out_what_is_empty_but_not_zero() -> None:
    record = {"b": 0, "none": None, "no": False, "empty": [], "maxAttempts": 3, "id": "x"}
    assert printed(Card(record, ("id",))).splitlines() == [
        "id            x",
        "b             0",
        "max attempts  3",
    ]
    assert json.loads(printed(Card(record), "json")) == record


def test_what_users_sent_stays_as_it_is_in_json() -> None:
    data = {"createdAt": 1.0, "at": [2.5], "n": 1e300}
    assert json.loads(printed(Card({"data": data, "at": AT}), "json"))["data"] == data


@pytest.mark.parametrize("style", ["json", "jsonl"])
def test_bytes_and_lone_surrogates_are_told_in_some_way(style: str) -> None:
    assert json.loads(printed(Card({"data": b"\x00\xff"}), style)) == {"data": "AP8="}


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\nb", "a\x00b", "a\x9bb", "\u202eabc"])
def test_no_data_steers_the_terminal(text: str) -> None:
    for shown in (
        Rows(columns("a"), [{"a": text}]),
        Card({"a": text}),
        Card({"a": [text]}),
        Done(text.replace("\n", "")),
    ):
        said = printed(shown, colour=True).replace("\x1b[1m", "").replace("\x1b[0m", "")
        assert all(c.isprintable() or c == "\n" for c in said), ascii(said)


@given(st.text())
def test_printable_text_is_printable(text: str) -> None:
    assert output.printable(text).isprintable()


def test_states_have_colours_where_colours_are_wanted() -> None:
    rows = Rows(columns("state"), [{"state": "failed"}])
    assert "\x1b[31mfailed\x1b[0m" in printed(rows, colour=True)
    assert "\x1b" not in printed(rows)


@pytest.mark.parametrize(
    ("said", "environ", "wanted"),
    [
        ("auto", {}, None),
        ("auto", {"NO_COLOR": "1"}, False),
        ("auto", {"FORCE_COLOR": "1"}, True),
        ("auto", {"FORCE_COLOR": "0"}, None),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("always", {"NO_COLOR": "1"}, True),
        ("never", {"FORCE_COLOR": "1"}, False),
    ],
)
def test_flag_before_variables_before_the_terminal(
    monkeypatch: pytest.MonkeyPatch, said: str, environ: dict[str, str], wanted: bool | None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert output.wants_colour(said) is wanted


def test_long_cells_are_cut_in_tables_only() -> None:
    long = "x" * 500
    assert printed(Rows(columns("a"), [{"a": long}])).splitlines()[1].endswith("x...")
    assert long in printed(Card({"a": long}))


@pytest.mark.parametrize(
    ("ms", "text"),
    [(0.5, "0.5ms"), (999, "999ms"), (1_500, "1.5s"), (90_000, "1.5m"), (172_800_000, "2d")],
)
def test_spans_read_like_people_write_them(ms: float, text: str) -> None:
    assert output.span(ms) == text


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 B"), (1536, "1.5 KiB"), (5 << 20, "5 MiB"), (3 << 40, "3.07e+03 GiB")]
)
def test_amounts_read_like_people_write_them(size: int, text: str) -> None:
    assert output.amount(size) == text


@pytest.mark.parametrize("ms", [1e20, -1e20, float("inf"), float("nan")])
def test_a_moment_beyond_the_calendar_is_a_number(ms: float) -> None:
    assert output.local(ms) == output.rfc3339(ms) == str(ms)
