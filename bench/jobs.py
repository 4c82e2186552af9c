#!/usr/bin/env python3
"""What a job pays for what it asks: groups, flows, delays, priorities, schedules.

Each row holds one load against another, in turn (A B A B), over the wire: small requests that are
encoded beforehand, some of them in flight at a time. Servers run on one core and the driver, which
is this program, on another. What counts is the CPU time of the server, and the ratio of medians.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any, TextIO

import msgspec
from msgspec import UNSET, UnsetType
from servers import NotAvailable, Ours, Server

HEAD = struct.Struct(">I")
HOUR, DAY = 3_600_000, 86_400_000  # ms
BYTES = 100  # of data in each job
BATCH = 100  # jobs of a PUSHB or PUSHF
LEVELS = 10  # of priority
QUEUE = "bench"
HEADS = ("row", "A: us/job", "B: us/job", "B / A", "single rounds", "bar", "reached")


class Id(msgspec.Struct):
    """A job, as far as the driver reads it."""

    id: str


class Answer(msgspec.Struct, rename="camel"):
    """What every answer may hold, as far as the driver reads it."""

    ok: bool
    error: str | None = None
    job: Id | UnsetType | None = UNSET
    token: str | None = None


_read = msgspec.msgpack.Decoder(Answer).decode


def frame(**request: Any) -> bytes:
    """Return one request with its length before it."""
    body = msgspec.msgpack.encode({"reqId": "1", **request})
    return HEAD.pack(len(body)) + body


class Pipe:
    """One connection with a number of requests in flight; answers come in their order."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), 300)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._unread = bytearray()

    def run(self, requests: Iterable[bytes], window: int) -> None:
        """Send requests, ``window`` of them at a time, and wait for all answers."""
        waiting = deque(requests)
        flying = 0
        while waiting or flying:
            if waiting and flying <= window // 2:
                more = [waiting.popleft() for _ in range(min(window - flying, len(waiting)))]
                self._socket.sendall(b"".join(more))
                flying += len(more)
            flying -= len(self._answers())

    def pull_and_ack(self, pull: bytes, count: int, window: int) -> None:
        """Pull ``count`` jobs and complete each as soon as it has come."""
        to_pull, flying, done = count, 0, 0
        line: list[bytes] = []
        while done < count:
            room = min(window - flying, to_pull)
            if room > 0:
                line += [pull] * room
                to_pull -= room
                flying += room
            if line:
                self._socket.sendall(b"".join(line))
                line = []
            for answer in self._answers():
                if answer.job is None:
                    sys.exit("a pull found no job")
                if answer.job is UNSET:
                    done += 1
                    flying -= 1
                else:
                    line.append(frame(cmd="ACK", id=answer.job.id, token=answer.token))

    def ask(self, **request: Any) -> Answer:
        self._socket.sendall(frame(**request))
        return self._answers()[0]

    def close(self) -> None:
        self._socket.close()

    def _answers(self) -> list[Answer]:
        """Return the answers that have come, at least one."""
        unread = self._unread
        found: list[Answer] = []
        while not found:
            more = self._socket.recv(1 << 18)
            if not more:
                raise ConnectionError("the server closed the connection")
            unread += more
            at = 0
            while len(unread) - at >= HEAD.size:
                end = at + HEAD.size + HEAD.unpack_from(unread, at)[0]
                if len(unread) < end:
                    break
                answer = _read(bytes(unread[at + HEAD.size : end]))
                if not answer.ok:
                    sys.exit(f"a request was refused: {answer.error}")
                found.append(answer)
                at = end
            del unread[:at]
        return found


@dataclass
class Row:
    """Two loads, A and B, and how much more the second may cost."""

    name: str
    bar: float
    a: list[float] = field(default_factory=list)
    b: list[float] = field(default_factory=list)
    unit: str = "us"

    def value(self) -> float:
        """What is held against the bar: a ratio, or the share of a core."""
        return median(self.b) if self.unit == "%" else median(self.b) / median(self.a)

    def reached(self) -> bool:
        return self.value() <= self.bar

    def cells(self) -> tuple[str, ...]:
        single = [b / a for a, b in zip(self.a, self.b, strict=True) if a > 0]
        share = self.unit == "%"
        mark = " %" if share else ""
        return (
            self.name,
            f"{median(self.a):.3g}{mark}",
            f"{median(self.b):.3g}{mark}",
            "-" if share else f"{self.value():.2f}",
            "-" if share else f"{min(single):.2f} to {max(single):.2f}",
            f"{self.bar:g}{mark}",
            "yes" if self.reached() else "NO",
        )


