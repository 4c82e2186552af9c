"""What a network does while a test runs: one trouble after the other, by a seed."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable

from tests.support.proxy import Proxy

TROUBLE, CALM = (0.05, 0.6), (0.3, 0.8)  # seconds, from and to


class Weather:
    """Troubles of one proxy; afterwards the network is well again.

    Attributes:
        seen: how often each trouble came.
    """

    def __init__(self, proxy: Proxy, seed: int) -> None:
        self._proxy = proxy
        self._chance = random.Random(seed)
        self.seen: Counter[str] = Counter()

    async def blow(self, seconds: float) -> None:
        """Make trouble for so long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        troubles = self._troubles()
        names = list(troubles)
        while loop.time() < until:
            name = names[sum(self.seen.values()) % len(names)]  # each of them comes
            self.seen[name] += 1
            await asyncio.to_thread(troubles[name])
            await asyncio.sleep(self._chance.uniform(*TROUBLE))
            await asyncio.to_thread(self._proxy.heal)
            await asyncio.sleep(self._chance.uniform(*CALM))

    def _troubles(self) -> dict[str, Callable[[], None]]:
        proxy = self._proxy
        return {
            "cut": proxy.cut,
            "delay": lambda: proxy.delay(self._chance.uniform(0.01, 0.1)),
            "black hole": proxy.swallow,
            "half-close": proxy.half_close,
            "slow drip": lambda: proxy.drip(64),
            "refusal": proxy.refuse,
        }
