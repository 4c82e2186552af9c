"""The steps of a comparison: what each prepares, loads and clears away, and the bars to reach."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from driver import Driver, Figures
from servers import Server


@dataclass(frozen=True)
class Step:
    """One kind of load; `jobs` is its count at scale 1, `filled` says to push them beforehand."""

    name: str
    op: str
    jobs: int
    options: dict[str, Any]
    filled: bool = False
    stored_only: bool = False
    beanstalk: dict[str, Any] | None = field(default=None)  # how beanstalkd does it, if it can


PIPELINED = {"conns": 4, "window": 100}
PULLING = {"conns": 4, "window": 25}
ALONE = {"conns": 1, "window": 1}
BATCHES = {"conns": 2, "window": 2, "batch": 100}

STEPS = {
    step.name: step
    for step in (
        Step("push_pipe_c4", "push", 30_000, PIPELINED, beanstalk=PIPELINED),
        Step("pushb_100", "pushb", 60_000, BATCHES),
        Step("pull_ack_pipe", "pull_ack", 30_000, PULLING, filled=True, beanstalk=PULLING),
        Step("pullb_ackb_100", "pullb_ackb", 60_000, BATCHES, filled=True),
        Step(
            "e2e_sat",
            "e2e",
            20_000,
            {"conns": 2, "window": 25, "cconns": 4, "cwindow": 10},
            # a connection that reserves is blocked meanwhile, so one job a connection
            beanstalk={"conns": 2, "window": 25, "cconns": 8, "cwindow": 1},
        ),
        Step(
            "e2e_batch",
            "e2e",
            40_000,
            {"conns": 2, "window": 25, "cconns": 2, "cwindow": 2, "cbatch": 50},
        ),
        Step("push_seq", "push", 8_000, ALONE, beanstalk=ALONE),
        Step("pull_ack_seq", "pull_ack", 4_000, ALONE, filled=True, beanstalk=ALONE),
        Step("durable_pipe", "push", 10_000, {**PIPELINED, "durable": True}, stored_only=True),
        Step("durable_seq", "push", 2_000, {**ALONE, "durable": True}, stored_only=True),
    )
}

# How many times less CPU than the reference each of our jobs is to cost.
BARS = {
    "memory": {"push_pipe_c4": 5.0, "pull_ack_pipe": 5.0, "pushb_100": 3.0, "e2e_sat": 4.0},
    "file": {"push_pipe_c4": 15.0, "pull_ack_pipe": 30.0, "e2e_sat": 20.0, "durable_pipe": 12.0},
}

Load = Callable[..., Figures]


def possible(step: Step, server: Server) -> bool:
    """Whether this server knows this kind of load."""
    return server.proto == "bq" or step.beanstalk is not None


def run(step: Step, server: Server, driver: Driver, scale: float) -> Figures:
    """Fill the queue as the step needs it, run it, and leave the queue empty."""
    plain = server.proto == "bq"
    options = step.options if plain else step.beanstalk or {}
    jobs = max(200, int(step.jobs * scale))

    def load(op: str, **words: Any) -> Figures:
        return driver(op, port=server.port, pids=server.pids(), proto=server.proto, **words)

    if step.filled:
        filling = BATCHES if plain else PIPELINED
        filled = load("pushb" if plain else "push", **filling, ops=jobs)
        if "failed" in filled:
            return {**filled, "failed": f"while filling: {filled['failed']}"}
    figures = load(step.op, **options, ops=jobs)
    if "failed" not in figures and figures["jobs"] < jobs:
        figures["failed"] = f"only {figures['jobs']} of {jobs} jobs were done"
    drain(load, plain=plain)
    return figures


def drain(load: Load, *, plain: bool) -> None:
    """Work off whatever is left."""
    for _ in range(100):
        if plain:
            done = load("pullb_ackb", **BATCHES, ops=1_000_000)
        else:
            done = load("pull_ack", conns=2, window=10, ops=1_000_000)
        if "failed" in done or done["empties"]:
            return
