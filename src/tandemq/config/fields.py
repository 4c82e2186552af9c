"""What a single setting may be: its unit, its bounds, and how it is read from text."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from tandemq.amounts import SPANS, amount, size, span_ms

UNITS = {"": "", "ms": "milliseconds", "s": "seconds", "bytes": "bytes"}

_TRUTHS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


class BadSetting(ValueError):
    """A setting cannot be used; the text names it and says what is allowed.

    ``names`` are the settings involved, for a reader that knows where each one came from.
    """

    def __init__(self, text: str, *names: str) -> None:
        super().__init__(text)
        self.names = names


def about(
    doc: str,
    *,
    unit: str = "",
    low: float | None = None,
    high: float | None = None,
    secret: bool = False,
) -> Meta:
    """Describe a setting: one line of documentation, its unit and its bounds (inclusive).

    A single secret has no flag, since everybody on the machine can read command lines.
    """
    return Meta(description=doc, ge=low, le=high, extra={"unit": unit, "secret": secret})


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One setting, as the command line, ``tandemq config`` and the documentation see it."""

    name: str
    hint: Any  # type with bounds, as msgspec checks it
    kind: Any  # the same without bounds and without None
    default: Any
    doc: str
    unit: str
    bounds: tuple[float, float] | None
    secret: bool

    @property
    def env(self) -> str:
        """The environment variable that sets it."""
        return f"TANDEMQ_{self.name}".upper()

    @property
    def flag(self) -> str:
        """The command-line option that sets it; a list is given by repeating its singular.

        There is none where ``flagless``.
        """
        name = self.name.removesuffix("s") if self.many else self.name
        return "--" + name.replace("_", "-")

    @property
    def flagless(self) -> bool:
        return self.secret and not self.many

    @property
    def many(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def switch(self) -> bool:
        return self.kind is bool

    @property
    def choices(self) -> tuple[str, ...]:
        return get_args(self.kind) if get_origin(self.kind) is Literal else ()

    def parse(self, raw: object) -> Any:
        """Turn text, or a value from a file, into a value of this setting.

        Raises:
            ValueError: it cannot be one; ``allowed`` says what can.
        """
        return self.check(self._from_text(raw.strip()) if isinstance(raw, str) else raw)

    def check(self, value: object) -> Any:
        """Return ``value`` if its type and size are allowed.

        Raises:
            ValueError: they are not.
        """
        if value == "" or (isinstance(value, float) and not isfinite(value)):
            raise ValueError("says nothing")
        return msgspec.convert(value, self.hint)

    def allowed(self) -> str:
        """What may be given, as the end of the sentence 'it must be ...'."""
        if self.switch:
            return "true or false"
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.many:
            return "a list of texts"
        if self.bounds is None:
            return "a text that is not empty"
        span = f"from {self.bounds[0]:,} to {self.bounds[1]:,}"
        if self.unit in ("ms", "s"):
            return f"{span} {UNITS[self.unit]}, as a number or like 500ms, 30s, 5m, 2h"
        if self.unit == "bytes":
            return f"{span} bytes, as a number or like 64KiB, 64MiB, 1GiB"
        return f"a whole number {span}"

    def shown(self, value: object) -> str:
        """The value as text for people; secrets are counted, never shown."""
        if self.secret and value:
            return f"({len(value)} hidden)" if isinstance(value, tuple) else "(hidden)"
        if value is None or value == ():
            return "(none)"
        if isinstance(value, bool):
            return "true" if value else "false"
        return f"{value:g}" if isinstance(value, float) else str(value)

    def _from_text(self, text: str) -> object:
        if self.choices:
            return next((c for c in self.choices if c.lower() == text.lower()), text)
        if self.many:
            return tuple(part for part in map(str.strip, text.split(",")) if part) or ""
        if self.switch:
            return _TRUTHS.get(text.lower(), text)
        if self.bounds is None:
            return text
        found = self._amount(text)
        if self.kind is float:
            return float(found)
        if found.denominator != 1:
            raise ValueError("not whole")
        return int(found)

    def _amount(self, text: str) -> Fraction:
        """Return a number, or an amount in the unit of this setting."""
        if self.unit in SPANS:
            ms = span_ms(text, self.unit)
            found = None if ms is None else ms / SPANS[self.unit]
        else:
            found = size(text) if self.unit == "bytes" else amount(text, {"": 1})
        if found is None:
            raise ValueError("not a number, or of an unknown unit")
        return found


def fields_of(settings: type[msgspec.Struct]) -> dict[str, Field]:
    """Read the fields of a settings class from its annotations."""
    hints = get_type_hints(settings, include_extras=True)
    return {
        f.name: _field(f.name, hints[f.name], f.default) for f in msgspec.structs.fields(settings)
    }


def _field(name: str, hint: Any, default: object) -> Field:
    assert get_origin(hint) is Annotated, f"setting {name} is not described"
    kind, meta = get_args(hint)
    return Field(
        name=name,
        hint=hint,
        kind=_without_none(kind),
        default=default,
        doc=meta.description,
        unit=meta.extra["unit"],
        bounds=None if meta.ge is None else (meta.ge, meta.le),
        secret=meta.extra["secret"],
    )


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        (kind,) = (part for part in get_args(kind) if part is not NoneType)
    return kind
