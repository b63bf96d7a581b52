"""The binary format of each type, both ways.

Encoders give a *field*: the body behind its length, as DataRow and arrays hold it, so that types of
one size need a single pack. Dates and times count from 2000-01-01 on the wire and from 1970-01-01
in datums. Types of text go through the text formats, which own padding, cutting and checks.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import partial
from math import prod
from struct import Struct
from struct import error as StructError
from typing import TypeAlias

from evertide.expr.dimensions import (
    MOST_DIMENSIONS,
    base_of,
    dimension_count,
    flat,
    lengths_of,
    nested,
)
from evertide.expr.text_input import parser
from evertide.expr.text_output import formatter
from evertide.pgwire.codec import decode_text
from evertide.pgwire.numeric import decode_numeric, encode_numeric
from evertide.pgwire.range_format import decode_range, range_field
from evertide.vocab.datum import (
    DATE_INFINITY,
    DATE_MINUS_INFINITY,
    MICROS_PER_DAY,
    TS_INFINITY,
    TS_MINUS_INFINITY,
    Datum,
    Interval,
)
from evertide.vocab.errors import (
    DatetimeFieldOverflow,
    FeatureNotSupported,
    InvalidBinaryRepresentation,
    SqlError,
)
from evertide.vocab.sql_type import RANGE_BASES, Kind, SqlType

FieldEncoder: TypeAlias = Callable[[Datum], bytes]
Decoder: TypeAlias = Callable[[bytes], Datum]

NULL_FIELD = b"\xff\xff\xff\xff"

_pack_length = Struct("!i").pack
_pack_oid = Struct("!I").pack

# Types whose body is one number: how struct calls it.
_NUMBERS: dict[Kind, str] = {
    Kind.INT2: "h", Kind.INT4: "i", Kind.INT8: "q", Kind.UINT2: "H", Kind.UINT4: "I",
    Kind.UINT8: "Q", Kind.OID: "I", Kind.REGCLASS: "I", Kind.REGPROC: "I", Kind.REGTYPE: "I",
    Kind.FLOAT4: "f", Kind.FLOAT8: "d", Kind.MZ_TIMESTAMP: "Q",
}  # fmt: skip
_TEXTS = {Kind.TEXT, Kind.VARCHAR, Kind.BPCHAR, Kind.NAME, Kind.UNKNOWN}

_JSONB_VERSION = b"\x01"
_EPOCH_DAYS = 10_957  # from 1970-01-01 to 2000-01-01
_EPOCH_MICROS = _EPOCH_DAYS * MICROS_PER_DAY
# PostgreSQL's calendar begins here: 4714-11-24 BC, day 0 of the Julian period.
_FIRST_DAY = -2_440_588

_DATE = Struct("!ii")
_MICROS = Struct("!iq")
_INTERVAL = Struct("!iqii")
_INTERVAL_BODY = Struct("!qii")
_ARRAY_HEADER = Struct("!iiI")
_ARRAY_DIMENSION = Struct("!ii")


def field_encoder(sql_type: SqlType) -> FieldEncoder:
    """How a datum of this type, not NULL, becomes a field."""
    kind = sql_type.kind
    if kind in _NUMBERS:
        body = Struct("!" + _NUMBERS[kind])
        return partial(Struct("!i" + _NUMBERS[kind]).pack, body.size)
    if kind in _TEXTS:
        return text_field_encoder(sql_type)
    if kind is Kind.ARRAY:
        return _array_encoder(sql_type)
    if kind in RANGE_BASES:
        return partial(range_field, field_encoder(RANGE_BASES[kind]))
    if sql_type.fields is not None:
        return partial(_record_field, [(t.oid, field_encoder(t)) for _, t in sql_type.fields])
    if kind is Kind.NUMERIC:
        return partial(_numeric_field, scale=sql_type.scale or 0)
    if kind is Kind.JSONB:
        return partial(_jsonb_field, formatter(sql_type))
    if kind in _FIELD_ENCODERS:
        return _FIELD_ENCODERS[kind]
    raise _no_binary_format(sql_type)


def decoder(sql_type: SqlType) -> Decoder:
    """How the body of a field of this type becomes a datum. Raises SqlError for a bad one."""
    kind = sql_type.kind
    if kind in _NUMBERS:
        return partial(_decode_number, Struct("!" + _NUMBERS[kind]), str(sql_type))
    if kind in _TEXTS:
        return text_decoder(sql_type)
    if kind is Kind.ARRAY:
        return _array_decoder(sql_type)
    if kind in RANGE_BASES:
        return partial(decode_range, decoder(RANGE_BASES[kind]), sql_type)
    if kind is Kind.NUMERIC:
        return partial(_decode_numeric, parser(sql_type))
    if kind is Kind.JSONB:
        return partial(_decode_jsonb, parser(sql_type))
    if kind in _DECODERS:
        return _DECODERS[kind]
    raise _no_binary_format(sql_type)


def text_field_encoder(sql_type: SqlType) -> FieldEncoder:
    """How a datum becomes a field that holds its text format."""
    if sql_type.kind in (Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.UNKNOWN):
        return _plain_text_field
    return partial(_formatted_field, formatter(sql_type))


def text_decoder(sql_type: SqlType) -> Decoder:
    """How a field that holds a text format becomes a datum."""
    if sql_type.kind is Kind.REGCLASS:
        return partial(_decode_relation, parser(sql_type))
    return partial(_decode_formatted, parser(sql_type))


def _decode_relation(parse: Callable[[str], Datum], raw: bytes) -> Datum:
    """A relation's number, or its name, which is looked up when the statement runs."""
    text = decode_text(raw)
    return parse(text) if text[:1].isdigit() or text == "-" else text


