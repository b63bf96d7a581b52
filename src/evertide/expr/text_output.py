"""Datums to text: what PostgreSQL calls a type's output function."""

import uuid
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, cast

from evertide.expr.array_text import array_text
from evertide.expr.datetime_text import (
    format_date,
    format_time,
    format_timestamp,
    format_timestamptz,
)
from evertide.expr.dimensions import is_nested
from evertide.expr.float_text import float4_text, float8_text
from evertide.expr.interval_text import format_interval
from evertide.expr.map_text import map_text
from evertide.expr.numeric_value import numeric_text
from evertide.expr.range_text import range_text
from evertide.expr.record_text import record_text
from evertide.expr.type_names import type_name
from evertide.vocab.datum import Datum
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

Formatter = Callable[[Datum], str]
_T = TypeVar("_T")


def format_text(sql_type: SqlType, datum: Datum) -> str:
    """The text of a value that is not NULL."""
    return formatter(sql_type)(datum)


@lru_cache(maxsize=512)
def formatter(sql_type: SqlType) -> Formatter:
    """The function that writes values of a type; it is never given NULL."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        return _nested_formatter(sql_type)
    if sql_type.kind is Kind.MAP:
        assert sql_type.element is not None, "a map has a value type"
        format_value, braced = formatter(sql_type.element), sql_type.element.is_braced
        return lambda datum: map_text(datum, format_value, braced=braced)
    if sql_type.kind in RANGE_BASES:
        return range_text(sql_type)
    if sql_type.fields is not None:
        formatters = [formatter(field) for _, field in sql_type.fields]
        return lambda datum: record_text(datum, formatters)
    found = _FORMATTERS.get(sql_type.kind)
    if found is None:
        raise FeatureNotSupported(f"output of a value of type {sql_type} is not supported")
    return found


def _nested_formatter(sql_type: SqlType) -> Formatter:
    element = sql_type.element
    assert element is not None, "an array has an element type"
    format_element, braced = formatter(element), element.is_braced or is_nested(sql_type)
    return lambda datum: array_text(datum, format_element, braced=braced)


def _typed(write: Callable[[_T], str]) -> Formatter:
    """A datum does not say its type, its column does: this is where the two are believed."""
    return cast(Formatter, write)


def _bool(datum: Datum) -> str:
    return "t" if datum else "f"


def _bytea(datum: bytes) -> str:
    return f"\\x{datum.hex()}"


def _uuid(datum: bytes) -> str:
    return str(uuid.UUID(bytes=datum))


def _regtype(datum: int) -> str:
    return type_name(datum) or _registered(datum)


def _registered(datum: int) -> str:
    """The number of an object; 0 stands for none."""
    return str(datum) if datum else "-"


_FORMATTERS: dict[Kind, Formatter] = {
    **dict.fromkeys((Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8), str),
    **dict.fromkeys((Kind.OID, Kind.MZ_TIMESTAMP), str),
    **dict.fromkeys((Kind.REGCLASS, Kind.REGPROC), _typed(_registered)),
    **dict.fromkeys((Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR), str),
    **dict.fromkeys((Kind.JSONB, Kind.UNKNOWN), str),
    Kind.BOOL: _bool,
    Kind.FLOAT4: _typed(float4_text),
    Kind.FLOAT8: _typed(float8_text),
    Kind.NUMERIC: _typed(numeric_text),
    Kind.BYTEA: _typed(_bytea),
    Kind.DATE: _typed(format_date),
    Kind.TIME: _typed(format_time),
    Kind.TIMESTAMP: _typed(format_timestamp),
    Kind.TIMESTAMPTZ: _typed(format_timestamptz),
    Kind.INTERVAL: _typed(format_interval),
    Kind.UUID: _typed(_uuid),
    Kind.REGTYPE: _typed(_regtype),
}
