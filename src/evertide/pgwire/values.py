"""Rows of datums to what a client reads, and a client's parameters to datums.

How a value is written is decided once per result shape, not once per value: the functions that
choose are cached, and what they return only converts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from struct import Struct
from typing import TypeAlias

from evertide.expr.text_output import formatter
from evertide.pgwire import binary
from evertide.pgwire.binary import NULL_FIELD, Decoder, FieldEncoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import InvalidParameterValue, ProtocolViolation
from evertide.vocab.sql_type import Kind, SqlType

TEXT_FORMAT = 0
BINARY_FORMAT = 1

RowEncoder: TypeAlias = Callable[[Row], bytes]

_ROW_HEADER = Struct("!cih")
_COPY_HEADER = Struct("!ci")
# What COPY's text format may not hold as it is: separators, line ends, its own escape.
_COPY_ESCAPES = str.maketrans(
    {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)
_COPY_NULL = "\\N"
# The text of these never holds any of them, so it need not be searched.
_COPY_PLAIN = {
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.OID,
    Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.DATE, Kind.TIME, Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ, Kind.INTERVAL, Kind.UUID, Kind.MZ_TIMESTAMP,
}  # fmt: skip


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
def field_encoder(sql_type: SqlType, format_code: int) -> FieldEncoder:
    """How a datum of this type, not NULL, becomes a field of this format."""
    if format_code == BINARY_FORMAT:
        return binary.field_encoder(sql_type)
    return binary.text_field_encoder(sql_type)


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
def row_encoder(types: tuple[SqlType, ...], formats: tuple[int, ...]) -> RowEncoder:
    """How a row of this shape becomes a DataRow message."""
    encoders = [field_encoder(*shape) for shape in zip(types, formats, strict=True)]
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


@lru_cache(maxsize=1024)
def copy_encoder(types: tuple[SqlType, ...]) -> RowEncoder:
    """How a row of this shape becomes a CopyData message of one line in COPY's text format."""
    formatters = [_copy_formatter(sql_type) for sql_type in types]
    pack = _COPY_HEADER.pack

    def encode_line(row: Row) -> bytes:
        fields = [
            _COPY_NULL if datum is None else write(datum)
            for write, datum in zip(formatters, row, strict=True)
        ]
        line = "\t".join(fields).encode() + b"\n"
        return pack(b"d", len(line) + 4) + line

    return encode_line


def _copy_formatter(sql_type: SqlType) -> Callable[[Datum], str]:
    write = formatter(sql_type)
    if sql_type.kind in _COPY_PLAIN:
        return write
    return lambda datum: write(datum).translate(_COPY_ESCAPES)


def encode_chunks(encode: RowEncoder, rows: Iterable[Row], chunk_bytes: int) -> Iterator[bytes]:
    """The rows' messages in pieces of about this size, made only as they are asked for."""
    pieces: list[bytes] = []
    size = 0
    for row in rows:
        piece = encode(row)
        pieces.append(piece)
        size += len(piece)
        if size >= chunk_bytes:
            yield b"".join(pieces)
            pieces, size = [], 0
    if pieces:
        yield b"".join(pieces)
