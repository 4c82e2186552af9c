"""Exit codes as a shell sees them: one test for each, in real processes where signals matter."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgpack
import pytest
from tests.cli.shell import Shell, start
from tests.support.server import Server, clean_environment
from tests.support.wire import frame

PATIENCE = 30.0  # s


@pytest.fixture
def mute() -> Iterator[int]:
    """The port of a server that greets and then says nothing more."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                hello = peer.recv(65_536)
                asked = msgpack.unpackb(hello[4 : 4 + int.from_bytes(hello[:4], "big")])
                said = {"ok": True, "protocolVersion": 3, "capabilities": [], "server": "bunqueue"}
                said |= {"version": "2.9.5", "reqId": asked["reqId"]}
                peer.sendall(frame(msgpack.packb(said)))
                while peer.recv(65_536):
                    pass

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE)
        assert not thread.is_alive()


def test_0_done_and_an_empty_list_is_done(shell: Shell) -> None:
    assert shell.json("job", "list", "nothing-here") == []


def test_1_the_server_refused(shell: Shell) -> None:
    assert shell.fails(1, "job", "get", "nobody") == "Error: Job not found\n"


def test_2_wrong_usage(shell: Shell) -> None:
    assert "Missing argument" in shell.fails(2, "job", "get")


def test_3_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert f"cannot connect to 127.0.0.1:{port}" in Shell(port).fails(3, "ping")


@pytest.mark.parametrize("token", [None, "wrong"])
def test_4_not_authorised(closed: Server, token: str | None) -> None:
    said = Shell(closed.port, token=token).fails(4, "stats")
    assert "--token" in said
    assert "wrong" not in said


def test_5_timed_out(mute: int) -> None:
    said = Shell(mute).fails(5, "stats", "--timeout", "200ms")
    assert "0.2 s" in said


def test_69_a_port_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        serve = start("serve", "--port", port, "--http-port", "0", "--data", "memory", cwd=tmp_path)
        assert serve.wait(PATIENCE) == 69
        _close(serve)


def test_74_the_data_cannot_be_read(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "x.db").write_text("rubbish" * 1000)
    said = shell.fails(74, "backup", "verify", str(tmp_path / "x.db"))
    assert "not a database" in said


def test_78_a_setting_is_wrong(shell: Shell) -> None:
    assert "--insecure" in shell.fails(78, "config", "check", "--host", "0.0.0.0")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)]
)
def test_128_and_more_ended_by_a_signal(server: Server, number: int, code: int) -> None:
    """A shell shows the end by SIGTERM as 143."""
    top = start("top", "--url", f"127.0.0.1:{server.port}", "--every", "100ms", "--looks", "100000")
    assert top.stdout is not None
    assert top.stdout.readline().startswith("tandemq")
    top.send_signal(number)
    out, err = top.communicate(timeout=PATIENCE)
    assert top.returncode == code
    assert "Traceback" not in out + err


def test_141_nobody_reads_any_more() -> None:
    read, write = os.pipe()
    os.close(read)
    environ = clean_environment()
    done = subprocess.run(
        [sys.executable, "-m", "tandemq", "commands"],
        env=environ, stdout=write, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


def test_a_command_without_a_terminal_asks_nobody(server: Server) -> None:
    drain = start("queue", "drain", "q", "--url", f"127.0.0.1:{server.port}")
    _, err = drain.communicate(timeout=PATIENCE)
    assert drain.returncode == 2
    assert "add --yes" in err


def test_help_is_quick() -> None:
    """The promise is 150 ms of wall time; measured is CPU, since a test shares its machine."""
    seconds = min(_cpu("--help") for _ in range(3))
    assert seconds < 0.5
    assert min(_cpu("job", "add", "--help") for _ in range(3)) < 1.0


def _cpu(*arguments: str) -> float:
    """CPU seconds of one run."""
    process = start(*arguments)
    assert process.stdout is not None
    assert "Usage" in process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    _close(process)
    assert process.returncode == 0
    return used.ru_utime + used.ru_stime


def _close(process: subprocess.Popen[str]) -> None:
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
