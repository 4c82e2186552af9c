"""What is said of a port that cannot be had."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from socket import gaierror


@contextmanager
def bound(host: str, port: int, flag: str) -> Iterator[None]:
    """Listen inside; a failure names the address, and the flag that gives another one.

    Raises:
        OSError: as it came, with another text.
    """
    try:
        yield
    except gaierror as problem:
        raise gaierror(problem.errno, f"host {host!r}: {problem.strerror}") from problem
    except OSError as problem:
        if problem.errno is None:
            raise
        text = f"port {port} of {host} cannot be had: {os.strerror(problem.errno)}."
        hint = f"A server may run already; {flag} gives another port."
        raise OSError(problem.errno, f"{text} {hint}") from problem