def _no_binary_format(sql_type: SqlType) -> SqlError:
    return FeatureNotSupported(
        f"binary format of type {sql_type} is not supported",
        hint="Ask for the text format, or cast the value to text.",
    )


def _malformed(type_name: str) -> SqlError:
    return InvalidBinaryRepresentation(f"incorrect binary value of type {type_name}")


def _field(body: bytes) -> bytes:
    return _pack_length(len(body)) + body


# Texts and bytes


def _plain_text_field(datum: Datum) -> bytes:
    assert isinstance(datum, str)
    body = datum.encode()
    return _pack_length(len(body)) + body


def _formatted_field(format_datum: Callable[[Datum], str], datum: Datum) -> bytes:
    body = format_datum(datum).encode()
    return _pack_length(len(body)) + body


def _decode_formatted(parse: Callable[[str], Datum], raw: bytes) -> Datum:
    return parse(decode_text(raw))


def _char_field(datum: Datum) -> bytes:
    """`"char"` is always one byte: the empty string is a NUL."""
    assert isinstance(datum, str)
    return _field(datum.encode()[:1] or b"\0")


def _decode_char(raw: bytes) -> Datum:
    if len(raw) != 1:
        raise _malformed('"char"')
    return "" if raw == b"\0" else decode_text(raw)


def _jsonb_field(format_datum: Callable[[Datum], str], datum: Datum) -> bytes:
    return _field(_JSONB_VERSION + format_datum(datum).encode())


def _decode_jsonb(parse: Callable[[str], Datum], raw: bytes) -> Datum:
    if raw[:1] != _JSONB_VERSION:
        raise _malformed("jsonb")
    return parse(decode_text(raw[1:]))


def _bytes_field(datum: Datum) -> bytes:
    assert isinstance(datum, bytes)
    return _field(datum)


def _decode_uuid(raw: bytes) -> Datum:
    if len(raw) != 16:
        raise _malformed("uuid")
    return raw


# Numbers


def _decode_number(body: Struct, type_name: str, raw: bytes) -> Datum:
    try:
        number: int | float = body.unpack(raw)[0]
    except StructError:
        raise _malformed(type_name) from None
    return number


_TRUE, _FALSE = _field(b"\x01"), _field(b"\x00")


