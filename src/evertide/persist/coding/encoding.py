"""The physical encoding of every SQL type in Arrow, Parquet and Spark.

Stored bytes outlive the code that wrote them, so this table changes by an ADR only
(docs/adr/2026-11-15-physical-encoding.md), and tests hold golden bytes of every type.

Rules behind the table: a type whose Spark equivalent has the same range, order and equality is
stored as that. Everything else is stored so that it loses nothing: numeric as ordered bytes
(Spark's decimal ends at 38 digits and has a fixed scale), dates and times as integers (Spark has no
infinity and a shorter range), jsonb as its canonical text, uint8 as a signed integer offset by
2**63.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeAlias, cast

import pyarrow as pa

from evertide.persist.coding.keys import encode_key, encode_row_key, key_encoder, row_key_encoder
from evertide.persist.coding.numeric import decode_numeric, encode_numeric
from evertide.persist.coding.numeric_column import MANY_NUMERICS, decode_numerics
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

__all__ = [
    "arrow_type", "decode_column", "decode_numeric", "encode_column", "encode_key",
    "encode_numeric", "encode_row_key", "is_storable", "key_encoder", "one_chunk",
    "row_key_encoder", "spark_type_name", "type_name", "type_named", "update_schema",
]  # fmt: skip

ArrowColumn: TypeAlias = "pa.Array | pa.ChunkedArray"
Pairs: TypeAlias = "tuple[tuple[str, Datum], ...]"

_UINT8_OFFSET: Final = 2**63
_INTERVAL_FIELDS: Final = (
    pa.field("months", pa.int32()),
    pa.field("days", pa.int32()),
    pa.field("micros", pa.int64()),
)
# What lies under a NULL.
_NO_RANGE: Final = (None, None, False, False)
_INTERVAL: Final = pa.struct(_INTERVAL_FIELDS)
_LIST_FIELD: Final = "element"
_ARRAY_SUFFIX: Final = "[]"
_LIST_SUFFIX: Final = " list"
_MAP_PREFIX: Final = "map["

_ARROW_TYPES: Final[dict[Kind, pa.DataType]] = {
    Kind.BOOL: pa.bool_(),
    Kind.INT2: pa.int16(),
    Kind.INT4: pa.int32(),
    Kind.INT8: pa.int64(),
    Kind.UINT2: pa.int32(),
    Kind.UINT4: pa.int64(),
    Kind.UINT8: pa.int64(),
    Kind.OID: pa.int64(),
    Kind.REGCLASS: pa.int64(),
    Kind.REGPROC: pa.int64(),
    Kind.REGTYPE: pa.int64(),
    Kind.MZ_TIMESTAMP: pa.int64(),
    Kind.FLOAT4: pa.float32(),
    Kind.FLOAT8: pa.float64(),
    Kind.NUMERIC: pa.binary(),
    Kind.TEXT: pa.string(),
    Kind.VARCHAR: pa.string(),
    Kind.BPCHAR: pa.string(),
    Kind.NAME: pa.string(),
    Kind.CHAR: pa.string(),
    Kind.BYTEA: pa.binary(),
    Kind.DATE: pa.int32(),
    Kind.TIME: pa.int64(),
    Kind.TIMESTAMP: pa.int64(),
    Kind.TIMESTAMPTZ: pa.int64(),
    Kind.INTERVAL: _INTERVAL,
    Kind.UUID: pa.binary(),
    Kind.JSONB: pa.string(),
}
_SPARK_NAMES: Final[dict[pa.DataType, str]] = {
    pa.bool_(): "boolean",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "binary",
    _INTERVAL: "struct<months:int,days:int,micros:bigint>",
}


def is_storable(sql_type: SqlType) -> bool:
    """Whether columns of this type can be stored; record and unknown cannot."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST, Kind.MAP):
        return sql_type.element is not None and is_storable(sql_type.element)
    return sql_type.kind in _ARROW_TYPES or sql_type.kind in RANGE_BASES


