"""Settings as rules of the engine."""

from __future__ import annotations

from typing import Any

from tandemq.config import Settings
from tandemq.engine.finished import Rules
from tandemq.server.bounds import rules


def test_settings_become_rules() -> None:
    found = rules(Settings(max_completed=5_000, completed_retention=7), persistent=True)
    assert (found.keep_results, found.keep_done, found.retention) == (5_000, 10_000, 7)
    assert found.done_progress == 100


def test_every_bound_of_memory_is_a_setting() -> None:
    bounds = {
        "max_completed_bytes": "keep_done_bytes",
        "max_logs": "keep_logs",
        "max_log_bytes": "keep_log_bytes",
        "max_queue_events": "keep_events",
        "max_events": "keep_all_events",
        "max_tallied_queues": "keep_tallies",
        "max_webhooks": "most_webhooks",
        "worker_timeout_ms": "worker_timeout",
        "max_worker_bytes": "worker_bytes",
    }
    given: dict[str, Any] = {name: 2_000 + n for n, name in enumerate(bounds)}
    found = rules(Settings(**given), persistent=True)
    assert {name: getattr(found, rule) for name, rule in bounds.items()} == given
    others = {"keep_results", "keep_done", "keep_ids", "retention", "done_progress"}
    assert set(Rules.__struct_fields__) == {*bounds.values(), *others}


def test_the_rules_of_an_engine_are_those_of_the_default_settings() -> None:
    assert rules(Settings(), persistent=False) == Rules()


def test_a_server_that_keeps_nothing_shows_progress_as_it_was() -> None:
    found = rules(Settings(max_completed=1), persistent=False)
    assert (found.keep_done, found.done_progress) == (1_000, None)
