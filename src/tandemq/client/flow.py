"""Flows: jobs that wait for other jobs; trees, chains and fan-in, added whole or not at all."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from tandemq.client.errors import BadOption, NotFound, Unencodable
from tandemq.client.job import Job, read_jobs
from tandemq.client.job_options import JobOptions, OnFailure, wire
from tandemq.wires.bunqueue import caller

if TYPE_CHECKING:
    from tandemq.client.pool import Pool

DEPTH = 10


class Step:
    """A job that is to be added, with the ones that it waits for."""

    def __init__(
        self,
        queue: str,
        name: str,
        data: object = None,
        children: Iterable[Step] = (),
        **options: Unpack[JobOptions],
    ) -> None:
        """``data`` must be a map, or something that is written as one, or None.

        Raises:
            BadOption
        """
        self.queue, self.name, self.data = queue, name, data
        self.children = tuple(children)
        self.fields = wire(options)
        self.id = self.fields.pop("jobId", None)
        self.fields.pop("customId", None)

    def after(self, *steps: Step) -> Step:
        """Return the same step, waiting for others too."""
        other = object.__new__(Step)
        other.__dict__.update(self.__dict__, children=(*self.children, *steps))
        return other


class Flows:
    """Adds and reads flows."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def add(self, step: Step, *, on_child_failure: OnFailure | None = None) -> Job:
        """Add a tree and return its root; ``children`` of a job are those below it.

        ``on_child_failure`` is for children that have no ``on_failure`` of their own; without it a
        parent waits until a failed child was retried.
        """
        return (await self.add_many([step], on_child_failure=on_child_failure))[0]

    async def add_many(
        self, steps: Sequence[Step], *, on_child_failure: OnFailure | None = None
    ) -> list[Job]:
        """Add several trees in one step and return their roots."""
        plan = _Plan()
        roots = [plan.put(step) for step in steps]
        answer = await self.pool.call("PUSHF", jobs=plan.jobs, onChildFailure=on_child_failure)
        found = {job.id: job for job in read_jobs(self.pool, answer["data"]["jobs"])}
        for job in found.values():
            job.children = tuple(found[id] for id in job.children_ids)
        return [found[id] for id in roots]

    async def chain(self, *steps: Step, on_child_failure: OnFailure | None = None) -> Job:
        """Add steps that run one after the other; return the last one."""
        if not steps:
            raise BadOption("a chain needs a step")
        last = steps[0]
        for step in steps[1:]:
            last = step.after(last)
        return await self.add(last, on_child_failure=on_child_failure)

    async def fan_in(
        self, steps: Iterable[Step], then: Step, *, on_child_failure: OnFailure | None = None
    ) -> Job:
        """Add steps that run side by side, and one that runs when all are completed; return it."""
        return await self.add(then.after(*steps), on_child_failure=on_child_failure)

    async def get(self, id: str, *, depth: int = DEPTH) -> Job | None:
        """Return a job with all that is below it, None where there is none."""
        try:
            fields = (await self.pool.call("GetJob", id=id))["job"]
        except NotFound:
            return None
        job = read_jobs(self.pool, [fields])[0]
        if depth > 0:
            found = [await self.get(child, depth=depth - 1) for child in job.children_ids]
            job.children = tuple(child for child in found if child is not None)
        return job


class _Plan:
    """The jobs of a flow in the order of their ids, in which equals begin."""

    def __init__(self) -> None:
        self._flow = secrets.token_hex(8)
        self._numbers = count(1)
        self.jobs: list[dict[str, Any]] = []

    def put(self, step: Step, parent: tuple[str, str] | None = None) -> str:
        """Put a step behind its children, and return its id."""
        given: object = step
        if not isinstance(given, Step):
            raise BadOption(f"a flow is made of steps, not of {given!r}; give a Step")
        id = step.id or f"{self._flow}-{next(self._numbers):05}"
        children = [self.put(child, (id, step.queue)) for child in step.children]
        data = _as_map(step)
        fields = {**step.fields, "name": step.name, "data": data}
        if children:
            needed = [*children, *step.fields.get("dependsOn", ())]
            fields |= {"childrenIds": children, "dependsOn": needed}
            data["__childrenIds"] = children
        if parent is not None:
            fields["parentId"] = data["__parentId"] = parent[0]
            data["__parentQueue"] = parent[1]
        self.jobs.append({"id": id, "queue": step.queue, "input": fields})
        return id


def _as_map(step: Step) -> dict[str, Any]:
    if step.data is None or isinstance(step.data, Mapping):
        return dict(step.data or {})
    try:
        data = msgspec.msgpack.decode(caller.encode(step.data))
    except caller.Unwritable as error:
        raise Unencodable(str(error)) from None
    if not isinstance(data, dict):
        raise BadOption(f"data of step {step.name} is {step.data!r}; in a flow it must be a map")
    return data
