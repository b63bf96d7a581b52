"""Datums as bytes that compare as SQL compares: for grouping, join keys, order and ties.

Each key starts with 01 for a value or 02 for NULL, which therefore comes last. What follows is
self-delimiting, so the keys of a row's columns are simply put end to end. Values that differ in
representation and are equal in SQL have one key; a key therefore does not decode.

    integers, dates, times   8 bytes, big-endian, offset so that negatives come first
    floats                   the bits of the double turned so that they sort; -0 is 0; NaN last
    numeric                  see numeric.py
    text                     the bytes, among which is no 00, then 00; bpchar without its padding
    bytea                    the bytes, 00 written as 00 FF, then 00 00
    interval                 its span in microseconds, 12 bytes
    uuid                     its 16 bytes
    arrays, lists            keys of the elements, then 00
    arrays of arrays         keys of the innermost elements, then 00 and all lengths but the last
    maps                     keys of key and value in turn, then 00
    ranges                   00 if empty, else 01 and the bounds' keys; see _range_encoder
    jsonb                    PostgreSQL's btree order; see _json_key
"""

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain
from struct import Struct
from typing import Final, TypeAlias, TypeVar, cast

from evertide.persist.coding.numeric import encode_numeric
from evertide.vocab.datum import EMPTY_RANGE, Datum, Interval, Row
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

KeyEncoder: TypeAlias = Callable[[Datum], bytes]
_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | Decimal | bool | None"
_T = TypeVar("_T")

_NULL: Final = b"\x02"
_INT: Final = Struct(">BQ")
_pack_int = _INT.pack
_DOUBLE: Final = Struct(">d")
_BITS: Final = Struct(">q")
_BIAS: Final = 2**63
_NAN_BITS: Final = 0x7FF8 << 48
_INTERVAL_BIAS: Final = 2**95


def encode_key(sql_type: SqlType, datum: Datum) -> bytes:
    """The key of one datum.

    >>> from evertide.vocab.sql_type import NUMERIC
    >>> encode_key(NUMERIC, Decimal("1.0")) == encode_key(NUMERIC, Decimal("1.00"))
    True
    """
    return key_encoder(sql_type)(datum)


def encode_row_key(types: Sequence[SqlType], row: Row) -> bytes:
    """The keys of all columns end to end."""
    return row_key_encoder(tuple(types))(row)


@lru_cache(maxsize=4096)
def row_key_encoder(types: tuple[SqlType, ...]) -> Callable[[Row], bytes]:
    """encode_row_key for loops: the types are looked at once."""
    encoders = tuple(key_encoder(sql_type) for sql_type in types)
    if len(encoders) == 1:
        only = encoders[0]
        return lambda row: only(row[0])
    return lambda row: b"".join(
        [encode(datum) for encode, datum in zip(encoders, row, strict=True)]
    )


@lru_cache(maxsize=4096)
def key_encoder(sql_type: SqlType) -> KeyEncoder:
    """encode_key for loops: the type is looked at once."""
    if sql_type.kind is Kind.ARRAY and sql_type.element and sql_type.element.kind is Kind.ARRAY:
        return _dimensions_encoder(sql_type)
    if sql_type.kind in (Kind.ARRAY, Kind.LIST):
        assert sql_type.element is not None, "an array or list has an element type"
        return _sequence_encoder(key_encoder(sql_type.element))
    if sql_type.kind is Kind.MAP:
        assert sql_type.element is not None, "a map has a value type"
        return _map_encoder(key_encoder(sql_type.element))
    if sql_type.kind in RANGE_BASES:
        return _range_encoder(key_encoder(RANGE_BASES[sql_type.kind]))
    if sql_type.fields is not None:
        return _record_encoder([key_encoder(field) for _, field in sql_type.fields])
    return _ENCODERS[sql_type.kind]


@lru_cache(maxsize=4096)
def key_list_encoder(sql_type: SqlType) -> Callable[[Iterable[Datum]], list[bytes]]:
    """The keys of many datums: of integers, without a call for each."""
    encode = key_encoder(sql_type)
    if encode is _int_key:
        return cast("Callable[[Iterable[Datum]], list[bytes]]", _int_keys)
    return lambda datums: [encode(datum) for datum in datums]


def _nullable(encode: Callable[[_T], bytes]) -> KeyEncoder:
    """Give NULL its key. The datum's type is the column's, which the caller answers for."""
    encode_value = cast(KeyEncoder, encode)
    return lambda datum: _NULL if datum is None else encode_value(datum)


def _sequence_encoder(encode: KeyEncoder) -> KeyEncoder:
    def sequence_key(datums: tuple[Datum, ...]) -> bytes:
        return b"\x01" + b"".join([encode(datum) for datum in datums]) + b"\x00"

    return _nullable(sequence_key)


def _dimensions_encoder(sql_type: SqlType) -> KeyEncoder:
    """Arrays of arrays of one length: element by element, then by their number, then by lengths.

    As many elements and the same lengths but the last make the last length the same, too. An array
    that is NULL stands within another only on the way to array_agg, which refuses it: 03, hence
    after all others, and the parts' keys.
    """
    of_parts = _sequence_encoder(key_encoder(cast(SqlType, sql_type.element)))
    depth = 0
    while sql_type.kind is Kind.ARRAY and sql_type.element is not None:
        depth, sql_type = depth + 1, sql_type.element
    encode = key_encoder(sql_type)

    def dimensions_key(parts: tuple[Datum, ...]) -> bytes:
        lengths, within = b"", parts
        for _ in range(depth - 1):
            if None in within:
                return b"\x01\x03" + of_parts(parts)
            if within:
                lengths += len(within).to_bytes(4, "big")
            within = tuple(chain.from_iterable(cast("tuple[Row, ...]", within)))
        return b"\x01" + b"".join([encode(datum) for datum in within]) + b"\x00" + lengths

    return _nullable(dimensions_key)


