"""The log: its three shapes, and what never gets into it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from tandemq.server.log import RepeatedErrors, coloured, set_level, set_up

ROOT = logging.getLogger("tandemq")
log = logging.getLogger("tandemq.server")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def root_as_it_was() -> Iterator[None]:
    handlers, level, propagate = ROOT.handlers, ROOT.level, ROOT.propagate
    yield
    ROOT.handlers, ROOT.propagate = handlers, propagate
    ROOT.setLevel(level)


def logging_to(shape: str, level: str = "info") -> io.StringIO:
    stream = io.StringIO()
    set_up(level, shape, stream, {})
    return stream


def test_json_has_the_agreed_keys_and_the_extras() -> None:
    out = logging_to("json")
    log.info("listening on %s", "here", extra={"port": 6789, "event": "started"})
    line = json.loads(out.getvalue())
    assert list(line) == ["ts", "level", "logger", "msg", "event", "port"]
    assert line["ts"].endswith("Z")
    assert "T" in line["ts"]
    del line["ts"]
    assert line == {
        "level": "info",
        "logger": "tandemq.server",
        "msg": "listening on here",
        "event": "started",
        "port": 6789,
    }


def test_logfmt_quotes_what_has_to_be_quoted() -> None:
    out = logging_to("logfmt")
    log.info('say "hi"', extra={"event": "said", "empty": "", "ok": True, "gone": None, "n": 1.5})
    ts, _, rest = out.getvalue().rstrip("\n").partition(" ")
    assert ts.startswith("ts=2")
    assert rest == (
        'level=info logger=tandemq.server msg="say \\"hi\\"" event=said'
        ' empty="" ok=true gone="" n=1.5'
    )


def test_the_console_shows_time_level_message_and_extras() -> None:
    out = logging_to("console")
    log.warning("slow", extra={"event": "slow_turn", "ms": 120})
    moment, rest = out.getvalue().split(" ", 1)
    assert moment.count(":") == 2
    assert rest == "warning slow ms=120\n"


@pytest.mark.parametrize("shape", ["console", "json", "logfmt"])
def test_no_text_of_a_client_can_forge_a_line_or_steer_a_terminal(shape: str) -> None:
    out = logging_to(shape)
    log.info("queue %s", "a\nb\x1b[2J\x85", extra={"queue": "x\r\ny\x1b]0;z\x07 \u2028"})
    text = out.getvalue()
    assert text.count("\n") == 1
    assert not set(text[:-1]) & set("\n\r\x1b\x07\x85\u2028")
    if shape == "json":
        assert json.loads(text)["msg"] == "queue a\nb\x1b[2J\x85"


@pytest.mark.parametrize("shape", ["console", "json", "logfmt"])
def test_payloads_are_named_not_shown(shape: str) -> None:
    out = logging_to(shape)
    extra = {"body": b"secret", "data": {"a": "secret"}, "items": ["secret"], "long": "x" * 9_999}
    log.error("refused", extra=extra)
    text = out.getvalue()
    assert "secret" not in text
    assert "<6 bytes>" in text
    assert "<dict of 1>" in text
    assert len(text) < 1_000


@pytest.mark.parametrize("shape", ["console", "json", "logfmt"])
def test_an_error_carries_its_traceback(shape: str) -> None:
    out = logging_to(shape)
    try:
        raise ZeroDivisionError("by zero")
    except ZeroDivisionError:
        log.exception("a bug", extra={"event": "bug"})
    text = out.getvalue()
    assert "Traceback (most recent call last)" in text
    assert "ZeroDivisionError: by zero" in text
    if shape != "console":
        assert text.count("\n") == 1


def test_json_stays_json_with_odd_values() -> None:
    out = logging_to("json")
    log.info("odd \ud800", extra={"nan": float("nan"), "level": "forged", "error_of": OSError("x")})
    line = json.loads(out.getvalue(), parse_constant=lambda text: pytest.fail(text))
    assert (line["nan"], line["level"], line["error_of"]) == ("nan", "info", "x")


def test_the_level_decides_and_can_be_changed_while_running() -> None:
    out = logging_to("console", "warning")
    log.info("quiet")
    set_level("debug")
    log.debug("loud")
    assert "quiet" not in out.getvalue()
    assert "loud" in out.getvalue()


def test_a_second_set_up_replaces_the_first() -> None:
    first, second = logging_to("console"), logging_to("console")
    log.info("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_colour_is_for_terminals_and_the_environment_decides() -> None:
    assert not coloured(io.StringIO(), {})
    assert coloured(Terminal(), {})
    assert not coloured(Terminal(), {"NO_COLOR": "1"})
    assert coloured(io.StringIO(), {"FORCE_COLOR": "1"})
    terminal = Terminal()
    set_up("info", "console", terminal, {})
    log.error("red")
    assert "\x1b[31merror  \x1b[0m red" in terminal.getvalue()


def record(
    at: float, msg: str = "cannot write %s", level: int = logging.ERROR
) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "tandemq.x", "msg": msg, "levelno": level})
    made.created = at
    return made


def test_a_repeated_error_is_written_once_and_then_counted() -> None:
    seen = RepeatedErrors(every=5)
    assert [seen.filter(record(at)) for at in (0, 1, 2, 4.9)] == [True, False, False, False]
    later = record(5.1)
    assert seen.filter(later)
    assert vars(later)["repeated"] == 3
    again = record(11)
    assert seen.filter(again)
    assert "repeated" not in vars(again)


def test_other_errors_and_information_are_not_held_back() -> None:
    seen = RepeatedErrors(every=5)
    assert seen.filter(record(0))
    assert seen.filter(record(0, "something else"))
    assert all(seen.filter(record(0, level=logging.INFO)) for _ in range(3))


def test_a_clock_that_goes_back_silences_nothing() -> None:
    seen = RepeatedErrors(every=5)
    assert seen.filter(record(1_000))
    assert seen.filter(record(10))


def test_the_memory_of_repeated_errors_is_bounded() -> None:
    seen = RepeatedErrors(every=5)
    for n in range(3 * RepeatedErrors.MOST_KEPT):
        assert seen.filter(record(0, f"error {n}"))
    assert len(seen._seen) <= RepeatedErrors.MOST_KEPT
