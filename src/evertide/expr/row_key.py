"""Rows compared as SQL compares them: keys to group and join by, order, identity.

Three notions are told apart. *SQL equality* finds 0.0 = -0.0, NaN = NaN and 1 month = 30 days; it
groups, joins and removes duplicates. *SQL order* is that of ORDER BY. *Identity* is sameness of
representation; it is what a collection adds diffs up by. Of rows that are equal but not identical
the one with the least `representation` is shown.

Most types need none of this: for integers, text and their like Python's own equality is all three.
Every function here looks at the types once and returns a closure that does no more than it must.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from math import copysign
from operator import itemgetter
from typing import Final, TypeAlias, TypeVar, cast

from evertide.expr.relation import OrderKey, Types
from evertide.persist.coding.keys import key_encoder, row_key_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType

RowKey: TypeAlias = Callable[[Row], Hashable]
# What it returns is comparable between rows that are equal in SQL; its parts' types vary.
Representation: TypeAlias = Callable[[Row], "tuple[int, ...]"]
T = TypeVar("T")

# Python finds their values equal where SQL does: of all those, the ones that keys mostly are.
PLAIN_KINDS: Final = frozenset(
    {
        Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.DATE, Kind.TIMESTAMP,
        Kind.TIMESTAMPTZ, Kind.TEXT, Kind.VARCHAR, Kind.UUID,
    }
)  # fmt: skip
# Kinds whose SQL equality is not Python's, or whose NaN Python finds different from itself.
_PECULIAR: Final = frozenset(
    {
        Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.INTERVAL, Kind.BPCHAR, Kind.ARRAY, Kind.LIST,
        Kind.MAP, Kind.RECORD, Kind.NUMRANGE,
    }
)  # fmt: skip
_AMBIGUOUS: Final = frozenset({Kind.FLOAT4, Kind.FLOAT8, Kind.INTERVAL, Kind.BPCHAR})
_NULL_FIRST, _NULL_LAST = b"\x00", b"\xff"
_INVERTED: Final = bytes(255 - byte for byte in range(256))
_NAN: Final = "NaN"


def is_ambiguous(sql_type: SqlType) -> bool:
    """Whether values of the type can be equal in SQL and still look different."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST, Kind.MAP):
        assert sql_type.element is not None, "an array or list has an element type"
        return is_ambiguous(sql_type.element)
    if sql_type.fields is not None:
        return any(is_ambiguous(field) for _, field in sql_type.fields)
    return sql_type.kind in _AMBIGUOUS


def same_key(left: SqlType, right: SqlType) -> bool:
    """Whether datums of both types have one key if they are equal, so that they may be joined."""
    return key_encoder(left) is key_encoder(right)


@lru_cache(maxsize=4096)
def group_key(types: Types, columns: tuple[int, ...]) -> RowKey:
    """A hashable stand-in for these columns of a row: equal where SQL's grouping finds them equal.

    It lives no longer than the process: the types decide whether it is datums or bytes.
    """
    peculiar = [types[column].kind in _PECULIAR for column in columns]
    if not any(peculiar):
        return cast(RowKey, itemgetter(*columns)) if columns else lambda _row: ()
    encoders = tuple(
        (column, key_encoder(types[column]) if odd else None)
        for column, odd in zip(columns, peculiar, strict=True)
    )
    if len(encoders) == 1:
        only, encode_only = columns[0], key_encoder(types[columns[0]])
        return lambda row: encode_only(row[only])
    return lambda row: tuple(
        [row[column] if encode is None else encode(row[column]) for column, encode in encoders]
    )


@lru_cache(maxsize=4096)
def join_key(types: Types, columns: tuple[int, ...]) -> RowKey:
    """group_key, but None where one of the columns is NULL: such a row joins with nothing."""
    key = group_key(types, columns)
    if len(columns) == 1:
        only = columns[0]
        if types[only].kind not in _PECULIAR:
            return key
        return lambda row: None if row[only] is None else key(row)
    return lambda row: None if None in [row[column] for column in columns] else key(row)


@lru_cache(maxsize=4096)
def column_encoder(types: Types, columns: tuple[int, ...]) -> Callable[[Row], bytes]:
    """encode_row_key of these columns: what arrangements are keyed and hashed by."""
    encoders = tuple((column, key_encoder(types[column])) for column in columns)
    if len(encoders) == 1:
        ((only, encode_only),) = encoders
        return lambda row: encode_only(row[only])
    return lambda row: b"".join([encode(row[column]) for column, encode in encoders])


@lru_cache(maxsize=4096)
def identity_function(types: Types) -> RowKey | None:
    """A stand-in under which rows are equal only if they are the same; None: the row itself.

    Only NaN (which Python finds different from itself) and zero (whose sign it does not see) need
    one, so rows without them stand for themselves.
    """
    odd = tuple(i for i, sql_type in enumerate(types) if _needs_identity(sql_type))
    if not odd:
        return None

    def identity(row: Row) -> Hashable:
        for i in odd:
            datum = row[i]
            # True for NaN, zero and empty arrays: the careful way; arrays always take it.
            if datum is not None and (datum != datum or not datum or type(datum) is tuple):
                return _careful_identity(row, odd)
        return row

    return identity


