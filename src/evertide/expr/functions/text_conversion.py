"""Casts from and to text by way of every type's text form, and casts between arrays."""

from collections.abc import Callable
from typing import Final

from evertide.expr.functions.build import Body, looked_up, partial, total
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import (
    BPCHAR,
    EVERY_TYPE,
    INTEGERS,
    REGCLASS,
    REGPROC,
    STRINGS,
    UINT8,
    VARCHAR,
)
from evertide.expr.text_input import parser
from evertide.expr.text_output import formatter
from evertide.expr.type_modifier import fit_name
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import BOOL, NAME, TEXT, SqlType

_TARGETS: Final = (TEXT, VARCHAR, BPCHAR)
_NATIVE_TEXT: Final = frozenset(t for t in (*INTEGERS, BOOL) if t != UINT8)


def cast_name(target: SqlType) -> str:
    """The name of rows that cast to this type."""
    return str(target) if target.element is not None else target.kind.value


def _bool_text(value: bool) -> str:
    """A cast spells the word out, the type's output function does not."""
    return "true" if value else "false"


def _to_text_rows(source: SqlType) -> list[ScalarFunction]:
    write = formatter(source)
    body: Body = _bool_text if source == BOOL else write
    spark = "cast({0} as string)" if source in _NATIVE_TEXT else None
    if source in (REGCLASS, REGPROC):  # whose text is the object's name
        return [looked_up(cast_name(t), (source,), t, write) for t in (*_TARGETS, NAME)]
    return [
        *(total(cast_name(t), (source,), t, body, spark) for t in _TARGETS),
        total("name", (source,), NAME, lambda value: fit_name(write(value))),
    ]


def _from_text_rows(target: SqlType) -> list[ScalarFunction]:
    sources = (TEXT, VARCHAR, BPCHAR, NAME)
    return [partial(cast_name(target), (s,), target, parser(target)) for s in sources]


def text_rows(sql_type: SqlType) -> list[ScalarFunction]:
    """Casts of a type to text and back; rows are only written."""
    held = sql_type
    while held.element is not None:
        held = held.element
    readable = [] if held.fields is not None else _from_text_rows(sql_type)
    return [*_to_text_rows(sql_type), *readable]


def elementwise(
    name: str, cast: ScalarFunction, source: SqlType, target: SqlType
) -> ScalarFunction:
    """A cast of arrays made from the cast of their elements."""
    convert = cast.body

    def body(elements: tuple[Datum, ...]) -> Datum:
        return tuple(None if element is None else convert(element) for element in elements)

    return ScalarFunction(name, (source,), target, body, fallible=cast.fallible)


_OUTPUT_OF_BOOL: Final[Callable[[Datum], str]] = formatter(BOOL)

CASTS: Final = tuple(
    row for sql_type in EVERY_TYPE if sql_type not in STRINGS for row in text_rows(sql_type)
)
# What concat and its kin show: a type's output form, where that is not its cast to text.
ROWS: Final = (
    total("bpcharout", (BPCHAR,), TEXT, lambda text: text, "{0}"),
    total(
        "boolout",
        (BOOL,),
        TEXT,
        _OUTPUT_OF_BOOL,
        "CASE WHEN {0} THEN 't' WHEN NOT {0} THEN 'f' END",
    ),
)