def _bool_field(datum: Datum) -> bytes:
    return _TRUE if datum else _FALSE


def _decode_bool(raw: bytes) -> Datum:
    if len(raw) != 1:
        raise _malformed("boolean")
    return raw != b"\0"


def _numeric_field(datum: Datum, *, scale: int) -> bytes:
    assert isinstance(datum, Decimal)
    return _field(encode_numeric(datum, scale))


def _decode_numeric(parse: Callable[[str], Datum], raw: bytes) -> Datum:
    """The text format owns the limits of precision, so a value from afar is given to it."""
    value = decode_numeric(raw)
    return parse(format(value, "f") if value.is_finite() else str(value))


# Dates and times


def _date_field(datum: Datum) -> bytes:
    assert isinstance(datum, int)
    if datum in (DATE_INFINITY, DATE_MINUS_INFINITY):
        return _DATE.pack(4, datum)
    return _DATE.pack(4, datum - _EPOCH_DAYS)


def _decode_date(raw: bytes) -> Datum:
    days = _decode_signed(raw, 4, "date")
    if days in (DATE_INFINITY, DATE_MINUS_INFINITY):
        return days
    days += _EPOCH_DAYS
    if not _FIRST_DAY <= days < DATE_INFINITY:
        raise DatetimeFieldOverflow("date out of range")
    return days


def _time_field(datum: Datum) -> bytes:
    return _MICROS.pack(8, datum)


def _decode_time(raw: bytes) -> Datum:
    micros = _decode_signed(raw, 8, "time")
    if not 0 <= micros <= MICROS_PER_DAY:
        raise DatetimeFieldOverflow("time out of range")
    return micros


def _timestamp_field(datum: Datum) -> bytes:
    assert isinstance(datum, int)
    if datum in (TS_INFINITY, TS_MINUS_INFINITY):
        return _MICROS.pack(8, datum)
    return _MICROS.pack(8, datum - _EPOCH_MICROS)


def _decode_timestamp(raw: bytes) -> Datum:
    micros = _decode_signed(raw, 8, "timestamp")
    if micros in (TS_INFINITY, TS_MINUS_INFINITY):
        return micros
    micros += _EPOCH_MICROS
    if not _FIRST_DAY * MICROS_PER_DAY <= micros < TS_INFINITY:
        raise DatetimeFieldOverflow("timestamp out of range")
    return micros


def _decode_signed(raw: bytes, size: int, type_name: str) -> int:
    if len(raw) != size:
        raise _malformed(type_name)
    return int.from_bytes(raw, signed=True)


def _interval_field(datum: Datum) -> bytes:
    assert isinstance(datum, Interval)
    return _INTERVAL.pack(16, datum.micros, datum.days, datum.months)


def _decode_interval(raw: bytes) -> Datum:
    if len(raw) != _INTERVAL_BODY.size:
        raise _malformed("interval")
    micros, days, months = _INTERVAL_BODY.unpack(raw)
    return Interval(months, days, micros)


# Arrays


def _array_encoder(sql_type: SqlType) -> FieldEncoder:
    assert sql_type.element is not None, "an array has an element type"
    base, count = base_of(sql_type), dimension_count(sql_type)
    if count > 1:
        return partial(_dimensions_field, field_encoder(base), base.oid, count)
    return partial(_array_field, field_encoder(sql_type.element), sql_type.element.oid)


def _dimensions_field(
    encode_element: FieldEncoder, element_oid: int, count: int, datum: Datum
) -> bytes:
    assert isinstance(datum, tuple)
    items = list(flat(datum, count))
    lengths = lengths_of(datum, count)
    header = _ARRAY_HEADER.pack(len(lengths), int(None in items), element_oid)
    bounds = [_ARRAY_DIMENSION.pack(length, 1) for length in lengths]
    fields = [NULL_FIELD if item is None else encode_element(item) for item in items]
    return _field(header + b"".join(bounds) + b"".join(fields))


