"""What the tests with the official clients share."""

from __future__ import annotations

import pytest
from tests.support.server import figure


@pytest.fixture
def size() -> int:
    """How many jobs go through."""
    return figure("TANDEMQ_INTEROP_JOBS", short=2_000, long=10_000)
