"""Functions that give rows of jsonb: the elements of arrays, the members of objects."""

from collections.abc import Callable, Iterator
from typing import Final

from evertide.expr.functions.row import TableFunction
from evertide.expr.json_value import Json, dump_json, read_canonical
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import InvalidParameterValue
from evertide.vocab.sql_type import JSONB, TEXT, SqlType


def _text(value: Json) -> str | None:
    """A string without its quotes; null is NULL."""
    if value is None or isinstance(value, str):
        return value
    return dump_json(value)


_AS: Final[dict[SqlType, Callable[[Json], Datum]]] = {JSONB: dump_json, TEXT: _text}


def _elements(shown: Callable[[Json], Datum]) -> Callable[[str], Iterator[Row]]:
    def elements(given: str) -> Iterator[Row]:
        value = read_canonical(given)
        if not isinstance(value, list):
            kind = "an object" if isinstance(value, dict) else "a scalar"
            raise InvalidParameterValue(f"cannot extract elements from {kind}")
        return ((shown(element),) for element in value)

    return elements


def _members(name: str, shown: Callable[[Json], Datum]) -> Callable[[str], Iterator[Row]]:
    def members(given: str) -> Iterator[Row]:
        value = read_canonical(given)
        if not isinstance(value, dict):
            raise InvalidParameterValue(f"cannot call {name} on a non-object")
        return ((key, shown(member)) for key, member in value.items())

    return members


def _keys(given: str) -> Iterator[Row]:
    value = read_canonical(given)
    if not isinstance(value, dict):
        kind = "an array" if isinstance(value, list) else "a scalar"
        raise InvalidParameterValue(f"cannot call jsonb_object_keys on {kind}")
    return ((key,) for key in value)


def _rows() -> Iterator[TableFunction]:
    for sql_type, ending in ((JSONB, ""), (TEXT, "_text")):
        shown, value = _AS[sql_type], ("value", sql_type)
        name = f"jsonb_array_elements{ending}"
        yield TableFunction(name, (JSONB,), (value,), _elements(shown))
        name = f"jsonb_each{ending}"
        yield TableFunction(name, (JSONB,), (("key", TEXT), value), _members(name, shown))
    name = "jsonb_object_keys"
    yield TableFunction(name, (JSONB,), ((name, TEXT),), _keys)


JSONB_TABLE_ROWS: Final = tuple(_rows())
