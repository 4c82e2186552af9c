"""Every test at the desk runs twice: once on each path that reads a frame."""

from __future__ import annotations

import pytest
from tests.commands.desk import WAYS, Desk


@pytest.fixture(params=WAYS)
def desk(request: pytest.FixtureRequest) -> Desk:
    return Desk(request.param)
