"""The servers of a comparison: ours, the reference, beanstalkd; each on a port and one core."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import TracebackType

from driver import SCRATCH, pinned

REFERENCE = ("bunqueue@2.9.5", "bun@1.4.5")  # the versions that the tests use too
STEERS_THE_BENCH = ("TANDEMQ_SHARED", "TANDEMQ_INTEROP_NODE")
START_SECONDS = 60.0
STOP_SECONDS = 60.0


class NotAvailable(Exception):
    """This server cannot be had on this machine."""


class Server:
    """A server process with its data in a folder that goes away with it.

    It may be stopped, killed and started again on the same data.
    """

    name = ""
    proto = "bq"

    def __init__(self, *, stored: bool, core: int) -> None:
        self.port, self.http_port = free_ports(2)
        self._core = core
        SCRATCH.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-", dir=SCRATCH))
        self.stored = stored
        self._log = SCRATCH / f"{self.name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def start(self, longest: float = START_SECONDS) -> float:
        """Start it and return the seconds until its port is open."""
        inherited = {k: v for k, v in os.environ.items() if k not in STEERS_THE_BENCH}
        began = time.perf_counter()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [*pinned(self._core), *self.command()],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**inherited, **self.environment()},
                cwd=self.folder,
            )
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
            except OSError:
                seconds = time.perf_counter() - began
                if self._process.poll() is not None or seconds > longest:
                    self.kill()
                    raise NotAvailable(
                        f"{self.name} did not come up: {self._last_words()}"
                    ) from None
                time.sleep(0.005)
            else:
                return time.perf_counter() - began

    def pids(self) -> list[int]:
        """The processes whose CPU counts: the one that was started, and all below it."""
        assert self._process is not None
        found = [self._process.pid]
        for pid in found:  # grows while it is walked
            for children in Path(f"/proc/{pid}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        return found

    def resident(self) -> float:
        """Resident memory in MB (of 2**20 bytes)."""
        lines = [
            line
            for pid in self.pids()
            for line in Path(f"/proc/{pid}/status").read_text().splitlines()
            if line.startswith("VmRSS")
        ]
        return sum(int(line.split()[1]) for line in lines) / 1024

    def cpu(self) -> float:
        """CPU seconds spent so far, to the nanosecond, by threads that ended too."""
        return sum(time.clock_gettime((~pid << 3) | 2) for pid in self.pids())

    def stop(self) -> float:
        """Stop it in order and return the seconds that took."""
        began = time.perf_counter()
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
        return time.perf_counter() - began

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop it and take its data away."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Server:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _last_words(self) -> str:
        return self._log.read_text(errors="replace").strip()[-300:] or "it said nothing"


class Ours(Server):
    """tandemq from this repository, with its defaults."""

    name = "tandemq"

    def command(self) -> list[str]:
        data = str(self.folder / "queue.db") if self.stored else "memory"
        ports = ["--port", str(self.port), "--http-port", str(self.http_port)]
        host = ["--host", "127.0.0.1"]
        return [sys.executable, "-m", "tandemq", "serve", *host, *ports, "--data", data]


class Reference(Server):
    """The reference server under the runtime it is made for, without its request limiter."""

    name = "bunqueue"

    def command(self) -> list[str]:
        modules = reference_folder() / "node_modules"
        program = modules / "bunqueue" / "dist" / "cli" / "index.js"
        ports = ["--tcp-port", str(self.port), "--http-port", str(self.http_port)]
        data = ["--data-path", str(self.folder / "queue.db")] if self.stored else []
        bun = str((modules / ".bin" / "bun").resolve())
        return [bun, str(program), "start", "--host", "127.0.0.1", *ports, *data]

    def environment(self) -> dict[str, str]:
        return {"RATE_LIMIT_MAX_REQUESTS": "100000000", "LOG_LEVEL": "error"}


class Beanstalkd(Server):
    """beanstalkd from Debian; with a binlog, flushed as it likes best, where data is stored."""

    name = "beanstalkd"
    proto = "beanstalk"

    def command(self) -> list[str]:
        program = shutil.which("beanstalkd")
        if program is None:
            raise NotAvailable("beanstalkd is not installed (apt-get install beanstalkd)")
        binlog = ["-b", str(self.folder)] if self.stored else []
        return [program, "-l", "127.0.0.1", "-p", str(self.port), *binlog]


SERVERS: dict[str, type[Server]] = {
    "ours": Ours,
    "reference": Reference,
    "beanstalkd": Beanstalkd,
}


def reference_folder() -> Path:
    """Where the reference is installed: as TANDEMQ_INTEROP_NODE says, else put there now."""
    named = os.environ.get("TANDEMQ_INTEROP_NODE")
    folder = Path(named).resolve() if named else SCRATCH / "reference"
    if not all((folder / "node_modules" / name).is_dir() for name in ("bun", "bunqueue")):
        if named:
            raise NotAvailable("TANDEMQ_INTEROP_NODE names no folder with bun and bunqueue")
        if not shutil.which("npm"):
            raise NotAvailable("the reference needs npm, or TANDEMQ_INTEROP_NODE")
        folder.mkdir(parents=True, exist_ok=True)
        words = ["npm", "install", "--no-audit", "--no-fund", "--silent", "--prefix", str(folder)]
        done = subprocess.run([*words, *REFERENCE], capture_output=True, text=True)
        if done.returncode:
            raise NotAvailable(f"npm could not install the reference: {done.stderr.strip()[-300:]}")
    return folder


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
