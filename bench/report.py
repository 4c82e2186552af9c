"""From single figures to a table of medians."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

from driver import Figures
from steps import ALONE, BARS, Step

MODES = ("memory", "file")
TITLES = {
    "memory": "In memory (ours `--data memory`, the reference without a data path)",
    "file": "With a file (ours durability `commit`, the reference in SQLite mode)",
}
HEADS = (
    "step",
    "tandemq CPU us/job",
    "bunqueue CPU us/job",
    "times less",
    "single rounds",
    "bar",
    "reached",
    "beanstalkd CPU us/job",
    "tandemq /s",
    "bunqueue /s",
    "beanstalkd /s",
    "tandemq p99 ms",
    "bunqueue p99 ms",
)
NOTHING = "-"


class Table:
    """All figures of one mode, by step and server."""

    def __init__(self, mode: str, steps: list[Step]) -> None:
        self.mode = mode
        self.steps = steps
        self.servers: list[str] = []
        self._figures: dict[tuple[str, str], list[Figures]] = defaultdict(list)

    def add(self, step: str, server: str, figures: Figures) -> None:
        self._figures[step, server].append(figures)

    def failure(self, step: str, server: str) -> str | None:
        """Why this server's figures of this step do not count; one bad round is enough."""
        return next((f["failed"] for f in self._figures[step, server] if "failed" in f), None)

    def values(self, step: str, server: str, field: str) -> list[float]:
        """A figure of each round in turn; none where a round failed."""
        if self.failure(step, server):
            return []
        return [figures[field] for figures in self._figures[step, server]]

    def ratios(self, step: str) -> list[float]:
        """How many times less CPU ours took than the reference, round by round."""
        ours, theirs = (self.values(step, who, "cpu_us_per_job") for who in ("ours", "reference"))
        return [b / a for a, b in zip(ours, theirs, strict=False) if a > 0]

    def ratio(self, step: str) -> float | None:
        """How many times less CPU ours takes, median against median."""
        ours, theirs = (self.values(step, who, "cpu_us_per_job") for who in ("ours", "reference"))
        return median(theirs) / median(ours) if ours and theirs and median(ours) > 0 else None

    def bar(self, step: str) -> float | None:
        return BARS[self.mode].get(step)

    def reached(self) -> bool:
        """Whether every bar was measured and reached."""
        barred = [step.name for step in self.steps if self.bar(step.name)]
        return all((self.ratio(name) or 0) >= (self.bar(name) or 0) for name in barred)

    def rows(self) -> list[tuple[str, ...]]:
        return [self._row(step) for step in self.steps]

    def failures(self) -> list[str]:
        names = [step.name for step in self.steps]
        pairs = [
            (name, server, self.failure(name, server)) for name in names for server in self.servers
        ]
        return [f"{name} failed on {server}: {why}" for name, server, why in pairs if why]

    def notes(self) -> list[str]:
        """What failed, and which pipelined steps beanstalkd still does for less."""
        piped = [step.name for step in self.steps if step.beanstalk and step.beanstalk != ALONE]
        dearer = [
            name
            for name in piped
            if (ours := self.values(name, "ours", "cpu_us_per_job"))
            and (theirs := self.values(name, "beanstalkd", "cpu_us_per_job"))
            and median(ours) >= median(theirs)
        ]
        said = [f"Pipelined, but dearer than beanstalkd: {', '.join(dearer)}."] if dearer else []
        return self.failures() + said

    def _row(self, step: Step) -> tuple[str, ...]:
        name, ratio, ratios, bar = step.name, *self._against(step.name)
        return (
            name,
            self._shown(name, "ours", "cpu_us_per_job"),
            self._shown(name, "reference", "cpu_us_per_job"),
            f"{ratio:.1f}" if ratio else NOTHING,
            f"{min(ratios):.1f} to {max(ratios):.1f}" if ratio and ratios else NOTHING,
            f"{bar:g}" if bar else NOTHING,
            NOTHING if not bar or not ratio else "yes" if ratio >= bar else "NO",
            self._shown(name, "beanstalkd", "cpu_us_per_job"),
            self._shown(name, "ours", "jobs_per_s"),
            self._shown(name, "reference", "jobs_per_s"),
            self._shown(name, "beanstalkd", "jobs_per_s"),
            self._shown(name, "ours", latency(step), 1000),
            self._shown(name, "reference", latency(step), 1000),
        )

    def _against(self, name: str) -> tuple[float | None, list[float], float | None]:
        return self.ratio(name), self.ratios(name), self.bar(name)

    def _shown(self, step: str, server: str, field: str, divisor: float = 1) -> str:
        if self.failure(step, server):
            return "failed"
        values = self.values(step, server, field)
        if not values:
            return NOTHING
        value = median(values) / divisor
        return (
            f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 100 else f"{value:.0f}"
        )


def latency(step: Step) -> str:
    """The quantile that a user feels: push to pull where there are both, else the answer."""
    return "lat2_p99_us" if step.op == "e2e" else "p99_us"


def as_text(table: Table) -> str:
    """Columns under one another."""
    rows = [HEADS, *table.rows()]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADS))]
    lines = [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([TITLES[table.mode].replace("`", ""), *lines, *table.notes()])


def as_markdown(table: Table) -> str:
    """The same for README.md."""
    ruler = ("---", *["--:"] * (len(HEADS) - 1))
    lines = ["| " + " | ".join(row) + " |" for row in (HEADS, ruler, *table.rows())]
    notes = [f"\n{text}" for text in table.notes()]
    return "\n".join([f"### {TITLES[table.mode]}\n", *lines, *notes])
