"""Pushers and workers that keep a book of everything the server has confirmed.

The book is the test: whatever a server said before it was killed must still be true afterwards.
What was asked and not answered may have happened or not.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.server import Server
from tests.support.wire import Answer, Lost, NoAnswer, Wire

LIVE_STATES = {"waiting", "prioritized", "delayed", "active"}
FINAL_STATES = {"completed", "failed"}


@dataclass
class Book:
    """What the server confirmed. Entries are made after the answer arrived, never before."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    pushed: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Confirmed pushes: id -> what was pushed."""
    completed: dict[str, Any] = field(default_factory=dict)
    """Confirmed ACKs: id -> the result that was sent."""
    buried: set[str] = field(default_factory=set)
    """Confirmed FAILs that said `unrecoverable`."""
    failures: Counter[str] = field(default_factory=Counter)
    """Confirmed FAILs by id, the unrecoverable ones among them."""
    handed_out: Counter[str] = field(default_factory=Counter)
    complaints: list[str] = field(default_factory=list)
    """What must never happen and did."""

    def complain(self, text: str) -> None:
        with self.lock:
            self.complaints.append(text)


class Party(threading.Thread):
    """A client with its own connection and its own random numbers, until it is told to stop.

    When the server dies it connects again and goes on.
    """

    def __init__(self, name: str, server: Server, book: Book, queue: str, seed: str) -> None:
        super().__init__(name=name, daemon=True)
        self.server = server
        self.book = book
        self.queue = queue
        self.random = random.Random(f"{seed}/{name}")
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                with self.server.connect() as wire:
                    while not self.stopping.is_set():
                        self.turn(wire)
            except Lost:
                time.sleep(0.02)
            except NoAnswer:
                self.book.complain(f"{self.name}: no answer from a running server")
                return
            except Exception as failure:
                self.book.complain(f"{self.name}: {failure!r}")
                raise

    def turn(self, wire: Wire) -> None:
        raise NotImplementedError


class Pusher(Party):
    """Pushes pipelined singles and batches; every id is used once."""

    def __init__(self, *arguments: Any, limit: int) -> None:
        super().__init__(*arguments)
        self.count = 0
        self.limit = limit

    def job(self) -> tuple[str, dict[str, Any]]:
        self.count += 1
        job_id = f"{self.name}:{self.count}"
        job: dict[str, Any] = {"data": {"id": job_id, "body": "x" * self.random.randrange(200)}}
        job["backoff"] = self.random.choice([0, 0, 20])
        job["maxAttempts"] = self.random.choice([1, 3, 20])
        job["priority"] = self.random.choice([0, 0, 0, 5, -5])
        job["durable"] = self.random.random() < 0.1
        if self.random.random() < 0.1:
            job["delay"] = self.random.randrange(10, 1500)
        return job_id, job

    def turn(self, wire: Wire) -> None:
        if self.count >= self.limit:
            self.stopping.wait(0.05)
            return
        jobs = [self.job() for _ in range(self.random.randrange(1, 40))]
        if self.random.random() < 0.5:
            self.push_one_by_one(wire, jobs)
        else:
            self.push_together(wire, jobs)
        self.stopping.wait(self.random.random() * 0.02)

    def push_one_by_one(self, wire: Wire, jobs: list[tuple[str, dict[str, Any]]]) -> None:
        commands = [
            {"cmd": "PUSH", "queue": self.queue, "jobId": job_id, **job} for job_id, job in jobs
        ]
        for (job_id, job), req_id in zip(jobs, wire.send_all(commands), strict=True):
            self.confirm(wire.receive(req_id), "id", job_id, {job_id: job})

    def push_together(self, wire: Wire, jobs: list[tuple[str, dict[str, Any]]]) -> None:
        batch = [{"customId": job_id, **job} for job_id, job in jobs]
        answer = wire.ask("PUSHB", queue=self.queue, jobs=batch)
        self.confirm(answer, "ids", [job_id for job_id, _ in jobs], dict(jobs))

    def confirm(
        self, answer: Answer, key: str, expected: Any, jobs: dict[str, dict[str, Any]]
    ) -> None:
        if answer.get("ok") is not True or answer.get(key) != expected:
            self.book.complain(f"{self.name}: a push was answered {answer}")
            return
        with self.book.lock:
            self.book.pushed.update(jobs)


class Worker(Party):
    """Pulls singles and batches and finishes what it got, well or badly."""

    def turn(self, wire: Wire) -> None:
        if self.random.random() < 0.5:
            answer = wire.ask("PULL", queue=self.queue, owner=self.name, timeout=200)
            pairs = [(answer.get("job"), answer.get("token"))]
        else:
            answer = wire.ask("PULLB", queue=self.queue, owner=self.name, timeout=200, count=20)
            pairs = list(zip(answer.get("jobs", []), answer.get("tokens", []), strict=True))
        if answer.get("ok") is not True:
            self.book.complain(f"{self.name}: a pull was answered {answer}")
        taken = [(job, token) for job, token in pairs if job]
        for job, _ in taken:
            self.check(job)
        self.finish(wire, taken)

    def check(self, job: dict[str, Any]) -> None:
        job_id = job["id"]
        with self.book.lock:
            self.book.handed_out[job_id] += 1
            if job_id in self.book.completed:
                self.book.complaints.append(f"{job_id} was handed out after its confirmed ACK")
            if job_id in self.book.buried:
                self.book.complaints.append(f"{job_id} was handed out after its final FAIL")
        if job["data"]["id"] != job_id:
            self.book.complain(f"{job_id} came with the data of {job['data']['id']}")

    def finish(self, wire: Wire, taken: list[tuple[dict[str, Any], str]]) -> None:
        """ACK and FAIL in one write, or one ACKB for everything."""
        if taken and self.random.random() < 0.3:
            results = {job["id"]: f"{job['id']} by {self.name}" for job, _ in taken}
            answer = wire.ask(
                "ACKB",
                ids=list(results),
                tokens=[token for _, token in taken],
                results=list(results.values()),
            )
            self.confirm(answer, lambda: self.book.completed.update(results))
            return
        plans = [self.outcome(job, token) for job, token in taken]
        sent = wire.send_all([command for command, _ in plans]) if plans else []
        for req_id, (_, note) in zip(sent, plans, strict=True):
            self.confirm(wire.receive(req_id), note)

    def outcome(self, job: dict[str, Any], token: str) -> tuple[dict[str, Any], Callable[[], None]]:
        """A command that ends the job's turn, and what to write into the book once confirmed."""
        job_id, chance = job["id"], self.random.random()
        if chance < 0.9:
            result = f"{job_id} by {self.name}"
            command = {"cmd": "ACK", "id": job_id, "token": token, "result": result}
            return command, lambda: self.book.completed.update({job_id: result})
        command = {"cmd": "FAIL", "id": job_id, "token": token, "error": "on purpose"}
        if chance < 0.97:
            return command, lambda: self.book.failures.update([job_id])
        command["unrecoverable"] = True

        def bury() -> None:
            self.book.failures.update([job_id])
            self.book.buried.add(job_id)

        return command, bury

    def confirm(self, answer: Answer, note: Callable[[], None]) -> None:
        if answer.get("ok") is not True:
            self.book.complain(f"{self.name}: the end of a job was answered {answer}")
            return
        with self.book.lock:
            note()
