"""A server whose web page is looked at in Debian's Chromium: what is on it, and who looks."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.web import Web

FOLDER = Path(__file__).parent / "browser"
NODE = os.environ.get("TANDEMQ_INTEROP_NODE", "")
CHROMIUM = os.environ.get("TANDEMQ_TEST_CHROMIUM") or shutil.which("chromium") or ""
SHOTS = Path(__file__).parents[2] / ".scratch" / "screenshots"
READY = bool(CHROMIUM) and (Path(NODE) / "node_modules" / "playwright-core").is_dir()
WHY_NOT = "needs chromium, and playwright-core in the folder that TANDEMQ_INTEROP_NODE names"
PATIENCE = 120  # s for one script

ERROR = "connection refused by mail.example.org:25"


def environment() -> dict[str, str]:
    """What scripts need to know of this machine."""
    node = str(Path(NODE).resolve())
    return {**os.environ, "TANDEMQ_INTEROP_NODE": node, "UI_CHROMIUM": CHROMIUM}


@cache
def browser() -> str:
    """Start the one browser of this run, and return where it listens."""
    process = subprocess.Popen(
        ["node", str(FOLDER / "serve.mjs")],
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None, "it ends with its input"
    assert process.stdout is not None, "it tells where it listens"
    endpoint = process.stdout.readline().strip()
    assert endpoint, "the browser did not start"

    def end() -> None:
        process.communicate()  # closes its input, and waits

    atexit.register(end)
    return endpoint


def browse(script: str, port: int, *, root: str = "", **given: Any) -> str:
    """Run one script of ``browser/`` against a server and return what it wrote.

    A script fails for what it checks, and for every error in the browser's console, every answer
    above 200 KB, every text that is too faint and every page that is wider than its window.
    """
    done = subprocess.run(
        ["node", str(FOLDER / f"{script}.mjs")],
        env={
            **environment(),
            "UI_BROWSER": browser(),
            "UI_ROOT": root or f"http://127.0.0.1:{port}/ui/",
            "UI_GIVEN": json.dumps(given),
            "UI_SHOTS": str(SHOTS),
        },
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, f"{script}:\n{done.stderr}\n{done.stdout}"
    return done.stdout


def asked(web: Web, method: str, path: str, body: Any = None) -> Any:
    """Do something over HTTP that has to work, and return the answer."""
    status, told = web.ask(method, path, body)
    assert status == 200, (method, path, status, told)
    assert not isinstance(told, dict) or told.get("ok", True), (method, path, told)
    return told


def settled(web: Web, queue: str, count: int) -> list[str]:
    """Pull jobs, of which some are done and some fail for good; return the ids of those."""
    pulled = asked(
        web,
        "POST",
        f"/queues/{queue}/jobs/pull-batch",
        {"count": count, "owner": "w", "lockTtl": 600_000},
    )
    dead: list[str] = []
    for n, (job, token) in enumerate(zip(pulled["jobs"], pulled["tokens"], strict=True)):
        path = f"/jobs/{job['id']}"
        if n % 3 == 0:
            asked(web, "POST", path + "/ack", {"token": token, "result": {"sent": True}})
        elif n % 3 == 1:
            stack = "Error: connection refused\n    at send (mail.js:12)"
            asked(
                web,
                "POST",
                path + "/fail",
                {"token": token, "error": ERROR, "stack": stack.split("\n"), "unrecoverable": True},
            )
            dead.append(job["id"])
    return dead


def furnish(web: Web) -> dict[str, Any]:
    """Put something on every page; return the ids that tests ask for."""
    for n, queue in enumerate(("mail", "invoices", "reports.daily")):
        jobs = [
            {
                "name": ("send", "render")[k % 2],
                "data": {"order": 4_700 + k, "to": f"ann{k}@example.org"},
                "tags": ["vip"] if k % 5 == 0 else [],
                "priority": k % 3 if n else 0,
            }
            for k in range(60)
        ]
        asked(web, "POST", f"/queues/{queue}/jobs/bulk", {"jobs": jobs})
    asked(web, "PUT", "/queues/mail/stall-config", {"enabled": False})  # however long it takes
    late = asked(web, "POST", "/queues/mail/jobs", {"name": "later", "data": 1, "delay": 3_600_000})
    dead = settled(web, "mail", 30)
    for n, level in enumerate(("info", "warn", "error")):
        asked(web, "POST", f"/jobs/{dead[0]}/logs", {"message": f"try {n}", "level": level})
    for name, pattern, zone in (
        ("nightly", "0 6 * * *", "Europe/Rome"),
        ("weekly", "30 1 * * MON", "America/New_York"),
    ):
        asked(
            web,
            "POST",
            "/crons",
            {
                "name": name,
                "queue": "reports.daily",
                "data": {},
                "schedule": pattern,
                "timezone": zone,
            },
        )
    asked(
        web,
        "POST",
        "/crons",
        {"name": "often", "queue": "mail", "data": {}, "repeatEvery": 86_400_000},
    )
    asked(web, "POST", "/queues/invoices/pause", {})
    return {"dead": dead, "late": late["id"]}


def hire(web: Web, count: int) -> None:
    """Register workers, who are forgotten when they are silent for too long."""
    for n in range(count):
        worker = {
            "name": f"mailer-{n}",
            "queues": ["mail"],
            "concurrency": 8,
            "workerId": f"w-{n}",
            "hostname": f"node-{n}",
            "pid": 4_000 + n,
        }
        asked(web, "POST", "/workers", worker)
