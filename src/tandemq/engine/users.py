"""Users, what each may do with which queues, and the tokens that stand for them.

A user is one fact, with all of its entries and tokens. Of a password and of a token only what
proves it is kept here; making and checking that takes long, or needs chance, and is the server's
part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tandemq.model.body import well_formed
from tandemq.model.errors import (
    BadPayload,
    Forbidden,
    NotFound,
    UserExists,
    UserNotFound,
)
from tandemq.model.permission import (
    NOTHING,
    PATTERN_LENGTH,
    Operation,
    Rights,
    is_user_name,
)

if TYPE_CHECKING:
    from tandemq.engine.core import Engine

FACT = "user/"  # + name: the key under which a user is stored
USERS = 100_000
ENTRIES = 1_000  # patterns of one user; a queue that is new to it is compared with each
TOKENS = 100  # of one user

BAD_NAME = "Username must be 1-64 characters: alphanumeric, hyphens, underscores, dots."


class Token(Struct, array_like=True, frozen=True):
    """A secret that stands for a user. Stored as it stands: append with a default."""

    id: str
    digest: bytes  # of the secret, which nobody can guess
    created: int  # ms
    note: str = ""


class User(Struct, array_like=True, frozen=True):
    """One user. Stored as it stands: append with a default, never reorder."""

    name: str
    password: str  # its hash, which tells how it was made
    superuser: bool
    created: int  # ms
    entries: dict[str, tuple[Operation, ...]] = {}  # by pattern
    tokens: tuple[Token, ...] = ()


_encode = msgspec.msgpack.encode
_decode = msgspec.msgpack.Decoder(User).decode


class Users:
    """The registry; it begins empty, and has a superuser from the first user on."""

    def __init__(self) -> None:
        self._users: dict[str, User] = {}
        self._rights: dict[str, Rights] = {}  # of those who asked since they changed
        self._holders: dict[bytes, str] = {}  # digest of a token -> name

    def __len__(self) -> int:
        return len(self._users)

    def get(self, name: str) -> User | None:
        return self._users.get(name)

    def find(self, name: str) -> User:
        """Return a user.

        Raises:
            UserNotFound
        """
        user = self._users.get(name)
        if user is None:
            raise UserNotFound(name)
        return user

    def listed(self) -> list[User]:
        """Return all users, the oldest first."""
        return sorted(self._users.values(), key=lambda user: (user.created, user.name))

    def somebody(self) -> User | None:
        """Return any user, for work that has to look the same whoever is named."""
        return next(iter(self._users.values()), None)

    def holder(self, digest: bytes) -> User | None:
        """Return whom a token stands for."""
        name = self._holders.get(digest)
        return None if name is None else self._users[name]

    def allowed(self, name: str, queue: str) -> frozenset[Operation]:
        """Return what a user may do with a queue; one that does not exist may do nothing."""
        rights = self._rights.get(name)
        if rights is None:
            user = self._users.get(name)
            if user is None:
                return NOTHING
            rights = self._rights[name] = Rights(user.entries)
        return rights.of(queue)

    def put(self, engine: Engine, user: User) -> None:
        """Add a user or replace the one of that name, and remember it."""
        self._set(user.name, user)
        engine.record(FACT + user.name, stored(user))

    def drop(self, engine: Engine, name: str) -> None:
        """Forget a user."""
        self._set(name, None)
        engine.record(FACT + name, None)

    def restore(self, name: str, fact: bytes | None) -> None:
        """Take a user as it was stored; None is none."""
        self._set(name, None if fact is None else _decode(fact))

    def _set(self, name: str, user: User | None) -> None:
        self._rights.pop(name, None)
        before = self._users.pop(name, None)
        for token in before.tokens if before is not None else ():
            self._holders.pop(token.digest, None)
        if user is not None:
            self._users[name] = user
            self._holders.update((token.digest, name) for token in user.tokens)


def stored(user: User) -> bytes:
    """Return the fact of a user."""
    return _encode(user)


# -- what superusers do --------------------------------------------------------------------------


def check_new(engine: Engine, name: str) -> None:
    """Check whether a user of that name can be created.

    Raises:
        BadPayload, UserExists
    """
    if not is_user_name(name):
        raise BadPayload(BAD_NAME)
    if engine.users.get(name) is not None:
        raise UserExists(name)
    if len(engine.users) >= USERS:
        raise BadPayload(f"There are {USERS} users already; delete some first.")


def create(engine: Engine, name: str, password: str, now: int, *, superuser: bool = False) -> User:
    """Add a user, who may do nothing yet; ``password`` is its hash.

    Raises:
        BadPayload, UserExists
    """
    check_new(engine, name)
    user = User(name, password, superuser, now)
    engine.users.put(engine, user)
    return user


def delete(engine: Engine, name: str) -> None:
    """Forget a user, its entries and its tokens.

    Raises:
        UserNotFound, Forbidden: it is a superuser, of which one must be left.
    """
    if engine.users.find(name).superuser:
        raise Forbidden("Cannot delete a superuser account.")
    engine.users.drop(engine, name)


def change_password(engine: Engine, name: str, password: str) -> None:
    """Give a user another password, of which this is the hash.

    Raises:
        UserNotFound
    """
    engine.users.put(engine, replace(engine.users.find(name), password=password))


def grant(engine: Engine, name: str, pattern: str, held: tuple[Operation, ...]) -> None:
    """Allow a user these operations with all queues that fit a pattern, and no others by it.

    Raises:
        BadPayload, UserNotFound
    """
    if len(pattern) > PATTERN_LENGTH:
        raise BadPayload(f"queuePattern exceeds maximum length ({PATTERN_LENGTH}).")
    if well_formed(pattern) != pattern:
        raise BadPayload("queuePattern is not well-formed text.")
    user = engine.users.find(name)
    entries = {**user.entries, pattern: held}
    if len(entries) > ENTRIES:
        raise BadPayload(f"A user has at most {ENTRIES} patterns; revoke some first.")
    engine.users.put(engine, replace(user, entries=entries))


def revoke(engine: Engine, name: str, pattern: str) -> bool:
    """Take back what was granted by a pattern; False when there is nothing."""
    user = engine.users.get(name)
    if user is None or pattern not in user.entries:
        return False
    entries = {key: held for key, held in user.entries.items() if key != pattern}
    engine.users.put(engine, replace(user, entries=entries))
    return True


def create_token(engine: Engine, name: str, digest: bytes, now: int, note: str = "") -> Token:
    """Let a secret stand for a user from now on; ``digest`` is that of the secret.

    Raises:
        BadPayload, UserNotFound
    """
    user = engine.users.find(name)
    if len(user.tokens) >= TOKENS:
        raise BadPayload(f"A user has at most {TOKENS} tokens; revoke some first.")
    token = Token(engine.new_id(now), digest, now, well_formed(note))
    engine.users.put(engine, replace(user, tokens=(*user.tokens, token)))
    return token


def revoke_token(engine: Engine, name: str, id: str) -> None:
    """Let a token stand for nobody any more.

    Raises:
        UserNotFound, NotFound
    """
    user = engine.users.find(name)
    left = tuple(token for token in user.tokens if token.id != id)
    if len(left) == len(user.tokens):
        raise NotFound("Token not found")
    engine.users.put(engine, replace(user, tokens=left))
