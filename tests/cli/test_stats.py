"""How a server is doing, as figures, as a picture, as an exit code; and what a load makes of it."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.cli.shell import Shell
from tests.support.server import Server, clean_environment

from tandemq.cli.doctor import doctor
from tandemq.cli.link import Linked


def test_figures_are_those_of_the_server(shell: Shell, queue: str) -> None:
    before = shell.json("stats")["completed"]
    id = shell.add(queue)
    shell.text("pull", queue)
    shell.text("ack", id)
    assert shell.json("stats")["completed"] == before + 1
    assert shell.json("metrics")["totalPushed"] >= 1
    assert sum(minute["jobs"] for minute in shell.json("metrics", queue)) == 1
    assert sum(minute["jobs"] for minute in shell.json("metrics", queue, "--failed")) == 0
    assert "tandemq" in shell.text("metrics", "--prometheus")


def test_health_is_an_exit_code(shell: Shell, own_server: Server) -> None:
    assert shell.text("health") == "ok"
    assert shell.run("health", "--quiet").exit_code == 0
    assert shell.json("healthcheck") == {"ok": True, "diskFull": False, "error": None}
    own_server.stop()
    Shell(own_server.port).fails(3, "health", "--timeout", "1s")


def test_health_is_bad_when_nothing_can_be_stored(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = Linked.call

    def full(self: Linked, command: str, /, **fields: Any) -> dict[str, Any]:
        answer = call(self, command, **fields)
        full = {"diskFull": True, "error": "no space left"}
        return {**answer, **full} if command == "StorageStatus" else answer

    monkeypatch.setattr(Linked, "call", full)
    done = shell.run("health")
    assert (done.exit_code, done.stdout) == (1, "The store cannot be written: no space left.\n")
    assert json.loads(shell.run("health", "--json").stdout)["ok"] is False


def test_top_in_a_pipe_is_one_look(shell: Shell, queue: str) -> None:
    shell.add(queue)
    shell.text("queue", "pause", queue)
    lines = shell.text("top").splitlines()
    assert lines[0].startswith("tandemq   up ")
    assert any(line.startswith(queue[:28]) and line.endswith("paused") for line in lines)
    assert shell.json("top", "--queues", "1")["total"] >= 1
    assert "more" in shell.text("top", "--queues", "1") or shell.json("top")["total"] == 1


def test_top_on_a_terminal_leaves_the_screen_as_it_was(server: Server) -> None:
    own, theirs = pty.openpty()
    url = f"127.0.0.1:{server.port}"
    command = [sys.executable, "-m", "tandemq", "top", "--url", url, "--every", "100ms"]
    process = subprocess.Popen(
        [*command, "--looks", "2"], stdout=theirs, stderr=theirs, stdin=theirs,
        env={**clean_environment(), "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(own, 65_536):
            seen += part
    except OSError:
        pass  # how the end of a terminal reads
    os.close(own)
    assert process.wait(30) == 0
    assert seen.startswith(b"\x1b[?1049h")
    assert seen.endswith(b"\x1b[?25h\x1b[?1049l")
    assert seen.count(b"tandemq   up") == 2


def test_bench_tells_what_it_did_and_leaves_nothing(shell: Shell) -> None:
    rows = shell.json("bench", "--jobs", "300", "--concurrency", "10", "--size", "10")
    assert [(row["step"], row["jobs"]) for row in rows] == [
        ("add", 300), ("add many", 300), ("run", 600),
    ]  # fmt: skip
    assert all(row["perSecond"] > 0 for row in rows)
    assert not [q for q in shell.json("queue", "list") if q["name"].startswith("bench-")]


# -- the doctor -----------------------------------------------------------------------------------


def diagnosed(folder: Path, *flags: str) -> tuple[int, dict[str, tuple[str, str]]]:
    done = CliRunner().invoke(doctor, ["--port", "0", "--http-port", "0", *flags, "--json"])
    found = json.loads(done.stdout)
    return done.exit_code, {each["check"]: (each["status"], each["text"]) for each in found}


def test_a_machine_in_order_is_code_0(tmp_path: Path) -> None:
    code, found = diagnosed(tmp_path, "--data", str(tmp_path / "new.db"))
    assert code == 0
    assert not [check for check, (status, _) in found.items() if status == "error"]
    assert found["data"][1].endswith("the server makes it.")


def test_the_file_of_a_running_server_is_looked_at(server: Server, tmp_path: Path) -> None:
    code, found = diagnosed(tmp_path, "--data", str(server.data), "--port", str(server.port))
    assert code == 0
    assert "is whole" in found["data"][1]
    assert found["port"][0] == "warning"
    assert "A server may run already" in found["port"][1]


@pytest.mark.parametrize(
    ("flags", "check", "status", "says"),
    [
        (["--data", "memory"], "data", "warning", "Nothing is kept"),
        (["--data", "/nowhere/x.db"], "data", "error", "Make it first"),
        (["--host", "0.0.0.0", "--insecure"], "access", "error", "--token-file"),
        (["--host", "0.0.0.0", "--insecure"], "tls", "warning", "unencrypted"),
        (["--host", "0.0.0.0", "--token", "x"], "rates", "warning", "--requests-per-minute"),
        (["--host", "0.0.0.0", "--token", "x"], "access", "ok", "prove"),
        (["--max-memory", "900MiB"], "memory", "warning", "80 %"),
        (["--max-connections", "900"], "descriptors", "warning", "LimitNOFILE"),
        (["--host", "nowhere.invalid", "--token", "x", "--port", "1"], "port", "error", "address"),
        (["--tls-cert", "/nowhere", "--tls-key", "/nowhere"], "certificate", "error", "nowhere"),
    ],
)
def test_what_is_wrong_is_told_with_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    check: str,
    status: str,
    says: str,
) -> None:
    monkeypatch.setattr("tandemq.server.bounds.memory", lambda: 1 << 30)
    monkeypatch.setattr("resource.getrlimit", lambda _: (1_000, 1_000))
    data = [] if "--data" in flags else ["--data", str(tmp_path / "new.db")]
    code, found = diagnosed(tmp_path, *data, *flags)
    assert found[check][0] == status
    assert says in found[check][1]
    assert code == any(status == "error" for status, _ in found.values())


def test_a_damaged_file_is_an_error_and_a_public_one_a_warning(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"rubbish" * 1000)
    code, found = diagnosed(tmp_path, "--data", str(tmp_path / "bad.db"))
    assert (code, found["data"][0]) == (1, "error")
    Shell(1).fails(3, "ping")


# -- completion -----------------------------------------------------------------------------------


@pytest.mark.parametrize("shell_name", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell_name: str) -> None:
    script = Shell(1).text("completion", shell_name)
    assert "_TANDEMQ_COMPLETE" in script
    assert "tandemq" in script


def test_words_are_completed(tmp_path: Path) -> None:
    environ = {**clean_environment(), "_TANDEMQ_COMPLETE": "bash_complete"}
    environ |= {"COMP_WORDS": "tandemq job re", "COMP_CWORD": "2"}
    done = subprocess.run(
        [shutil.which("tandemq") or f"{Path(sys.executable).parent}/tandemq"],
        env=environ, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert {line.split(",")[1] for line in done.stdout.splitlines()} == {"result", "retry"}
