"""The fields of a request as JSON schema."""

from __future__ import annotations

from typing import Any, Final

from msgspec import inspect
from msgspec.inspect import (
    BoolType,
    DictType,
    FloatType,
    IntType,
    ListType,
    LiteralType,
    NoneType,
    StrType,
    StructType,
    UnionType,
    VarTupleType,
)

Schema = dict[str, Any]

OURS: Final = frozenset(("reqId", "cmd"))
# What JavaScript, and so every client of the reference, counts without a loss.
MOST_EXACT: Final = 2**53


def fields_of(request: type[Any]) -> dict[str, tuple[Schema, bool]]:
    """Return the schema of each field by its name, and whether it has to be there."""
    found = inspect.type_info(request)
    assert isinstance(found, StructType), "requests are structs"
    fields = (field for field in found.fields if field.encode_name not in OURS)
    return {field.encode_name: (_schema(field.type), field.required) for field in fields}


def _schema(kind: inspect.Type) -> Schema:
    """Return what may stand for a type; {} is anything."""
    if isinstance(kind, inspect.Metadata):
        return _schema(kind.type)
    if isinstance(kind, UnionType):
        return _either([_schema(one) for one in kind.types if not _is_absent(one)])
    if isinstance(kind, StructType):
        return _object(kind)
    if isinstance(kind, (ListType, VarTupleType)):
        return _bounded({"type": "array", "items": _schema(kind.item_type)}, kind)
    if isinstance(kind, LiteralType):
        return {"enum": list(kind.values)}
    for known, name in _NAMES:
        if isinstance(kind, known):
            return _bounded({"type": name}, kind)
    return {}


_NAMES = (
    (StrType, "string"),
    (BoolType, "boolean"),
    (IntType, "integer"),
    (FloatType, "number"),
    (NoneType, "null"),
    (DictType, "object"),
)
_BOUNDS = {
    "ge": "minimum",
    "le": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
}


def _bounded(schema: Schema, kind: Any) -> Schema:
    found = {name: getattr(kind, name, None) for name in _BOUNDS}
    words = {_BOUNDS[name]: value for name, value in found.items() if value is not None}
    if schema["type"] == "array":
        words = {word.replace("Length", "Items"): value for word, value in words.items()}
    return {**schema, **words}


def _is_absent(kind: inspect.Type) -> bool:
    return type(kind).__name__ == "UnsetType"


def _either(schemas: list[Schema]) -> Schema:
    if {} in schemas:
        return {}
    return schemas[0] if len(schemas) == 1 else {"anyOf": schemas}


def _object(kind: StructType) -> Schema:
    fields = [field for field in kind.fields if field.encode_name not in OURS]
    schema: Schema = {
        "type": "object",
        "properties": {field.encode_name: _schema(field.type) for field in fields},
    }
    if required := [field.encode_name for field in fields if field.required]:
        schema["required"] = required
    return schema
