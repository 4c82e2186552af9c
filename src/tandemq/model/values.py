"""Values that only some peers can write, told apart so that each wire may treat them its way."""

from __future__ import annotations


class WideInteger(int):
    """An integer that travelled in 64 bits; a JavaScript peer cannot calculate with it."""
