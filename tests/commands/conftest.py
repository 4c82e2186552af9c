"""Every test at the desk runs twice: once on each path that reads a frame."""

from __future__ import annotations

import pytest
from tests.commands.desk import WAYS, Desk
from tests.commands.market import Market


@pytest.fixture(params=WAYS)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(request.param)


@pytest.fixture(params=WAYS)
def market(request: pytest.FixtureRequest) -> Market:
    """Both wires, and queues that keep dead letters unless they are made otherwise."""
    return Market(request.param, dead_letters=True)
