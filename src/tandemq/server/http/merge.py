"""A request's path, query and body as the fields of a command; what stands in the path wins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, unquote

from tandemq.commands.table import Command, HttpRoute
from tandemq.model.errors import Malformed
from tandemq.server.http import jsontext

if TYPE_CHECKING:
    from tandemq.server.http.face import Face

QUERY_FIELDS = 100
BODILESS = frozenset(("GET", "DELETE"))  # methods whose bodies mean nothing


def merged(
    face: Face, row: Command, route: HttpRoute, query: str, body: bytes, params: dict[str, str]
) -> dict[str, Any]:
    """Return the fields that a request makes, in the form that its command has them.

    ``params`` are the parts of the path that stand for fields, as they are meant.

    Raises:
        Malformed: some of it cannot be read.
    """
    fields = queried(query) if query else {}
    if route.method not in BODILESS and (body or route.body):
        value = jsontext.read(body)
        if not isinstance(value, dict):
            raise Malformed("The body must be a JSON object")
        fields |= value
    fields.update(params)
    before = face.before(row)
    return fields if before is None else before(fields)


def segment(raw: str) -> str:
    """Return a part of a path as it was meant.

    Raises:
        Malformed: it is no UTF-8.
    """
    if "%" not in raw:
        return raw
    try:
        return unquote(raw, errors="strict")
    except UnicodeDecodeError:
        raise Malformed("The path holds percent-encoded bytes that are no UTF-8") from None


def queried(query: str) -> dict[str, Any]:
    """Return the values of a query; of one that is given repeatedly, all with commas between.

    Raises:
        Malformed: it is no query.
    """
    try:
        pairs = parse_qsl(
            query, keep_blank_values=True, errors="strict", max_num_fields=QUERY_FIELDS
        )
    except ValueError:
        text = f"The query must be UTF-8 and have at most {QUERY_FIELDS} fields"
        raise Malformed(text) from None
    fields: dict[str, Any] = {}
    for name, text in pairs:
        fields[name] = f"{fields[name]},{text}" if name in fields else _value(text)
    return fields


def _value(text: str) -> int | str:
    """Return short whole numbers as such, everything else as text.

    A number that is not written in the usual way, 007, may well be the name of something.
    """
    digits = text.removeprefix("-")
    whole = len(digits) < 16 and digits.isascii() and digits.isdigit()
    return int(text) if whole and str(int(text)) == text else text
