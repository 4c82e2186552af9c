"""What the clients of a soak do: rounds of commands of every family, chosen by dice.

Each round belongs to one connection. Its clients share a few queues, so that they get in each
other's way: a refusal is as good an answer as any, but it must be one that a caller understands.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.support.server import Server
from tests.support.wire import Answer, Wire

QUEUES = [f"soak-{n}" for n in range(6)]
GROUPS = [f"group-{n}" for n in range(8)]
KEYS = [f"key-{n}" for n in range(12)]
LOGS, FAMILIES = 10_000, 4_500
"""How much the server remembers of jobs that are gone (engine.logs, wires.bunqueue.shapes)."""
SILENT = "http://nobody.invalid/"
"""A name that is never resolved."""
TOKEN = "soak"


@dataclass
class Book:
    """What was asked and what was refused, over all connections."""

    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    broken: list[BaseException] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


class Client:
    """One connection that plays rounds."""

    def __init__(self, wire: Wire, seed: int, book: Book) -> None:
        self.wire = wire
        self.dice = Random(seed)
        self.name = f"c{seed}"
        self.book = book
        self._made = 0

    @property
    def queue(self) -> str:
        return self.dice.choice(QUEUES)

    def fresh(self) -> str:
        """An id that nobody has had."""
        self._made += 1
        return f"{self.name}-{self._made}"

    def ask(self, cmd: str, **fields: Any) -> Answer:
        answer = self.wire.ask(cmd, **fields)
        with self.book.lock:
            self.book.asked[cmd] += 1
            if not answer["ok"]:
                self.book.refused[str(answer["error"])[:60]] += 1
        return answer

    def push(self, queue: str, **fields: Any) -> str:
        data = fields.pop("data", {"by": self.name, "fill": "x" * self.dice.randrange(400)})
        return str(self.ask("PUSH", queue=queue, data=data, **fields).get("id"))

    def finish(self, job: Answer, token: str | None) -> None:
        """Do with a job what workers do."""
        chance, settle = self.dice.random(), {"id": job["id"], "token": token}
        if chance < 0.7:
            self.ask("ACK", **settle, result={"r": 1}, removeOnComplete=chance < 0.4)
        elif chance < 0.8:
            self.ask("FAIL", **settle, error="e" * 300, stack=["line"] * 20)
        elif chance < 0.85:
            self.ask("FAIL", **settle, error="for good", unrecoverable=True)
        elif chance < 0.9:
            self.ask("FAIL", **settle, error="later", retryAfter=20)
        elif chance < 0.94:
            self.ask("MoveToWait", **settle)
        elif chance < 0.97:
            self.ask("MoveToDelayed", **settle, delay=20)
        else:
            self.ask("MoveToWaitingChildren", **settle)

    def work(self, queue: str, **fields: Any) -> None:
        """Take some jobs and end them."""
        for _ in range(self.dice.randrange(1, 8)):
            answer = self.ask("PULL", queue=queue, owner=self.name, lockTtl=5_000, **fields)
            if not answer.get("job"):
                return
            self.finish(answer["job"], answer["token"])


def plain(c: Client) -> None:
    """Batches in, batches out."""
    q = c.queue
    remove = c.dice.random() < 0.5
    jobs = [
        {"data": "x" * c.dice.randrange(500), "priority": n % 3, "removeOnComplete": remove}
        for n in range(40)
    ]
    c.ask("PUSHB", queue=q, jobs=jobs)
    taken = c.ask("PULLB", queue=q, owner=c.name, count=40, timeout=20)
    ids = [job["id"] for job in taken["jobs"]]
    c.ask("ExtendLocks", ids=ids, tokens=taken["tokens"], durations=[20_000] * len(ids))
    c.ask("JobHeartbeatB", ids=ids, tokens=taken["tokens"])
    c.ask("ACKB", ids=ids, tokens=taken["tokens"], results=[1] * len(ids))
    c.ask("Hello")
    c.ask("Ping")


def one_by_one(c: Client) -> None:
    """All that may be asked of one active job."""
    q = c.queue
    c.push(q, maxAttempts=2, backoff=10, timeout=60_000)
    answer = c.ask("PULL", queue=q, owner=c.name)
    if not answer.get("job"):
        return
    job, token = answer["job"], answer["token"]
    held = {"id": job["id"], "token": token}
    c.ask("ExtendLock", **held, duration=10_000)
    c.ask("JobHeartbeat", **held)
    c.ask("Progress", id=job["id"], progress=c.dice.randrange(100), message="going")
    c.ask("GetProgress", id=job["id"])
    for _ in range(10):
        c.ask("AddLog", id=job["id"], message="m" * 200)
    c.ask("GetLogs", id=job["id"])
    c.ask("ClearLogs", id=job["id"], keepLogs=3)
    c.ask("Explain", id=job["id"])
    c.finish(job, token)
    for cmd in ("GetJob", "GetState", "GetResult"):
        c.ask(cmd, id=job["id"])
    c.ask("WaitJob", id=job["id"], timeout=5)


def control(c: Client) -> None:
    """Jobs and queues are pushed around while others work on them."""
    q = c.queue
    ids = [c.push(q, delay=c.dice.choice([0, 30, 5_000])) for _ in range(9)]
    c.ask("Promote", id=ids[0])
    c.ask("ChangePriority", id=ids[1], priority=c.dice.randrange(-5, 5))
    c.ask("ChangeDelay", id=ids[2], delay=15)
    c.ask("Update", id=ids[3], data={"new": "y" * 300})
    c.ask("Cancel", id=ids[4])
    c.ask("Discard", id=ids[5])
    c.ask("MoveToWait", id=ids[6])
    c.ask("PromoteJobs", queue=q, count=5)
    c.ask("Pause", queue=q)
    c.ask("IsPaused", queue=q)
    c.ask("Resume", queue=q)
    c.ask("RetryCompleted", queue=q, count=3)
    state = c.dice.choice(["completed", "failed", "wait"])
    c.ask("Clean", queue=q, grace=0, state=state, limit=200)
    if c.dice.random() < 0.2:
        c.ask("Drain", queue=q)
    if c.dice.random() < 0.03:
        c.ask("Obliterate", queue=q)
    c.work(q)


def flows(c: Client) -> None:
    """A family, whose children end in any way."""
    q, top, kids = c.queue, c.fresh(), [c.fresh() for _ in range(3)]
    data = {"__parentId": top, "__parentQueue": q}
    flag = c.dice.choice(
        [
            {},
            {"failParentOnFailure": True},
            {"continueParentOnFailure": True},
            {"ignoreDependencyOnFailure": True},
            {"removeDependencyOnFailure": True},
        ]
    )
    above = {"name": "n", "data": {"__childrenIds": kids}, "childrenIds": kids, "dependsOn": kids}
    leaf = {"name": "n", "data": data, "parentId": top, "maxAttempts": 1, **flag}
    jobs = [{"id": top, "queue": q, "input": above}]
    c.ask("PUSHF", jobs=[*jobs, *({"id": kid, "queue": q, "input": leaf} for kid in kids)])
    c.ask("UpdateParent", childId=c.push(q), parentId=top)
    c.push(q, dependsOn=[c.dice.choice(kids)])
    for _ in range(3):
        c.work(q)
    for cmd in ("GetChildrenValues", "GetFailedChildrenValues", "GetIgnoredChildrenFailures"):
        c.ask(cmd, id=top)
    c.ask("Explain", id=top)
    c.ask("RemoveChildDependency", id=kids[0])
    c.ask("RemoveUnprocessedChildren", id=top)
    c.ask("Cancel", id=top)


def groups(c: Client) -> None:
    """Lanes that are limited, paused and closed while they are served."""
    q, g = c.queue, c.dice.choice(GROUPS)
    of = {"queue": q, "groupId": g}
    for _ in range(8):
        c.push(q, groupId=c.dice.choice(GROUPS), groupMaxSize=50, cost=c.dice.choice([0, 1, 2]))
    c.ask("SetGroupRateLimit", **of, max=5, duration=100)
    c.ask("SetGroupConcurrency", **of, concurrency=2)
    c.ask("SetGroupWeight", **of, weight=c.dice.randrange(1, 4))
    c.ask("RateLimitGroup", **of, duration=20)
    c.ask("PauseGroup", **of)
    c.work(q, group={"concurrency": 3, "limit": {"max": 50, "duration": 100}})
    for cmd in ("IsGroupPaused", "GetGroupJobsCount", "GetGroupActiveCount", "GetGroupRateLimit"):
        c.ask(cmd, **of)
    for cmd in ("GetGroupConcurrency", "GetGroupRateLimitTtl", "GetGroupWeight", "ResumeGroup"):
        c.ask(cmd, **of)
    c.ask("GetGroupsJobsCount", queue=q)
    c.work(q, group={"affinity": c.dice.choice([g, None])}, timeout=20)
    c.ask("RemoveGroupRateLimit", **of)
    c.ask("RemoveGroupConcurrency", **of)


def limits(c: Client) -> None:
    """A queue is limited for a moment."""
    q = c.queue
    c.ask("RateLimit", queue=q, limit=c.dice.randrange(1, 50), duration=50, ttl=500)
    c.ask("SetConcurrency", queue=q, limit=c.dice.randrange(1, 20))
    c.ask("SetStallConfig", queue=q, config={"stallInterval": c.dice.randrange(1_000, 30_000)})
    c.ask("GetStallConfig", queue=q)
    c.ask("GetQueueLimits", queue=q)
    c.ask("GetQueuePolicy", queue=q)
    c.ask("SetQueuePolicy", queue="soak-letters", policy={"maxRetryAttempts": 3})
    c.push(q)
    c.work(q, timeout=20)
    c.ask("RateLimitClear", queue=q)
    c.ask("ClearConcurrency", queue=q)


def identity(c: Client) -> None:
    """The same names again and again, under every policy."""
    q, key = c.queue, c.dice.choice(KEYS)
    policies: list[dict[str, Any]] = [
        {}, {"policy": "drop"}, {"policy": "replace"}, {"policy": "coalesce"},
        {"policy": "queue-one"}, {"ttl": 30}, {"ttl": 30, "extend": True}, {"replace": True},
        {"keep": True},
    ]  # fmt: skip
    for _ in range(6):
        c.push(q, uniqueKey=key, dedup=c.dice.choice(policies), debounceId=key)
    named = c.push(q, jobId=c.dice.choice(KEYS))
    c.ask("GetJobByCustomId", customId=named)
    c.ask("GetDeduplicationJobId", queue=q, deduplicationId=key)
    c.work(q)
    c.ask("RemoveJobDeduplicationKey", id=named)
    c.ask("RemoveDeduplicationKey", queue=q, deduplicationId=key)


def schedules(c: Client) -> None:
    """A schedule that runs a few times, and a job that repeats itself."""
    q, name = c.queue, c.fresh()
    c.ask("Cron", name=name, queue=q, data={"s": 1}, repeatEvery=15, preventOverlap=False)
    c.ask("Cron", name=name, queue=q, data={"s": 2}, repeatEvery=10, immediately=True)
    c.ask("CronGet", name=name, preview=3)
    c.ask("CronList", limit=5)
    c.push(q, repeat={"every": 10, "limit": 3})
    c.work(q, timeout=30)
    c.ask("CronDelete", name=name)


def dead_letters(c: Client) -> None:
    """Jobs die, are looked at, and come back or not."""
    q = c.queue
    config = {"maxEntries": 100, "autoRetry": True, "autoRetryInterval": 50}
    c.ask("SetDlqConfig", queue=q, config=config)
    c.ask("GetDlqConfig", queue=q)
    died = [c.push(q, maxAttempts=1, priority=100) for _ in range(4)]
    for _ in died:
        answer = c.ask("PULL", queue=q, owner=c.name)
        if answer.get("job"):
            c.ask("FAIL", id=answer["job"]["id"], token=answer["token"], error="dead")
    c.ask("Dlq", queue=q, filter={"limit": 10})
    c.ask("GetDlqStats", queue=q)
    c.ask("RetryDlq", queue=q, jobId=died[0], data={"edited": True})
    c.ask("RetryDlq", queue=q, count=5)
    c.ask("RemoveDlqJob", queue=q, jobId=died[1])
    c.ask("PurgeDlq", queue=q, dryRun=c.dice.random() < 0.5)


def watching(c: Client) -> None:
    """Everything that only looks, and a listener that is told meanwhile."""
    q = c.queue
    c.ask("SubscribeEvents", queue=q)
    for cmd in ("GetJobCounts", "GetCountsPerPriority", "Count", "DashboardQueue"):
        c.ask(cmd, queue=q)
    c.ask("GetJobs", queue=q, limit=20, asc=c.dice.random() < 0.5)
    c.ask("Metrics", queue=q, type=c.dice.choice(["completed", "failed"]))
    for cmd in ("Stats", "Metrics", "StorageStatus", "ListQueues", "Prometheus"):
        c.ask(cmd)
    for cmd in ("DashboardOverview", "DashboardQueues", "CompactMemory", "WorkerStats"):
        c.ask(cmd)
    for cmd in ("Pulse", "WhoAmI", "ListSubscribers", "FindQueues"):
        c.ask(cmd)
    c.ask("Search", queue=q, text="line", limit=20)
    c.work(q)
    c.ask("TrimEvents", queue=q, maxLength=50)
    c.ask("UnsubscribeEvents")
    c.wire._frames.clear()


def staff(c: Client) -> None:
    """Workers and webhooks come and go."""
    q = c.queue
    worker = c.fresh()
    c.ask("RegisterWorker", name="w", queues=[q], workerId=worker, concurrency=2)
    c.ask("Heartbeat", id=worker, activeJobs=1, processed=5, failed=1)
    c.ask("ListWorkers")
    c.work(q)
    if c.dice.random() < 0.1:  # each look-up of a name costs more than a hundred commands
        hook = c.ask("AddWebhook", url=SILENT, events=["job.completed", "job.failed"], queue=q)
        id = hook.get("data", {}).get("webhookId")
        c.work(q)
        c.ask("ListWebhooks")
        c.ask("SetWebhookEnabled", id=id, enabled=False)
        c.ask("RemoveWebhook", webhookId=id)
    if c.dice.random() < 0.5:
        c.ask("UnregisterWorker", workerId=worker)


def people(c: Client) -> None:
    """Users and their tokens come and go; rarely, since each password is worth much memory."""
    c.ask("ListUsers")
    if c.dice.random() < 0.02:
        name = c.fresh()
        c.ask("CreateUser", name=name, password="a first one")
        c.ask("SetPassword", name=name, password="a second one")
        c.ask("GrantPermission", name=name, pattern="soak-*", operations=["Publish"])
        c.ask("RevokePermission", name=name, pattern="soak-*")
        token = c.ask("CreateToken", name=name)
        c.ask("ListTokens", name=name)
        c.ask("RevokeToken", name=name, id=token.get("data", token).get("id"))
        c.ask("DeleteUser", name=name)


ROUNDS: list[Callable[[Client], None]] = [
    plain, one_by_one, control, flows, groups, limits, identity, schedules, dead_letters, watching,
    staff, people,
]  # fmt: skip


def fill(wire: Wire) -> None:
    """Fill the caches that rounds would fill slowly: logs of jobs that are gone, and families."""
    queue = QUEUES[0]
    for _ in range(0, LOGS, 500):
        jobs = [{"data": 1, "removeOnComplete": True}] * 500
        ids = wire.do("PUSHB", queue=queue, jobs=jobs)["ids"]
        line = {"cmd": "AddLog", "message": "m" * 200}
        wire.do_all({**line, "id": id} for id in ids for _ in range(3))
        taken = wire.do("PULLB", queue=queue, owner="fill", count=500)
        wire.do("ACKB", ids=[job["id"] for job in taken["jobs"]], tokens=taken["tokens"])
    for n in range(0, FAMILIES, 500):
        names = [f"fill-{k}" for k in range(n, n + 500)]
        wire.do("PUSHF", jobs=[job for name in names for job in _family(queue, name)])
    wire.do("Obliterate", queue=queue)


def _family(queue: str, name: str) -> list[dict[str, Any]]:
    kids = [name + "-kid"]
    data = {"__parentId": name, "__parentQueue": queue}
    above = {"name": "n", "data": {"__childrenIds": kids}, "childrenIds": kids, "dependsOn": kids}
    below = {"name": "n", "data": data, "parentId": name}
    return [
        {"id": name, "queue": queue, "input": above},
        {"id": kids[0], "queue": queue, "input": below},
    ]


def admitted(server: Server, *, timeout: float = 20.0) -> Wire:
    """Return a connection that may do everything, whatever users there are meanwhile."""
    wire = server.connect(timeout=timeout)
    wire.do("Auth", token=TOKEN)
    return wire


def stranger(server: Server, dice: Random) -> None:
    """Somebody takes jobs and is gone."""
    gone = admitted(server)
    queue = dice.choice(QUEUES)
    gone.ask("PULLB", queue=queue, owner="gone", count=3)
    gone.ask("RegisterWorker", name="gone", queues=[queue])
    gone.send("PULL", queue=queue, owner="gone", timeout=1_000)
    gone.reset() if dice.random() < 0.5 else gone.close()


def play(server: Server, seconds: float, clients: int, seed: int, book: Book) -> None:
    """Let so many clients play rounds for so long; then all of them are gone."""
    end = time.monotonic() + seconds

    def loop(number: int) -> None:
        try:
            with admitted(server) as wire:
                client = Client(wire, seed * 1_000 + number, book)
                while time.monotonic() < end:
                    client.dice.choice(ROUNDS)(client)
                    if number == 0:
                        stranger(server, client.dice)
        except BaseException as failure:
            book.broken.append(failure)
            raise

    threads = [threading.Thread(target=loop, args=(n,), daemon=True) for n in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
