"""A server process under test: start it, stop it, kill it, start it again on the same data.

The command comes from the environment variable TANDEMQ_TEST_SERVER, a template with {port},
{http_port} and {data}; without it this project's own server is started. So each of these tests
can also be pointed at the reference server, to see what a client may expect.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tests.support.wire import Lost, NoAnswer, Wire

OWN = (
    "{python} -m tandemq serve --host 127.0.0.1 --port {port} --http-port {http_port} --data {data}"
)
START_SECONDS = 30.0
STEERS_THE_TESTS = ("TEST_", "SOAK", "SHARED", "INTEROP_", "KILLS", "HISTORIES", "CHAOS_")


def template() -> str:
    return os.environ.get("TANDEMQ_TEST_SERVER") or OWN


def is_own() -> bool:
    """Whether the server under test is this project's."""
    return not os.environ.get("TANDEMQ_TEST_SERVER")


def lease_grace() -> float:
    """Seconds after the end of a lease within which the server notices it.

    The reference looks every five seconds.
    """
    return 1.0 if is_own() else 6.0


def room(megabytes: int) -> int:
    """Bytes by which a server may grow; the reference's collector takes its time."""
    return megabytes * (1 << 20) * (1 if is_own() else 16)


def figure(name: str, *, short: int, long: int) -> int:
    """How much of something a test does: as the environment says, `long` with TANDEMQ_SOAK=1."""
    said = os.environ.get(name)
    if said:
        return int(said)
    return short if os.environ.get("TANDEMQ_SOAK", "") in ("", "0") else long


def clean_environment() -> dict[str, str]:
    """The environment for a server: ours without what steers the tests."""
    ours = tuple("TANDEMQ_" + name for name in STEERS_THE_TESTS)
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def half_frame_timeout(seconds: float) -> dict[str, str]:
    """The setting, under our name and under the reference's."""
    return {
        "TANDEMQ_HALF_FRAME_TIMEOUT": f"{seconds:g}",
        "TCP_IDLE_TIMEOUT_MS": f"{seconds * 1000:.0f}",
    }


def token(name: str) -> dict[str, str]:
    """The setting, under our name and under the reference's."""
    return {"TANDEMQ_TOKEN": name, "AUTH_TOKENS": name}


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


class Server:
    """One server with its data file and log in `folder`; `environment` adds settings."""

    def __init__(
        self,
        folder: Path,
        *,
        environment: dict[str, str] | None = None,
        prefix: list[str] | None = None,
    ) -> None:
        self.data = folder / "queue.db"
        self.log = folder / "server.log"
        self.port = 0
        self.http_port = 0
        self._folder = folder
        self._environment = environment or {}
        self._prefix = prefix or []
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def command(self) -> list[str]:
        return self._prefix + [
            part.format(
                python=sys.executable, port=self.port, http_port=self.http_port, data=self.data
            )
            for part in shlex.split(template())
        ]

    def start(self, *, wait: bool = True) -> Server:
        """Start the process and, unless told otherwise, wait until it answers.

        The first start looks for free ports, later ones keep them.
        """
        first = self.port == 0
        deadline = time.monotonic() + START_SECONDS
        while True:
            if first:
                self.port, self.http_port = free_ports(2)
            self._spawn()
            if not wait:
                return self
            try:
                self._wait_until_it_answers(deadline)
            except ChildProcessError:
                clash = "in use" in self.log_tail().lower()
                if not clash or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return self

    def _spawn(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                env={**clean_environment(), "PYTHONUNBUFFERED": "1", **self._environment},
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait_until_it_answers(self, deadline: float) -> None:
        while True:
            if self.process.poll() is not None:
                code = self.process.returncode
                raise ChildProcessError(f"server ended with {code}:\n{self.log_tail()}")
            try:
                with Wire(self.port, timeout=max(0.1, deadline - time.monotonic())) as wire:
                    wire.ask("Ping")
                return
            except (Lost, NoAnswer):
                if time.monotonic() > deadline:
                    self.kill()
                    raise TimeoutError(f"server does not answer:\n{self.log_tail()}") from None
            time.sleep(0.02)

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, "the server was never started"
        return self._process

    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self, *, within: float = 20.0) -> int:
        """SIGTERM, and the exit code once it is gone."""
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(
                f"still running {within:g} s after SIGTERM:\n{self.log_tail()}"
            ) from None

    def kill(self) -> None:
        """SIGKILL to the process and whatever it started."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def connect(self, *, timeout: float = 20.0, receive_buffer: int = 0) -> Wire:
        return Wire(self.port, timeout=timeout, receive_buffer=receive_buffer)

    def log_tail(self, size: int = 4000) -> str:
        if not self.log.exists():
            return "(no log)"
        return self.log.read_text("utf-8", "replace")[-size:]

    # What it costs

    def _pids(self) -> list[int]:
        """The server and its children: everything in its process group."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    group = int((entry / "stat").read_text().rpartition(")")[2].split()[2])
                except (OSError, ValueError, IndexError):
                    continue
                if group == self.process.pid:
                    found.append(int(entry.name))
        return found

    def memory(self) -> int:
        """Resident memory in bytes."""
        return self._status("VmRSS:")

    def peak_memory(self) -> int:
        """The most resident memory in bytes since the start or the last `forget_peak`."""
        return self._status("VmHWM:")

    def forget_peak(self) -> None:
        for pid in self._pids():
            Path(f"/proc/{pid}/clear_refs").write_text("5")

    def _status(self, name: str) -> int:
        total = 0
        for pid in self._pids():
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(name):
                    total += int(line.split()[1]) * 1024
        return total

    def cpu_seconds(self) -> float:
        """User and system time used so far."""
        ticks = 0
        for pid in self._pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def open_files(self) -> int:
        """Open descriptors, sockets among them."""
        return sum(len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in self._pids())