@lru_cache(maxsize=4096)
def arrow_type(sql_type: SqlType) -> pa.DataType:
    """The Arrow and Parquet type of a column."""
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        return pa.list_(pa.field(_LIST_FIELD, arrow_type(_element(sql_type))))
    if sql_type.kind is Kind.MAP:
        return pa.list_(pa.field(_LIST_FIELD, pa.struct(_pair_fields(sql_type))))
    if sql_type.kind in RANGE_BASES:
        return pa.struct(_range_fields(sql_type))
    return _ARROW_TYPES[sql_type.kind]


def spark_type_name(sql_type: SqlType) -> str:
    """The column's type in Spark DDL.

    >>> from evertide.vocab.sql_type import NUMERIC, array_of
    >>> spark_type_name(array_of(NUMERIC))
    'array<binary>'
    """
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        return f"array<{spark_type_name(_element(sql_type))}>"
    if sql_type.kind is Kind.MAP:
        return f"array<struct<key:string,value:{spark_type_name(_element(sql_type))}>>"
    if sql_type.kind in RANGE_BASES:
        bound = spark_type_name(RANGE_BASES[sql_type.kind])
        return f"struct<lower:{bound},upper:{bound},bounds:int>"
    return _SPARK_NAMES[_ARROW_TYPES[sql_type.kind]]


def type_name(sql_type: SqlType) -> str:
    """The type as a shard's schema names it: all that decides how its values are stored.

    Lengths, precision and scale do not: they say which values are allowed, not how they lie.

    >>> type_name(SqlType(Kind.ARRAY, element=SqlType(Kind.NUMERIC, precision=9, scale=2)))
    'numeric[]'
    """
    if sql_type.kind is Kind.ARRAY:
        return type_name(_element(sql_type)) + _ARRAY_SUFFIX
    if sql_type.kind is Kind.LIST:
        return type_name(_element(sql_type)) + _LIST_SUFFIX
    if sql_type.kind is Kind.MAP:
        return f"{_MAP_PREFIX}{type_name(_element(sql_type))}]"
    return sql_type.kind.value


@lru_cache(maxsize=4096)
def type_named(name: str) -> SqlType:
    """Inverse of type_name, up to what it leaves out; raises ValueError for an unknown name.

    >>> type_name(type_named("int8[] list"))
    'int8[] list'
    """
    if name.endswith(_ARRAY_SUFFIX):
        return SqlType(Kind.ARRAY, element=type_named(name.removesuffix(_ARRAY_SUFFIX)))
    if name.endswith(_LIST_SUFFIX):
        return SqlType(Kind.LIST, element=type_named(name.removesuffix(_LIST_SUFFIX)))
    if name.startswith(_MAP_PREFIX):
        return SqlType(Kind.MAP, element=type_named(name[len(_MAP_PREFIX) : -1]))
    return SqlType(Kind(name))


@lru_cache(maxsize=1024)
def update_schema(desc: RelationDesc) -> pa.Schema:
    """The schema of stored updates: c0..cN-1, the encoded error, timestamp and diff.

    Columns go by position, so that no user's name can clash with ours or with one another. All are
    nullable: an error row has no values.
    """
    columns = [pa.field(f"c{i}", arrow_type(column.type)) for i, column in enumerate(desc.columns)]
    own = [pa.field("e", pa.string()), pa.field("t", pa.int64()), pa.field("d", pa.int64())]
    return pa.schema(columns + own)


