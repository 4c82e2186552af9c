"""What every store promises: one suite, and a row in STORES for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tandemq.stores.base import Batch, Row, Store, StoreFailed
from tandemq.stores.memory import MemoryStore
from tandemq.stores.sqlite import SQLiteStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SQLiteStore(folder / "data.db"),
}
LARGE = b"large" * 3000


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = STORES[request.param](tmp_path)
    made.open()
    yield made
    made.close()


def row(seq: int, head: bytes = b"head", body: bytes = b"body") -> Row:
    return Row(seq, head, body)


def test_a_new_store_is_empty(store: Store) -> None:
    assert list(store.load()) == []
    assert store.load_facts() == {}
    assert store.fetch([1, 2]) == []
    assert store.fetch_facts(["a"]) == {}


def test_rows_come_back_by_ascending_seq(store: Store) -> None:
    store.commit(Batch(new=[row(30), row(10)]))
    store.commit(Batch(new=[row(20)]))
    assert list(store.load()) == [row(10), row(20), row(30)]


def test_rows_come_back_as_the_type_that_went_in(store: Store) -> None:
    store.commit(Batch(new=[row(1)]))
    assert [type(each) for each in [*store.load(), *store.fetch([1])]] == [Row, Row]


def test_a_changed_head_leaves_the_body_alone(store: Store) -> None:
    store.commit(Batch(new=[row(1), row(2, body=LARGE)]))
    store.commit(Batch(changed=[(1, b"later"), (2, b"later")]))
    assert list(store.load()) == [row(1, b"later"), row(2, b"later", LARGE)]


@pytest.mark.parametrize("before", [b"", b"small", LARGE])
@pytest.mark.parametrize("after", [b"", b"tiny", LARGE + b"!"])
def test_a_new_body_leaves_the_head_alone(store: Store, before: bytes, after: bytes) -> None:
    store.commit(Batch(new=[row(1, body=before)]))
    store.commit(Batch(rebodied=[(1, after)]))
    assert list(store.load()) == store.fetch([1]) == [row(1, body=after)]


def test_a_row_may_get_a_new_head_and_a_new_body_in_the_batch_that_makes_it(store: Store) -> None:
    store.commit(Batch(new=[row(1)], changed=[(1, b"later")], rebodied=[(1, LARGE)]))
    assert list(store.load()) == [row(1, b"later", LARGE)]


def test_what_is_gone_is_gone_with_its_body(store: Store) -> None:
    store.commit(Batch(new=[row(1), row(2, body=LARGE), row(3)]))
    store.commit(Batch(gone=[2, 1]))
    assert list(store.load()) == [row(3)]
    store.commit(Batch(new=[row(2, body=LARGE)]))
    assert store.fetch([2]) == [row(2, body=LARGE)]


def test_a_change_of_a_row_that_does_not_exist_has_no_effect(store: Store) -> None:
    store.commit(Batch(new=[row(1)]))
    store.commit(Batch(changed=[(7, b"x")], rebodied=[(8, b"x"), (9, LARGE)], gone=[10, 11]))
    assert list(store.load()) == [row(1)]
    store.commit(Batch(new=[row(9)]))
    assert store.fetch([9]) == [row(9)]


def test_an_empty_batch_is_no_error(store: Store) -> None:
    store.commit(Batch())
    store.commit(Batch(sync=True))
    assert list(store.load()) == []


def test_empty_heads_and_bodies_are_not_missing_ones(store: Store) -> None:
    store.commit(Batch(new=[row(1, b"", b"")]))
    assert list(store.load()) == [row(1, b"", b"")]


def test_the_smallest_and_the_largest_seq_are_kept(store: Store) -> None:
    ends = [row(-(2**63)), row(0), row(2**63 - 1)]
    store.commit(Batch(new=ends))
    assert list(store.load()) == ends
    store.commit(Batch(gone=[-(2**63), 2**63 - 1]))
    assert list(store.load()) == [row(0)]


@pytest.mark.parametrize("twin", [[row(5), row(6)], [row(7), row(7)]])
def test_a_batch_with_a_seq_that_is_taken_fails_and_leaves_nothing(
    store: Store, twin: list[Row]
) -> None:
    store.commit(Batch(new=[row(6, b"first")], facts={"kept": b"1"}))
    with pytest.raises(StoreFailed) as failure:
        store.commit(Batch(new=twin, changed=[(6, b"x")], facts={"kept": None, "other": b"2"}))
    assert not failure.value.disk_full
    assert list(store.load()) == [row(6, b"first")]
    assert store.load_facts() == {"kept": b"1"}


def test_after_a_failed_batch_the_next_one_is_stored(store: Store) -> None:
    store.commit(Batch(new=[row(1)]))
    with pytest.raises(StoreFailed):
        store.commit(Batch(new=[row(1)]))
    store.commit(Batch(new=[row(2)], changed=[(1, b"later")]))
    assert list(store.load()) == [row(1, b"later"), row(2)]


def test_facts_are_put_replaced_and_removed(store: Store) -> None:
    store.commit(Batch(facts={"a": b"1", "b": b"1", "é\0": b""}))
    store.commit(Batch(facts={"a": b"2", "b": None, "never there": None}))
    assert store.load_facts() == {"a": b"2", "é\0": b""}
    assert store.fetch_facts(["a", "b", "a"]) == {"a": b"2"}


def test_fetch_finds_each_row_once_in_order_and_leaves_out_the_rest(store: Store) -> None:
    rows = [row(seq, body=LARGE if seq % 100 == 0 else b"small") for seq in range(0, 3000, 2)]
    store.commit(Batch(new=rows))
    assert store.fetch(iter([*range(2999, -1, -1), 4])) == rows
    assert store.fetch([]) == []


@pytest.mark.parametrize("size", [1, 2, 3, 127, 255, 256, 257, 1000, 1023])
def test_batches_of_any_size_are_stored_whole(store: Store, size: int) -> None:
    facts = {f"fact {n}": b"%d" % n for n in range(size)}
    store.commit(Batch(new=[row(n) for n in range(size)], facts={**facts}))
    assert list(store.load()) == [row(n) for n in range(size)]
    assert store.load_facts() == facts
    store.commit(Batch(changed=[(n, b"%d" % n) for n in range(size)]))
    assert list(store.load()) == [row(n, b"%d" % n) for n in range(size)]
    store.commit(Batch(gone=list(range(size)), facts=dict.fromkeys(facts)))
    assert list(store.load()) == []
    assert store.load_facts() == {}


def test_everything_is_there_when_a_closed_store_is_opened_again(store: Store) -> None:
    store.commit(Batch(new=[row(1), row(2, body=LARGE)], facts={"a": b"1"}))
    store.close()
    store.open()
    assert list(store.load()) == [row(1), row(2, body=LARGE)]
    assert store.load_facts() == {"a": b"1"}
    store.commit(Batch(gone=[2]))
    assert list(store.load()) == [row(1)]


def test_open_and_close_may_be_repeated(store: Store) -> None:
    store.open()
    store.commit(Batch(new=[row(1)]))
    store.open()
    assert list(store.load()) == [row(1)]
    store.close()
    store.close()


def test_a_store_that_holds_more_is_larger(store: Store) -> None:
    before = store.size_bytes()
    store.commit(Batch(new=[row(n, body=LARGE) for n in range(20)]))
    assert store.size_bytes() >= before + 20 * len(LARGE)


SEQS = st.integers(0, 9)
BODIES = st.sampled_from([b"", b"small", LARGE])
HEADS = st.binary(max_size=3)
FACTS = st.dictionaries(st.sampled_from("abc"), st.none() | HEADS)


def some(seqs: set[int]) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(sorted(seqs)), unique=True, max_size=4)


@st.composite
def histories(draw: st.DrawFn) -> list[Batch]:
    """Batches as the server makes them: a new seq is never a taken one."""
    everything = set(range(10))
    taken: set[int] = set()
    batches = []
    while taken != everything and draw(st.integers(0, 6)):
        new = draw(some(everything - taken))
        gone = draw(some(everything - set(new)))
        batch = Batch(
            new=[Row(seq, draw(HEADS), draw(BODIES)) for seq in new],
            changed=draw(st.lists(st.tuples(SEQS, HEADS), max_size=4, unique_by=lambda c: c[0])),
            rebodied=draw(st.lists(st.tuples(SEQS, BODIES), max_size=4, unique_by=lambda c: c[0])),
            gone=gone,
            facts=draw(FACTS),
            sync=draw(st.booleans()),
        )
        taken = (taken | set(new)) - set(gone)
        batches.append(batch)
    return batches


class Plain:
    """What a store holds, said as simply as possible."""

    def __init__(self) -> None:
        self.rows: dict[int, Row] = {}
        self.facts: dict[str, bytes] = {}

    def take(self, batch: Batch) -> None:
        self.rows |= {each.seq: each for each in batch.new}
        heads, bodies = dict(batch.changed), dict(batch.rebodied)
        self.rows = {
            seq: Row(seq, heads.get(seq, each.head), bodies.get(seq, each.body))
            for seq, each in self.rows.items()
            if seq not in batch.gone
        }
        facts = {**self.facts, **batch.facts}
        self.facts = {key: value for key, value in facts.items() if value is not None}


@pytest.mark.parametrize("name", STORES)
@settings(deadline=None)
@given(batches=histories())
def test_a_store_agrees_with_a_dictionary_after_every_batch_and_restart(
    name: str, batches: list[Batch], tmp_path_factory: pytest.TempPathFactory
) -> None:
    model, store = Plain(), STORES[name](tmp_path_factory.mktemp("history"))
    store.open()
    try:
        for batch in batches:
            store.commit(batch)
            model.take(batch)
            assert {each.seq: each for each in store.load()} == model.rows
        store.close()
        store.open()
        assert list(store.load()) == store.fetch(range(10)) == sorted(model.rows.values())
        assert store.load_facts() == store.fetch_facts("abc") == model.facts
    finally:
        store.close()