def _array_field(encode_element: FieldEncoder, element_oid: int, datum: Datum) -> bytes:
    assert isinstance(datum, tuple)
    if not datum:
        return _field(_ARRAY_HEADER.pack(0, 0, element_oid))
    fields = [NULL_FIELD if item is None else encode_element(item) for item in datum]
    header = _ARRAY_HEADER.pack(1, int(None in datum), element_oid)
    return _field(header + _ARRAY_DIMENSION.pack(len(datum), 1) + b"".join(fields))


def _record_field(encoders: Sequence[tuple[int, FieldEncoder]], datum: Datum) -> bytes:
    assert isinstance(datum, tuple)
    fields = [
        _pack_oid(oid) + (NULL_FIELD if item is None else encode(item))
        for (oid, encode), item in zip(encoders, datum, strict=True)
    ]
    return _field(_pack_length(len(fields)) + b"".join(fields))


def _array_decoder(sql_type: SqlType) -> Decoder:
    assert sql_type.element is not None, "an array has an element type"
    return partial(_decode_array, decoder(base_of(sql_type)), sql_type)


def _decode_array(decode_element: Decoder, sql_type: SqlType, raw: bytes) -> Datum:
    try:
        dimensions, _has_null, element_oid = _ARRAY_HEADER.unpack_from(raw)
        if element_oid != base_of(sql_type).oid:
            raise _malformed(str(sql_type))
        if not 0 <= dimensions <= MOST_DIMENSIONS:
            raise _malformed(str(sql_type))
        at = _ARRAY_HEADER.size
        bounds = []
        for _ in range(dimensions):
            bounds.append(_ARRAY_DIMENSION.unpack_from(raw, at))
            at += _ARRAY_DIMENSION.size
    except StructError:
        raise _malformed(str(sql_type)) from None
    lengths = tuple(length for length, _ in bounds)
    # Whatever is said of its dimensions and where they begin, without elements it is empty.
    is_empty = not lengths or 0 in lengths
    if any(length < 0 for length in lengths) or (is_empty and at < len(raw)):
        raise _malformed(str(sql_type))
    if is_empty:
        return ()
    if dimensions != dimension_count(sql_type):
        raise FeatureNotSupported(f"an array of {dimensions} dimensions is not of type {sql_type}")
    if any(lower_bound != 1 for _, lower_bound in bounds):
        raise FeatureNotSupported("arrays must begin at 1")
    elements = _decode_elements(decode_element, sql_type, prod(lengths), raw[at:])
    return nested(list(elements), lengths)


def _decode_elements(
    decode_element: Decoder, sql_type: SqlType, length: int, raw: bytes
) -> tuple[Datum, ...]:
    elements: list[Datum] = []
    at = 0
    while at < len(raw):
        size = int.from_bytes(raw[at : at + 4], signed=True)
        at += 4
        if size == -1:
            elements.append(None)
            continue
        if size < 0 or at + size > len(raw):
            raise _malformed(str(sql_type))
        elements.append(decode_element(raw[at : at + size]))
        at += size
    if len(elements) != length:
        raise _malformed(str(sql_type))
    return tuple(elements)


_FIELD_ENCODERS: dict[Kind, FieldEncoder] = {
    Kind.BOOL: _bool_field,
    Kind.CHAR: _char_field,
    Kind.BYTEA: _bytes_field,
    Kind.UUID: _bytes_field,
    Kind.DATE: _date_field,
    Kind.TIME: _time_field,
    Kind.TIMESTAMP: _timestamp_field,
    Kind.TIMESTAMPTZ: _timestamp_field,
    Kind.INTERVAL: _interval_field,
}
_DECODERS: dict[Kind, Decoder] = {
    Kind.BOOL: _decode_bool,
    Kind.CHAR: _decode_char,
    Kind.BYTEA: bytes,
    Kind.UUID: _decode_uuid,
    Kind.DATE: _decode_date,
    Kind.TIME: _decode_time,
    Kind.TIMESTAMP: _decode_timestamp,
    Kind.TIMESTAMPTZ: _decode_timestamp,
    Kind.INTERVAL: _decode_interval,
}
