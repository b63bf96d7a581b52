"""Equality, order and identity of physical columns, as Spark SQL expressions.

Spark's own equality is SQL's for most types. For floats too, where it joins or groups (NaN = NaN,
-0 = 0); but it then shows what it normalised, so identity needs a word more.
"""

from collections.abc import Sequence

from evertide.expr.relation import OrderKey, Types
from evertide.spark.render.text import TextBuilder
from evertide.spark.udf.register import KeyFunction
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

_FLOATS = frozenset({Kind.FLOAT4, Kind.FLOAT8})
_SEQUENCES = frozenset({Kind.ARRAY, Kind.LIST, Kind.MAP})
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.CHAR})
_INTEGERS = frozenset(
    {
        Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.OID,
        Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE, Kind.MZ_TIMESTAMP, Kind.DATE, Kind.TIME,
        Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
    }
)  # fmt: skip
_DAY_MICROS = 86_400_000_000


def equality(sql_type: SqlType, column: str, depth: int = 0) -> str:
    """An expression whose = and GROUP BY are SQL's for columns of this type."""
    match sql_type.kind:
        case Kind.INTERVAL:
            days = f"CAST({column}.months AS decimal(38,0)) * 30 + {column}.days"
            return f"(({days}) * {_DAY_MICROS} + {column}.micros)"
        case Kind.BPCHAR:
            return f"rtrim({column})"
        case Kind.ARRAY | Kind.LIST:
            element = sql_type.element
            assert element is not None, "an array or list has an element type"
            inner = equality(element, f"x{depth}", depth + 1)
            return column if inner == f"x{depth}" else f"transform({column}, x{depth} -> {inner})"
        case Kind.MAP:
            value = sql_type.element
            assert value is not None, "a map has a value type"
            inner = equality(value, f"x{depth}.value", depth + 1)
            if inner == f"x{depth}.value":
                return column
            return f"transform({column}, x{depth} -> struct(x{depth}.key, {inner} AS value))"
        case _:
            return column


def identity(sql_type: SqlType, column: str) -> list[str]:
    """Expressions that group values only if they are the same representation."""
    if sql_type.kind in _FLOATS:
        return [column, f"IF({column} = 0, CAST({column} AS string), NULL)"]
    if sql_type.kind in _SEQUENCES and _has_floats(sql_type):
        return [f"CAST({column} AS string)"]
    return [column]


def identities(types: Types, columns: Sequence[str]) -> list[str]:
    """What a collection's rows are added up by."""
    return [part for t, c in zip(types, columns, strict=True) for part in identity(t, c)]


def regained(sql_type: SqlType, column: str) -> str:
    """The column after grouping by its identity: what Spark normalised is put back."""
    return f"any_value({column}) AS {column}" if _has_floats(sql_type) else column


def encoded(builder: TextBuilder, types: Sequence[SqlType], columns: Sequence[str]) -> str:
    """The row key of these columns (persist/coding/keys.py), byte for byte."""
    parts = [_encoded_key(builder, t, c) for t, c in zip(types, columns, strict=True)]
    return f"concat({', '.join(parts)})" if parts else "X''"


def _encoded_key(builder: TextBuilder, sql_type: SqlType, column: str) -> str:
    match sql_type.kind:
        case Kind.BOOL:
            value = f"IF({column}, X'01', X'00')"
        case kind if kind in _INTEGERS:
            # Turning the sign bit over puts negative numbers first.
            turned = f"CAST({column} AS bigint) ^ (-9223372036854775807L - 1L)"
            value = f"unhex(lpad(hex({turned}), 16, '0'))"
        case Kind.NUMERIC | Kind.UUID:
            value = column
        case kind if kind in _TEXTS:
            value = f"concat(CAST({equality(sql_type, column)} AS binary), X'00')"
        case _:
            null = "X'02'"
            return f"coalesce({builder.call(KeyFunction(sql_type), [column])}, {null})"
    return f"coalesce(concat(X'01', IF({column} IS NULL, NULL, {value})), X'02')"


def order_by(builder: TextBuilder, types: Types, order: Sequence[OrderKey]) -> list[str]:
    """ORDER BY items that put rows into the one order that every executor agrees on.

    After the keys asked for comes the whole row by SQL's order, NULLs last, then the representation
    of what SQL finds equal.
    """
    asked = [_order_item(builder, types[key.column], key) for key in order]
    whole = [
        f"{_ordered(builder, sql_type, f'c{i}')} ASC NULLS LAST" for i, sql_type in enumerate(types)
    ]
    looks = [part for i, t in enumerate(types) for part in _representation(builder, t, f"c{i}")]
    return asked + whole + looks


def _order_item(builder: TextBuilder, sql_type: SqlType, key: OrderKey) -> str:
    direction = "DESC" if key.descending else "ASC"
    nulls = "FIRST" if key.nulls_first else "LAST"
    return f"{_ordered(builder, sql_type, f'c{key.column}')} {direction} NULLS {nulls}"


def _ordered(builder: TextBuilder, sql_type: SqlType, column: str) -> str:
    """An expression that Spark sorts as SQL sorts the column."""
    if sql_type.kind is Kind.JSONB or sql_type.kind in _SEQUENCES or sql_type.kind in RANGE_BASES:
        return builder.call(KeyFunction(sql_type), [column])
    return equality(sql_type, column)


def _representation(builder: TextBuilder, sql_type: SqlType, column: str) -> list[str]:
    """Orders values that SQL finds equal, as expr.row_key.representation does."""
    if sql_type.kind in _FLOATS:
        return [f"IF({column} = 0, CAST({column} AS string), NULL) DESC"]
    if sql_type.kind in (Kind.INTERVAL, Kind.BPCHAR):
        return [f"{column} ASC"]
    if sql_type.kind in _SEQUENCES:
        return [f"{builder.call(KeyFunction(sql_type, by_representation=True), [column])} ASC"]
    return []


def _has_floats(sql_type: SqlType) -> bool:
    if sql_type.kind in _SEQUENCES:
        return sql_type.element is not None and _has_floats(sql_type.element)
    return sql_type.kind in _FLOATS
