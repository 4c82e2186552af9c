"""Fixtures of the client's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.support.peer import Peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A server that does as it is told, where the real one would not."""
    async with Peer() as running:
        yield running
