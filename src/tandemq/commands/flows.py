"""What may be asked of a family of jobs: to link, to part, to prune, and what children came to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from msgspec import Raw

from tandemq.commands import fields as check
from tandemq.commands.answers import whole
from tandemq.commands.call import Call, Data
from tandemq.commands.query import known
from tandemq.commands.table import Permission, Request, command, queues_of
from tandemq.engine import flows, trees
from tandemq.model.errors import BadRequest, NotFound
from tandemq.model.size import ITEM, text_bytes, texts_bytes

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

EACH_RESULT = "ask for the result of each child with GetResult"
EACH_JOB = "ask for each child with GetJob"


class UpdateParent(Request, tag="UpdateParent"):
    """Make a job the child of another."""

    child_id: Any = None
    parent_id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, (self.parent_id, *_with_parent(engine, self.child_id)))


class GetChildrenValues(Request, tag="GetChildrenValues"):
    """Ask for the results of a job's children."""

    id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        m = engine.messages.get(self.id) if isinstance(self.id, str) else None
        children = () if m is None or m.links is None else m.links.children
        return queues_of(engine, (self.id, *children))


class GetFailedChildrenValues(Request, tag="GetFailedChildrenValues"):
    """Ask for the errors of children in spite of which a job went on."""

    id: Any = None


class GetIgnoredChildrenFailures(Request, tag="GetIgnoredChildrenFailures"):
    """Ask for the errors of children that a job was told to ignore."""

    id: Any = None


class RemoveChildDependency(Request, tag="RemoveChildDependency"):
    """Part a child from its parent."""

    id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        return queues_of(engine, _with_parent(engine, self.id))


class RemoveUnprocessedChildren(Request, tag="RemoveUnprocessedChildren"):
    """Take away the children of a job that have not begun."""

    id: Any = None

    def concerns(self, engine: Engine) -> Iterable[str]:
        m = engine.messages.get(self.id) if isinstance(self.id, str) else None
        return () if m is None else (m.queue, *trees.queues_of_unprocessed(engine, m))


@command(Permission.PUBLISH, http="PUT /jobs/{childId}/parent")
def update_parent(req: UpdateParent, call: Call) -> None:
    """Make a job the child of another, which waits for it from now on."""
    engine = call.engine
    if req.child_id == req.parent_id:
        raise BadRequest("A flow job cannot be its own parent")
    parent = known(call, req.parent_id)
    if parent is None:
        raise NotFound(f"Parent job not found: {check.shown(req.parent_id)}")
    child = known(call, req.child_id)
    if child is None:
        raise NotFound(f"Child job not found: {check.shown(req.child_id)}")
    flows.link(engine, parent, child, call.now)


@command(Permission.INSPECT, http="GET /jobs/{id}/children")
def get_children_values(req: GetChildrenValues, call: Call) -> Data:
    """Return the results of a job's children."""
    m = known(call, req.id)
    found = flows.values(call.engine, m) if m is not None else {}
    whole(found.items(), lambda item: text_bytes(item[0]) + len(item[1]) + ITEM, EACH_RESULT)
    return Data({"values": {key: Raw(value) for key, value in found.items()}})


@command(Permission.INSPECT, http="GET /jobs/{id}/children/failed")
def get_failed_children_values(req: GetFailedChildrenValues, call: Call) -> dict[str, Any]:
    """Return the errors of the children in spite of which a job went on."""
    m = known(call, req.id)
    return _errors({} if m is None or m.links is None else m.links.failures)


@command(Permission.INSPECT, http="GET /jobs/{id}/children/ignored")
def get_ignored_children_failures(req: GetIgnoredChildrenFailures, call: Call) -> dict[str, Any]:
    """Return the errors of the children that a job was told to ignore."""
    m = known(call, req.id)
    return _errors({} if m is None or m.links is None else m.links.ignored)


@command(Permission.CONTROL, http="DELETE /jobs/{id}/parent")
def remove_child_dependency(req: RemoveChildDependency, call: Call) -> dict[str, Any]:
    """Part a child from its parent, which goes on if it waits for nothing else."""
    child = known(call, req.id)
    if child is None:
        raise NotFound(f"Job not found: {check.shown(req.id)}")
    if child.links is None or child.links.parent is None:
        raise BadRequest(f"Job {child.id} has no parent")
    flows.unlink(call.engine, child, call.now)
    return {"removed": True}


@command(Permission.CONTROL, http="DELETE /jobs/{id}/children")
def remove_unprocessed_children(req: RemoveUnprocessedChildren, call: Call) -> None:
    """Take away the children of a job that have not begun; it waits only for the others."""
    parent = known(call, req.id)
    if parent is not None:
        trees.remove_unprocessed(call.engine, parent, call.now)


def _with_parent(engine: Engine, id: Any) -> tuple[Any, ...]:
    """Return a job's id and that of its parent, if it has one."""
    m = engine.messages.get(id) if isinstance(id, str) else None
    return (id,) if m is None or m.links is None else (id, m.links.parent)


def _errors(values: dict[str, str]) -> dict[str, Any]:
    return {"values": dict(whole(values.items(), texts_bytes, EACH_JOB))}
