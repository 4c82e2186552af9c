"""A program that takes one job and never lets go: python -m tests.pains.holder PORT QUEUE."""

from __future__ import annotations

import sys
import time

from tests.support.wire import Wire


def hold(port: int, queue: str) -> None:
    with Wire(port) as wire:
        answer = wire.pull(queue, owner="holder", timeout=10_000)
        print(answer["job"]["id"], flush=True)
        time.sleep(600)


if __name__ == "__main__":
    hold(int(sys.argv[1]), sys.argv[2])
