"""Handlers for processes of their own, which import this module."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tandemq import Context, Depends, Fail, Queue, Retry, Skip

queue = Queue("apart", "tandemq://127.0.0.1:1")
seen: list[int] = []


def marker() -> Iterator[str]:
    yield "made apart"


@queue.task(pool="process")
def where(
    n: int, mark: str = Depends(marker), ctx: Context = Depends(Context)
) -> dict[str, object]:
    print("what a handler prints disturbs nobody")
    ctx.progress(50, "half")
    ctx.log("apart")
    seen.append(n)
    return {"pid": os.getpid(), "n": n, "mark": mark, "seen": seen, "argv": sys.argv[0]}


@queue.task(pool="process")
async def awaits(n: int) -> int:
    return n + 1


@queue.task(pool="process", retry=Retry(1))
def ends(how: str, note: str = "") -> None:
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exits":
        os._exit(3)
    if how == "fails":
        raise Fail("no way")
    if how == "skips":
        raise Skip
    try:
        time.sleep(60)
    finally:
        if note:
            Path(note).write_text("cleaned up")


def plain(job: Context) -> str:
    return f"{job.name} of {job.queue}"
