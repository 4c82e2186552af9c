"""Passwords made into hashes and compared with them, in a few threads and never in the loop.

That takes long and needs memory, by intention (argon2id). So few are worked on at a time, a bounded
number wait, and each address gets its turn: who sends a flood of logins waits behind himself.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

from tandemq.model.errors import Busy

if TYPE_CHECKING:
    from argon2 import PasswordHasher

log = logging.getLogger("tandemq.server")

AT_A_TIME = 2 if (os.cpu_count() or 1) > 2 else 1  # threads: the loop is to keep a core
WAITING = 1_000  # that may wait in all
WAITING_OF_ONE = 250  # that may wait of one address
PROVEN = 10_000  # users whose password need not be hashed again


class Work(NamedTuple):
    """One thing to be done in a thread."""

    do: Callable[[], Any]
    then: Callable[[Any], None]  # is called in the loop; None: it could not be done
    known: Callable[[], bool]  # the answer is True already, and nothing need be done


class Passwords:
    """Makes and checks hashes; what they cost is set by ``memory`` (bytes) and ``rounds``."""

    def __init__(self, memory: int, rounds: int) -> None:
        self._memory, self._rounds = memory, rounds
        self._loop = asyncio.get_running_loop()
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: OrderedDict[str, deque[Work]] = OrderedDict()  # by address, next one first
        self._count = 0  # that wait
        self._running = 0
        self._key = os.urandom(32)
        self._proven: dict[str, tuple[str, bytes]] = {}  # user -> stored hash, what proved it

    def made(self, password: str) -> str:
        """Return the hash of a password; this takes its time."""
        return self._hasher().hash(_bytes(password))

    def make(self, origin: str, password: str, then: Callable[[str | None], None]) -> None:
        """Hash a password in a thread; ``origin`` is the address that asks for it.

        Raises:
            Busy
        """
        self._ask(origin, Work(partial(self.made, password), then, _never))

    def check(
        self,
        origin: str,
        user: str | None,
        stored: str,
        password: str,
        then: Callable[[bool | None], None],
    ) -> None:
        """Compare a password with a stored hash in a thread.

        What was right for ``user`` before need not be hashed again: a thousand workers that come
        back together after a restart cost one hash. What is wrong costs one each time, and so
        does everything for None, who stands for users that do not exist.

        Raises:
            Busy
        """
        do = partial(self._verify, stored, password)
        if user is None:
            self._ask(origin, Work(do, then, _never))
            return
        proof = blake2b(_bytes(password), key=self._key).digest()

        def told(right: bool | None) -> None:
            if right:
                self._remember(user, stored, proof)
            then(right)

        self._ask(origin, Work(do, told, partial(self._is_proven, user, stored, proof)))

    async def close(self) -> None:
        """Begin nothing more and wait for the threads."""
        self._waiting.clear()
        self._count = 0
        if self._pool is not None:
            await asyncio.to_thread(self._pool.shutdown)

    # -- turns ---------------------------------------------------------------------------------

    def _ask(self, origin: str, work: Work) -> None:
        mine = self._waiting.get(origin, ())
        if self._count >= WAITING or len(mine) >= WAITING_OF_ONE:
            raise Busy
        self._waiting.setdefault(origin, deque()).append(work)
        self._count += 1
        self._begin()

    def _begin(self) -> None:
        """Begin what there is room for, one of each address in turn."""
        while self._running < AT_A_TIME and self._waiting:
            origin, mine = self._waiting.popitem(last=False)
            work = mine.popleft()
            self._count -= 1
            if mine:
                self._waiting[origin] = mine
            if work.known():
                self._loop.call_soon(work.then, True)
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(AT_A_TIME, "tandemq-passwords")
            self._running += 1
            future = self._loop.run_in_executor(self._pool, work.do)
            future.add_done_callback(partial(self._done, work.then))

    def _done(self, then: Callable[[Any], None], future: asyncio.Future[Any]) -> None:
        self._running -= 1
        problem = future.exception()
        if problem is not None:
            log.error("a password could not be hashed: %s", problem)
        try:
            then(None if problem is not None else future.result())
        finally:
            self._begin()

    # -- in the threads ------------------------------------------------------------------------

    def _hasher(self) -> PasswordHasher:
        import argon2  # only where there are users

        return argon2.PasswordHasher(
            time_cost=self._rounds, memory_cost=self._memory // 1024, parallelism=1
        )

    def _verify(self, stored: str, password: str) -> bool:
        from argon2 import extract_parameters
        from argon2.exceptions import InvalidHashError, VerifyMismatchError

        try:
            extract_parameters(stored)
            return self._hasher().verify(stored, _bytes(password))
        except VerifyMismatchError:
            return False
        except InvalidHashError:
            log.warning("a user's password is stored in a form that is not known")
            return False

    # -- what was right before -----------------------------------------------------------------

    def _remember(self, user: str, stored: str, proof: bytes) -> None:
        if len(self._proven) >= PROVEN:
            self._proven.clear()
        self._proven[user] = stored, proof

    def _is_proven(self, user: str, stored: str, proof: bytes) -> bool:
        known = self._proven.get(user)
        return known is not None and known[0] == stored and hmac.compare_digest(known[1], proof)


def _bytes(password: str) -> bytes:
    return password.encode("utf-8", "surrogatepass")


def _never() -> bool:
    return False
