"""The server as a process: how it starts, what it says, how it stops, what it reads again."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgpack
import pytest
import trustme
from tests.support.patience import eventually
from tests.support.server import Server, clean_environment, free_ports, is_own
from tests.support.wire import Lost, NoAnswer, Wire, packed

from tandemq import __version__

pytestmark = pytest.mark.skipif(not is_own(), reason="only about our own server")

NewServer = Callable[..., Server]
LONG = "600"  # s to wait for jobs in work: longer than any test


def ended(server: Server, within: float = 20.0) -> int:
    """The exit code, once it is there."""
    code = server.process.wait(within)
    assert "Traceback" not in server.log_tail(100_000), server.log_tail()
    return code


def says(server: Server, words: str) -> None:
    eventually(lambda: words in server.log_tail(100_000), f"the log says {words!r}")


def run(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A server that is expected to end by itself."""
    return subprocess.run(
        [sys.executable, "-m", "tandemq", "serve", *arguments],
        cwd=folder,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


# -- start ---------------------------------------------------------------------------------------


def test_the_banner_says_what_runs_where_and_how_to_stop(new_server: NewServer) -> None:
    server = new_server().start()
    text = server.log_tail()
    for line in (
        f"tandemq {__version__}, pid {server.process.pid}",
        f"  tcp    127.0.0.1:{server.port}",
        f"  store  {server.data}, 0 messages",
        "  keeps  durability commit: an answer survives kill -9 of the server",
        "  auth   off; only this machine can connect",
        f"  stop   Ctrl-C or kill {server.process.pid}; a second time stops at once",
    ):
        assert f"{line}\n" in text, text
    with server.connect() as wire:
        wire.push("q")
    assert server.stop() == 0
    server.start()
    says(server, f"  store  {server.data}, 1 message\n")


def test_the_banner_of_a_server_that_keeps_nothing(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_TOKEN": "hunter2"})
    server.data = Path("memory")
    server.start(wait=False)
    says(server, "  store  memory\n")
    says(server, "  keeps  durability memory: nothing survives the process\n")
    says(server, "  auth   on, 1 token\n")
    assert "hunter2" not in server.log_tail()
    assert "object at 0x" not in server.log_tail()


def test_a_free_port_is_shown(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tandemq", "serve", "--port", "0", "--data", "memory"],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        head = [process.stdout.readline() for _ in range(2)]
        found = re.search(r"tcp    127\.0\.0\.1:(\d+)", head[1])
        assert found is not None
        with Wire(int(found[1])) as wire:
            assert wire.ping()
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_port_in_use_ends_with_69(own_server: Server, tmp_path: Path) -> None:
    done = run("--port", str(own_server.port), "--data", "other.db", folder=tmp_path)
    assert done.returncode == 69
    told = f"Error: port {own_server.port} of 127.0.0.1 cannot be had: Address already in use."
    assert done.stderr.splitlines()[-1].startswith(told)
    assert "--port gives another" in done.stderr
    assert "Traceback" not in done.stderr
    with own_server.connect() as wire:
        assert wire.ping()


def test_a_data_file_that_is_held_ends_with_74(own_server: Server, tmp_path: Path) -> None:
    done = run("--port", "0", "--data", str(own_server.data), folder=tmp_path)
    assert done.returncode == 74
    assert "Traceback" not in done.stderr
    assert str(own_server.data) in done.stderr
    with own_server.connect() as wire:
        assert wire.push("q")


def test_a_data_file_that_is_none_ends_with_74(tmp_path: Path) -> None:
    (tmp_path / "rubbish.db").write_bytes(b"this is no database" * 1000)
    done = run("--port", "0", "--data", "rubbish.db", folder=tmp_path)
    assert done.returncode == 74
    assert "rubbish.db" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_bad_setting_ends_with_78(tmp_path: Path) -> None:
    done = run("--port", "0", "--token-file", "missing", folder=tmp_path)
    assert done.returncode == 78
    assert "missing" in done.stderr


# -- stop ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_ends_well(own_server: Server, number: int) -> None:
    with own_server.connect() as wire:
        wire.push("q")
        own_server.process.send_signal(number)
        assert wire.closed_within(20)
    assert ended(own_server) == 0
    assert own_server.log_tail().rstrip().endswith("stopped")


def test_a_stop_waits_for_jobs_in_work_and_accepts_nobody_new(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_SHUTDOWN_TIMEOUT": LONG}).start()
    with server.connect() as wire:
        id, waiting = wire.push("q"), wire.push("q")
        token = wire.pull("q")["token"]
        server.process.send_signal(signal.SIGTERM)
        says(server, "stopping")
        eventually(lambda: refused(server), "new connections are refused")
        assert wire.pull("q")["job"] is None
        assert server.running()
        wire.do("ACK", id=id, token=token, result="done")
        assert ended(server) == 0
    with server.start().connect() as wire:
        assert wire.do("GetResult", id=id)["result"] == "done"
        assert wire.state(waiting) == "waiting"


def refused(server: Server) -> bool:
    with contextlib.suppress(Lost, NoAnswer):
        with Wire(server.port, timeout=1) as wire:
            wire.ask("Ping")
        return False
    return True


def test_a_second_signal_stops_at_once_and_charges_nothing(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_SHUTDOWN_TIMEOUT": LONG}).start()
    with server.connect() as wire:
        id = wire.push("q")
        wire.pull("q")
        server.process.send_signal(signal.SIGTERM)
        says(server, "stopping")
        server.process.send_signal(signal.SIGTERM)
        assert ended(server) == 0
    with server.start().connect() as wire:
        job = wire.do("GetJob", id=id)["job"]
        assert (job["state"], job["attempts"], job["stallCount"]) == ("waiting", 0, 0)


def test_a_stop_waits_only_so_long(new_server: NewServer) -> None:
    server = new_server(environment={"TANDEMQ_SHUTDOWN_TIMEOUT": "0.2"}).start()
    with server.connect() as wire:
        wire.push("q")
        wire.pull("q")
        assert server.stop() == 0


def test_what_was_acknowledged_before_a_stop_is_there_after_it(own_server: Server) -> None:
    with own_server.connect() as wire:
        answers = wire.do_all({"cmd": "PUSH", "queue": "q", "data": n} for n in range(500))
        assert own_server.stop() == 0
    with own_server.start().connect() as wire:
        assert wire.states(answer["id"] for answer in answers) == ["waiting"] * 500


# -- health --------------------------------------------------------------------------------------


def asked(port: int, path: str) -> tuple[int, dict[str, object]]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def test_a_health_port_tells_how_the_server_is_until_it_has_stopped(
    new_server: NewServer,
) -> None:
    (port,) = free_ports(1)
    environment = {"TANDEMQ_HEALTH_PORT": str(port), "TANDEMQ_SHUTDOWN_TIMEOUT": LONG}
    server = new_server(environment=environment).start()
    says(server, f"health http://127.0.0.1:{port}/health/\n")
    with server.connect() as wire:
        wire.push("q")
        token = wire.pull("q")
        status, told = asked(port, "/health/")
        assert (status, told["isHealthy"], told["inFlightMessages"]) == (200, True, 1)
        status, told = asked(port, "/metrics/?naming=snake")
        assert (status, told["active_connections"]) == (200, 1)
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: asked(port, "/health/")[0] == 503, "it says that it stops")
        assert asked(port, "/health/")[1]["reasons"] == ["the server is about to stop"]
        wire.do("ACK", id=token["job"]["id"], token=token["token"])
        assert ended(server) == 0


def test_no_health_port_is_open_unless_it_is_asked_for(own_server: Server) -> None:
    assert "  health " not in own_server.log_tail()


# -- what is read again --------------------------------------------------------------------------


def knows(server: Server, token: str) -> bool:
    with server.connect() as wire:
        return wire.ask("Auth", token=token)["ok"] is True


def test_the_file_of_tokens_is_read_again_on_a_signal(
    new_server: NewServer, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_text("# people\nold\n")
    server = new_server(environment={"TANDEMQ_TOKEN_FILE": str(file)})
    server.start(wait=False)
    says(server, "auth   on, 1 token\n")
    with server.connect() as before:
        before.do("Auth", token="old")
        assert not knows(server, "new")
        file.write_text("new\n")
        server.process.send_signal(signal.SIGHUP)
        eventually(lambda: knows(server, "new"), "the new token is accepted")
        assert not knows(server, "old")
        assert before.ping(), "who was trusted stays so"
        for bad in ("", "# nobody\n"):
            file.write_text(bad)
            server.process.send_signal(signal.SIGHUP)
        says(server, "tokens not reloaded, the old ones stay")
        assert knows(server, "new")
    assert server.stop() == 0


def test_without_anything_to_read_again_the_signal_is_harmless(own_server: Server) -> None:
    with own_server.connect() as wire:
        for _ in range(5):
            own_server.process.send_signal(signal.SIGHUP)
            assert wire.ping()
    assert own_server.stop() == 0


# -- TLS -----------------------------------------------------------------------------------------


class Secured:
    """A server with a certificate of an authority that the test trusts."""

    def __init__(self, make: NewServer, folder: Path) -> None:
        self.authority = trustme.CA()
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"
        self.issue()
        self.server = make(
            environment={
                "TANDEMQ_TLS_CERT": str(self.certificate),
                "TANDEMQ_TLS_KEY": str(self.key),
            }
        )

    def issue(self) -> None:
        issued = self.authority.issue_cert("localhost", "127.0.0.1")
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))

    def start(self) -> Secured:
        self.server.start(wait=False)
        says(self.server, f"127.0.0.1:{self.server.port} with TLS\n")
        return self

    @contextlib.contextmanager
    def connect(self) -> Iterator[ssl.SSLSocket]:
        context = ssl.create_default_context()
        self.authority.configure_trust(context)
        with (
            socket.create_connection(("127.0.0.1", self.server.port), timeout=20) as plain,
            context.wrap_socket(plain, server_hostname="localhost") as secured,
        ):
            yield secured

    def seen_certificate(self) -> bytes:
        with self.connect() as secured:
            found = secured.getpeercert(binary_form=True)
            assert found
            return found


@pytest.fixture
def secured(new_server: NewServer, tmp_path: Path) -> Secured:
    return Secured(new_server, tmp_path)


def ask(secured: ssl.SSLSocket, cmd: str, **fields: object) -> dict[str, object]:
    secured.sendall(packed({"cmd": cmd, "reqId": "r", **fields}))
    return read_answer(secured)


def read_answer(secured: ssl.SSLSocket) -> dict[str, object]:
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        chunk = secured.recv(1 << 16)
        assert chunk, "closed in the middle of an answer"
        data += chunk
    found: dict[str, object] = msgpack.unpackb(data[4:], strict_map_key=False)
    return found


def test_jobs_travel_over_tls(secured: Secured) -> None:
    secured.start()
    with secured.connect() as one, secured.connect() as two:
        pushed = ask(one, "PUSH", queue="q", data="x" * 200_000)
        job = ask(two, "PULL", queue="q", owner="w")
        assert isinstance(job["job"], dict)
        assert (job["job"]["id"], len(job["job"]["data"])) == (pushed["id"], 200_000)
        assert ask(two, "ACK", id=pushed["id"], token=job["token"])["ok"]
    assert secured.server.stop() == 0


def test_a_plain_client_on_the_port_of_tls_is_closed(secured: Secured) -> None:
    secured.start()
    with Wire(secured.server.port) as plain:
        with contextlib.suppress(Lost):
            plain.send_raw(packed({"cmd": "Ping"}) * 3)
        assert plain.closed_within(20)
    with secured.connect() as still:
        assert ask(still, "Ping")["ok"]
    assert secured.server.stop() == 0
    assert "Traceback" not in secured.server.log_tail(100_000)


def test_a_renewed_certificate_is_used_after_a_signal_and_a_bad_one_is_not(
    secured: Secured,
) -> None:
    secured.start()
    old = secured.seen_certificate()
    with secured.connect() as before:
        secured.issue()
        secured.server.process.send_signal(signal.SIGHUP)
        says(secured.server, "certificate reloaded")
        new = secured.seen_certificate()
        assert new != old
        secured.key.write_text("rubbish")
        secured.server.process.send_signal(signal.SIGHUP)
        says(secured.server, "certificate not reloaded, the old one stays")
        assert secured.seen_certificate() == new
        assert ask(before, "Ping")["ok"]
    assert secured.server.stop() == 0


def test_a_bad_certificate_at_the_start_ends_with_78(secured: Secured, tmp_path: Path) -> None:
    secured.key.write_text("rubbish")
    done = run(
        "--port", "0", "--data", "memory",
        "--tls-cert", str(secured.certificate), "--tls-key", str(secured.key),
        folder=tmp_path,
    )  # fmt: skip
    assert done.returncode == 78
    assert "tls_key" in done.stderr


def test_the_server_raises_the_limit_of_descriptors_as_far_as_it_may(own_server: Server) -> None:
    limits = Path(f"/proc/{own_server.process.pid}/limits").read_text()
    found = re.search(r"Max open files\s+(\d+)\s+(\d+)", limits)
    assert found is not None
    assert found[1] == found[2]