class Trial:
    """Runs the rows of one mode."""

    def __init__(self, given: argparse.Namespace, mode: str, raw: TextIO | None) -> None:
        self._given = given
        self._mode = mode
        self._raw = raw
        self.rows: list[Row] = []

    def run(self) -> None:
        for name in self._given.rows:
            tell(f"{self._mode}: {name}")
            for row in ROWS[name](self):
                self.rows.append(row)
                if self._raw is not None:
                    line = {"mode": self._mode, "row": row.name, "a": row.a, "b": row.b}
                    print(json.dumps(line), file=self._raw, flush=True)

    def scaled(self, count: int, *, step: int = BATCH) -> int:
        """Return a count at this scale, a multiple of ``step``."""
        return max(step, int(count * self._given.scale) // step * step)

    @contextmanager
    def servers(self, count: int) -> Iterator[list[Server]]:
        """Run servers on their core; the driver goes to its own meanwhile."""
        before = os.sched_getaffinity(0)
        with ExitStack() as running:
            stored, core = self._mode == "file", self._given.server_core
            found = [running.enter_context(Ours(stored=stored, core=core)) for _ in range(count)]
            if self._given.driver_core in before:
                os.sched_setaffinity(0, {self._given.driver_core})
            try:
                yield found
            finally:
                os.sched_setaffinity(0, before)

    def interleave(self, a: Callable[[], float], b: Callable[[], float], row: Row) -> Row:
        """Load A and B in turn; the first round of both does not count."""
        for count in range(self._given.rounds + 1):
            for load, figures in ((a, row.a), (b, row.b)):
                value = load()
                if count:
                    figures.append(value)
        return row

    # -- rows ------------------------------------------------------------------------------------

    def groups(self) -> Iterator[Row]:
        """Pull and ack out of many groups, against jobs without one."""
        many, probe = self.scaled(10_000), self.scaled(20_000)
        for name, limits in (("", {}), (", `group.concurrency` 1", {"concurrency": 1})):
            with self.servers(1) as (server,):
                pipe = Pipe(server)
                numbers: dict[str, int] = {"plain": 0, "grouped": 0}

                def load(
                    queue: str,
                    pipe: Pipe = pipe,
                    server: Server = server,
                    limits: dict[str, Any] = limits,
                    numbers: dict[str, int] = numbers,
                ) -> float:
                    wanted = (2 * many if not numbers[queue] else 0) + probe
                    first = numbers[queue]
                    numbers[queue] += wanted
                    jobs = [
                        {**job(), "groupId": f"g{i % many}"} if queue == "grouped" else job()
                        for i in range(first, first + wanted)
                    ]
                    pipe.run(batches(queue, jobs), 4)
                    group = {"group": limits} if limits and queue == "grouped" else {}
                    pull = frame(cmd="PULL", queue=queue, timeout=0, owner="bench", **group)
                    return spent(server, probe, lambda: pipe.pull_and_ack(pull, probe, 25))

                yield self.interleave(
                    lambda load=load: load("plain"),
                    lambda load=load: load("grouped"),
                    Row(f"pull and ack of {many:,} groups{name}, against no groups", 2),
                )
                pipe.close()

    def flows(self) -> Iterator[Row]:
        """A flow in one request, against a batch."""
        probe = self.scaled(20_000)
        for name, shape in (("one parent, 99 children", family), ("no ties", strangers)):
            with self.servers(1) as (server,):
                pipe = Pipe(server)
                count = iter(range(1 << 30))

                def load(
                    flow: bool,
                    pipe: Pipe = pipe,
                    server: Server = server,
                    shape: Callable[[str], list[dict[str, Any]]] = shape,
                    count: Iterator[int] = count,
                ) -> float:
                    if flow:
                        requests = [
                            frame(cmd="PUSHF", jobs=shape(f"f{next(count)}"))
                            for _ in range(probe // BATCH)
                        ]
                    else:
                        requests = batches(QUEUE, [job() for _ in range(probe)])
                    try:
                        return spent(server, probe, lambda: pipe.run(requests, 4))
                    finally:
                        pipe.ask(cmd="Obliterate", queue=QUEUE)

                yield self.interleave(
                    lambda load=load: load(False),
                    lambda load=load: load(True),
                    Row(f"PUSHF of {BATCH} ({name}), against PUSHB of {BATCH}", 1.5),
                )
                pipe.close()

    def delays(self) -> Iterator[Row]:
        """Push of delayed jobs into a queue that holds many of them, against few."""
        chance = random.Random(1)
        yield self._deep("delayed push", lambda: {"delay": HOUR + chance.randrange(DAY)})

    def priorities(self) -> Iterator[Row]:
        """Push of prioritised jobs into a queue that holds many of them, against few."""
        chance = random.Random(1)
        yield self._deep(
            f"prioritised push ({LEVELS} levels)", lambda: {"priority": chance.randrange(LEVELS)}
        )

    def _deep(self, name: str, wish: Callable[[], dict[str, Any]]) -> Row:
        """Push one by one, a thousand at a time, so that the shallow queue stays shallow."""
        few, many = 1_000, self.scaled(1_000_000)
        chunks = max(1, int(10 * self._given.scale))

        def wishes(count: int) -> list[dict[str, Any]]:
            return [{**job(), **wish()} for _ in range(count)]

        with self.servers(2) as (shallow, deep):
            pipes = {server.port: Pipe(server) for server in (shallow, deep)}
            for _ in range(many // 10_000 or 1):
                pipes[deep.port].run(batches(QUEUE, wishes(min(many, 10_000))), 4)

            def load(server: Server) -> float:
                pipe, total = pipes[server.port], 0.0
                for _ in range(chunks):
                    if server is shallow:
                        pipe.ask(cmd="Obliterate", queue=QUEUE)
                        pipe.run(batches(QUEUE, wishes(few)), 4)
                    pushes = [frame(cmd="PUSH", queue=QUEUE, **each) for each in wishes(few)]
                    total += spent(server, few, lambda p=pushes: pipe.run(p, 100))
                return total / chunks

            row = Row(f"{name} at depth {many:,}, against {few:,}", 1.3)
            self.interleave(lambda: load(shallow), lambda: load(deep), row)
            for pipe in pipes.values():
                pipe.close()
        return row

    def schedules(self) -> Iterator[Row]:
        """Idle CPU of a server with many schedules, of which none is due, against none."""
        many, seconds = self.scaled(100_000), self._given.seconds
        month = (time.gmtime().tm_mon + 5) % 12 + 1  # half a year away
        with self.servers(2) as (empty, full):
            pipe = Pipe(full)
            pipe.run((schedule(i, month) for i in range(many)), 100)
            time.sleep(2)

            def idle(server: Server) -> float:
                began, before = time.perf_counter(), server.cpu()
                time.sleep(seconds)
                return (server.cpu() - before) / (time.perf_counter() - began) * 100

            row = Row(f"idle CPU of a core with {many:,} schedules, against none", 1, unit="%")
            for _ in range(min(self._given.rounds, 2)):  # it is long, and does not scatter
                row.a.append(idle(empty))
                row.b.append(idle(full))
            pipe.close()
        yield row


ROWS: dict[str, Callable[[Trial], Iterator[Row]]] = {
    "groups": Trial.groups,
    "flows": Trial.flows,
    "delays": Trial.delays,
    "priorities": Trial.priorities,
    "schedules": Trial.schedules,
}


# -- what is sent --------------------------------------------------------------------------------


def job() -> dict[str, Any]:
    return {"name": "job", "data": {"pad": "x" * BYTES}}


def batches(queue: str, jobs: list[dict[str, Any]]) -> list[bytes]:
    """Return the requests that push jobs a hundred at a time."""
    parts = (jobs[i : i + BATCH] for i in range(0, len(jobs), BATCH))
    return [frame(cmd="PUSHB", queue=queue, jobs=part) for part in parts]


def planned(id: str, data: dict[str, Any], **ties: Any) -> dict[str, Any]:
    return {"id": id, "queue": QUEUE, "input": {**job(), "data": {**job()["data"], **data}, **ties}}


def strangers(flow: str) -> list[dict[str, Any]]:
    """Return the jobs of a flow that have nothing to do with each other."""
    return [planned(f"{flow}-{i}", {}) for i in range(BATCH)]


def family(flow: str) -> list[dict[str, Any]]:
    """Return the jobs of a flow as clients send it: the data of all says who belongs to whom."""
    parent, ids = f"{flow}-p", [f"{flow}-{i}" for i in range(BATCH - 1)]
    marks = {"__parentId": parent, "__parentQueue": QUEUE}
    children = [planned(id, marks, parentId=parent) for id in ids]
    return [*children, planned(parent, {"__childrenIds": ids}, childrenIds=ids, dependsOn=ids)]


def schedule(i: int, month: int) -> bytes:
    """Return a request for a schedule that is not due for hours; half are patterns."""
    when: dict[str, Any] = {"repeatEvery": DAY + i}
    if i % 2:
        when = {"schedule": f"{i % 60} {i // 60 % 24} {i % 28 + 1} {month} *"}
    return frame(cmd="Cron", name=f"s{i}", queue=QUEUE, data={}, **when)


def spent(server: Server, jobs: int, load: Callable[[], None]) -> float:
    """Return the CPU us that the server spent on each job of a load."""
    before = server.cpu()
    load()
    return (server.cpu() - before) / jobs * 1e6


# -- what is shown -------------------------------------------------------------------------------


def as_text(rows: list[Row]) -> str:
    lines = [HEADS, *(tuple(c.replace("`", "") for c in row.cells()) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADS))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_markdown(rows: list[Row]) -> str:
    ruler = ("---", *["--:"] * (len(HEADS) - 1))
    return "\n".join(f"| {' | '.join(c)} |" for c in (HEADS, ruler, *(r.cells() for r in rows)))


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    say = parser.add_argument
    say("--rounds", type=int, default=5, help="measured rounds [default: %(default)s]")
    say("--scale", type=float, default=1, help="of all counts and depths [default: %(default)s]")
    say("--rows", help=f"only these, with commas between: {' '.join(ROWS)}")
    say("--mode", choices=("memory", "file"), default="memory")
    say("--seconds", type=float, default=10, help="of idling [default: %(default)s]")
    say("--json", metavar="FILE", help="append every single figure to this file")
    say("--markdown", action="store_true", help="print the table as in README.md")
    say("--server-core", type=int, default=0, help="[default: %(default)s; -1 pins nothing]")
    say("--driver-core", type=int, default=1, help="[default: %(default)s; -1 pins nothing]")
    say("--fail", action="store_true", help="exit with 1 where a bar is not reached")
    given = parser.parse_args()
    given.rows = given.rows.split(",") if given.rows else list(ROWS)
    if unknown := [name for name in given.rows if name not in ROWS]:
        parser.error(f"{unknown[0]!r} is none of {', '.join(ROWS)}")
    return given


def main() -> int:
    given = options()
    before = os.getloadavg()[0]
    with ExitStack() as files:
        raw = files.enter_context(open(given.json, "a")) if given.json else None
        trial = Trial(given, given.mode, raw)
        try:
            trial.run()
        except NotAvailable as why:
            sys.exit(str(why))
    print(
        f"{time.strftime('%Y-%m-%d', time.gmtime())}; {given.mode} mode; medians of {given.rounds} "
        f"interleaved rounds after 1 to warm up, scale {given.scale:g}; CPython "
        f"{platform.python_version()}; load average {before:.1f} before, "
        f"{os.getloadavg()[0]:.1f} after\n"
    )
    print(as_markdown(trial.rows) if given.markdown else as_text(trial.rows))
    return int(given.fail and not all(row.reached() for row in trial.rows))


if __name__ == "__main__":
    sys.exit(main())
