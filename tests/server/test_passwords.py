"""Hashing in threads: what it makes, how many at a time, who waits, and what need not be done."""

from __future__ import annotations

import asyncio
import hmac
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.server.offline import PATIENCE, turns, until

from tandemq.model.errors import Busy
from tandemq.server import passwords
from tandemq.server.passwords import Passwords

AT_A_TIME = 2  # threads, whatever machine this is

ODD = ["", "a", "x" * 5000, "zoë ☃", "a\0b", "\ud800", "pass word\n"]


@asynccontextmanager
async def hashing() -> AsyncIterator[Passwords]:
    """Hashes as cheap as they can be."""
    made = Passwords(8192, 1)
    try:
        yield made
    finally:
        await made.close()


class Gate:
    """In place of comparing: holds every thread until it is opened, and counts them."""

    def __init__(self) -> None:
        self._open = threading.Event()
        self._lock = threading.Lock()
        self.running = self.most = 0
        self.done: list[str] = []

    def verify(self, _: Passwords, stored: str, password: str) -> bool:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
            self.done.append(password)
        assert self._open.wait(PATIENCE), "nobody opened the gate"
        with self._lock:
            self.running -= 1
        if password == "bug":
            raise MemoryError("no room")
        return password == stored

    def open(self) -> None:
        self._open.set()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    found = Gate()
    monkeypatch.setattr(passwords, "AT_A_TIME", AT_A_TIME)
    monkeypatch.setattr(Passwords, "_verify", lambda self, *given: found.verify(self, *given))
    yield found
    found.open()


async def checked(made: Passwords, stored: str, password: str, user: str | None = "bob") -> Any:
    told: list[Any] = []
    made.check("a", user, stored, password, told.append)
    await until(lambda: told, "the answer")
    return told[0]


@pytest.mark.parametrize("password", ODD)
async def test_a_password_is_proved_by_its_hash_and_no_other_is(password: str) -> None:
    async with hashing() as made:
        stored = made.made(password)
        assert stored.startswith("$argon2id$v=19$m=8,t=1,p=1$")
        assert password not in stored or len(password) < 2
        assert stored != made.made(password), "salted"
        assert await checked(made, stored, password) is True
        for other in (password + "x", password.upper() + "y", "x" * 4999 + "y"):
            assert await checked(made, stored, other) is False


async def test_all_of_a_long_password_counts() -> None:
    async with hashing() as made:
        stored = made.made("x" * 72 + "a")
        assert await checked(made, stored, "x" * 72 + "b") is False


async def test_a_hash_is_made_in_a_thread_with_the_parameters_of_the_settings() -> None:
    made = Passwords(16_384, 3)
    told: list[Any] = []
    made.make("a", "secret", told.append)
    assert not told
    await until(lambda: told, "the hash")
    assert told[0].startswith("$argon2id$v=19$m=16,t=3,p=1$")
    assert await checked(made, told[0], "secret") is True
    await made.close()


async def test_a_hash_of_other_parameters_is_still_understood() -> None:
    async with hashing() as made:
        assert await checked(made, Passwords(16_384, 3).made("secret"), "secret") is True


