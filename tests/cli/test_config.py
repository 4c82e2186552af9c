"""``tandemq config``."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result

from tandemq.cli.config import config
from tandemq.config import FIELDS


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(config, arguments, env=environ)


def shown(*arguments: str, **environ: str) -> dict[str, dict[str, str]]:
    done = run("show", "--json", *arguments, **environ)
    assert done.exit_code == 0, done.output
    return {row["name"]: row for row in json.loads(done.output)}


def test_show_tells_each_value_and_its_origin(here: Path) -> None:
    (here / "tandemq.toml").write_text('in_flight = 7\nworker_timeout_ms = "5s"')
    found = shown("--port", "7000", TANDEMQ_LOG_LEVEL="debug")
    assert list(found) == list(FIELDS)
    port = {"name": "port", "value": "7000", "unit": "", "origin": "--port"}
    assert found["port"] == port
    assert found["log_level"]["origin"] == "TANDEMQ_LOG_LEVEL"
    assert found["in_flight"]["origin"] == "in_flight in tandemq.toml"
    assert found["worker_timeout_ms"]["value"] == "5000"
    assert found["host"]["origin"] == "default"


def test_show_prints_a_table_for_people(here: Path) -> None:
    lines = run("show").output.splitlines()
    assert lines[0].split() == ["SETTING", "VALUE", "UNIT", "FROM"]
    assert len(lines) == 1 + len(FIELDS)
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.usefixtures("here")
def test_show_hides_secrets() -> None:
    for arguments in (["show"], ["show", "--json"]):
        done = run(*arguments, "--token", "hunter2")
        assert "hunter2" not in done.output
        assert "(1 hidden)" in done.output


def test_file_and_reference_names_can_be_asked_for_by_flag_or_variable(here: Path) -> None:
    (here / "other.toml").write_text("in_flight = 8")
    for arguments, environ in (
        (["--config", "other.toml", "--compat-env"], {}),
        ([], {"TANDEMQ_CONFIG": "other.toml", "TANDEMQ_COMPAT_ENV": "1"}),
    ):
        found = shown(*arguments, TCP_PORT="7001", **environ)
        assert found["in_flight"]["value"] == "8"
        assert found["port"]["origin"] == "TCP_PORT"
        assert found["data"]["origin"] == "reference default"


@pytest.mark.usefixtures("here")
def test_a_switch_can_be_turned_off_against_the_environment() -> None:
    assert shown("--no-insecure", TANDEMQ_INSECURE="1")["insecure"]["value"] == "false"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("verb", ["show", "check"])
def test_a_bad_setting_is_one_line_on_standard_error_and_code_78(verb: str) -> None:
    done = run(verb, TANDEMQ_PORT="http")
    assert done.exit_code == 78
    assert done.stdout == ""
    assert done.stderr.startswith("Error: TANDEMQ_PORT must be a whole number")
    assert done.stderr.count("\n") == 1


def test_check_looks_at_the_certificate_too(here: Path) -> None:
    issued = trustme.CA().issue_cert("localhost")
    issued.private_key_and_cert_chain_pem.write_to_path(str(here / "both.pem"))
    good = run("check", "--tls-cert", "both.pem", "--tls-key", "both.pem")
    assert (good.exit_code, good.stdout) == (0, "The settings can be used.\n")
    (here / "bad.pem").write_text("rubbish")
    bad = run("check", "--tls-cert", "both.pem", "--tls-key", "bad.pem")
    assert bad.exit_code == 78
    assert "tls_key bad.pem is no PEM file" in bad.stderr


def test_init_prints_a_file_that_can_be_used(here: Path) -> None:
    text = run("init").output
    assert tomllib.loads(text) == {}
    (here / "tandemq.toml").write_text(text.replace("# port = 6789", "port = 7000"))
    assert shown()["port"]["value"] == "7000"
