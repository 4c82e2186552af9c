"""The load driver: found, copied, built, and run against one server.

The driver is a C program beside this repository (`bench` in the folder that TANDEMQ_SHARED names,
`../shared` without it). A copy is built in the scratch folder, so that its own folder stays as it
was.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
SCRATCH = REPOSITORY / ".scratch" / "bench"

Figures = dict[str, Any]


def build() -> Path:
    """Return the driver's path, built anew where its source has changed."""
    shared = Path(os.environ.get("TANDEMQ_SHARED") or REPOSITORY.parent / "shared")
    source = shared / "bench"
    if not (source / "bqload.c").is_file():
        sys.exit(f"No load driver in {source}; TANDEMQ_SHARED names the folder that holds it.")
    copy = SCRATCH / "driver"
    copy.mkdir(parents=True, exist_ok=True)
    fresh = (source / "bqload.c").read_bytes()
    program, text = copy / "bqload", copy / "bqload.c"
    if program.exists() and text.exists() and text.read_bytes() == fresh:
        return program
    for file in source.iterdir():
        if file.is_file():
            shutil.copyfile(file, copy / file.name)
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-O2", "-o", str(program), str(text), "-lm"], check=True)
    return program


class Driver:
    """Runs steps on a core of its own and reads what the server's processes spent meanwhile."""

    def __init__(self, *, core: int, longest: float) -> None:
        self._command = [*pinned(core), str(build()), "--max-secs", f"{longest:g}"]
        self._patience = longest + 60

    def __call__(
        self, op: str, *, port: int, pids: list[int], proto: str = "bq", **options: Any
    ) -> Figures:
        """Run one step and return its figures; `failed` in them says why they do not count."""
        command = [*self._command, "--op", op, "--port", str(port), "--proto", proto]
        command += ["--pid", ",".join(map(str, pids))]
        for name, value in options.items():
            flag = "--" + name.replace("_", "-")
            command += [flag] if value is True else [flag, str(value)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self._patience)
        except subprocess.TimeoutExpired:
            return {"failed": "the driver did not come to an end"}
        if done.returncode:
            return {"failed": done.stderr.strip()[-300:] or f"driver: {done.returncode}"}
        figures: Figures = json.loads(done.stdout)
        if figures.get("errors"):
            figures["failed"] = (
                f"{figures['errors']} requests refused or failed, "
                f"the first: {figures.get('first_error')}"
            )
        return figures


def pinned(core: int) -> list[str]:
    """The words that keep a command on `core`; none where it does not exist."""
    if core < 0 or core not in os.sched_getaffinity(0) or not shutil.which("taskset"):
        return []
    return ["taskset", "--cpu-list", str(core)]
