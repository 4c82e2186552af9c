"""Settings as rules of the engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tandemq.config import Settings
from tandemq.engine.finished import Rules
from tandemq.model.broker import Mode, Policy
from tandemq.server import bounds
from tandemq.server.bounds import memory, policy, rules


def test_settings_become_rules() -> None:
    found = rules(Settings(max_completed=5_000, completed_retention=7), persistent=True)
    assert (found.keep_results, found.keep_done, found.retention) == (5_000, 10_000, 7)
    assert found.done_progress == 100


def test_every_bound_of_memory_is_a_setting() -> None:
    settings = {
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
    given: dict[str, Any] = {name: 2_000 + n for n, name in enumerate(settings)}
    found = rules(Settings(**given), persistent=True)
    assert {name: getattr(found, rule) for name, rule in settings.items()} == given
    others = {"keep_results", "keep_done", "keep_ids", "retention", "done_progress", "max_memory"}
    assert set(Rules.__struct_fields__) == {*settings.values(), *others}


def test_the_rules_of_an_engine_are_those_of_the_default_settings() -> None:
    assert rules(Settings(), persistent=False) == Rules(max_memory=memory() // 2)


def test_memory_is_half_of_what_there_is_unless_somebody_says_otherwise() -> None:
    assert rules(Settings(max_memory=5_000), persistent=True).max_memory == 5_000
    assert memory() > 1 << 20


def test_memory_is_that_of_the_group_where_there_is_a_smaller_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "CGROUP", tmp_path / "memory.max")
    machine = memory()
    bounds.CGROUP.write_text("max\n")
    assert memory() == machine
    bounds.CGROUP.write_text("1000000\n")
    assert memory() == 1_000_000


def test_settings_become_the_policy_of_queues_that_clients_make_by_using_them() -> None:
    given = Settings(
        default_mode="PriorityBased",
        default_queue_size=7,
        ack_timeout=1.5,
        retry_delay=0.25,
        retry_delay_max=9,
        full_ack_timeout=True,
    )
    assert policy(given) == Policy(
        mode=Mode.PRIORITY_BASED,
        max_size=7,
        ack_wait=1_500,
        retry_base=250,
        retry_cap=9_000,
        full_wait=True,
    )
    assert policy(Settings()) == Policy()


def test_a_server_that_keeps_nothing_shows_progress_as_it_was() -> None:
    found = rules(Settings(max_completed=1), persistent=False)
    assert (found.keep_done, found.done_progress) == (1_000, None)