def _needs_identity(sql_type: SqlType) -> bool:
    if sql_type.kind in (Kind.ARRAY, Kind.LIST, Kind.MAP):
        assert sql_type.element is not None, "an array or list has an element type"
        return _needs_identity(sql_type.element)
    if sql_type.fields is not None:
        return any(_needs_identity(field) for _, field in sql_type.fields)
    return sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.NUMRANGE)


def _careful_identity(row: Row, odd: tuple[int, ...]) -> Hashable:
    return tuple(_datum_identity(datum) if i in odd else datum for i, datum in enumerate(row))


def _datum_identity(datum: Datum) -> Hashable:
    if isinstance(datum, tuple):
        return tuple(_datum_identity(part) for part in datum)
    if datum != datum:
        return _NAN
    if isinstance(datum, float) and datum == 0:
        return (copysign(1.0, datum),)
    return datum


@lru_cache(maxsize=4096)
def representation(types: Types) -> Representation | None:
    """An order among rows that are equal in SQL; None: such rows are identical.

    0.0 comes before -0.0, intervals by months, days and microseconds, padded text by its padding.
    """
    odd = tuple(i for i, sql_type in enumerate(types) if is_ambiguous(sql_type))
    if not odd:
        return None
    return lambda row: tuple([_datum_representation(row[i]) for i in odd])


def _datum_representation(datum: Datum) -> int:
    """Comparable only between equal datums, which are of one type and NULL in the same places."""
    if datum is None:
        return 0
    if isinstance(datum, float):
        return datum == 0 and copysign(1.0, datum) < 0
    if type(datum) is tuple:
        return cast(int, tuple(_datum_representation(part) for part in datum))
    return cast(int, datum)


def least(types: Types, rows: Iterable[Row]) -> Row:
    """The one of these rows, all equal in SQL, that is shown."""
    order = representation(types)
    candidates = iter(rows)
    first = next(candidates)
    if order is None:
        return first
    return min([first, *candidates], key=order)


@lru_cache(maxsize=4096)
def order_key(types: Types, order: tuple[OrderKey, ...]) -> Callable[[Row], bytes]:
    """Bytes that sort rows by ORDER BY columns; ties are left as they are.

    Keys are self-delimiting, so turning all bits over turns the order round.
    """
    parts = tuple(_part_key(types[key.column], key) for key in order)
    if len(parts) == 1:
        return parts[0]
    return lambda row: b"".join([part(row) for part in parts])


def _part_key(sql_type: SqlType, key: OrderKey) -> Callable[[Row], bytes]:
    column, encode = key.column, key_encoder(sql_type)
    null = _NULL_FIRST if key.nulls_first else _NULL_LAST

    def ascending(row: Row) -> bytes:
        datum = row[column]
        return null if datum is None else encode(datum)

    def descending(row: Row) -> bytes:
        datum = row[column]
        return null if datum is None else encode(datum).translate(_INVERTED)

    return descending if key.descending else ascending


def in_order(
    items: Iterable[T], row_of: Callable[[T], Row], types: Types, order: tuple[OrderKey, ...]
) -> list[T]:
    """Sort by ORDER BY columns, then by the whole encoded row, then by representation.

    The whole row is encoded only where there is a tie: it is far dearer than the order columns.
    """
    key = order_key(types, order)
    keyed = sorted([(key(row_of(item)), item) for item in items], key=itemgetter(0))
    ordered: list[T] = []
    for _, ties in groupby(keyed, key=itemgetter(0)):
        group = [item for _, item in ties]
        if len(group) > 1:
            tie_break = whole_row_key(types)
            group.sort(key=lambda item: tie_break(row_of(item)))
        ordered += group
    return ordered


@lru_cache(maxsize=4096)
def whole_row_key(types: Types) -> Callable[[Row], tuple[bytes, tuple[int, ...]]]:
    """The order of last resort: total, so that no executor can choose differently."""
    encode = row_key_encoder(types)
    order = representation(types)
    if order is None:
        return lambda row: (encode(row), ())
    return lambda row: (encode(row), order(row))


def is_naturally_ordered(sql_type: SqlType) -> bool:
    """Whether Python orders datums of this type as SQL does."""
    return sql_type.kind not in _PECULIAR and sql_type.kind is not Kind.JSONB


def in_value_order(sql_type: SqlType, values: Sequence[Datum]) -> list[Datum]:
    """Non-NULL datums by SQL order, then by representation."""
    if is_naturally_ordered(sql_type):
        return [*sorted(cast("Sequence[int]", values))]
    encode = key_encoder(sql_type)
    if not is_ambiguous(sql_type):
        return sorted(values, key=encode)
    return sorted(values, key=lambda value: (encode(value), _datum_representation(value)))


def first_of_equals(sql_type: SqlType, values: Iterable[Datum]) -> list[Datum]:
    """One of each run of values that are equal in SQL, the first."""
    return [next(equal) for _, equal in groupby(values, key=key_encoder(sql_type))]


def picker(columns: tuple[int, ...]) -> Callable[[Row], Row]:
    """A function that picks these columns of a row."""
    match columns:
        case ():
            return lambda _row: ()
        case (only,):
            return lambda row: (row[only],)
        case _:
            return cast("Callable[[Row], Row]", itemgetter(*columns))
