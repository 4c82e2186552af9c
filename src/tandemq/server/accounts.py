"""Who a connection is: nobody yet, a user, or somebody who may do everything.

Tokens of the server and superusers may do everything; such a connection is ``trusted`` and nothing
is asked of it any more. Any other user's requests are looked at one by one (``guard.permit``),
against what is granted at that moment.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from tandemq.commands.call import LATER, Later
from tandemq.commands.users import PASSWORD_LENGTH
from tandemq.config import BadSetting
from tandemq.config.secrets import superuser_password
from tandemq.engine import consume, users, watches
from tandemq.model.errors import (
    BadCredentials,
    BadPassword,
    Busy,
    Overloaded,
    TandemqError,
    Unauthenticated,
)
from tandemq.model.permission import Operation
from tandemq.server.guard import Failures, Tokens
from tandemq.server.meter import now_ms
from tandemq.server.passwords import Passwords
from tandemq.stores.base import Batch, Store

if TYPE_CHECKING:
    from tandemq.server.connections import Connection
    from tandemq.server.runtime import Runtime

log = logging.getLogger("tandemq.server")

SLOWED = 1.0  # s that the answer to a login waits where too many have failed


class Identity(NamedTuple):
    """Whom a connection has proved to be, and by what; it holds as long as that does."""

    user: str | None = None  # None: whoever has a token of the server
    password: str = ""  # the hash that stood for the user then
    token: bytes | None = None  # the digest of the user's token, if it was that


class Login(NamedTuple):
    """An attempt to be somebody, when it is known what to think of it."""

    caller: Connection
    req: Any
    found: Identity | None  # None: it failed
    refusal: TandemqError
    welcome: Any


class Accounts:
    """The connections of users, and how a connection becomes one."""

    def __init__(self, runtime: Runtime) -> None:
        settings = runtime.settings
        self._runtime = runtime
        self._users = runtime.engine.users
        self._limit = settings.login_limit
        self._failures = Failures()
        self._sessions: dict[str, dict[int, tuple[Connection, Identity]]] = {}
        self.tokens = Tokens(settings.tokens)
        self.passwords = Passwords(settings.password_hash_bytes, settings.password_hash_rounds)

    @property
    def open(self) -> bool:
        """Nobody has to prove anything, since there is nothing to prove it by (ruling 22)."""
        return not (self.tokens.required or len(self._users))

    def begin(self, store: Store) -> None:
        """Make the superuser where there is no user yet; later starts ignore these settings.

        Raises:
            BadSetting: its name or its password cannot be used.
            StoreFailed: it could not be kept.
        """
        settings = self._runtime.settings
        if not settings.has_superuser or len(self._users):
            return
        name, password = settings.superuser_name, superuser_password(settings)
        if len(password) > PASSWORD_LENGTH:
            raise BadSetting(f"the superuser's password is longer than {PASSWORD_LENGTH}")
        try:
            made = self.passwords.made(password)
            user = users.create(self._runtime.engine, name, made, now_ms(), superuser=True)
        except TandemqError as problem:
            raise BadSetting(f"superuser {name!r} cannot be made: {problem}", "superuser") from None
        if store.persistent:  # now, since nobody who waits for it would hear of a failure
            store.commit(Batch(facts={users.FACT + name: users.stored(user)}, sync=True))
        log.info("made the superuser %s", name)

    # -- logins (commands.call.Accounts) -------------------------------------------------------

    def identify(self, token: str) -> Identity | None:
        """Return whom a token stands for."""
        if self.tokens.accepts(token):
            return Identity()
        digest = sha256(token.encode("utf-8", "surrogatepass")).digest()
        user = self._users.holder(digest)
        return None if user is None else Identity(user.name, user.password, digest)

    def by_token(self, caller: Any, req: Any, token: str, welcome: Any) -> Any:
        """Let a connection be whom a token stands for."""
        refusal = BadCredentials("Invalid token")
        return self._decide(Login(caller, req, self.identify(token), refusal, welcome))

    def by_password(self, caller: Any, req: Any, name: str, password: str, welcome: Any) -> Any:
        """Let a connection be a user; one that does not exist takes as long to be refused."""
        failed = Login(caller, req, None, BadPassword(), welcome)

        def checked(found: Identity | None, refusal: TandemqError | None) -> None:
            if refusal is not None:
                self._reply(caller, req, refusal)
            else:
                self._take_up(failed._replace(found=found))

        if not self._check(caller.origin, name, password, checked):
            return self._decide(failed)
        caller.hold()
        return LATER

    def _check(
        self,
        origin: str,
        name: str,
        password: str,
        then: Callable[[Identity | None, TandemqError | None], None],
    ) -> bool:
        """Tell ``then`` who a name and a password stand for; False: nobody, and it is not told.

        Raises:
            Busy
        """
        user = self._users.get(name)
        stand_in = user or self._users.somebody()
        if stand_in is None or len(password) > PASSWORD_LENGTH:
            return False
        stored = stand_in.password

        def checked(right: bool | None) -> None:
            found = Identity(name, stored) if right and user is not None else None
            then(found, Busy() if right is None else None)

        self.passwords.check(origin, None if user is None else name, stored, password, checked)
        return True

    async def proven(self, origin: str, given: str | tuple[str, str]) -> Identity:
        """Return whom a token, or a name and a password, stand for; slowly after many failures.

        Raises:
            BadCredentials, Busy
        """
        refusal: TandemqError
        if isinstance(given, str):
            found, refusal = self.identify(given), BadCredentials("Invalid token")
        else:
            told: asyncio.Future[Identity | None] = self._runtime.loop.create_future()

            def checked(found: Identity | None, refusal: TandemqError | None) -> None:
                if told.done():
                    return
                if refusal is not None:
                    told.set_exception(refusal)
                else:
                    told.set_result(found)

            asked = self._check(origin, *given, checked)
            found, refusal = await told if asked else None, BadPassword()
        if self._slowed(origin, found):
            await asyncio.sleep(SLOWED)
        if found is None or not self._holds(found):
            raise refusal
        return found

    def may_everything(self, identity: Identity) -> bool:
        """Whether nothing is asked of an identity any more."""
        return identity.user is None or self._users.find(identity.user).superuser

    def admit(self, caller: Any, identity: Identity) -> None:
        """Let a caller be whom it has proved to be, as long as that holds.

        Raises:
            Unauthenticated: it does not hold any more.
        """
        if not self._holds(identity):
            raise Unauthenticated
        self._become(caller, identity)

    def _decide(self, login: Login) -> Any:
        """Answer a login at once, or later where too many have failed."""
        if not self._slowed(login.caller.origin, login.found):
            return self._conclude(login)
        login.caller.hold()
        self._runtime.loop.call_later(SLOWED, self._answer, login)
        return LATER

    def _take_up(self, login: Login) -> None:
        """Answer a login that is waiting already."""
        if self._slowed(login.caller.origin, login.found):
            self._runtime.loop.call_later(SLOWED, self._answer, login)
        else:
            self._answer(login)

    def _slowed(self, origin: str, found: Identity | None) -> bool:
        """Note whether a login has failed; whether its address is to wait (ruling 5)."""
        now = now_ms()
        if found is None:
            log.warning("a login from %s failed", origin or "an unknown address")
            self._runtime.feed.say("auth:failed", origin=origin)
            self._failures.note(origin, now)
        return self._limit > 0 and self._failures.too_many(origin, now)

    def _answer(self, login: Login) -> None:
        if self._gone(login.caller):
            return
        try:
            reply = self._conclude(login)
        except TandemqError as refused:
            reply = refused
        self._reply(login.caller, login.req, reply)

    def _conclude(self, login: Login) -> Any:
        """Let the caller be whom it has proved to be, if that still holds.

        Raises:
            TandemqError
        """
        caller = login.caller
        if login.found is not None and self._holds(login.found):
            self._become(caller, login.found)
            return login.welcome
        caller.failed_logins += 1
        if self._limit and caller.failed_logins > self._limit:
            raise Overloaded(f"Too many failed logins ({self._limit}); connect again")
        raise login.refusal

    def _reply(self, caller: Connection, req: Any, reply: Any) -> None:
        if not self._gone(caller):
            caller.let_go()
            self._runtime.answer(caller, req, reply)

    def _gone(self, caller: Connection) -> bool:
        return caller.id not in self._runtime.connections or caller.transport.is_closing()

    def hashed(
        self, caller: Any, req: Any, password: str, then: Callable[[str, int], Any]
    ) -> Later:
        """Answer with what ``then`` makes of the hash of a password, when that is kept."""

        def made(hash: str | None) -> None:
            if self._gone(caller):
                return  # perhaps because it was no longer to be let in
            now = self._runtime.begin()
            caller.let_go()
            try:
                reply = Busy() if hash is None else then(hash, now)
            except TandemqError as refused:
                reply = refused
            self._runtime.engine.tell(caller.id, req, reply)

        self.passwords.make(caller.origin, password, made)
        caller.hold()
        return LATER

    # -- connections of users ------------------------------------------------------------------

    def may(self, caller: Any, operation: Operation, queue: str) -> bool:
        """Whether something was granted to the user that a connection is, or has proved to be."""
        identity: Identity | None = getattr(caller, "identity", None)
        user = caller.user or (None if identity is None else identity.user)
        return user is not None and operation in self._users.allowed(user, queue)

    def changed(self, name: str, spare: Any = None) -> None:
        """Let what was changed of a user hold for its connections at once."""
        sessions = self._sessions.get(name, {})
        user = self._users.get(name)
        for id, (caller, identity) in list(sessions.items()):
            if caller is spare and user is not None:
                identity = identity._replace(password=user.password)
                sessions[id] = caller, identity
            if not self._holds(identity):
                self._end(caller)
            elif not caller.trusted:
                self._withdraw(caller)

    def undone(self) -> None:
        """Changes could not be stored and were taken back: look at all connections again."""
        for name in list(self._sessions):
            self.changed(name)

    def left(self, caller: Connection) -> None:
        """A connection is gone, or becomes somebody else."""
        if caller.user is not None:
            sessions = self._sessions[caller.user]
            del sessions[caller.id]
            if not sessions:
                del self._sessions[caller.user]
        caller.user = None

    def _holds(self, identity: Identity) -> bool:
        """Whether what has proved an identity would still prove it."""
        if identity.user is None:
            return True
        user = self._users.get(identity.user)
        if user is None or user.password != identity.password:
            return False
        return identity.token is None or self._users.holder(identity.token) is user

    def _become(self, caller: Connection, identity: Identity) -> None:
        self.left(caller)
        caller.user = name = identity.user
        user = None if name is None else self._users.find(name)
        caller.trusted = user is None or user.superuser
        if user is not None:
            self._sessions.setdefault(user.name, {})[caller.id] = caller, identity
        if not caller.trusted:
            self._withdraw(caller)

    def _withdraw(self, caller: Connection) -> None:
        """End what a connection waits for or is told of and may not any more (Q-73)."""

        def may_take(queue: str) -> bool:
            return self.may(caller, Operation.SUBSCRIBE, queue)

        def may_read(queue: str) -> bool:
            return self.may(caller, Operation.GET_QUEUE_INFO, queue)

        engine = self._runtime.engine
        consume.withdraw(engine, caller.id, may_take, now_ms())
        watches.withdraw(engine, caller.id, may_read)
        self._runtime.observers.withdraw(caller, may_take)

    def _end(self, caller: Connection) -> None:
        """Hang up; that is no fault of its jobs, so they are charged nothing."""
        self.left(caller)
        caller.trusted = False
        caller.spared = 0
        self._runtime.hang_up(caller)
