"""Logs: the newest lines of a message, kept beside it, within bounds."""

from __future__ import annotations

import msgspec
import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import settle
from tandemq.engine.core import Engine
from tandemq.model.policy import LOG_LINES


def facts(engine: Engine) -> dict[str, bytes | None]:
    return engine.take().facts


def test_lines_are_kept_in_order_and_stored_as_a_fact() -> None:
    engine = make_engine()
    for line in (b"one", b"two"):
        engine.logs.add(engine, "m", line)
    assert engine.logs.of("m") == [b"one", b"two"]
    assert engine.logs.of("another") == []
    assert engine.logs.ids() == ["m"]
    assert (len(engine.logs), engine.logs.size_bytes) == (1, 6)
    assert facts(engine) == {"log/m": msgspec.msgpack.encode([b"one", b"two"])}


def test_the_newest_hundred_lines_are_kept() -> None:
    engine = make_engine()
    lines = [b"%d" % n for n in range(LOG_LINES + 3)]
    for line in lines:
        engine.logs.add(engine, "m", line)
    assert engine.logs.of("m") == lines[3:]
    assert engine.logs.size_bytes == sum(map(len, lines[3:]))


def test_the_logs_that_were_not_written_for_longest_go_first() -> None:
    engine = make_engine(keep_logs=2)
    for id in ("a", "b", "a", "c"):
        engine.logs.add(engine, id, b"x")
    assert engine.logs.ids() == ["a", "c"]
    assert engine.logs.size_bytes == 3
    assert facts(engine)["log/b"] is None


def test_all_logs_together_have_a_size() -> None:
    engine = make_engine(keep_log_bytes=10)
    for id in "abc":
        engine.logs.add(engine, id, b"1234")
    assert engine.logs.ids() == ["b", "c"]
    engine.logs.add(engine, "d", b"x" * 50)
    assert engine.logs.ids() == ["d"]  # a log alone may be larger than all should be
    assert engine.logs.size_bytes == 50


def test_a_dropped_log_is_dropped_from_the_store_too() -> None:
    engine = make_engine()
    engine.logs.add(engine, "m", b"x")
    engine.logs.drop(engine, "m")
    assert facts(engine) == {"log/m": None}
    engine.logs.drop(engine, "m")
    assert facts(engine) == {}
    assert (len(engine.logs), engine.logs.size_bytes) == (0, 0)


def test_a_log_comes_back_as_it_was_stored() -> None:
    engine, again = make_engine(), make_engine()
    for line in (b"one", b"two"):
        engine.logs.add(engine, "m", line)
    again.logs.restore("m", facts(engine)["log/m"])
    assert again.logs.of("m") == [b"one", b"two"]
    again.logs.restore("m", msgspec.msgpack.encode([b"other"]))
    assert (again.logs.of("m"), again.logs.size_bytes) == ([b"other"], 5)
    again.logs.restore("m", None)
    again.logs.restore("never", None)
    assert (again.logs.of("m"), again.logs.size_bytes, len(again.logs)) == ([], 0, 0)
    assert again.quiet


@pytest.mark.parametrize("removed", [False, True])
def test_a_log_goes_with_its_message_unless_that_was_removed_on_completion(removed: bool) -> None:
    engine = make_engine()
    put(engine, "m")
    engine.logs.add(engine, "m", b"x")
    settle.ack(engine, "m", token_of(hold(engine)), NOW, remove=removed)
    assert engine.logs.of("m") == [b"x"]
    if not removed:
        put(engine, "m")  # a new life under the same id
        assert engine.logs.of("m") == []


def test_only_the_newest_lines_are_kept_when_asked() -> None:
    engine = make_engine()
    for line in (b"aa", b"bbb", b"c"):
        engine.logs.add(engine, "m", line)
    engine.logs.keep(engine, "m", 5)
    assert engine.logs.of("m") == [b"aa", b"bbb", b"c"]
    engine.logs.keep(engine, "m", 2)
    assert engine.logs.of("m") == [b"bbb", b"c"]
    assert engine.logs.size_bytes == 4
    engine.take()
    engine.logs.keep(engine, "m", 0)
    assert engine.take().facts == {"log/m": None}
    assert engine.logs.size_bytes == 0


def test_a_log_may_keep_fewer_lines_or_none() -> None:
    engine = make_engine()
    for line in (b"aa", b"bbb", b"c"):
        engine.logs.add(engine, "m", line, 2)
    assert engine.logs.of("m") == [b"bbb", b"c"]
    assert engine.logs.size_bytes == 4
    engine.logs.add(engine, "m", b"d", 1)
    assert engine.logs.of("m") == [b"d"]
    engine.logs.add(engine, "m", b"e", 0)
    assert (engine.logs.of("m"), engine.logs.size_bytes) == ([], 0)
