"""Rows of datums to what a client reads, and a client's parameters to datums.

How a value is written is decided once per result shape, not once per value: the functions that
choose are cached, and what they return only converts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from math import isfinite
from struct import Struct
from typing import Final, TypeAlias

from evertide.expr.text_output import formatter
from evertide.pgwire import binary
from evertide.pgwire.binary import NULL_FIELD, Decoder, FieldEncoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import InvalidParameterValue, ProtocolViolation
from evertide.vocab.sql_type import Kind, SqlType

TEXT_FORMAT = 0
BINARY_FORMAT = 1

# From here on floats have the fewest digits that tell them from all others.
ALL_DIGITS: Final = 1
# Digits that survive a change to the type and back.
FLOAT_DIGITS: Final = {Kind.FLOAT4: 6, Kind.FLOAT8: 15}

RowEncoder: TypeAlias = Callable[[Row], bytes]

_ROW_HEADER = Struct("!cih")


def expand_formats(codes: Sequence[int], count: int, what: str) -> tuple[int, ...]:
    """One format per column or parameter: none given means text, one given holds for all."""
    for code in codes:
        if code not in (TEXT_FORMAT, BINARY_FORMAT):
            raise InvalidParameterValue(f"unsupported format code: {code}")
    if len(codes) <= 1:
        return (codes[0] if codes else TEXT_FORMAT,) * count
    if len(codes) != count:
        raise ProtocolViolation(f"bind message has {len(codes)} {what} formats but {count} {what}s")
    return tuple(codes)


@lru_cache(maxsize=1024)
def field_encoder(
    sql_type: SqlType, format_code: int, float_digits: int = ALL_DIGITS
) -> FieldEncoder:
    """How a datum of this type, not NULL, becomes a field of this format."""
    if format_code == BINARY_FORMAT:
        return binary.field_encoder(sql_type)
    if float_digits < ALL_DIGITS and sql_type.kind in FLOAT_DIGITS:
        return rounded_field_encoder(sql_type, float_digits)
    return binary.text_field_encoder(sql_type)


def rounded_field_encoder(sql_type: SqlType, float_digits: int) -> FieldEncoder:
    """A float's text in few digits, as a field."""
    write = rounded_formatter(sql_type, float_digits)

    def encode(datum: Datum) -> bytes:
        text = write(datum).encode()
        return len(text).to_bytes(4) + text

    return encode


def rounded_formatter(sql_type: SqlType, float_digits: int) -> Callable[[Datum], str]:
    """A float in so many digits less than its type can always hold; what is no number as ever."""
    digits = max(1, FLOAT_DIGITS[sql_type.kind] + float_digits)
    otherwise = formatter(sql_type)

    def write(datum: Datum) -> str:
        assert isinstance(datum, float)
        return f"{datum:.{digits}g}" if isfinite(datum) else otherwise(datum)

    return write


@lru_cache(maxsize=1024)
def parameter_decoder(sql_type: SqlType, format_code: int) -> Decoder:
    """How a parameter of this type and format becomes a datum; raises SqlError for a bad one."""
    if format_code == BINARY_FORMAT:
        return binary.decoder(sql_type)
    return binary.text_decoder(sql_type)


def decode_parameters(
    types: Sequence[SqlType], formats: Sequence[int], values: Sequence[bytes | None]
) -> list[Datum]:
    """A Bind message's values as datums of the statement's parameter types."""
    return [
        None if value is None else parameter_decoder(sql_type, code)(value)
        for sql_type, code, value in zip(types, formats, values, strict=True)
    ]


@lru_cache(maxsize=1024)
def row_encoder(
    types: tuple[SqlType, ...], formats: tuple[int, ...], float_digits: int = ALL_DIGITS
) -> RowEncoder:
    """How a row of this shape becomes a DataRow message."""
    encoders = [
        field_encoder(sql_type, code, float_digits)
        for sql_type, code in zip(types, formats, strict=True)
    ]
    count = len(encoders)
    pack = _ROW_HEADER.pack

    def encode_row(row: Row) -> bytes:
        fields = b"".join(
            [
                NULL_FIELD if datum is None else encode(datum)
                for encode, datum in zip(encoders, row, strict=True)
            ]
        )
        return pack(b"D", len(fields) + 6, count) + fields

    return encode_row


def in_chunks(messages: Iterable[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Messages in pieces of about this size, made only as they are asked for."""
    pieces: list[bytes] = []
    size = 0
    for piece in messages:
        pieces.append(piece)
        size += len(piece)
        if size >= chunk_bytes:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)
