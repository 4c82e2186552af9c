"""A worker process of our own, ``tandemq worker``, with tasks that tests need."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import TracebackType

from tests.support.patience import eventually
from tests.support.server import Server, clean_environment

APP = """
import asyncio, os, time
import tandemq

queue = tandemq.Queue(os.environ["WORKS_ON"], url=os.environ["SERVER"])

@queue.task()
async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "rested"

@queue.task(attempts=3, backoff=60_000)
async def stumble(seconds: float) -> None:
    await asyncio.sleep(seconds)
    raise RuntimeError("stumbled")
"""


class Crew:
    """One worker process; ``shell`` has a shell start it."""

    def __init__(
        self, folder: Path, server: Server, queue: str, *options: str, shell: bool = False
    ) -> None:
        (folder / "app.py").write_text(APP)
        command = [sys.executable, "-m", "tandemq", "worker", "app:queue", "--name", "crew"]
        command += options
        url = f"tandemq://127.0.0.1:{server.port}"
        self.log = folder / "worker.log"
        self._out = self.log.open("wb")
        self.process = subprocess.Popen(
            ["sh", "-c", "exec " + " ".join(command)] if shell else command,
            cwd=folder,
            env={**clean_environment(), "WORKS_ON": queue, "SERVER": url},
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def says(self, text: str) -> None:
        """Wait until its log holds a text."""
        eventually(lambda: text in self.log.read_text(), f"{text!r} in the log of the worker")

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it and whatever it started, as the out-of-memory killer would."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def __enter__(self) -> Crew:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._out.close()
