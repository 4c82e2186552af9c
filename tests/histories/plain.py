"""A queue server written for clarity alone: the engine has to agree with it after every step.

Everything is found by looking through all jobs, time is compared and never waited for, and nothing
is kept that could be derived. What the engine may choose freely is told to it: the names of ids
and tokens, and the order in which deadlines of one tick are taken.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from tandemq.engine.finished import Rules
from tandemq.model.message import Options, State

DELAYED, READY, LEASED, DONE, DEAD = (
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
)
SILENCE, STALLS, INTERRUPTIONS = 30_000, 3, 10


@dataclass
class Job:
    """One job; `span` is None for a lease that needs no token."""

    seq: int
    id: str
    queue: str
    size: int  # of its body, in bytes
    created: int
    due: int
    priority: int
    options: Options
    state: State
    attempts: int = 0
    leases: int = 0
    stalls: int = 0
    interruptions: int = 0
    token: str | None = None
    conn: int | None = None
    span: int | None = None
    until: int = 0
    renewals: int = 0
    started: int = 0
    heartbeat: int = 0
    retired: str | None = None
    error: str | None = None
    cause: str | None = None
    result: bytes | None = None
    finished: int = 0

    @property
    def expires(self) -> int | None:
        ttl = self.options.ttl
        return None if ttl is None else self.created + int(ttl) + 1

    @property
    def place(self) -> tuple[int, ...]:
        """Where it stands among the ready jobs of its queue: the smallest goes first."""
        if self.options.lifo:
            return (-self.priority, 0, -self.seq)
        return (-self.priority, 1, self.due, self.seq)

    def deadlines(self) -> dict[str, int]:
        """What time alone will do to the job, and when; of equal ones the first is what happens."""
        found: dict[str, int] = {}
        if self.state is LEASED:
            if self.options.timeout:
                found["timeout"] = self.started + int(self.options.timeout)
            if self.span is not None:
                found["lock"] = self.until + 800
            own = self.options.stall_timeout
            silence = SILENCE if own is None else int(own)
            found["stall"] = max(self.started + 5_000, self.heartbeat + silence) + 5_000
        if self.state in (READY, DELAYED) and self.expires is not None:
            found["expire"] = self.expires
        if self.state is DELAYED:
            found["due"] = self.due
        return found


@dataclass
class Pull:
    """One waiting pull."""

    conn: int
    queue: str
    count: int
    req: str
    span: int | None
    detach: bool
    until: int


@dataclass
class Plain:
    """The whole server."""

    rules: Rules
    jobs: dict[int, Job] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)  # first come first
    paused: set[str] = field(default_factory=set)
    done: list[Job] = field(default_factory=list)  # oldest first
    results: list[Job] = field(default_factory=list)  # oldest first
    counters: Counter[str] = field(default_factory=Counter)
    seq: int = 0
    granting: bool = True
    # Of the present step:
    handed: list[Job] = field(default_factory=list)
    replies: list[tuple[int, str, list[int]]] = field(default_factory=list)

    # -- looking ---------------------------------------------------------------------------------

    def named(self, id: str) -> Job | None:
        return next((job for job in self.jobs.values() if job.id == id), None)

    def within(self, queue: str, state: State) -> list[Job]:
        return [j for j in self.jobs.values() if j.queue == queue and j.state is state]

    def ready(self, queue: str) -> list[Job]:
        return sorted(self.within(queue, READY), key=lambda job: job.place)

    # -- coming and being handed out ---------------------------------------------------------------

    def publish(self, job: Job, now: int) -> Job:
        """Accept a job; one without an id gets it from whoever asks."""
        known = self.named(job.id) if job.id else None
        if known is not None:
            if known.state not in (DONE, DEAD):
                return known
            self.remove(known)
        self.seq = job.seq = self.seq + 1
        job.state = DELAYED if job.due > now else READY
        self.jobs[job.seq] = job
        self.counters["pushed"] += 1
        return job

    def take(self, pull: Pull, now: int) -> list[Job]:
        """Hand out what is ready, best first; what is past its time to live goes on the way."""
        taken: list[Job] = []
        if not self.granting or pull.queue in self.paused:
            return taken
        for job in self.ready(pull.queue):
            if len(taken) == pull.count:
                break
            if job.expires is not None and job.expires <= now:
                self.counters["expired"] += 1
                self.remove(job)
                continue
            job.state, job.leases, job.retired = LEASED, job.leases + 1, None
            job.started = job.heartbeat = now
            job.conn, job.span = None if pull.detach else pull.conn, pull.span
            job.until = 0 if pull.span is None else now + pull.span
            job.renewals = 0
            self.counters["pulled"] += 1
            self.handed.append(job)
            taken.append(job)
        return taken

    def match(self, queue: str, now: int) -> None:
        """Nobody waits while a job is ready."""
        for pull in [p for p in self.pulls if p.queue == queue]:
            if taken := self.take(pull, now):
                self.answer(pull, taken)

    def answer(self, pull: Pull, taken: list[Job]) -> None:
        self.pulls.remove(pull)
        self.replies.append((pull.conn, pull.req, [job.seq for job in taken]))

    # -- ending ------------------------------------------------------------------------------------

    def remove(self, job: Job) -> None:
        del self.jobs[job.seq]
        if job.state is DONE:
            self.done.remove(job)
            self.results = [other for other in self.results if other is not job]

    def unlease(self, job: Job) -> None:
        job.token, job.conn, job.span, job.until, job.renewals = None, None, None, 0, 0

    def claim(self, id: str, token: str | None) -> tuple[str, Job | None]:
        """What may be done with a job: "held", "late", "over", or the name of a refusal."""
        job = self.named(id)
        if job is not None and job.state is LEASED:
            if job.span is None or token == job.token:
                return "held", job
            return ("WrongToken" if token else "TokenRequired"), None
        if job is None or job.retired is None or job.retired not in ("", token):
            return "NotLeased", None
        return ("late" if job.state in (READY, DELAYED) else "over"), job

    def ack(self, id: str, token: str | None, now: int, result: bytes | None, remove: bool) -> str:
        how, job = self.claim(id, token)
        if job is not None and how in ("held", "late"):
            self.complete(job, now, result, remove)
        return how

    def complete(self, job: Job, now: int, result: bytes | None, remove: bool) -> None:
        self.counters["completed"] += 1
        if remove or job.options.remove_on_complete:
            self.remove(job)
            return
        self.unlease(job)
        job.state, job.finished, job.retired, job.result = DONE, now, None, result
        self.done.append(job)
        self.results += [job] if result is not None else []

    def trim(self) -> None:
        """Keep the newest results, the newest jobs, and not too many bytes: after every step."""
        while len(self.results) > self.rules.keep_results:
            self.results.pop(0).result = None
        while len(self.done) > self.rules.keep_done or self.bytes() > self.rules.keep_done_bytes:
            self.remove(self.done[0])

    def bytes(self) -> int:
        return sum(job.size + len(job.result or b"") for job in self.done)

    def fail(self, id: str, token: str | None, now: int, final: bool, remove: bool) -> str:
        how, job = self.claim(id, token)
        if job is not None and how == "held":
            self.attempt(job, now, "oh", "max_attempts_exceeded", final, remove)
        return how

    def attempt(
        self,
        job: Job,
        now: int,
        error: str,
        cause: str,
        final: bool = False,
        remove: bool = False,
    ) -> None:
        """Charge an attempt."""
        job.attempts += 1
        job.error = error
        if final or job.attempts >= job.options.max_attempts:
            self.bury(job, now, cause, remove)
        else:
            self.retry(job, now)

    def strike(self, job: Job, now: int, at_max: str, too_often: str) -> bool:
        """Charge an attempt and a stall; False when that was the end."""
        job.attempts += 1
        job.stalls += 1
        self.counters["stalled"] += 1
        if job.attempts >= job.options.max_attempts:
            job.error = at_max.format(job.attempts)
            self.bury(job, now, "max_attempts_exceeded")
        elif job.stalls >= STALLS:
            job.error = too_often.format(job.stalls)
            self.bury(job, now, "stalled")
        return job.state is LEASED and job.seq in self.jobs

    def retry(self, job: Job, now: int) -> None:
        """The machine gives 0.5 for every random number, so no back-off is varied."""
        self.counters["retried"] += 1
        self.unlease(job)
        twice = 1 if job.options.backoff_type == "fixed" else 2**job.attempts
        job.due = now + min(int(job.options.backoff * twice), 3_600_000)
        job.state = DELAYED if job.due > now else READY
        self.match(job.queue, now)

    def bury(self, job: Job, now: int, cause: str, remove: bool = False) -> None:
        self.counters["failed"] += 1
        if remove or job.options.remove_on_fail:
            self.remove(job)
            return
        self.unlease(job)
        job.state, job.finished, job.cause = DEAD, now, cause

    def back(self, job: Job, now: int) -> None:
        """To its old place, at once."""
        self.unlease(job)
        job.state = READY
        self.match(job.queue, now)

    # -- holding -----------------------------------------------------------------------------------

    def extend(self, id: str, token: str | None, now: int, span: int | None) -> bool:
        job = self.named(id)
        if job is None or job.state is not LEASED or job.span is None:
            return False
        if token not in (None, job.token) or job.until <= now:
            return False
        job.until = now + (job.span if span is None else span)
        job.renewals += 1
        job.heartbeat = now
        return True

    def heartbeat(self, id: str, token: str | None, now: int, span: int | None) -> bool:
        if token is not None:
            return self.extend(id, token, now, span)
        job = self.named(id)
        if job is None or job.state is not LEASED:
            return False
        job.heartbeat = now
        return True

    def disconnect(self, conn: int, now: int) -> None:
        self.pulls = [pull for pull in self.pulls if pull.conn != conn]
        # Those that are given back may go to others, never back to this connection.
        held = [j for j in self.jobs.values() if j.state is LEASED and j.conn == conn]
        for job in held:
            if job.renewals:
                job.conn = None
                continue
            job.interruptions += 1
            self.counters["interrupted"] += 1
            if job.interruptions >= INTERRUPTIONS:
                job.error = f"Connection lost {INTERRUPTIONS} times while it was running"
                self.bury(job, now, "worker_lost")
            else:
                self.unlease(job)
                job.state = READY
        for queue in {job.queue for job in held}:
            self.match(queue, now)

    def release_all(self, now: int) -> None:
        self.granting = False
        for job in list(self.jobs.values()):
            if job.state is LEASED:
                self.back(job, now)

    # -- time --------------------------------------------------------------------------------------

    def job_comes_due(self, seq: int, now: int) -> None:
        """Do what time does to a job, if its moment has come."""
        job = self.jobs.get(seq)
        over = [] if job is None else [k for k, at in job.deadlines().items() if at <= now]
        if job is None or not over:
            return
        match over[0]:
            case "timeout":
                job.retired = job.token or ""
                self.attempt(job, now, "Job timeout exceeded", "timeout")
            case "lock":
                late = f"Lock expired after {job.renewals} renewals"
                if self.strike(job, now, "Lock expired at max attempts ({})", late):
                    self.back(job, now)
            case "stall":
                job.retired = job.token or ""
                at_max, too_often = "Job stalled at max attempts ({})", "Job stalled {} times"
                if self.strike(job, now, at_max, too_often):
                    self.retry(job, now)
            case "expire":
                self.counters["expired"] += 1
                self.remove(job)
            case "due":
                job.state = READY
                self.match(job.queue, now)

    def pull_comes_due(self, req: str, now: int) -> None:
        for pull in [p for p in self.pulls if p.req == req and p.until <= now]:
            self.answer(pull, [])

    def sweep(self, now: int) -> None:
        while self.done and self.done[0].finished <= now - self.rules.retention:
            self.remove(self.done[0])

    def shift_spans(self, step: int) -> None:
        for job in self.jobs.values():
            if job.state is LEASED:
                job.started += step
                job.heartbeat += step
                job.until += step if job.span is not None else 0
        for pull in self.pulls:
            pull.until += step

    # -- what survives -----------------------------------------------------------------------------

    def put_back(self, seqs: set[int], saved: dict[int, Job], now: int) -> None:
        """Take back what happened to some jobs."""
        for seq in seqs & self.jobs.keys():
            self.remove(self.jobs[seq])
        back = [replace(saved[seq]) for seq in sorted(seqs & saved.keys())]
        for job in back:
            self.admit(job)
        self.sort_done()
        for queue in {job.queue for job in back}:
            self.match(queue, now)

    def admit(self, job: Job) -> None:
        self.jobs[job.seq] = job
        self.seq = max(self.seq, job.seq)
        if job.state is DONE:
            self.done.append(job)
            self.results += [job] if job.result is not None else []

    def sort_done(self) -> None:
        self.done.sort(key=lambda job: job.finished)
        self.results.sort(key=lambda job: job.finished)

    def resume(self, now: int) -> int:
        """A crash took the leases with it."""
        held = [job for job in self.jobs.values() if job.state is LEASED]
        for job in held:
            stalled = self.counters["stalled"]
            at_max = "Job reached max attempts ({}) during startup recovery"
            if self.strike(job, now, at_max, "Job stalled {} times (recovered at startup)"):
                self.retry(job, now)
            self.counters["stalled"] = stalled
        self.sort_done()
        return len(held)