def encode_column(sql_type: SqlType, datums: Sequence[Datum]) -> pa.Array:
    """Datums as one Arrow array of arrow_type(sql_type)."""
    match sql_type.kind:
        case Kind.NUMERIC:
            return pa.array(_each(encode_numeric, datums), type=pa.binary())
        case Kind.UINT8:
            return pa.array(_each(_offset_down, datums), type=pa.int64())
        case Kind.INTERVAL:
            return _encode_intervals(cast(Sequence[Interval | None], datums))
        case Kind.ARRAY | Kind.LIST:
            return _encode_lists(sql_type, cast(Sequence[tuple[Datum, ...] | None], datums))
        case Kind.MAP:
            return _encode_maps(sql_type, cast("Sequence[Pairs | None]", datums))
        case kind if kind in RANGE_BASES:
            return _encode_ranges(sql_type, cast(Sequence[tuple[Datum, ...] | None], datums))
        case _:
            return pa.array(datums, type=_ARROW_TYPES[sql_type.kind])


def decode_column(sql_type: SqlType, array: ArrowColumn) -> list[Datum]:
    """Inverse of encode_column."""
    match sql_type.kind:
        case Kind.NUMERIC:
            return _decode_numerics(array)
        case Kind.UINT8:
            return _each(_offset_up, _plain(array))
        case Kind.INTERVAL:
            return _decode_intervals(one_chunk(array))
        case Kind.ARRAY | Kind.LIST:
            return _decode_lists(sql_type, one_chunk(array))
        case Kind.MAP:
            return _decode_maps(sql_type, one_chunk(array))
        case kind if kind in RANGE_BASES:
            return _decode_ranges(sql_type, one_chunk(array))
        case _:
            return _plain(array)


def _element(sql_type: SqlType) -> SqlType:
    assert sql_type.element is not None, "an array or list has an element type"
    return sql_type.element


def _offset_down(value: int) -> int:
    return value - _UINT8_OFFSET


def _offset_up(value: int) -> int:
    return value + _UINT8_OFFSET


def _each(
    convert: Callable[[Decimal], bytes] | Callable[[bytes], Decimal] | Callable[[int], int],
    datums: Sequence[Datum],
) -> list[Datum]:
    """Convert all but NULLs. What the datums are follows from the column's type."""
    convert_any = cast(Callable[[Datum], Datum], convert)
    return [None if datum is None else convert_any(datum) for datum in datums]


def one_chunk(array: ArrowColumn) -> pa.Array:
    """A column as one array, which is not copied if it is one already."""
    if isinstance(array, pa.ChunkedArray):
        return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
    return array


def _plain(array: ArrowColumn) -> list[Datum]:
    """Values whose datum is what Arrow gives."""
    values: list[Datum] = array.to_pylist()
    return values


def _decode_numerics(array: ArrowColumn) -> list[Datum]:
    if len(array) < MANY_NUMERICS:
        return _each(decode_numeric, _plain(array))
    coded = one_chunk(array).dictionary_encode()
    if 2 * len(coded.dictionary) > len(array):
        found = decode_numerics(one_chunk(array))
        if found is not None:
            return cast("list[Datum]", found)
    different = _each(decode_numeric, _plain(coded.dictionary))
    places = cast("list[int | None]", _plain(coded.indices))
    return [None if place is None else different[place] for place in places]


def _encode_intervals(datums: Sequence[Interval | None]) -> pa.Array:
    nulls = pa.array([datum is None for datum in datums], type=pa.bool_())
    parts = [Interval(0, 0, 0) if datum is None else datum for datum in datums]
    arrays = [
        pa.array([part[i] for part in parts], type=field.type)
        for i, field in enumerate(_INTERVAL_FIELDS)
    ]
    return pa.StructArray.from_arrays(arrays, fields=list(_INTERVAL_FIELDS), mask=nulls)


def _decode_intervals(array: pa.Array) -> list[Datum]:
    columns = [_plain(array.field(field.name)) for field in _INTERVAL_FIELDS]
    valid = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    parts = cast("zip[tuple[int, int, int]]", zip(*columns, strict=True))
    return [Interval(*part) if ok else None for part, ok in zip(parts, valid, strict=True)]