def _map_encoder(encode: KeyEncoder) -> KeyEncoder:
    def map_key(pairs: tuple[tuple[str, Datum], ...]) -> bytes:
        parts = [_text_key(key) + encode(value) for key, value in pairs]
        return b"\x01" + b"".join(parts) + b"\x00"

    return _nullable(map_key)


def _range_encoder(encode: KeyEncoder) -> KeyEncoder:
    """Empty first; then by the lower bound, of which none is least, and by the upper bound."""

    def range_key(datum: tuple[Datum, ...]) -> bytes:
        if datum == EMPTY_RANGE:
            return b"\x01\x00"
        lower, upper, has_lower, has_upper = datum
        low = b"\x00" if lower is None else encode(lower) + (b"\x00" if has_lower else b"\x01")
        high = _NULL if upper is None else encode(upper) + (b"\x01" if has_upper else b"\x00")
        return b"\x01\x01" + low + high

    return _nullable(range_key)


def _record_encoder(encoders: Sequence[KeyEncoder]) -> KeyEncoder:
    """Fields end to end: there are as many in every row, and each key says where it ends."""

    def record_key(datums: Row) -> bytes:
        return b"\x01" + b"".join(
            [encode(datum) for encode, datum in zip(encoders, datums, strict=True)]
        )

    return _nullable(record_key)


def _bool_key(datum: bool) -> bytes:
    return b"\x01\x01" if datum else b"\x01\x00"


def _int_key(datum: int | None) -> bytes:
    """Most keys are integers, so NULL is looked at here: it spares a call."""
    return _NULL if datum is None else _pack_int(1, datum + _BIAS)


def _int_keys(datums: Iterable[int | None]) -> list[bytes]:
    pack, bias = _pack_int, _BIAS
    return [_NULL if datum is None else pack(1, datum + bias) for datum in datums]


def _unsigned_key(datum: int) -> bytes:
    return _INT.pack(1, datum)


def _float_key(datum: float) -> bytes:
    # Adding 0.0 makes 0.0 of -0.0 and changes nothing else.
    bits: int = _NAN_BITS if datum != datum else _BITS.unpack(_DOUBLE.pack(datum + 0.0))[0]
    return _INT.pack(1, bits + _BIAS if bits >= 0 else ~bits)


def _numeric_key(datum: Decimal) -> bytes:
    return b"\x01" + encode_numeric(datum)


def _bytes_key(datum: bytes) -> bytes:
    """Whatever follows, a value that ends comes before one that goes on with 00."""
    return b"\x01" + datum.replace(b"\x00", b"\x00\xff") + b"\x00\x00"


def _text_key(datum: str) -> bytes:
    return b"\x01" + datum.encode() + b"\x00"


def _padded_text_key(datum: str) -> bytes:
    return _text_key(datum.rstrip(" "))


def _interval_key(datum: Interval) -> bytes:
    return b"\x01" + (datum.span_micros() + _INTERVAL_BIAS).to_bytes(12, "big")


def _uuid_key(datum: bytes) -> bytes:
    return b"\x01" + datum


def _jsonb_key(datum: str) -> bytes:
    parsed: _Json = json.loads(datum, parse_int=Decimal, parse_float=Decimal)
    # PostgreSQL sorts an empty array at the top level before everything, unlike a nested one.
    return b"\x01\x01" if parsed == [] else b"\x01" + _json_key(parsed)


def _json_key(value: _Json) -> bytes:
    """Null < string < number < boolean < array < object; the longer array or object is greater.

    Objects of one size compare by their pairs in turn, taken in stored order: shorter names first.
    """
    match value:
        case None:
            return b"\x02"
        case str():
            return b"\x03" + _text_key(value)
        case Decimal():
            return b"\x04" + encode_numeric(value)
        case bool():
            return b"\x05" + _bool_key(value)
        case list():
            elements = b"".join([_json_key(element) for element in value])
            return b"\x06" + len(value).to_bytes(4, "big") + elements
        case dict():
            names = sorted(value, key=lambda name: (len(name.encode()), name))
            pairs = b"".join([_text_key(name) + _json_key(value[name]) for name in names])
            return b"\x07" + len(value).to_bytes(4, "big") + pairs


_ENCODERS: Final[dict[Kind, KeyEncoder]] = {
    Kind.BOOL: _nullable(_bool_key),
    Kind.UINT8: _nullable(_unsigned_key),
    Kind.FLOAT4: _nullable(_float_key),
    Kind.FLOAT8: _nullable(_float_key),
    Kind.NUMERIC: _nullable(_numeric_key),
    Kind.BPCHAR: _nullable(_padded_text_key),
    Kind.BYTEA: _nullable(_bytes_key),
    Kind.INTERVAL: _nullable(_interval_key),
    Kind.UUID: _nullable(_uuid_key),
    Kind.JSONB: _nullable(_jsonb_key),
    **dict.fromkeys(
        (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.CHAR),
        _nullable(_text_key),
    ),
    **dict.fromkeys(
        (
            Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.MZ_TIMESTAMP, Kind.OID,
            Kind.REGCLASS, Kind.REGPROC, Kind.REGTYPE, Kind.DATE, Kind.TIME, Kind.TIMESTAMP,
            Kind.TIMESTAMPTZ,
        ),
        cast(KeyEncoder, _int_key),
    ),
}  # fmt: skip
