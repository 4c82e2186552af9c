"""Payloads as JSON text."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tandemq.client.errors import Unencodable
from tandemq.wires.bunqueue.caller import Unwritable, check_zones

_UNZONED = re.compile(rb'"\d{4}-\d\d-\d\dT[\d:.]+"')  # as a moment without a zone is written


def encoded(payload: Any) -> bytes:
    """Return a payload as JSON; ``msgspec.Raw`` is JSON text already.

    Raises:
        Unencodable: JSON cannot carry it.
    """
    try:
        text = _encode(payload)
        if _UNZONED.search(text):
            check_zones(payload)
        return text
    except Unwritable as why:
        raise Unencodable(f"the payload cannot be sent: {why}") from None
    except RecursionError:
        raise Unencodable("the payload holds itself, or is nested far too deep") from None
    except (TypeError, ValueError, OverflowError) as why:
        raise Unencodable(f"JSON cannot carry the payload: {why}") from None


def _other(value: Any) -> Any:
    """Return what a value of somebody else's type is as JSON: that of a pydantic model."""
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"{type(value).__qualname__} is no type that it knows; make a dict of it")


_encode = msgspec.json.Encoder(enc_hook=_other).encode
