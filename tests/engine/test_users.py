"""The registry of users: what is made, granted, taken back, remembered and undone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings as profile
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from tests.engine.making import NOW, make_engine

from tandemq.engine import facts, users
from tandemq.engine.core import Engine
from tandemq.engine.users import FACT, Token, User
from tandemq.model.errors import (
    BadPayload,
    Forbidden,
    NotFound,
    TandemqError,
    UserExists,
    UserNotFound,
)
from tandemq.model.permission import PATTERN_LENGTH, Operation, matches

P, S, LIST = Operation.PUBLISH, Operation.SUBSCRIBE, Operation.LIST_QUEUES


def with_users(*names: str) -> Engine:
    """An engine with a superuser, root, and others."""
    engine = make_engine()
    users.create(engine, "root", "hash of root", NOW, superuser=True)
    for i, name in enumerate(names, 1):
        users.create(engine, name, f"hash of {name}", NOW + i)
    return engine


def stored(engine: Engine) -> dict[str, bytes]:
    """What the facts so far have left in a store."""
    return {key: value for key, value in engine.take().facts.items() if value is not None}


def restarted(engine: Engine) -> Engine:
    later = make_engine()
    for key, value in sorted(stored(engine).items()):
        facts.restore(later, key, value)
    return later


def test_a_new_user_may_do_nothing() -> None:
    engine = with_users("bob")
    assert engine.users.get("bob") == User("bob", "hash of bob", False, NOW + 1)
    assert not engine.users.allowed("bob", "q")
    assert len(engine.users) == 2


def test_nobody_may_do_anything_where_there_are_no_users() -> None:
    engine = make_engine()
    assert not engine.users.allowed("bob", "q")
    assert engine.users.somebody() is None
    assert not len(engine.users)


def test_a_name_is_taken_once_and_names_that_differ_in_case_are_two() -> None:
    engine = with_users("bob")
    with pytest.raises(UserExists, match=r"^User 'bob' already exists\.$"):
        users.create(engine, "bob", "x", NOW)
    users.create(engine, "Bob", "other", NOW)
    assert engine.users.find("bob").password == "hash of bob"


@pytest.mark.parametrize("name", ["", "bad user", "x" * 65, "zoë"])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(BadPayload, match="Username must be 1-64 characters"):
        users.create(with_users(), name, "x", NOW)


def test_users_are_listed_by_age_also_after_changes_and_restarts() -> None:
    engine = with_users("zoe", "al")
    users.grant(engine, "zoe", "*", (P,))
    users.change_password(engine, "root", "new")
    for each in (engine, restarted(engine)):
        assert [user.name for user in each.users.listed()] == ["root", "zoe", "al"]


def test_a_user_is_deleted_with_all_that_was_granted() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "*", (P,))
    users.create_token(engine, "bob", b"digest", NOW)
    users.delete(engine, "bob")
    assert engine.users.get("bob") is engine.users.holder(b"digest") is None
    assert not engine.users.allowed("bob", "q")
    users.create(engine, "bob", "again", NOW)
    assert not engine.users.allowed("bob", "q")


def test_a_superuser_cannot_be_deleted() -> None:
    engine = with_users("bob")
    with pytest.raises(Forbidden, match=r"^Cannot delete a superuser account\.$"):
        users.delete(engine, "root")
    assert engine.users.get("root")


def test_what_is_granted_holds_at_once_and_replaces_what_the_pattern_allowed() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "orders.*", (P, S))
    assert engine.users.allowed("bob", "orders.new") == {P, S}
    users.grant(engine, "bob", "orders.*", (LIST,))
    assert engine.users.allowed("bob", "orders.new") == {LIST}
    users.grant(engine, "bob", "*.new", (P,))
    assert engine.users.allowed("bob", "orders.new") == {LIST, P}
    assert engine.users.find("bob").entries == {"orders.*": (LIST,), "*.new": (P,)}


def test_what_is_taken_back_is_gone_at_once() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "a*", (P,))
    assert engine.users.allowed("bob", "ab")
    assert users.revoke(engine, "bob", "a*")
    assert not engine.users.allowed("bob", "ab")
    assert not users.revoke(engine, "bob", "a*")
    assert not users.revoke(engine, "ghost", "a*")


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("x" * (PATTERN_LENGTH + 1), r"^queuePattern exceeds maximum length \(256\)\.$"),
        ("*" * (PATTERN_LENGTH + 1), "maximum length"),
        ("a\ud800", "not well-formed"),
    ],
)
def test_a_pattern_that_could_do_harm_later_is_refused_when_it_is_granted(
    pattern: str, says: str
) -> None:
    engine = with_users("bob")
    with pytest.raises(BadPayload, match=says):
        users.grant(engine, "bob", pattern, (P,))
    assert engine.users.find("bob").entries == {}


def test_the_longest_pattern_is_taken() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "x" * PATTERN_LENGTH, (P,))
    assert engine.users.allowed("bob", "x" * PATTERN_LENGTH) == {P}


VERBS: list[Any] = [
    lambda engine: users.delete(engine, "ghost"),
    lambda engine: users.change_password(engine, "ghost", "x"),
    lambda engine: users.grant(engine, "ghost", "*", (P,)),
    lambda engine: users.create_token(engine, "ghost", b"d", NOW),
    lambda engine: users.revoke_token(engine, "ghost", "t"),
    lambda engine: engine.users.find("ghost"),
]


@pytest.mark.parametrize("verb", VERBS)
def test_what_concerns_a_user_that_does_not_exist_is_refused(verb: Any) -> None:
    engine = with_users("bob", "Ghost")
    stored(engine)
    with pytest.raises(UserNotFound, match=r"^User 'ghost' not found\.$"):
        verb(engine)
    assert engine.quiet


def test_a_password_is_changed_and_nothing_else() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "*", (P,))
    users.change_password(engine, "bob", "new")
    assert engine.users.get("bob") == User("bob", "new", False, NOW + 1, {"*": (P,)})


def test_numbers_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(users, "USERS", 2)
    monkeypatch.setattr(users, "ENTRIES", 2)
    monkeypatch.setattr(users, "TOKENS", 2)
    engine = with_users("bob")
    with pytest.raises(BadPayload, match="There are 2 users already"):
        users.create(engine, "eve", "x", NOW)
    for i in range(2):
        users.grant(engine, "bob", f"{i}", (P,))
        users.create_token(engine, "bob", b"%d" % i, NOW)
    with pytest.raises(BadPayload, match="at most 2 patterns"):
        users.grant(engine, "bob", "3", (P,))
    users.grant(engine, "bob", "1", (S,))  # one that is there already
    with pytest.raises(BadPayload, match="at most 2 tokens"):
        users.create_token(engine, "bob", b"3", NOW)


# -- tokens ----------------------------------------------------------------------------------------


def test_a_token_stands_for_its_user_until_it_is_revoked() -> None:
    engine = with_users("bob")
    first = users.create_token(engine, "bob", b"one", NOW, "of the build")
    second = users.create_token(engine, "bob", b"two", NOW)
    assert first == Token("id-1", b"one", NOW, "of the build")
    assert engine.users.find("bob").tokens == (first, second)
    assert engine.users.holder(b"one") is engine.users.holder(b"two") is engine.users.get("bob")
    users.revoke_token(engine, "bob", first.id)
    assert engine.users.holder(b"one") is None
    assert engine.users.holder(b"two") is engine.users.get("bob")
    with pytest.raises(NotFound, match="Token not found"):
        users.revoke_token(engine, "bob", first.id)


def test_a_token_cannot_be_revoked_in_the_name_of_another() -> None:
    engine = with_users("bob", "eve")
    token = users.create_token(engine, "bob", b"one", NOW)
    with pytest.raises(NotFound):
        users.revoke_token(engine, "eve", token.id)
    assert engine.users.holder(b"one")


# -- what is kept ----------------------------------------------------------------------------------


def test_everything_of_a_user_survives_a_restart() -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "orders.*", (S, P))
    users.grant(engine, "bob", "é☃*", (LIST,))
    users.create_token(engine, "bob", b"\x00\xff", NOW, "note")
    before = engine.users.listed()
    later = restarted(engine)
    assert later.users.listed() == before
    assert later.users.allowed("bob", "orders.x") == {P, S}
    assert later.users.holder(b"\x00\xff") == before[1]
    assert list(later.users.find("bob").entries["orders.*"]) == [S, P]


def test_a_user_is_stored_under_its_name_and_forgotten_with_it() -> None:
    engine = with_users("bob")
    assert stored(engine).keys() == {"user/root", "user/bob"}
    users.delete(engine, "bob")
    assert engine.take().facts == {"user/bob": None}


UNDONE: list[Any] = [
    lambda engine: users.create(engine, "eve", "x", NOW),
    lambda engine: users.delete(engine, "bob"),
    lambda engine: users.change_password(engine, "bob", "new"),
    lambda engine: users.grant(engine, "bob", "b*", (S,)),
    lambda engine: users.grant(engine, "bob", "a*", (S,)),
    lambda engine: users.revoke(engine, "bob", "a*"),
    lambda engine: users.create_token(engine, "bob", b"two", NOW),
    lambda engine: users.revoke_token(engine, "bob", "id-1"),
]


@pytest.mark.parametrize("change", UNDONE)
def test_what_could_not_be_stored_is_as_it_was(change: Any) -> None:
    engine = with_users("bob")
    users.grant(engine, "bob", "a*", (P,))
    users.create_token(engine, "bob", b"one", NOW)
    kept, before = stored(engine), engine.users.listed()
    change(engine)
    assert engine.users.listed() != before
    for key in engine.take().facts:
        facts.restore(engine, key, kept.get(key), NOW)
    assert engine.users.listed() == before
    assert engine.users.allowed("bob", "ab") == {P}
    assert not engine.users.allowed("bob", "b")
    assert engine.users.holder(b"one") == before[1]
    assert engine.users.holder(b"two") is None
    assert engine.quiet


class Registry(RuleBasedStateMachine):
    """Random administration beside a dictionary; a store sees all facts, sometimes too late."""

    NAMES = st.sampled_from(["root", "ann", "Ann", "bob"])
    PATTERNS = st.sampled_from(["a*", "*b", "ab", "A*"])

    def __init__(self) -> None:
        super().__init__()
        self.engine = make_engine()
        self.plain: dict[str, tuple[bool, dict[str, tuple[Operation, ...]], set[bytes]]] = {}
        self.kept: dict[str, bytes] = {}
        self.before = dict(self.plain)
        self.numbers = 0

    def does(self, verb: Any) -> bool:
        try:
            return verb() is not False
        except TandemqError:
            return False

    @rule(name=NAMES)
    def create(self, name: str) -> None:
        first = not self.plain
        done = self.does(lambda: users.create(self.engine, name, "h", NOW, superuser=first))
        assert done is (name not in self.plain)
        self.plain.setdefault(name, (first, {}, set()))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        known = self.plain.get(name)
        done = self.does(lambda: users.delete(self.engine, name))
        assert done is (known is not None and not known[0])
        if done:
            del self.plain[name]

    @rule(name=NAMES, pattern=PATTERNS, held=st.sets(st.sampled_from([P, S, LIST]), min_size=1))
    def grant(self, name: str, pattern: str, held: set[Operation]) -> None:
        given = tuple(held)
        done = self.does(lambda: users.grant(self.engine, name, pattern, given) is None)
        assert done is (name in self.plain)
        if done:
            superuser, entries, tokens = self.plain[name]
            self.plain[name] = superuser, {**entries, pattern: given}, tokens

    @rule(name=NAMES, pattern=PATTERNS)
    def revoke(self, name: str, pattern: str) -> None:
        done = self.does(lambda: users.revoke(self.engine, name, pattern))
        assert done is (name in self.plain and pattern in self.plain[name][1])
        if done:
            superuser, entries, tokens = self.plain[name]
            left = {key: held for key, held in entries.items() if key != pattern}
            self.plain[name] = superuser, left, tokens

    @rule(name=NAMES)
    def create_token(self, name: str) -> None:
        self.numbers += 1
        digest = b"%d" % self.numbers
        if self.does(lambda: users.create_token(self.engine, name, digest, NOW)):
            superuser, entries, tokens = self.plain[name]
            self.plain[name] = superuser, entries, tokens | {digest}

    @rule()
    def store(self) -> None:
        for key, value in self.engine.take().facts.items():
            if value is None:
                self.kept.pop(key, None)
            else:
                self.kept[key] = value
        self.before = dict(self.plain)

    @rule()
    def fail_to_store(self) -> None:
        for key in self.engine.take().facts:
            facts.restore(self.engine, key, self.kept.get(key), NOW)
        self.plain = dict(self.before)

    @rule()
    def restart(self) -> None:
        self.store()
        self.engine = make_engine()
        for key, value in self.kept.items():
            facts.restore(self.engine, key, value)

    @invariant()
    def agree(self) -> None:
        registry = self.engine.users
        assert {user.name for user in registry.listed()} == self.plain.keys()
        for name, (superuser, entries, tokens) in self.plain.items():
            user = registry.find(name)
            assert user.superuser is superuser
            assert {token.digest for token in user.tokens} == tokens
            for queue in ("ab", "a", "b", "AB", ""):
                fitting = [held for pattern, held in entries.items() if matches(pattern, queue)]
                assert registry.allowed(name, queue) == set().union(*fitting)
        everybody = {token: name for name, (_, _, held) in self.plain.items() for token in held}
        found = {
            token: registry.holder(token)
            for token in map(b"%d".__mod__, range(1, self.numbers + 1))
        }
        assert {t: user.name for t, user in found.items() if user is not None} == everybody


TestRegistry = Registry.TestCase
TestRegistry.settings = profile(max_examples=60, stateful_step_count=30, deadline=None)


def test_the_key_of_a_user_is_no_other_kind_of_fact() -> None:
    engine = with_users("bob")
    assert all(key.startswith(FACT) for key in stored(engine))
