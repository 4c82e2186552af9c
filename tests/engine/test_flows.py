"""Messages that wait for others: dependencies, policies for failed children, links."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from tests.engine.making import NOW, hold, make_engine, put, token_of, wait

from tandemq.engine import flows, manage, publish, settle
from tandemq.engine.core import Engine
from tandemq.engine.recovery import roll_back
from tandemq.model.errors import BadRequest
from tandemq.model.message import Links, Message, Options, State
from tandemq.model.policy import ERROR_LENGTH, TOLD_LENGTH
from tandemq.stores.base import Row
from tandemq.stores.rows import decode, encode_head

PARKED, DELAYED, READY, LEASED, DONE, DEAD, GONE = (
    State.PARKED,
    State.DELAYED,
    State.READY,
    State.LEASED,
    State.DONE,
    State.DEAD,
    State.GONE,
)


def data(**fields: Any) -> bytes:
    packed: bytes = msgpack.packb(fields)
    return packed


def waits(engine: Engine, *ids: str, delay: int = 0, queue: str = "p", **links: Any) -> Message:
    m = publish.draft(queue, "job", data(), NOW, delay=delay)
    m.links = Links(depends_on=ids, **links)
    return publish.publish(engine, m, NOW)


def family(
    engine: Engine, *children: str, policy: str | None = None, **links: Any
) -> tuple[Message, list[Message]]:
    """A parent in queue p, and children in queue q that may be tried once."""
    made = [put(engine, id, max_attempts=1) for id in children]
    parent = publish.draft("p", "job", data(), NOW, id="parent")
    parent.links = Links(children=children, depends_on=children)
    publish.publish(engine, parent, NOW)
    for m in made:
        m.links = Links(parent="parent", on_failure=policy, **links)
    return parent, made


def complete(engine: Engine, queue: str = "q", result: bytes | None = None) -> Message:
    m = hold(engine, queue=queue)
    settle.ack(engine, m.id, token_of(m), NOW, result)
    return m


def fail(engine: Engine, error: str | None = "broke") -> Message:
    m = hold(engine)
    settle.fail(engine, m.id, token_of(m), NOW, error=error)
    return m


# -- dependencies --------------------------------------------------------------------------------


def test_a_message_waits_until_all_it_depends_on_is_completed() -> None:
    engine = make_engine()
    put(engine, "a"), put(engine, "b")
    m = waits(engine, "a", "b", "a")
    complete(engine)
    assert m.state is PARKED
    complete(engine)
    assert m.state is READY
    assert m.links is not None
    assert m.links.depends_on == ("a", "b", "a")
    assert m.born is PARKED


def test_a_waiting_pull_gets_what_a_completion_releases() -> None:
    engine = make_engine()
    put(engine, "a")
    m = waits(engine, "a")
    wait(engine, "r", queue="p")
    complete(engine)
    assert m.state is LEASED


def test_a_released_message_still_waits_for_its_moment() -> None:
    engine = make_engine()
    put(engine, "a")
    m = waits(engine, "a", delay=500)
    complete(engine)
    assert m.state is DELAYED


def test_what_is_completed_already_is_not_waited_for() -> None:
    engine = make_engine()
    put(engine, "a"), put(engine, "b", remove_on_complete=True)
    complete(engine), complete(engine)
    assert "b" not in engine.messages
    assert waits(engine, "a", "b").state is READY


def test_only_the_newest_removed_messages_are_remembered() -> None:
    engine = make_engine(keep_ids=1)
    put(engine, "a", remove_on_complete=True), put(engine, "b", remove_on_complete=True)
    complete(engine), complete(engine)
    with pytest.raises(BadRequest, match="Dependency job not found: a"):
        waits(engine, "a")
    assert waits(engine, "b").state is READY


@pytest.mark.parametrize("end", ["fail", "cancel", "discard"])
def test_a_dependency_that_ends_badly_is_waited_for_for_ever(end: str) -> None:
    engine = make_engine()
    a = put(engine, "a", max_attempts=1)
    m = waits(engine, "a")
    if end == "fail":
        fail(engine)
    else:
        getattr(manage, end)(engine, a, *([None] if end == "discard" else []), NOW)
    assert m.state is PARKED
    assert engine.timers.next_wake() is None or end != "cancel"  # nothing ever deletes it


def test_a_new_message_under_the_id_of_a_dead_one_stands_in_for_it() -> None:
    engine = make_engine()
    put(engine, "a", max_attempts=1, custom_id=True)
    m = waits(engine, "a")
    fail(engine)
    put(engine, "a", custom_id=True)
    complete(engine)
    assert m.state is READY


def test_waiting_survives_a_restart() -> None:
    engine = make_engine()
    a, b = put(engine, "a"), put(engine, "b")
    m = waits(engine, "a", "b")
    complete(engine)
    other = make_engine()
    for old in (a, b, m):
        other.admit(decode(Row(old.seq, encode_head(old), old.body)))
    complete(other)
    assert other.messages[m.id].state is READY


def test_an_undone_completion_is_waited_for_again() -> None:
    engine = make_engine()
    a = put(engine, "a", remove_on_complete=True)
    m = waits(engine, "a")
    rows = [Row(x.seq, encode_head(x), x.body) for x in (a, m)]
    complete(engine)
    roll_back(engine, engine.take().changed.values(), map(decode, rows), NOW)
    again = engine.messages[m.id]
    assert again.state is PARKED
    assert not engine.dependents.remembers("a")
    complete(engine)
    assert again.state is READY


# -- policies ------------------------------------------------------------------------------------


def test_without_a_policy_the_parent_waits_until_the_child_is_retried() -> None:
    engine = make_engine()
    parent, [child] = family(engine, "c")
    fail(engine)
    assert parent.state is PARKED
    engine.shift(child, "retry", READY)
    complete(engine)
    assert parent.state is READY


def test_a_parent_fails_with_its_child_and_the_siblings_go_on() -> None:
    engine = make_engine()
    engine.listening = True
    parent, [_, sibling] = family(engine, "c", "d", policy="fail")
    fail(engine)
    assert (parent.state, sibling.state) == (DEAD, READY)
    assert parent.attempts == 0
    assert parent.run is not None
    assert parent.run.error == "Child job c failed: broke"
    assert parent.run.cause == "unknown"
    assert parent.run.history == []
    told = [(e.type, e.fields) for e in engine.take().events if e.id == "parent"]
    assert told[-1] == ("failed", {"error": parent.run.error, "data": parent.body})


def line(engine: Engine, depth: int, top: str = "fail") -> list[Message]:
    """Messages that die of each other, the first one last."""
    ids = [f"m{n}" for n in range(depth)]
    made = [put(engine, ids[0], queue="q", max_attempts=1)]
    for n, id in enumerate(ids[1:], 1):
        m = publish.draft("p", "job", data(), NOW, id=id)
        m.links = Links(children=(ids[n - 1],), depends_on=(ids[n - 1],))
        made.append(publish.publish(engine, m, NOW))
    for n, m in enumerate(made[:-1]):
        m.links = m.links or Links()
        m.links.parent, m.links.cascade = ids[n + 1], True
        m.links.on_failure = top if n == depth - 2 else "fail"
    return made


def test_those_further_up_are_told_how_it_began() -> None:
    engine = make_engine()
    made = line(engine, 6)
    fail(engine)
    assert [m.run and m.run.error for m in made] == [
        "broke",
        "Child job m0 failed: broke",
        "Child job m1 failed: Child job m0 failed: broke",
        "Child job m2 failed: Child job m0 failed: broke",
        "Child job m3 failed: Child job m0 failed: broke",
        "Child job m4 failed: Child job m0 failed: broke",
    ]


@pytest.mark.parametrize("top", flows.POLICIES)
def test_a_long_line_of_deaths_is_told_shortly(top: str) -> None:
    engine = make_engine()
    made = line(engine, 200, top)
    fail(engine, "x" * 1_000_000)
    texts = [m.run.error for m in made if m.run is not None and m.run.error is not None]
    assert len(texts) == (200 if top == "fail" else 199)
    assert len(texts[0]) < ERROR_LENGTH + 100
    assert texts[1] == f"Child job m0 failed: {texts[0]}"[:ERROR_LENGTH] + " ... (cut)"
    assert all(len(text) < TOLD_LENGTH + 100 for text in texts[2:])
    links = made[-1].links
    assert links is not None
    assert all(len(text) < TOLD_LENGTH + 100 for text in (links.failures | links.ignored).values())
    assert len(links.failures | links.ignored) == (top in ("continue", "ignore"))


def test_a_child_that_is_removed_when_it_fails_tells_its_parent_all_the_same() -> None:
    engine = make_engine()
    parent, [child] = family(engine, "c", policy="fail")
    child.options = Options(max_attempts=1, remove_on_fail=True)
    fail(engine)
    assert (child.state, parent.state) == (GONE, DEAD)


def test_a_parent_continues_at_once_and_knows_of_the_failure() -> None:
    engine = make_engine()
    parent, _ = family(engine, "c", "d", policy="continue")
    fail(engine)
    assert parent.state is READY
    assert parent.links is not None
    assert parent.links.depends_on == ()
    assert parent.links.failures == {"q:c": "broke"}
    complete(engine)
    assert parent.state is READY


@pytest.mark.parametrize(("policy", "known"), [("ignore", {"q:c": "broke"}), ("remove", {})])
def test_one_dependency_is_dropped(policy: str, known: dict[str, str]) -> None:
    engine = make_engine()
    parent, _ = family(engine, "c", "d", policy=policy)
    fail(engine)
    assert parent.state is PARKED
    assert parent.links is not None
    assert parent.links.depends_on == ("d",)
    assert parent.links.ignored == known
    complete(engine)
    assert parent.state is READY


def test_a_policy_waits_for_the_last_attempt() -> None:
    engine = make_engine()
    parent, [child] = family(engine, "c", policy="fail")
    child.options = Options(max_attempts=2, backoff=0)
    fail(engine)
    assert parent.state is PARKED
    fail(engine, None)
    assert parent.state is DEAD


def three_levels(engine: Engine, *, cascade: bool) -> tuple[Message, Message]:
    leaf = put(engine, "leaf", max_attempts=1)
    middle = publish.draft("p", "job", data(), NOW, id="middle")
    middle.links = Links("top", ("leaf",), ("leaf",), on_failure="fail")
    publish.publish(engine, middle, NOW)
    top = publish.draft("p", "job", data(), NOW, id="top")
    top.links = Links(children=("middle",), depends_on=("middle",))
    publish.publish(engine, top, NOW)
    leaf.links = Links("middle", on_failure="fail", cascade=cascade)
    return middle, top


@pytest.mark.parametrize(("cascade", "top"), [(False, PARKED), (True, DEAD)])
def test_the_failure_of_a_parent_concerns_its_own_parent_only_where_asked(
    cascade: bool, top: State
) -> None:
    engine = make_engine()
    middle, root = three_levels(engine, cascade=cascade)
    fail(engine)
    assert middle.state is DEAD
    assert root.state is top


def test_a_cascade_of_a_thousand_levels_ends() -> None:
    engine = make_engine()
    put(engine, "n0", max_attempts=1)
    for n in range(1, 1000):
        m = publish.draft("p", "job", data(), NOW, id=f"n{n}")
        m.links = Links(f"n{n + 1}", depends_on=(f"n{n - 1}",), on_failure="fail", cascade=True)
        publish.publish(engine, m, NOW)
    engine.messages["n0"].links = Links("n1", on_failure="fail", cascade=True)
    fail(engine)
    assert engine.messages["n999"].state is DEAD


@pytest.mark.parametrize(("counts", "state"), [(False, PARKED), (True, DEAD)])
@pytest.mark.parametrize("end", ["cancel", "discard"])
def test_taking_a_child_away_is_a_failure_only_where_asked(
    end: str, counts: bool, state: State
) -> None:
    engine = make_engine()
    parent, [child] = family(engine, "c", policy="fail", removal_fails=counts)
    getattr(manage, end)(engine, child, *([None] if end == "discard" else []), NOW)
    assert parent.state is state


def test_a_child_without_a_parent_that_waits_for_it_fails_alone() -> None:
    engine = make_engine()
    lonely = put(engine, "c", max_attempts=1)
    lonely.links = Links("nobody", on_failure="fail")
    stranger = put(engine, "d", max_attempts=1)
    other = put(engine, "other")
    parent = waits(engine, other.id)
    stranger.links = Links(parent.id, on_failure="fail")
    fail(engine), fail(engine)
    assert parent.state is PARKED


# -- results -------------------------------------------------------------------------------------


def test_the_results_of_kept_and_of_removed_children_are_found() -> None:
    engine = make_engine()
    parent, [_, gone, silent] = family(engine, "a", "b", "c")
    gone.options = Options(remove_on_complete=True)
    complete(engine, result=b"\x01"), complete(engine, result=b"\x02"), complete(engine)
    assert silent.state is DONE
    assert flows.values(engine, parent) == {"q:a": b"\x01", "b": b"\x02"}
    assert flows.values(engine, gone) == {}


def test_a_forgotten_child_leaves_its_result() -> None:
    engine = make_engine()
    parent, [child, _] = family(engine, "a", "b")
    complete(engine, result=b"\x01")
    engine.forget(child)
    assert flows.values(engine, parent) == {"a": b"\x01"}


def test_a_result_that_is_not_kept_any_longer_is_left_with_the_parent() -> None:
    engine = make_engine(keep_results=0)
    parent, _ = family(engine, "a", "b")
    complete(engine, result=b"\x01")
    engine.take()
    assert parent.links is not None
    assert parent.links.values == {"a": b"\x01"}


# -- links ---------------------------------------------------------------------------------------


def marks(m: Message) -> Any:
    return msgpack.unpackb(m.body)


def pair(engine: Engine, **options: Any) -> tuple[Message, Message]:
    return (
        put(engine, "p", queue="p", body=data(x=1), **options),
        put(engine, "c", body=data(y=2)),
    )


@pytest.mark.parametrize("delay", [0, 500])
def test_a_linked_parent_waits_for_its_child(delay: int) -> None:
    engine = make_engine()
    parent, child = pair(engine, delay=delay)
    before = parent.state
    flows.link(engine, parent, child, NOW)
    assert parent.state is PARKED
    assert marks(parent) == {"x": 1, "__childrenIds": ["c"]}
    assert marks(child) == {"y": 2, "__parentId": "p", "__parentQueue": "p"}
    assert {m.rebodied for m in (parent, child)} == {True}
    complete(engine)
    assert parent.state is before
    assert parent.run is not None
    assert [step.state for step in parent.run.history] == [PARKED, before]


def test_a_completed_child_is_linked_and_not_waited_for() -> None:
    engine = make_engine()
    parent, child = pair(engine)
    complete(engine, result=b"\x05")
    size = engine.finished.size_bytes
    flows.link(engine, parent, child, NOW)
    assert parent.state is READY
    assert flows.values(engine, parent) == {"q:c": b"\x05"}
    assert engine.finished.size_bytes > size
    engine.forget(child)
    assert engine.finished.size_bytes == 0


@pytest.mark.parametrize("state", [LEASED, DONE])
def test_a_parent_that_runs_or_has_ended_takes_no_child(state: State) -> None:
    engine = make_engine()
    parent, child = pair(engine)
    m = hold(engine, queue="p")
    if state is DONE:
        settle.ack(engine, m.id, token_of(m), NOW)
    with pytest.raises(BadRequest, match="Parent job p is not linkable"):
        flows.link(engine, parent, child, NOW)
    assert child.links is None


def test_a_parent_that_waits_takes_more_children() -> None:
    engine = make_engine()
    parent, child = pair(engine)
    other = put(engine, "d")
    for m in (child, other, child):
        flows.link(engine, parent, m, NOW)
    assert parent.links is not None
    assert parent.links.children == parent.links.open == ("c", "d")
    complete(engine), complete(engine)
    assert parent.state is READY


def test_nobody_comes_to_wait_for_himself() -> None:
    engine = make_engine()
    parent, child = pair(engine)
    flows.link(engine, parent, child, NOW)
    with pytest.raises(BadRequest, match="waits for job c"):
        flows.link(engine, child, parent, NOW)
    assert flows.waits_for(engine, parent, "c")
    assert not flows.waits_for(engine, child, "p")


def test_a_child_that_gets_another_parent_leaves_the_first() -> None:
    engine = make_engine()
    first, child = pair(engine)
    second = put(engine, "p2", queue="p", body=data())
    flows.link(engine, first, child, NOW)
    flows.link(engine, second, child, NOW)
    assert (first.state, second.state) == (READY, PARKED)
    assert marks(first)["__childrenIds"] == []
    assert marks(child)["__parentId"] == "p2"


def test_parting_a_child_releases_its_parent() -> None:
    engine = make_engine()
    engine.listening = True
    parent, child = pair(engine)
    flows.link(engine, parent, child, NOW)
    flows.unlink(engine, child, NOW)
    assert parent.state is READY
    assert child.links is not None
    assert child.links.parent is None
    assert marks(child) == {"y": 2}
    assert [(e.type, e.id, e.fields) for e in engine.take().events][-1] == (
        "waiting",
        "p",
        {"prev": "waiting-children"},
    )


def test_parting_from_a_parent_that_is_gone_changes_the_child_only() -> None:
    engine = make_engine()
    child = put(engine, "c", body=data())
    child.links = Links("nobody")
    flows.unlink(engine, child, NOW)
    assert child.links.parent is None


def birth(engine: Engine, **fields: Any) -> Message:
    m = publish.draft("q", "job", data(**fields), NOW, id="c")
    m.links = Links(parent="p")
    return publish.publish(engine, m, NOW)


def test_a_message_is_born_as_a_child_when_its_data_says_so() -> None:
    engine = make_engine()
    parent, _ = put(engine, "p", queue="p", body=data()), None
    birth(engine, __parentId="p", __parentQueue="p")
    assert parent.state is PARKED
    assert marks(parent) == {"__childrenIds": ["c"]}


@pytest.mark.parametrize(
    "fields", [{}, {"__parentId": "p"}, {"__parentId": "x", "__parentQueue": "p"}]
)
def test_a_parents_id_without_the_data_is_only_kept(fields: dict[str, str]) -> None:
    engine = make_engine()
    parent = put(engine, "p", queue="p")
    assert birth(engine, **fields).links == Links("p")
    assert parent.state is READY


@pytest.mark.parametrize(
    ("id", "queue", "words"),
    [
        ("p", "elsewhere", "Parent job p belongs to queue p, not elsewhere"),
        ("nobody", "p", "Parent job not found: nobody"),
        ("c", "q", "A job cannot be its own parent"),
    ],
)
def test_a_link_that_cannot_be_made_refuses_the_message(id: str, queue: str, words: str) -> None:
    engine = make_engine()
    put(engine, "p", queue="p")
    m = publish.draft("q", "job", data(__parentId=id, __parentQueue=queue), NOW, id="c")
    m.links = Links(parent=id)
    with pytest.raises(BadRequest, match=words):
        publish.publish(engine, m, NOW)
    assert "c" not in engine.messages


def test_circles_are_found_and_chains_are_none() -> None:
    assert flows.circle({}) is None
    assert flows.circle({"a": ["b"], "b": ["c"]}) is None
    assert flows.circle({"a": ["b"], "b": ["c"], "c": ["a"], "d": ["a"]}) in {"a", "b", "c", "d"}
    assert flows.circle({"a": ["a"]}) == "a"
    chain = {str(n): [str(n + 1)] for n in range(10_000)}
    assert flows.circle(chain) is None
