"""The registry of webhooks: who is told of what, and what is remembered of it."""

from __future__ import annotations

from typing import Any

from tests.engine.making import NOW, make_engine, put

from tandemq.engine.core import Engine
from tandemq.engine.webhooks import EVENTS, FACT, Webhook, listen


def hook(id: str = "h", **fields: Any) -> Webhook:
    given = {"events": ("job.pushed",), "queue": None, "secret": None, **fields}
    return Webhook(id=id, url="https://h.example/", created=NOW, **given)


def added(engine: Engine, *hooks: Webhook) -> None:
    for each in hooks:
        engine.webhooks.put(engine, each)


def test_a_webhook_hears_the_events_it_named_of_its_queue() -> None:
    engine = make_engine()
    added(engine, hook("all"), hook("one", queue="q"), hook("done", events=("job.completed",)))

    def names(type: str, queue: str) -> list[str]:
        return [each.id for each in engine.webhooks.wanting(type, queue)]

    assert names("pushed", "q") == ["all", "one"]
    assert names("pushed", "r") == ["all"]
    assert names("completed", "q") == ["done"]
    assert names("paused", "q") == []


def test_a_webhook_that_is_off_hears_nothing() -> None:
    engine = make_engine()
    added(engine, hook(enabled=False))
    assert engine.webhooks.wanting("pushed", "q") == []
    assert (len(engine.webhooks), engine.webhooks.enabled) == (1, 0)


def test_stalls_can_be_delivered() -> None:
    engine = make_engine()
    added(engine, hook(events=("job.stalled",)))
    assert EVENTS["stalled"] == "job.stalled"
    assert engine.webhooks.wanting("stalled", "q")


def test_events_are_built_while_a_webhook_is_on() -> None:
    engine = make_engine()
    assert not engine.listening
    added(engine, hook())
    put(engine)
    assert [event.type for event in engine.take().events] == ["pushed"]
    added(engine, hook(enabled=False))
    assert not engine.listening
    engine.watched = True
    listen(engine)
    assert engine.listening
    engine.webhooks.remove(engine, "h")
    assert engine.listening


def test_registrations_and_their_figures_survive() -> None:
    engine, later = make_engine(), make_engine()
    added(engine, hook(secret="s", queue="q"))
    engine.webhooks.delivered(engine, "h", NOW + 5, well=True)
    engine.webhooks.delivered(engine, "h", NOW + 9, well=False)
    [(key, fact)] = engine.take().facts.items()
    assert key == FACT + "h"
    later.webhooks.restore(later, "h", fact)
    assert later.webhooks.listed() == engine.webhooks.listed()
    found = later.webhooks.get("h")
    assert found is not None
    assert (found.succeeded, found.failed, found.last, found.secret) == (1, 1, NOW + 9, "s")
    assert later.listening


def test_a_webhook_that_was_not_stored_is_undone() -> None:
    engine = make_engine()
    added(engine, hook())
    engine.webhooks.restore(engine, "h", None)
    assert (len(engine.webhooks), engine.listening) == (0, False)


def test_a_removed_webhook_is_forgotten() -> None:
    engine = make_engine()
    added(engine, hook())
    assert engine.webhooks.remove(engine, "h")
    assert not engine.webhooks.remove(engine, "h")
    assert engine.take().facts == {FACT + "h": None}
    engine.webhooks.delivered(engine, "h", NOW, well=True)
    assert engine.quiet
