"""Both wires, for every test that asks for one."""

from __future__ import annotations

import pytest
from tests.support.vibe import BOTH

from tandemq.wires.sniff import Wire


@pytest.fixture(params=BOTH, ids=lambda wire: wire.value)
def wire(request: pytest.FixtureRequest) -> Wire:
    """The wire that the clients of a test speak."""
    found: Wire = request.param
    return found
