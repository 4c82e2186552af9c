"""Spans and sizes as people write them: ``500ms``, ``30s``, ``P1D``; ``64MiB``, ``1GB``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

SPANS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}  # in ms
SIZES: Final = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9}  # in bytes
SIZES.update({"kib": 2**10, "mib": 2**20, "gib": 2**30})

_AMOUNT = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?) *([A-Za-z]*)")
_ISO = re.compile(
    r"P(?=.)(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?"
    r"(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]{1,9})?)S)?)?"
)
_PARTS = (7 * SPANS["d"], SPANS["d"], SPANS["h"], SPANS["m"], SPANS["s"])


def span_ms(text: str, bare: str) -> Fraction | None:
    """Return a span in ms, None for what is none; a number alone is in the unit ``bare``."""
    iso = _ISO.fullmatch(text.strip())
    if iso is not None:
        parts = zip(iso.groups("0"), _PARTS, strict=True)
        return sum((Fraction(said) * unit for said, unit in parts), Fraction())
    return amount(text, {**SPANS, "": SPANS[bare]})


def size(text: str) -> Fraction | None:
    """Return a number of bytes, None for what is none."""
    return amount(text.lower(), {**SIZES, "": 1})


def amount(text: str, units: Mapping[str, int]) -> Fraction | None:
    """Return a number times its unit, exactly; None for what is none, or of another unit."""
    found = _AMOUNT.fullmatch(text.strip())
    return None if found is None or found[2] not in units else Fraction(found[1]) * units[found[2]]
