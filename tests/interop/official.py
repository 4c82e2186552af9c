"""A processor for the official Python client that does what the plan of a load says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from tests.support.plan import Load


class Failure(Exception):
    """What a job's processor raises on purpose."""


def processor_of(load: Load, unrecoverable: type[Exception]) -> Callable[[Any], Any]:
    """Does with each job what its kind asks for, and counts how often it was started."""
    lock = threading.Lock()

    def process(job: Any) -> Any:
        n, kind = job.data["n"], job.data["kind"]
        with lock:
            load.started[n] += 1
            start = load.started[n]
        if kind == "hopeless":
            raise unrecoverable(f"{n} is hopeless")
        if kind == "doomed" or (kind == "flaky" and start == 1):
            raise Failure(f"{n} failed")
        return {"n": n, "start": start}

    return process
