"""Functions of types that are made of others: lists of lists, maps, arrays of rows.

There is no end of such types, so their rows are made when a call or a stored plan names them. They
are made once, so that a row is the same object as long as the process lives.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from evertide.expr.dimensions import is_nested
from evertide.expr.functions import array, comparison, lists, maps
from evertide.expr.functions.array_dimensions import dimension_rows
from evertide.expr.functions.jsonb_conversion import to_jsonb_row
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.text_conversion import text_rows
from evertide.expr.type_names import TYPES_BY_NAME
from evertide.vocab.datum import Datum
from evertide.vocab.errors import NullValueNotAllowed
from evertide.vocab.sql_type import TEXT, UNKNOWN, Kind, SqlType, array_of, list_of, map_of

# Functions that the table has for no type at all.
MADE_ONLY = frozenset({"map_agg", "map_build", "map_length"})
# Functions that make a type that is not among their arguments'.
_MAKERS = frozenset({"array", "list", "map", "pack", "pack_pair"})
_MAP = "map[text=>"
_LIST = " list"
_ARRAY = "[]"


def is_made(sql_type: SqlType) -> bool:
    """Whether the type is made of others in a way that the table has no rows for."""
    element = sql_type.element
    if element is None:
        return False
    return sql_type.kind is Kind.MAP or element.element is not None or element.fields is not None


def made_rows(name: str, types: Sequence[SqlType]) -> tuple[ScalarFunction, ...]:
    """The rows called so for the types that are made of others among these and around them."""
    found: dict[str, ScalarFunction] = {}
    for sql_type in types:
        for container in _containers(name, sql_type):
            for row in rows_of(container).get(name, ()):
                found[row.signature] = row
    return tuple(found.values())


def made_row(signature: str) -> ScalarFunction | None:
    """The row with this signature, if it is one of these."""
    name, types = arguments_of(signature)
    if types is None:
        return None
    # A cast is called as what it makes.
    made = type_of_text(name)
    rows = made_rows(name, types if made is None else [*types, made])
    return next((row for row in rows if row.signature == signature), None)


def arguments_of(signature: str) -> tuple[str, tuple[SqlType, ...] | None]:
    """A signature's name and types; None: some of them are unknown."""
    name, _, inside = signature.removesuffix(")").partition("(")
    arguments = [type_of_text(text) for text in _split(inside.removesuffix("..."))]
    types = tuple(sql_type for sql_type in arguments if sql_type is not None)
    return name, types if len(types) == len(arguments) else None


def _containers(name: str, sql_type: SqlType) -> Iterator[SqlType]:
    """Itself; for what makes others, also what is made of it."""
    if is_made(sql_type):
        yield sql_type
    if sql_type == UNKNOWN or name not in _MAKERS:
        return
    around = [list_of(sql_type)]
    if sql_type.fields is not None or (name == "array" and sql_type.kind is Kind.ARRAY):
        around.append(array_of(sql_type))
    if name == "map" and sql_type.element is not None:
        around.append(map_of(sql_type.element))
    if name == "pack_pair":
        around.append(map_of(sql_type))
    yield from filter(is_made, around)


@cache
def rows_of(container: SqlType) -> dict[str, list[ScalarFunction]]:
    """All rows of a type that is made of others, by name."""
    found: dict[str, list[ScalarFunction]] = {}
    for row in _all_rows(container):
        found.setdefault(row.name, []).append(row)
    return found


def _all_rows(container: SqlType) -> Iterator[ScalarFunction]:
    element = container.element
    assert element is not None, "it is made of others"
    match container.kind:
        case Kind.LIST:
            yield from lists.list_rows(element)
            yield from array.held_rows(container)
            yield from maps.pair_rows(element)
        case Kind.ARRAY:
            nested = element.kind is Kind.ARRAY
            yield from dimension_rows(container) if nested else array.array_rows(element)
        case _:
            yield from maps.map_rows(element)
            yield ScalarFunction(
                "pack_pair", (TEXT, element), container, _pack_pair, strict=False, fallible=True
            )
    if container.kind is not Kind.MAP and not is_nested(container):
        yield ScalarFunction("pack", (element,), array_of(element), _pack, strict=False)
    yield from comparison.rows_for(container)
    yield from text_rows(container)
    yield to_jsonb_row(container)


def _pack(datum: Datum) -> Datum:
    return (datum,)


def _pack_pair(key: str | None, value: Datum) -> Datum:
    if key is None:
        raise NullValueNotAllowed("map keys cannot be null")
    return ((key, value),)


def _split(text: str) -> list[str]:
    """Parts between commas that no parentheses are around."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:position])
            start = position + 1
    return [*parts, text[start:]]


def type_of_text(text: str) -> SqlType | None:
    """The type that is written so, if it is not made of rows.

    >>> str(type_of_text("map[text=>integer list]"))
    'map[text=>integer list]'
    """
    if text.endswith(_LIST):
        element = type_of_text(text.removesuffix(_LIST))
        return None if element is None else list_of(element)
    if text.endswith(_ARRAY):
        element = type_of_text(text.removesuffix(_ARRAY))
        return None if element is None else array_of(element)
    if text.startswith(_MAP) and text.endswith("]"):
        value = type_of_text(text[len(_MAP) : -1])
        return None if value is None else map_of(value)
    return TYPES_BY_NAME.get(text)
