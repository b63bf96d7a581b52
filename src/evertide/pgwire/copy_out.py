"""Rows as COPY ... TO STDOUT writes them: one CopyData message each, in text, CSV or binary."""

from collections.abc import Callable, Container, Iterable, Iterator
from functools import lru_cache
from struct import Struct
from typing import Final, assert_never

from evertide.adapter.client import CopyKind, CopyLayout
from evertide.expr.text_output import formatter
from evertide.pgwire import binary
from evertide.pgwire.binary import NULL_FIELD
from evertide.pgwire.values import ALL_DIGITS, FLOAT_DIGITS, RowEncoder, rounded_formatter
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType

# What the text format may not hold as it is: line ends, its own escape; its delimiter comes on top.
_ESCAPES: Final = {
    "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
}  # fmt: skip
# The text of these holds nothing that is escaped, so with the usual delimiter it need not be
# searched.
_PLAIN: Final = {
    Kind.BOOL, Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8, Kind.OID,
    Kind.FLOAT4, Kind.FLOAT8, Kind.NUMERIC, Kind.DATE, Kind.TIME, Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ, Kind.INTERVAL, Kind.UUID, Kind.MZ_TIMESTAMP,
}  # fmt: skip
_HEADER: Final = Struct("!ci")
_INT16: Final = Struct("!h")
_USUAL: Final = CopyLayout()
# A signature, then no flags and no more header.
_BINARY_START: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_BINARY_END: Final = _INT16.pack(-1)


class CopyMessages:
    """The rows of one COPY as messages, however many at a time.

    In binary the first has the file's beginning before its row, and one more says that it ends:
    readers of PostgreSQL expect both just so.
    """

    def __init__(
        self, types: tuple[SqlType, ...], layout: CopyLayout, float_digits: int = ALL_DIGITS
    ) -> None:
        self._encode = copy_encoder(types, layout, float_digits)
        self._binary = layout.kind is CopyKind.BINARY
        self._before = _BINARY_START if self._binary else b""

    def of(self, rows: Iterable[Row]) -> Iterator[bytes]:
        """The next rows' messages, made only as they are asked for."""
        bodies = map(self._encode, rows)
        if self._before and (first := next(bodies, None)) is not None:
            before, self._before = self._before, b""
            yield _message(before + first)
        yield from map(_message, bodies)

    def end(self) -> bytes:
        """What comes behind them all."""
        return _message(self._before + _BINARY_END) if self._binary else b""


def _message(body: bytes) -> bytes:
    """One CopyData message."""
    return _HEADER.pack(b"d", len(body) + 4) + body


@lru_cache(maxsize=1024)
def copy_encoder(
    types: tuple[SqlType, ...], layout: CopyLayout = _USUAL, float_digits: int = ALL_DIGITS
) -> RowEncoder:
    """How a row of this shape is written."""
    match layout.kind:
        case CopyKind.TEXT:
            return _lines([_text_writer(t, layout, float_digits) for t in types], layout)
        case CopyKind.CSV:
            # Alone in its line, this would end the data.
            odd = {layout.null, "\\."} if len(types) == 1 else {layout.null}
            return _lines([_csv_writer(t, layout, float_digits, odd) for t in types], layout)
        case CopyKind.BINARY:
            return _binary_rows(types)
        case _:
            assert_never(layout.kind)


def _lines(writers: list[Callable[[Datum], str]], layout: CopyLayout) -> RowEncoder:
    null, delimiter = layout.null, layout.delimiter

    def encode_line(row: Row) -> bytes:
        fields = [
            null if datum is None else write(datum)
            for write, datum in zip(writers, row, strict=True)
        ]
        return delimiter.join(fields).encode() + b"\n"

    return encode_line


def _formatter(sql_type: SqlType, float_digits: int) -> Callable[[Datum], str]:
    if float_digits < ALL_DIGITS and sql_type.kind in FLOAT_DIGITS:
        return rounded_formatter(sql_type, float_digits)
    return formatter(sql_type)


def _text_writer(
    sql_type: SqlType, layout: CopyLayout, float_digits: int
) -> Callable[[Datum], str]:
    write = _formatter(sql_type, float_digits)
    if sql_type.kind in _PLAIN and layout.delimiter == _USUAL.delimiter:
        return write
    escapes = str.maketrans({layout.delimiter: f"\\{layout.delimiter}"} | _ESCAPES)
    return lambda datum: write(datum).translate(escapes)


def _csv_writer(
    sql_type: SqlType, layout: CopyLayout, float_digits: int, odd: Container[str]
) -> Callable[[Datum], str]:
    """Quoted where it would be read as something else: NULL, several fields, several rows."""
    write = _formatter(sql_type, float_digits)
    special = (layout.delimiter, layout.quote, "\n", "\r")

    def quoted(datum: Datum) -> str:
        text = write(datum)
        if text not in odd and not any(one in text for one in special):
            return text
        return f"{layout.quote}{text.replace(layout.quote, layout.quote * 2)}{layout.quote}"

    return quoted


def _binary_rows(types: tuple[SqlType, ...]) -> RowEncoder:
    encoders = [binary.field_encoder(sql_type) for sql_type in types]
    count = _INT16.pack(len(encoders))

    def encode_row(row: Row) -> bytes:
        return count + b"".join(
            [
                NULL_FIELD if datum is None else encode(datum)
                for encode, datum in zip(encoders, row, strict=True)
            ]
        )

    return encode_row
