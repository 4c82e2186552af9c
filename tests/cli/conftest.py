"""The command line is tried without the variables that steer the tests themselves."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(autouse=True)
def no_variables_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("TANDEMQ_")]:
        monkeypatch.delenv(name)
