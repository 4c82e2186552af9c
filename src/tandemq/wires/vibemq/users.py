"""What the Admin commands ask for: users, and what they may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from tandemq.model.errors import BadPayload
from tandemq.wires.vibemq.rules import in_names

OPERATIONS: Final = (
    "Publish", "Subscribe", "CreateQueue", "DeleteQueue",
    "PurgeQueue", "GetQueueInfo", "ListQueues",
)  # fmt: skip
LONGEST_USERNAME: Final = 64
LONGEST_PATTERN: Final = 256
BAD_USERNAME: Final = (
    f"Username must be 1-{LONGEST_USERNAME} characters: alphanumeric, hyphens, underscores, dots."
)

_BY_NAME = {name.lower(): name for name in OPERATIONS}


class _Members(Struct, rename="camel"):
    """Not looked into before it is known which of them count."""

    username: Raw = Raw()
    password: Raw = Raw()
    new_password: Raw = Raw()
    queue_pattern: Raw = Raw()
    operations: Raw = Raw()


_FIELDS = {field.encode_name: field.name for field in msgspec.structs.fields(_Members)}
_decode = msgspec.json.Decoder(_Members).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_texts = msgspec.json.Decoder(list[str]).decode


def one(payload: bytes | None) -> str:
    """Return the ``username`` that is all a command needs.

    Raises:
        BadPayload: it is missing, empty or no text.
    """
    (username,) = _texts(_read(payload, _ONE), _ONE)
    return username


def login(payload: bytes | None, password: str) -> tuple[str, str]:
    """Return a user name and what stands under ``password``.

    Raises:
        BadPayload: one of them is missing, empty or no text.
    """
    names = ("username", password)
    username, secret = _texts(_read(payload, names), names)
    return username, secret


def new_login(payload: bytes | None) -> tuple[str, str]:
    """Return the name and the password of a user who is to be made.

    Raises:
        BadPayload: one of them is missing, or no user can have that name.
    """
    username, password = login(payload, "password")
    if len(username) > LONGEST_USERNAME or not all(map(in_names, username)):
        raise BadPayload(BAD_USERNAME)
    return username, password


def pattern(payload: bytes | None) -> tuple[str, str]:
    """Return from whom a permission is taken, and for which queues.

    Raises:
        BadPayload: one of them is missing, empty or no text.
    """
    names = ("username", "queuePattern")
    username, queues = _texts(_read(payload, names), names)
    return username, queues


def grant(payload: bytes | None) -> tuple[str, str, tuple[str, ...]]:
    """Return to whom a permission is given, for which queues, and what is allowed there.

    Raises:
        BadPayload: something is missing, or none of the operations is known.
    """
    members = _read(payload, _GRANT)
    operations = _decoded(members.operations, _decode_texts)
    if operations is None:
        raise _incomplete(_GRANT)
    username, queues = _texts(members, _GRANT[:2], _GRANT)
    if len(queues) > LONGEST_PATTERN:
        raise BadPayload(f"queuePattern exceeds maximum length ({LONGEST_PATTERN}).")
    known = [_BY_NAME[name.lower()] for name in operations if name.lower() in _BY_NAME]
    if not known:
        raise BadPayload("No valid operations specified.")
    return username, queues, tuple(dict.fromkeys(known))


_ONE = ("username",)
_GRANT = ("username", "queuePattern", "operations")


def _read(payload: bytes | None, names: Sequence[str]) -> _Members:
    try:
        return _decode(payload or b"null")
    except (msgspec.DecodeError, RecursionError):
        raise BadPayload(f"Payload required: {{ {', '.join(names)} }}.") from None


def _texts(members: _Members, names: Sequence[str], all_names: Sequence[str] = ()) -> list[str]:
    found = [_decoded(getattr(members, _FIELDS[name]), _decode_text) for name in names]
    if not all(found):
        raise _incomplete(all_names or names)
    return found


def _decoded(raw: Raw, decode: Callable[[Raw], Any]) -> Any:
    """Return a member; None when it is missing or of another type."""
    try:
        return decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return None


def _incomplete(names: Sequence[str]) -> BadPayload:
    if len(names) == 1:
        return BadPayload(f"{names[0]} is required.")
    comma = "," if len(names) > 2 else ""
    return BadPayload(f"{', '.join(names[:-1])}{comma} and {names[-1]} are required.")
