"""What is in deploy/ fits the server: every figure that it names exists."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.server.offline import GatedStore, Peer, serving

from tandemq.cli.exits import Exit
from tandemq.config import Settings
from tandemq.config.settings import FIELDS

DEPLOY = Path(__file__).parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "alerts.yml"
FIGURE = re.compile(r"\b(?:bunqueue|vibemq|tandemq|process)_\w+")


def board() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "tandemq.json").read_text())
    return found


def expressions() -> list[str]:
    """All that Prometheus is asked: by the rules, by the panels, by the variables of the board."""
    rules = re.findall(r"^ *expr: (.+)$", RULES.read_text(), re.MULTILINE)
    panels = [target["expr"] for panel in board()["panels"] for target in panel["targets"]]
    variables = [str(variable["query"]) for variable in board()["templating"]["list"]]
    assert len(rules) > 5, "the rules were not found"
    return [*rules, *panels, *variables]


async def scraped() -> set[str]:
    async with serving(GatedStore()) as runtime:
        await Peer(runtime).push()
        text = runtime.monitor.prometheus()
    families = text_string_to_metric_families(text)
    return {sample.name for family in families for sample in family.samples}


async def test_every_figure_that_is_asked_for_exists() -> None:
    named = {name for text in expressions() for name in FIGURE.findall(text)}
    assert len(named) > 30
    assert named - await scraped() == set()


def test_panels_have_names_places_and_questions_of_their_own() -> None:
    panels = board()["panels"]
    for field in ("id", "gridPos"):
        seen = [json.dumps(panel[field]) for panel in panels]
        assert len(set(seen)) == len(seen), field
    assert all(panel["title"] and panel["targets"] for panel in panels)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="there is no promtool here")
@pytest.mark.parametrize(
    "command",
    [("check", "rules", "alerts.yml"), ("check", "config", "--syntax-only", "scrape.yml")],
)
def test_prometheus_takes_the_files(command: tuple[str, ...]) -> None:
    told = subprocess.run(
        ["promtool", *command], cwd=RULES.parent, capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_services_give_the_server_time_to_stop() -> None:
    grace = Settings().shutdown_timeout
    unit, compose = (DEPLOY / name for name in ("systemd/tandemq.service", "compose.yml"))
    for file, pattern in (
        (unit, r"^TimeoutStopSec=(\d+)$"),
        (compose, r"^ *stop_grace_period: (\d+)s$"),
    ):
        found = re.search(pattern, file.read_text(), re.MULTILINE)
        assert found is not None
        assert int(found[1]) > grace + 5
    assert f"RestartPreventExitStatus={int(Exit.CONFIG)}\n" in unit.read_text()


def test_settings_that_are_named_exist() -> None:
    for file in ("compose.yml", "Dockerfile"):
        for name in re.findall(r"TANDEMQ_(\w+)", (DEPLOY / file).read_text()):
            assert name.lower() in FIELDS, name


def test_the_image_has_no_shell_around_the_server() -> None:
    """P95: a shell as process 1 would keep SIGTERM for itself."""
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    for word in ("ENTRYPOINT", "CMD"):
        (said,) = (line for line in lines if line.startswith(word + " "))
        assert json.loads(said.removeprefix(word)), "not the form that runs without a shell"
