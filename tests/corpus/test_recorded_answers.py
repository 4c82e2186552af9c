"""The recorded transcripts of the reference server, replayed against ours, one area a test.

The recordings and their player are kept beside the repository, or where TANDEMQ_SHARED says.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.server import clean_environment, free_ports, template

HERE = Path(__file__).parent
ACCEPTED = HERE / "accepted.txt"
SHARED = Path(os.environ.get("TANDEMQ_SHARED") or HERE.parents[2] / "shared")
PLAYER = SHARED / "corpus" / "bunqueue" / "replay.py"
RECORDINGS = PLAYER.parent / "open"
OWN = (
    "{python} -m tandemq serve --compat-env --webhook-allow {sink}"
    " --host 127.0.0.1 --port {{tcp_port}} --http-port {{http_port}}"
)
AT_A_TIME = 2
PLAYING_SECONDS = 400

pytestmark = [
    pytest.mark.timeout(PLAYING_SECONDS + 60),
    pytest.mark.skipif(not PLAYER.exists(), reason=f"the recordings are not at {SHARED}"),
]


def lines(file: Path) -> list[str]:
    """The lines of a list, without comments and blanks."""
    if not file.exists():
        return []
    found = (line.split("#")[0].strip() for line in file.read_text("utf-8").splitlines())
    return [line for line in found if line]


def playable() -> dict[str, list[str]]:
    """The names of the scenarios, by area."""
    found: dict[str, list[str]] = {}
    for file in sorted(RECORDINGS.glob("*.jsonl")):
        for line in file.read_text("utf-8").splitlines():
            scenario = json.loads(line)
            area = scenario["area"]
            found.setdefault(area, []).append(f"{area}/{scenario['name']}")
    return found


SCENARIOS = playable()
AREAS = sorted(SCENARIOS)


@dataclass
class Played:
    """How one area went."""

    output: str
    results: dict[str, bool]
    succeeded: bool

    def failures(self) -> list[str]:
        """What the player says about each difference that is not accepted."""
        said = [line for line in self.output.splitlines() if line.startswith("FAIL")]
        return [line for line in said if "[accepted]" not in line] or [self.output[-4000:]]


def spawn_command() -> str:
    """How the player is to start a server; the reference reads its addresses by itself."""
    if template().startswith("{python}"):
        return OWN.format(python=sys.executable, sink=socket.gethostbyname(socket.gethostname()))
    words = template().format(port="{tcp_port}", http_port="{http_port}", data="{data}").split()
    return " ".join(word for word in words if not word.startswith("BUNQUEUE_DATA_PATH="))


def play(area: str, folder: Path) -> Played:
    port, http_port = free_ports(2)
    found, chosen = folder / f"{area}.json", folder / f"{area}.txt"
    chosen.write_text("\n".join(SCENARIOS[area]))
    command = [sys.executable, str(PLAYER), f"127.0.0.1:{port}", "--http", f"127.0.0.1:{http_port}"]
    command += ["--spawn", spawn_command(), "--list", str(chosen), "--accept", str(ACCEPTED)]
    command += ["--area", area, "--jobs", "12", "--retries", "1", "--json", str(found)]
    ended = subprocess.run(
        command,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PLAYING_SECONDS,
        check=False,
    )
    results = json.loads(found.read_text())["results"] if found.exists() else {}
    return Played(ended.stdout, results, ended.returncode == 0)


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Future[Played]]]:
    """Every area, played a few at a time in the background."""
    folder = tmp_path_factory.mktemp("corpus")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield {area: pool.submit(play, area, folder) for area in AREAS}


@pytest.mark.parametrize("area", AREAS)
def test_every_scenario_is_answered_as_it_was_recorded(
    area: str, games: dict[str, Future[Played]], remark: Callable[[str], None]
) -> None:
    played = games[area].result()
    right = sum(played.results.values())
    remark(f"corpus {area:<12} {right:>4} / {len(played.results)}")
    for name in sorted(set(lines(ACCEPTED)) & set(played.results)):
        if played.results[name]:
            remark(f"corpus {name} is accepted as different, but is the same")
    assert played.succeeded, "\n".join(["", *played.failures()])


def test_every_accepted_difference_names_a_scenario_and_a_reason() -> None:
    known = {name for names in SCENARIOS.values() for name in names}
    for line in ACCEPTED.read_text("utf-8").splitlines():
        name, _, reason = line.partition("#")
        if name.strip():
            assert name.strip() in known, f"no such scenario: {line}"
            assert reason.strip(), f"no reason: {line}"
