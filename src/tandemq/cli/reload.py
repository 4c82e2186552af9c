"""``--reload``: the same command in a process of its own, drained and started anew on changes."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
from types import FrameType

import click

log = logging.getLogger("tandemq.worker")


def supervise(folder: str) -> int:
    """Run this command without ``--reload`` until told to stop; return the last exit code.

    Raises:
        UsageError: the package that watches files is not installed.
    """
    try:
        from watchfiles import PythonFilter, watch
    except ImportError:
        raise click.UsageError(
            "--reload needs a package that watches files: pip install 'tandemq[reload]'"
        ) from None
    command = [sys.executable, "-m", "tandemq", *(w for w in sys.argv[1:] if w != "--reload")]
    stopping = threading.Event()
    child = subprocess.Popen(command)

    def pass_on(number: int, frame: FrameType | None) -> None:
        stopping.set()
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, pass_on)
    for changes in watch(
        os.path.abspath(folder),
        watch_filter=PythonFilter(),
        stop_event=stopping,
        raise_interrupt=False,
    ):
        log.info("%s changed: draining, then starting anew", sorted(path for _, path in changes)[0])
        child.terminate()
        child.wait()
        child = subprocess.Popen(command)
    return child.wait()
