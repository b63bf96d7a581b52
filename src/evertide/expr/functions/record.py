"""Functions of rows as values.

There are as many types of rows as there are lists of fields, so these are made when a query needs
them instead of standing in the table. Only the interpreter runs them: see `locality`.
"""

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Final, TypeAlias

from evertide.expr.functions.row import ScalarFunction
from evertide.expr.text_output import formatter
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import BYTEA, TEXT, Kind, SqlType, record_of

Fields: TypeAlias = tuple[tuple[str, SqlType], ...]

_EXTREMES: Final = {"greatest": max, "least": min}


def is_record(sql_type: SqlType) -> bool:
    """Whether values of the type are rows."""
    return sql_type.kind is Kind.RECORD


def fields_of(sql_type: SqlType) -> Fields:
    """The names and types of a row's fields."""
    assert sql_type.fields is not None, "a row's type lists its fields"
    return sql_type.fields


def unnamed(types: Sequence[SqlType]) -> SqlType:
    """The type of a row that a query writes out: its fields are called f1, f2 and so on."""
    return record_of(*((f"f{i}", sql_type) for i, sql_type in enumerate(types, start=1)))


@lru_cache(maxsize=1024)
def row_maker(record: SqlType) -> ScalarFunction:
    """A row of its fields; it is never NULL itself."""
    types = tuple(sql_type for _, sql_type in fields_of(record))
    return ScalarFunction("row", types, record, _row, strict=False)


def _row(*fields: Datum) -> Row:
    return fields


@lru_cache(maxsize=1024)
def field_getter(record: SqlType, index: int) -> ScalarFunction:
    """One field of a row."""
    name, sql_type = fields_of(record)[index]
    return ScalarFunction(f"field {name}", (record,), sql_type, itemgetter(index))


@lru_cache(maxsize=1024)
def row_key_of(record: SqlType) -> ScalarFunction:
    """Bytes that compare as rows do: field by field, NULL equal to NULL and greatest."""
    return ScalarFunction("row_key", (record,), BYTEA, key_encoder(record))


@lru_cache(maxsize=1024)
def text_of_row(record: SqlType) -> ScalarFunction:
    """The output form of a row, unless that is too long."""
    return ScalarFunction("text", (record,), TEXT, formatter(record), fallible=True)


@lru_cache(maxsize=1024)
def extreme_row(name: str, record: SqlType) -> ScalarFunction:
    """The greatest or least of some rows; NULLs do not count."""
    choose, key = _EXTREMES[name], key_encoder(record)

    def body(*rows: Datum) -> Datum:
        given = [row for row in rows if row is not None]
        return choose(given, key=key) if given else None

    return ScalarFunction(name, (record,), record, body, strict=False, variadic=True)
