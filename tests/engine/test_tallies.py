"""Counts of ends by queue and minute, and how they are kept."""

from __future__ import annotations

from tests.engine.making import NOW, hold, make_engine, put, token_of

from tandemq.engine import clock, settle, tallies
from tandemq.engine.core import Engine
from tandemq.engine.tallies import HOUR, KEPT, LATER, MINUTE, Tallies

HOUR_MS = HOUR * MINUTE


def end(engine: Engine, now: int = NOW, *, well: bool = True, queue: str = "q") -> None:
    engine.tallies.count(engine, queue, now, well=well)


def stored(engine: Engine) -> dict[str, bytes | None]:
    """What would be written now."""
    engine.tallies.flush(engine)
    return {k: v for k, v in engine.take().facts.items() if k.startswith(tallies.FACT)}


def restored(facts: dict[str, bytes | None]) -> Tallies:
    found = Tallies(10)
    for key, value in facts.items():
        found.restore(key.removeprefix(tallies.FACT), value)
    return found


def test_completions_and_terminal_failures_are_counted_apart() -> None:
    engine = make_engine()
    for _ in range(2):
        put(engine, max_attempts=1)
    m = hold(engine)
    settle.ack(engine, m.id, token_of(m), NOW)
    m = hold(engine)
    settle.fail(engine, m.id, token_of(m), NOW)
    tally = engine.tallies.of("q")
    assert (tally.completed.total, tally.failed.total) == (1, 1)


def test_a_failure_that_is_tried_again_is_not_counted() -> None:
    engine = make_engine()
    put(engine)
    m = hold(engine)
    settle.fail(engine, m.id, token_of(m), NOW)
    assert engine.tallies.of("q").failed.total == 0


def test_minutes_are_shown_newest_first_with_the_empty_ones_between() -> None:
    engine = make_engine()
    for minutes in (0, 0, 3, 4, 4, 4):
        end(engine, NOW + minutes * MINUTE)
    series = engine.tallies.of("q").completed
    assert series.page(0, None) == [3, 1, 0, 0, 2]
    assert (len(series), series.total, series.newest) == (5, 6, 3)
    assert series.last == NOW + 4 * MINUTE


def test_a_page_beyond_the_end_is_empty() -> None:
    engine = make_engine()
    assert engine.tallies.of("q").completed.page(0, None) == []
    end(engine)
    series = engine.tallies.of("q").completed
    assert series.page(1, None) == []
    assert series.page(0, 100) == [1]


def test_two_weeks_of_minutes_are_kept_and_the_total_goes_on() -> None:
    engine = make_engine()
    for minutes in (0, 1, KEPT, KEPT + 5):
        end(engine, NOW + minutes * MINUTE)
    series = engine.tallies.of("q").completed
    assert len(series) <= KEPT
    assert series.total == 4


def test_a_clock_set_back_counts_into_the_newest_minute() -> None:
    engine = make_engine()
    end(engine, NOW + 10 * MINUTE)
    end(engine, NOW)
    assert engine.tallies.of("q").completed.page(0, None) == [2]


def test_what_was_counted_is_written_a_little_later_and_once() -> None:
    engine = make_engine()
    for _ in range(100):
        end(engine)
    assert not engine.take().facts
    clock.tick(engine, NOW + LATER)
    assert len(engine.take().facts) == 1
    clock.tick(engine, NOW + 10 * LATER)
    assert not engine.take().facts


def test_each_hour_is_a_fact_of_its_own() -> None:
    engine = make_engine()
    end(engine)
    end(engine, NOW + HOUR_MS)
    assert len(stored(engine)) == 2
    end(engine, NOW + HOUR_MS)
    assert len(stored(engine)) == 1


def test_what_is_restored_is_what_was_written() -> None:
    engine = make_engine()
    for minutes in (0, 59, 60, 61, 200):
        end(engine, NOW + minutes * MINUTE)
        end(engine, NOW + minutes * MINUTE, well=False)
    facts = stored(engine)
    before = engine.tallies.of("q")
    for order in (list(facts), list(reversed(facts))):
        after = restored({key: facts[key] for key in order}).of("q")
        for kind in ("completed", "failed"):
            old, new = getattr(before, kind), getattr(after, kind)
            assert new.page(0, None) == old.page(0, None)
            assert (new.total, new.last) == (old.total, old.last)


def test_counting_goes_on_where_it_was_restored() -> None:
    engine = make_engine()
    end(engine)
    engine.tallies = restored(stored(engine))
    end(engine, NOW + 1)
    assert engine.tallies.of("q").completed.page(0, None) == [2]


def test_an_hour_beyond_two_weeks_is_removed_from_the_store() -> None:
    engine = make_engine()
    end(engine)
    [first] = stored(engine)
    end(engine, NOW + (KEPT + HOUR) * MINUTE)
    assert stored(engine)[first] is None


def test_an_hour_that_was_not_stored_is_undone() -> None:
    engine = make_engine()
    end(engine)
    stored(engine)
    end(engine, NOW + HOUR_MS)
    [second] = stored(engine)
    engine.tallies.restore(second.removeprefix(tallies.FACT), None)
    series = engine.tallies.of("q").completed
    assert (series.total, series.page(0, None)) == (1, [1])


def test_the_only_hour_undone_leaves_nothing() -> None:
    engine = make_engine()
    end(engine)
    [key] = stored(engine)
    engine.tallies.restore(key.removeprefix(tallies.FACT), None)
    assert len(engine.tallies) == 0


def test_dropping_a_queue_removes_its_facts() -> None:
    engine = make_engine()
    end(engine)
    [key] = stored(engine)
    engine.tallies.drop(engine, "q")
    assert engine.take().facts == {key: None}
    assert engine.tallies.of("q").completed.total == 0
    engine.tallies.drop(engine, "q")


def test_queues_that_changed_longest_ago_go_when_there_are_too_many() -> None:
    engine = make_engine(keep_tallies=2)
    for queue in ("a", "b"):
        end(engine, queue=queue)
        stored(engine)
    end(engine, queue="a")
    end(engine, queue="c")
    totals = {q: engine.tallies.of(q).completed.total for q in "abc"}
    assert totals == {"a": 2, "b": 0, "c": 1}