def _encode_lists(sql_type: SqlType, datums: Sequence[tuple[Datum, ...] | None]) -> pa.Array:
    elements = [element for datum in datums if datum is not None for element in datum]
    ends = accumulate((0 if datum is None else len(datum) for datum in datums), initial=0)
    return pa.ListArray.from_arrays(
        pa.array(list(ends), type=pa.int32()),
        encode_column(_element(sql_type), elements),
        type=arrow_type(sql_type),
        mask=pa.array([datum is None for datum in datums], type=pa.bool_()),
    )


def _pair_fields(sql_type: SqlType) -> list[pa.Field]:
    """A map is a list of these, in the order of keys."""
    return [pa.field("key", pa.string()), pa.field("value", arrow_type(_element(sql_type)))]


def _encode_maps(sql_type: SqlType, datums: "Sequence[Pairs | None]") -> pa.Array:
    pairs = [pair for datum in datums if datum is not None for pair in datum]
    ends = accumulate((0 if datum is None else len(datum) for datum in datums), initial=0)
    keys = pa.array([key for key, _ in pairs], type=pa.string())
    values = encode_column(_element(sql_type), [value for _, value in pairs])
    return pa.ListArray.from_arrays(
        pa.array(list(ends), type=pa.int32()),
        pa.StructArray.from_arrays([keys, values], fields=_pair_fields(sql_type)),
        type=arrow_type(sql_type),
        mask=pa.array([datum is None for datum in datums], type=pa.bool_()),
    )


def _decode_maps(sql_type: SqlType, array: pa.Array) -> list[Datum]:
    keys, values = array.flatten().flatten()
    decoded = decode_column(_element(sql_type), values)
    return _cut(list(zip(_plain(keys), decoded, strict=True)), array)


def _range_fields(sql_type: SqlType) -> list[pa.Field]:
    """`bounds`: 1 if the lower one is in the range, plus 2 if the upper one is."""
    bound = arrow_type(RANGE_BASES[sql_type.kind])
    return [pa.field("lower", bound), pa.field("upper", bound), pa.field("bounds", pa.int32())]


def _encode_ranges(sql_type: SqlType, datums: Sequence[tuple[Datum, ...] | None]) -> pa.Array:
    base = RANGE_BASES[sql_type.kind]
    given = [datum or _NO_RANGE for datum in datums]
    flags = [int(bool(parts[2])) + 2 * int(bool(parts[3])) for parts in given]
    arrays = [
        encode_column(base, [parts[0] for parts in given]),
        encode_column(base, [parts[1] for parts in given]),
        pa.array(flags, type=pa.int32()),
    ]
    nulls = pa.array([datum is None for datum in datums], type=pa.bool_())
    return pa.StructArray.from_arrays(arrays, fields=_range_fields(sql_type), mask=nulls)


def _decode_ranges(sql_type: SqlType, array: pa.Array) -> list[Datum]:
    base = RANGE_BASES[sql_type.kind]
    lowers, uppers = (decode_column(base, array.field(name)) for name in ("lower", "upper"))
    flags = cast("list[int | None]", _plain(array.field("bounds")))
    valid = array.is_valid().to_numpy(zero_copy_only=False).tolist()
    return [
        None if not ok or flag is None else (lower, upper, bool(flag & 1), bool(flag & 2))
        for lower, upper, flag, ok in zip(lowers, uppers, flags, valid, strict=True)
    ]


def _decode_lists(sql_type: SqlType, array: pa.Array) -> list[Datum]:
    return _cut(decode_column(_element(sql_type), array.flatten()), array)


def _cut(elements: Sequence[Datum], array: pa.Array) -> list[Datum]:
    """Elements as the tuples that they stand in."""
    lengths = cast("list[int | None]", _plain(array.value_lengths()))
    decoded: list[Datum] = []
    start = 0
    for length in lengths:
        if length is None:
            decoded.append(None)
            continue
        decoded.append(tuple(elements[start : start + length]))
        start += length
    return decoded
