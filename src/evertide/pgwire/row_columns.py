"""Many rows as DataRow messages, worked out column by column.

A value costs a fraction of a microsecond where one call converts a column, and several times that
where each value is a call. Only for types whose values are short, or tell how long they are: rows
with others are encoded one by one (values.py), which bounds what is made at once.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from struct import Struct
from typing import Final, TypeAlias, cast

from evertide.expr.float_text import float8_text
from evertide.pgwire.binary import NULL_FIELD
from evertide.pgwire.values import ALL_DIGITS, BINARY_FORMAT, RowEncoder, field_encoder, row_encoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.sql_type import Kind, SqlType

# The fields of a column, none of whose values is NULL.
ColumnEncoder: TypeAlias = Callable[[Sequence[Datum]], list[bytes]]

# Values encoded at once, so many rows of few columns.
_STEP_VALUES: Final = 4_000
_STEP_ROWS: Final = 1_000
# The rows of a step that have more characters in them are encoded in parts, a few one by one.
MOST_CHARACTERS: Final = 64 * 1024

_PARTS: Final = 8
_FEW_ROWS: Final = 2 * _PARTS

_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.UINT8})
_TEXTS: Final = frozenset({Kind.TEXT, Kind.VARCHAR})
# Whatever their values are, a field has some tens of bytes at most.
_SHORT: Final = _INTEGERS | {
    Kind.FLOAT4, Kind.FLOAT8, Kind.BOOL, Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ,
    Kind.UUID, Kind.INTERVAL, Kind.OID, Kind.MZ_TIMESTAMP,
}  # fmt: skip
# A float whose text is no longer than this has no exponent in PostgreSQL's, if it has none here.
_PLAIN_FLOAT: Final = 16

_pack_length = Struct("!i").pack
# The four bytes before a field of so many.
_LENGTHS: Final = tuple(_pack_length(size) for size in range(256))


def row_messages(
    types: tuple[SqlType, ...],
    formats: tuple[int, ...],
    float_digits: int,
    rows: Sequence[Row],
) -> Iterator[bytes]:
    """The messages of these rows, some at a time, made only as they are asked for."""
    encode = row_encoder(types, formats, float_digits)
    together = _rows_encoder(types, formats, float_digits)
    if together is None or len(rows) < 2:
        yield from map(encode, rows)
        return
    step = max(1, min(_STEP_ROWS, _STEP_VALUES // len(types)))
    coming = iter(rows)
    while some := list(islice(coming, step)):
        yield from together(some, encode)


@lru_cache(maxsize=1024)
def _rows_encoder(
    types: tuple[SqlType, ...], formats: tuple[int, ...], float_digits: int
) -> Callable[[Sequence[Row], RowEncoder], Iterator[bytes]] | None:
    """How some rows of this shape become messages; None: only one by one."""
    if not types or any(t.kind not in _SHORT and t.kind not in _TEXTS for t in types):
        return None
    encoders = [
        _column_encoder(sql_type, code, float_digits)
        for sql_type, code in zip(types, formats, strict=True)
    ]
    texts = [place for place, sql_type in enumerate(types) if sql_type.kind in _TEXTS]
    header, count = Struct("!cih").pack, len(types)

    def encode(rows: Sequence[Row], one_by_one: RowEncoder) -> Iterator[bytes]:
        columns = list(zip(*rows, strict=True))
        if sum(_characters(columns[place]) for place in texts) > MOST_CHARACTERS:
            if len(rows) < _FEW_ROWS:
                yield from map(one_by_one, rows)
                return
            part = len(rows) // _PARTS
            for start in range(0, len(rows), part):
                yield from encode(rows[start : start + part], one_by_one)
            return
        fields = [_fields(column, c) for column, c in zip(encoders, columns, strict=True)]
        bodies = fields[0] if count == 1 else list(map(b"".join, zip(*fields, strict=True)))
        yield b"".join([header(b"D", len(body) + 6, count) + body for body in bodies])

    return encode


def _characters(column: Sequence[Datum]) -> int:
    return sum(map(len, cast("Sequence[str]", [text for text in column if text is not None])))


def _fields(encode: ColumnEncoder, column: Sequence[Datum]) -> list[bytes]:
    if None not in column:
        return encode(column)
    fields = iter(encode([datum for datum in column if datum is not None]))
    return [NULL_FIELD if datum is None else next(fields) for datum in column]


def _column_encoder(sql_type: SqlType, format_code: int, float_digits: int) -> ColumnEncoder:
    kind = sql_type.kind
    if kind in _TEXTS:
        return _text_fields
    if format_code != BINARY_FORMAT:
        if kind in _INTEGERS:
            return _integer_fields
        if kind is Kind.FLOAT8 and float_digits >= ALL_DIGITS:
            return _float_fields
    encode = field_encoder(sql_type, format_code, float_digits)
    return lambda column: list(map(encode, column))


def _text_fields(column: Sequence[Datum]) -> list[bytes]:
    return _with_lengths(list(map(str.encode, cast("Sequence[str]", column))))


def _integer_fields(column: Sequence[Datum]) -> list[bytes]:
    return _with_lengths(list(map(str.encode, map(str, column))))


def _float_fields(column: Sequence[Datum]) -> list[bytes]:
    texts = [
        float8_text(cast(float, datum))
        if len(text) > _PLAIN_FLOAT or "e" in text or "n" in text
        else text.removesuffix(".0")
        for text, datum in zip(map(repr, column), column, strict=True)
    ]
    return _with_lengths(list(map(str.encode, texts)))


def _with_lengths(bodies: list[bytes]) -> list[bytes]:
    lengths, most = _LENGTHS, len(_LENGTHS)
    return [
        (lengths[size] if (size := len(body)) < most else _pack_length(size)) + body
        for body in bodies
    ]
