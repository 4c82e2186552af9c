"""Settings as rules of the engine."""

from __future__ import annotations

from tandemq.config import Settings
from tandemq.server.bounds import rules


def test_settings_become_rules() -> None:
    found = rules(Settings(max_completed=5_000, completed_retention=7), persistent=True)
    assert (found.keep_results, found.keep_done, found.retention) == (5_000, 10_000, 7)
    assert found.done_progress == 100


def test_a_server_that_keeps_nothing_shows_progress_as_it_was() -> None:
    found = rules(Settings(max_completed=1), persistent=False)
    assert (found.keep_done, found.done_progress) == (1_000, None)
