"""The recorded sessions of the second reference, replayed against ours, each on a fresh server.

The recordings and their player are kept beside the repository, or where TANDEMQ_SHARED says.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.corpus.test_recorded_answers import SHARED
from tests.support.server import Server, clean_environment, is_own

RECORDED = SHARED / "corpus" / "vibemq" / "recorded"
PLAYER = RECORDED / "replay.py"
PLAYING_SECONDS = 60
PASSWORD = "admin-pass-1"  # of every recorded superuser
SESSIONS = 17

FLAGS = {
    "comp": "COMPRESSION",
    "maxconn": "MAX_CONNECTIONS",
    "maxsize": "MAX_MESSAGE_SIZE",
    "mode": "DEFAULT_MODE",
    "msgrate": "MESSAGES_PER_SECOND",
    "rate": "MESSAGES_PER_SECOND",
    "threshold": "COMPRESSION_THRESHOLD",
    "token": "TOKEN",
}

pytestmark = [
    pytest.mark.timeout(PLAYING_SECONDS + 60),
    pytest.mark.skipif(not PLAYER.exists(), reason=f"the recordings are not at {SHARED}"),
    pytest.mark.skipif(not is_own(), reason="the settings of a session have our names"),
]


def header(file: Path) -> dict[str, Any]:
    with file.open(encoding="utf-8") as lines:
        found: dict[str, Any] = json.loads(next(lines))
    return found


def playable() -> dict[str, dict[str, Any]]:
    """The settings of every session that has to be answered as it was, by its name."""
    headers = {file.stem: header(file) for file in sorted(RECORDED.glob("*.jsonl"))}
    return {name: said.get("server", {}) for name, said in headers.items() if said.get("replay")}


def environment(settings: dict[str, Any]) -> dict[str, str]:
    """The settings of a session under our names."""
    found = {}
    for name, value in settings.items():
        if name == "auth":
            found |= {"TANDEMQ_SUPERUSER": "admin", "TANDEMQ_SUPERUSER_PASSWORD": PASSWORD}
        elif name == "auto":
            found["TANDEMQ_AUTO_CREATE"] = "false"
        else:
            shown = ",".join(value) if isinstance(value, list) else str(value)
            found[f"TANDEMQ_{FLAGS[name]}"] = shown
    return found


def test_the_sessions_are_there() -> None:
    assert len(playable()) == SESSIONS


@pytest.mark.parametrize("data", ["file", "memory"])
@pytest.mark.parametrize("name", playable())
def test_a_session_is_answered_as_it_was_recorded(
    name: str, data: str, new_server: Callable[..., Server], tmp_path: Path
) -> None:
    settings = playable()[name]
    server = new_server(environment=environment(settings))
    if data == "memory":
        server.data = Path("memory")
    server.start()
    command = [sys.executable, str(PLAYER), "--port", str(server.port)]
    command += ["--server", json.dumps(settings), str(RECORDED / f"{name}.jsonl")]
    played = subprocess.run(
        command,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PLAYING_SECONDS,
        check=False,
    )
    assert played.returncode == 0, played.stdout
    assert "Traceback" not in server.log_tail(1_000_000), server.log_tail()
