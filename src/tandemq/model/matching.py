"""Whether a text occurs in what a message carries, found without decoding most messages.

Texts stand in MessagePack and in JSON as they are, so a message whose bytes do not hold the text
is done with at the price of one pass over them. Only where the bytes do is the body decoded, to see
that they are not part of a number or of the head of something else. JSON may spell a letter in
another way, with a backslash, so a body that holds one is decoded too.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tandemq.model.message import Message

LOOKED_AT = 64 << 10  # bytes up to which a body is decoded; beyond, its bytes decide
SMALLEST = 128  # of the numbers that are found: smaller ones are one byte, which is everywhere


class Text:
    """A text that is looked for; the case of ASCII letters does not matter.

    It occurs in a body if it is part of one of its texts, keys included, or if it is one of its
    numbers: ``1042`` is found in ``{"order": 1042}``, ``104`` is not.
    """

    def __init__(self, text: str) -> None:
        self._needle = _bytes(text)
        self._number = _number(text)
        self._spellings = () if self._number is None else _spellings(self._number)

    def occurs_in(self, m: Message) -> bool:
        """Whether the text is in the body or in the last error of a message."""
        error = m.run.error if m.run is not None else None
        return (error is not None and self._needle in _bytes(error)) or self._in_body(m)

    def _in_body(self, m: Message) -> bool:
        body, is_json = m.body, m.letter is not None
        plain = self._needle in body.lower()
        if is_json:
            if not plain and b"\\" not in body:
                return False
        elif not plain and not any(spelling in body for spelling in self._spellings):
            return False
        if len(body) > LOOKED_AT:
            return plain
        try:
            value = msgspec.json.decode(body) if is_json else _unpack(body)
        except (msgspec.MsgspecError, UnicodeError, RecursionError):
            return plain
        return self._in_value(value)

    def _in_value(self, value: Any) -> bool:
        look = [value]
        while look:
            item = look.pop()
            if isinstance(item, str):
                if self._needle in _bytes(item):
                    return True
            elif isinstance(item, dict):
                look += item
                look += item.values()
            elif isinstance(item, list):
                look += item
            elif self._number is not None and type(item) in (int, float) and item == self._number:
                return True
        return False


_unpack = msgspec.msgpack.Decoder(ext_hook=lambda code, data: None).decode


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace").lower()


def _number(text: str) -> float | None:
    if not text.isascii() or not text.lstrip("-").replace(".", "", 1).isdigit():
        return None
    number = float(text) if "." in text else int(text[:20])
    return number if abs(number) >= SMALLEST or number != int(number) else None


def _spellings(number: float) -> tuple[bytes, ...]:
    """Return how a number may stand in MessagePack: as a double, and if it is whole as that."""
    spellings = [msgspec.msgpack.encode(float(number))]
    if number == int(number) and -(2**63) <= number < 2**64:
        spellings.append(msgspec.msgpack.encode(int(number)))
    return tuple(spellings)