@pytest.mark.parametrize("stored", ["", "plain", "$2b$12$abcdefghijklmnopqrstuv", "$argon2id$"])
async def test_a_hash_of_an_unknown_form_proves_nothing(
    stored: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with hashing() as made:
        with caplog.at_level(logging.WARNING, "tandemq"):
            assert await checked(made, stored, "plain") is False
        assert "in a form that is not known" in caplog.text


async def test_the_loop_turns_while_threads_work_and_only_a_few_do(gate: Gate) -> None:
    async with hashing() as made:
        told: list[Any] = []
        for i in range(20):
            made.check("a", None, "p", f"p{i}", told.append)
        await until(lambda: gate.running == AT_A_TIME, "the first threads")
        await turns(50)
        assert not told
        gate.open()
        await until(lambda: len(told) == 20, "all answers")
        assert gate.most == AT_A_TIME


async def test_each_address_gets_its_turn(gate: Gate) -> None:
    async with hashing() as made:
        told: list[Any] = []
        for i in range(10):
            made.check("flood", None, "p", f"f{i}", told.append)
        for name in ("x", "y"):
            made.check(name, None, "p", name, told.append)
        made.check("x", None, "p", "x2", told.append)
        gate.open()
        await until(lambda: len(told) == 13, "all answers")
        order = gate.done
        assert set(order[:AT_A_TIME]) == {"f0", "f1"}
        assert set(order[AT_A_TIME : AT_A_TIME + 5]) == {"f2", "x", "y", "f3", "x2"}


async def test_more_than_may_wait_are_refused_at_once(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "WAITING", 6)
    monkeypatch.setattr(passwords, "WAITING_OF_ONE", 4)
    async with hashing() as made:
        told: list[Any] = []
        for i in range(AT_A_TIME + 4):
            made.check("a", None, "p", f"{i}", told.append)
        for ask in (made.check, lambda *given: made.make("a", "p", told.append)):
            with pytest.raises(Busy):
                ask("a", None, "p", "one too many", told.append)
        made.check("b", None, "p", "of another", told.append)
        made.make("c", "of another", told.append)
        with pytest.raises(Busy):
            made.check("d", None, "p", "too many in all", told.append)
        gate.open()
        await until(lambda: len(told) == AT_A_TIME + 6, "all others")
        made.check("d", None, "p", "now there is room", told.append)


async def test_what_was_right_before_need_not_be_hashed_again(gate: Gate) -> None:
    gate.open()
    async with hashing() as made:
        for _ in range(5):
            assert await checked(made, "right", "right") is True
        assert gate.done == ["right"]
        for _ in range(3):
            assert await checked(made, "right", "wrong") is False
        assert gate.done == ["right", "wrong", "wrong", "wrong"]
        assert await checked(made, "right", "right", "another") is True
        assert gate.done[4:] == ["right"]


async def test_those_who_wait_for_the_same_cost_one_hash(gate: Gate) -> None:
    async with hashing() as made:
        told: list[Any] = []
        for _ in range(AT_A_TIME + 30):
            made.check("a", "bob", "right", "right", told.append)
        gate.open()
        await until(lambda: len(told) == AT_A_TIME + 30, "all answers")
        assert set(told) == {True}
        assert len(gate.done) == AT_A_TIME


async def test_another_hash_has_to_be_proved_anew(gate: Gate) -> None:
    gate.open()
    async with hashing() as made:
        assert await checked(made, "old", "old") is True
        assert await checked(made, "new", "old") is False
        assert await checked(made, "new", "new") is True
        assert gate.done == ["old", "old", "new"]


async def test_nobody_is_ever_proved_and_always_costs_a_hash(gate: Gate) -> None:
    gate.open()
    async with hashing() as made:
        for _ in range(3):
            assert await checked(made, "right", "right", None) is True
        assert gate.done == ["right"] * 3


async def test_what_is_remembered_is_no_password_and_bounded(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passwords, "PROVEN", 10)
    gate.open()
    async with hashing() as made:
        for i in range(25):
            await checked(made, "right", "right", f"u{i}")
            assert len(made._proven) <= 10
        assert "right" not in {proof for _, proof in made._proven.values()}
        assert await checked(made, "right", "right", "u24") is True


async def test_proofs_are_compared_in_constant_time(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def compare(*both: Any) -> bool:
        seen.append(both)
        return hmac.compare_digest(*both)

    gate.open()
    monkeypatch.setattr(passwords, "hmac", SimpleNamespace(compare_digest=compare))
    async with hashing() as made:
        for password in ("right", "right", "wrong"):
            await checked(made, "right", password)
        assert len(seen) == 2


async def test_what_cannot_be_hashed_is_told_and_the_next_one_is(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    gate.open()
    async with hashing() as made:
        with caplog.at_level(logging.ERROR, "tandemq"):
            assert await checked(made, "p", "bug") is None
        assert "a password could not be hashed: no room" in caplog.text
        assert await checked(made, "p", "p") is True


async def test_a_bug_of_who_is_told_stops_nobody(gate: Gate) -> None:
    gate.open()
    problems: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))

    def fails(_: Any) -> None:
        raise ZeroDivisionError

    async with hashing() as made:
        for _ in range(AT_A_TIME + 1):
            made.check("a", None, "p", "p", fails)
        assert await checked(made, "p", "p") is True
        assert len(problems) >= AT_A_TIME


async def test_the_end_waits_for_threads_and_begins_nothing_more(gate: Gate) -> None:
    made = Passwords(8192, 1)
    for i in range(10):
        made.check("a", None, "p", f"{i}", lambda _: None)
    await until(lambda: gate.running == AT_A_TIME, "the first threads")
    ending = asyncio.ensure_future(made.close())
    await turns()
    assert not ending.done()
    gate.open()
    await ending
    await turns()
    assert len(gate.done) == AT_A_TIME
    assert not [t for t in threading.enumerate() if t.name.startswith("tandemq-passwords")]
