"""Whether this process is a child of the one in which something was made.

The system tells each child at its birth; asking for the process's number at every call would cost
more than the rest of the call's checks.
"""

from __future__ import annotations

import os
from itertools import count

_generations = count(1)
_now = 0


def generation() -> int:
    """Return a number that is another one in every child."""
    return _now


def _born() -> None:
    global _now
    _now = next(_generations)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_born)
