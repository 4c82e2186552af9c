#!/usr/bin/env python3
"""What a million waiting jobs cost, and what those cost who only wait.

Two servers run beside each other, one with few waiting jobs and one with many, and are loaded in
turn, so that rates at both depths come from the same minutes. Then the deep one is restarted, and a
fresh one is left alone with idle connections and with waiting pulls.
"""

from __future__ import annotations

import argparse
import json
import os
import selectors
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from statistics import median
from typing import Any, TextIO

import msgspec
from driver import Driver, Figures
from servers import NotAvailable, Ours, Server
from steps import BATCHES, PIPELINED, PULLING

PULL_TIMEOUT = 60_000
START_LIMIT = 300.0
HEAD = struct.Struct(">I")


class Wire:
    """One blocking connection; requests are answered one after the other."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self._unread = b""

    def send(self, **request: Any) -> None:
        body = msgspec.msgpack.encode(request)
        self.socket.sendall(HEAD.pack(len(body)) + body)

    def receive(self) -> dict[str, Any]:
        """Return the next answer, waiting for it."""
        while True:
            if len(self._unread) >= HEAD.size:
                end = HEAD.size + HEAD.unpack_from(self._unread)[0]
                if len(self._unread) >= end:
                    body, self._unread = self._unread[HEAD.size : end], self._unread[end:]
                    return msgspec.msgpack.decode(body, type=dict[str, Any])
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the server closed the connection")
            self._unread += more

    def ask(self, **request: Any) -> dict[str, Any]:
        self.send(reqId="1", **request)
        answer = self.receive()
        if answer.get("ok") is not True:
            raise RuntimeError(f"{request['cmd']}: {answer.get('error')}")
        return answer

    def close(self) -> None:
        self.socket.close()


class Trial:
    """Measures, prints each figure with its bar, and remembers whether all bars were reached."""

    def __init__(self, given: argparse.Namespace, raw: TextIO | None) -> None:
        self._given = given
        self._raw = raw
        self._driver = Driver(core=given.driver_core, longest=600)
        self.mode = ""
        self.reached = True

    def run(self, mode: str) -> None:
        self.mode = mode
        print(f"\n{mode}: {self._given.jobs:,} waiting jobs of 100 bytes")
        with ExitStack() as running:
            shallow, deep = (running.enter_context(self._server(mode)) for _ in range(2))
            before = deep.resident()
            longest = self._fill(shallow, deep)
            self._memory(before, deep)
            self._rates(shallow, deep, longest)
            shallow.close()
            if mode == "file":
                self._restarts(deep)
        with self._server(mode) as server:
            self._idle(server)
        with self._server(mode) as server:
            self._waiting(server)

    def _server(self, mode: str) -> Server:
        return Ours(stored=mode == "file", core=self._given.server_core)

    def load(self, server: Server, op: str, **options: Any) -> Figures:
        figures = self._driver(op, port=server.port, pids=server.pids(), **options)
        if "failed" in figures:
            sys.exit(f"{op} failed: {figures['failed']}")
        return figures

    def show(
        self, what: str, value: float, unit: str, *, at_most: float = 0, at_least: float = 0
    ) -> None:
        """Print a figure, and whether its bar is reached where it has one."""
        good = (not at_most or value <= at_most) and value >= at_least
        bar = f"at most {at_most:g}" if at_most else f"at least {at_least:g}" if at_least else ""
        verdict = f"{bar}: {'yes' if good else 'NO'}" if bar else ""
        number = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
        if self._given.markdown:
            print(f"| {what} | {number} {unit} | {verdict} |")
        else:
            print(f"  {what:<58} {number:>9} {unit:<8} {verdict}".rstrip(), flush=True)
        self.reached &= good
        if self._raw is not None:
            line = {"mode": self.mode, "what": what, "value": value, "unit": unit, "reached": good}
            print(json.dumps(line), file=self._raw, flush=True)

    def _fill(self, shallow: Server, deep: Server) -> float:
        """Bring both to their depths; return the longest turn of the deep one meanwhile."""
        longest_turn(deep)
        self.load(shallow, "pushb", **BATCHES, ops=self._given.few)
        filled = self.load(deep, "pushb", **BATCHES, ops=self._given.jobs)
        self.show("filling, CPU for each job", filled["cpu_us_per_job"], "us")
        return longest_turn(deep)

    def _memory(self, before: float, deep: Server) -> None:
        time.sleep(1)
        resident = deep.resident()
        self.show("resident memory", resident, "MB", at_most=900)
        self.show("memory of each job", (resident - before) * 2**20 / self._given.jobs, "bytes")

    def _rates(self, shallow: Server, deep: Server, longest: float) -> None:
        """Load both in turn and leave them as deep as they were; ratios of the same round count."""
        pushes: dict[int, list[Figures]] = {shallow.port: [], deep.port: []}
        pulls: dict[int, list[Figures]] = {shallow.port: [], deep.port: []}
        turns = [longest]
        for _ in range(self._given.rounds):
            for server in (shallow, deep):
                probe = self._given.probe
                pushes[server.port].append(self.load(server, "push", **PIPELINED, ops=probe))
                pulls[server.port].append(self.load(server, "pull_ack", **PULLING, ops=probe))
            turns.append(longest_turn(deep))
        for what, found, bar in (("push", pushes, 80), ("pull and ack", pulls, 0)):
            few, many = found[shallow.port], found[deep.port]
            for name, figures in (("few", few), ("many", many)):
                rate = median(each["jobs_per_s"] for each in figures)
                cpu = median(each["cpu_us_per_job"] for each in figures)
                self.show(f"{what} with {name} waiting, rate", rate, "/s")
                self.show(f"{what} with {name} waiting, CPU for each job", cpu, "us")
            kept = median(b["jobs_per_s"] / a["jobs_per_s"] for a, b in zip(few, many, strict=True))
            self.show(f"{what}, rate kept at depth", kept * 100, "%", at_least=bar)
        self.show("longest turn of the loop while filled", longest, "ms", at_most=100)
        self.show("longest turn of the loop at depth", max(turns[1:]), "ms", at_most=100)
        slowest = max(each["max_us"] for each in pushes[deep.port]) / 1000
        self.show("slowest answer to a push at depth, seen by the client", slowest, "ms")

    def _restarts(self, deep: Server) -> None:
        sizes = [file.stat().st_size for file in deep.folder.iterdir() if file.is_file()]
        self.show("files", sum(sizes) / 1e6, "MB")
        ways: tuple[tuple[str, Callable[[], object]], ...] = (
            ("in order", deep.stop),
            ("by kill -9", deep.kill),
        )
        for name, end in ways:
            began = time.perf_counter()
            end()
            self.show(f"stopped {name}", time.perf_counter() - began, "s")
            began = time.perf_counter()
            opened = deep.start(START_LIMIT)
            wire = Wire(deep.port)
            pulled = wire.ask(cmd="PULL", queue="bench00000")
            if not pulled.get("job"):
                sys.exit("the restarted server has no jobs")
            self.show(f"restart after a stop {name}, port open", opened, "s")
            ready = time.perf_counter() - began
            self.show(f"restart after a stop {name}, first job", ready, "s", at_most=15)
            wire.ask(cmd="ACK", id=pulled["job"]["id"], token=pulled.get("token"))
            wire.close()
            self.show(f"resident memory after a stop {name}", deep.resident(), "MB", at_most=900)
            longest_turn(deep)  # start-up does not count
            self.load(deep, "push", **PIPELINED, ops=self._given.probe)
            self.load(deep, "pull_ack", **PULLING, ops=self._given.probe)
            longest = longest_turn(deep)
            self.show(f"longest turn after a stop {name}", longest, "ms", at_most=100)

    def _idle(self, server: Server) -> None:
        time.sleep(0.5)
        figures = self.load(server, "idle", conns=self._given.connections, hold=2)
        kilobytes = figures["kb_per_conn"]
        self.show("memory of each idle connection", kilobytes, "KB", at_most=20)

    def _waiting(self, server: Server) -> None:
        """CPU of a server on which many connections wait for a job that does not come."""
        request = {"cmd": "PULL", "queue": "empty", "timeout": PULL_TIMEOUT, "reqId": "1"}
        wires = [Wire(server.port) for _ in range(self._given.connections)]
        with selectors.DefaultSelector() as answered:
            for wire in wires:
                wire.send(**request)
                answered.register(wire.socket, selectors.EVENT_READ, wire)
            time.sleep(2)
            began, spent = time.perf_counter(), server.cpu()
            until = began + self._given.seconds
            while (left := until - time.perf_counter()) > 0:
                for key, _ in answered.select(left):
                    key.data.receive()
                    key.data.send(**request)
            share = (server.cpu() - spent) / (time.perf_counter() - began) * 100
            pusher = Wire(server.port)
            pusher.ask(cmd="PUSH", queue="empty", name="job", data={})
            if not any(key.data.receive().get("job") for key, _ in answered.select(5)):
                sys.exit("the pulls were not waiting: none got the job that was pushed")
            pusher.close()
        for wire in wires:
            wire.close()
        name = f"{self._given.connections:,} waiting pulls, CPU of the server"
        self.show(name, share, "%", at_most=1)


def longest_turn(server: Server) -> float:
    """The longest turn of the server's loop in ms since this was last asked."""
    wire = Wire(server.port)
    answer = wire.ask(cmd="Stats", details=True)
    wire.close()
    return float(answer["stats"]["loopLagMs"])


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    say = parser.add_argument
    say("--jobs", type=int, default=1_000_000, help="waiting jobs [default: %(default)s]")
    say("--few", type=int, default=1_000, help="what that is held against [default: %(default)s]")
    say("--probe", type=int, default=20_000, help="jobs of a probe [default: %(default)s]")
    say("--rounds", type=int, default=5, help="probes at each depth [default: %(default)s]")
    say("--connections", type=int, default=1_000, help="that only wait [default: %(default)s]")
    say("--seconds", type=float, default=10, help="of waiting [default: %(default)s]")
    say("--mode", choices=("memory", "file", "both"), default="both")
    say("--json", metavar="FILE", help="append every figure to this file")
    say("--markdown", action="store_true", help="print rows of a table as in README.md")
    say("--server-core", type=int, default=0, help="[default: %(default)s; -1 pins nothing]")
    say("--driver-core", type=int, default=1, help="[default: %(default)s; -1 pins nothing]")
    say("--fail", action="store_true", help="exit with 1 where a bar is not reached")
    return parser.parse_args()


def main() -> int:
    given = options()
    print(
        f"{time.strftime('%Y-%m-%d', time.gmtime())}; load average of the minute before "
        f"{os.getloadavg()[0]:.1f}"
    )
    with ExitStack() as files:
        raw = files.enter_context(open(given.json, "a")) if given.json else None
        trial = Trial(given, raw)
        try:
            for mode in ("memory", "file") if given.mode == "both" else (given.mode,):
                trial.run(mode)
        except NotAvailable as why:
            sys.exit(str(why))
    return int(given.fail and not trial.reached)


if __name__ == "__main__":
    sys.exit(main())
