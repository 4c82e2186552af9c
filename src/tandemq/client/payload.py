"""Arguments of a task as the data of a job, and back: one map, a parameter for each name.

What a job carries is read by the annotations of the task, so dataclasses, msgspec structs and
pydantic models arrive as what they were; data that does not fit is refused before the task runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import NODEFAULT

from tandemq.client.depends import Needs, hints_of, signature_of
from tandemq.client.errors import TandemqError

WIDE, EXACT = 2.0**31 - 1, 2.0**53
_ODD = (
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.POSITIONAL_ONLY,
)


class Misfit(TandemqError, ValueError):
    """A job's data is not what the task takes; it becomes a dead letter at once."""


class Payload:
    """The parameters of a task that travel."""

    def __init__(self, function: Callable[..., Any], needs: Needs) -> None:
        """Read a signature.

        Raises:
            TypeError: it has parameters that cannot travel by name, or of types without a shape.
        """
        self.signature = signature_of(function)
        self._name = getattr(function, "__qualname__", repr(function))
        self._needed = needs.names
        hints = hints_of(function)
        fields = [
            _field(self._name, each, hints)
            for each in self.signature.parameters.values()
            if each.name not in self._needed
        ]
        self.names = tuple(name for name, *_ in fields)
        parameters = self.signature.parameters
        self.defaults = {
            name: parameters[name].default
            for name in self.names
            if parameters[name].default is not inspect.Parameter.empty
        }
        self._shape = msgspec.defstruct(
            "Arguments", fields, forbid_unknown_fields=True, kw_only=True
        )
        try:
            msgspec.msgpack.Decoder(self._shape)
        except TypeError as why:
            raise TypeError(f"{self._name} takes what no job can carry: {why}") from None

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the data of a job for arguments as the function would take them.

        Raises:
            TypeError: they do not fit the signature.
        """
        try:
            bound = self.signature.bind_partial(*args, **kwargs).arguments
        except TypeError as why:
            raise TypeError(f"{self._name}: {why}") from None
        for name, each in self.signature.parameters.items():
            if name in self._needed:
                bound.pop(name, None)
            elif each.default is each.empty and name not in bound:
                raise TypeError(f"{self._name}: missing a required argument: {name!r}")
        return dict(bound)

    def read(self, data: Any) -> dict[str, Any]:
        """Return the arguments that a job carries.

        Raises:
            Misfit: they are not what the function takes.
        """
        given = {} if data is None else data
        try:
            found = msgspec.convert(given, self._shape, dec_hook=_model)
        except msgspec.ValidationError:
            found = self._read_again(given)
        return {name: getattr(found, name) for name in self.names}

    def _read_again(self, data: Any) -> Any:
        """Read what did not fit at once: wide whole numbers travel as floats."""
        try:
            return msgspec.convert(_narrowed(data), self._shape, dec_hook=_model)
        except msgspec.ValidationError as why:
            raise Misfit(f"the data of the job does not fit {self._name}: {why}") from None


def _field(task: str, each: inspect.Parameter, hints: Mapping[str, Any]) -> tuple[str, Any, Any]:
    if each.kind in _ODD:
        raise TypeError(
            f"{task} has the parameter {each}: a job carries its arguments by name, so give each"
            " of them a name of its own"
        )
    default = (
        NODEFAULT
        if each.default is each.empty
        else msgspec.field(default_factory=lambda: each.default)
    )
    return each.name, hints.get(each.name, Any), default


def _narrowed(value: Any) -> Any:
    """Turn floats that were whole numbers beyond 32 bits into those again."""
    if isinstance(value, dict):
        return {key: _narrowed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_narrowed(item) for item in value]
    wide = isinstance(value, float) and WIDE < abs(value) <= EXACT and value.is_integer()
    return int(value) if wide else value


def _model(kind: type[Any], value: Any) -> Any:
    """Make a model of what msgspec does not know itself (pydantic's, for one)."""
    validate = getattr(kind, "model_validate", None)
    if validate is None:
        raise NotImplementedError(f"{kind.__name__} has no shape: use a dataclass or a model")
    return validate(value)
