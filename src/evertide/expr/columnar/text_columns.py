"""Columns of texts read as columns of a type: what the type's input function does, for many."""

from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.numeric_columns import MAX_DIGITS, from_scaled
from evertide.expr.text_input import parser
from evertide.persist.coding.encoding import arrow_type, encode_column
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import Kind, SqlType

Texts = Sequence[str | None]

_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})
# So long a text of digits is an integer or a numeric that Arrow reads as we do.
_PLAIN_INTEGER: Final = r"^-?[0-9]{1,19}$"
_PLAIN_NUMBER: Final = r"^-?[0-9]{1,18}(\.[0-9]{1,18})?$"
_DATE_LENGTH: Final = 10
_DAY_ZERO: Final = date(1970, 1, 1).toordinal()
_TIME_ZERO: Final = datetime(1970, 1, 1)
_MICRO: Final = timedelta(microseconds=1)


class BadText(Exception):  # tells where the error is
    """The first text that is none of the type."""

    def __init__(self, row: int, text: str, error: SqlError) -> None:
        super().__init__(str(error))
        self.row = row
        self.text = text
        self.error = error


def read_texts(target: SqlType, texts: Texts) -> pa.Array:
    """The physical encoding of what the texts mean; raises BadText."""
    found = _read_at_once(target, texts)
    return encode_column(target, _read_one_by_one(target, texts)) if found is None else found


def _read_at_once(target: SqlType, texts: Texts) -> pa.Array | None:
    """All of them at once, if they are as most are written; None: they are not."""
    if target.kind is Kind.TEXT:
        return pa.array(texts, pa.string())
    if target.kind in _INTEGERS:
        return _integers(target, pa.array(texts, pa.string()))
    if target.kind is Kind.NUMERIC:
        return read_numerics(target, pa.array(texts, pa.string()))
    return read_dates(texts) if target.kind is Kind.DATE else None


def _integers(target: SqlType, texts: pa.Array) -> pa.Array | None:
    if not _all_match(texts, _PLAIN_INTEGER):
        return None
    try:
        return texts.cast(arrow_type(target))
    except pa.ArrowInvalid:
        return None


def _all_match(texts: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(texts, pattern)).as_py() is not False


def read_dates(texts: Texts) -> pa.Array | None:
    """Dates that are all written 2024-01-31; None: they are not."""
    array = pa.array(texts, pa.string())
    lengths = pc.min_max(pc.binary_length(array)).as_py()
    if lengths["min"] != _DATE_LENGTH or lengths["max"] != _DATE_LENGTH:
        return None
    try:
        return array.cast(pa.date32()).cast(pa.int32())
    except pa.ArrowInvalid:
        return None


def read_numerics(target: SqlType, texts: pa.Array) -> pa.Array | None:
    """Numerics that are integers of 64 bits at their scale; None: they are not so short."""
    if not _all_match(texts, _PLAIN_NUMBER):
        return None
    scale = target.scale or 0
    if target.precision is None:
        points = pc.find_substring(texts, ".")
        behind = pc.subtract(pc.binary_length(texts), pc.add(points, 1))
        scale = pc.max(pc.if_else(pc.less(points, 0), 0, behind)).as_py() or 0
    try:
        decimals = texts.cast(pa.decimal128(38, scale))
    except pa.ArrowInvalid:
        return None  # to be rounded
    nulls = None
    if decimals.null_count:
        nulls = decimals.is_null().to_numpy(zero_copy_only=False)
        decimals = decimals.fill_null(0)
    halves = np.frombuffer(decimals.buffers()[1], np.int64)[: 2 * len(decimals)]
    low, high = halves[::2], halves[1::2]
    precision = min(target.precision or MAX_DIGITS, MAX_DIGITS)
    if (high != low >> 63).any() or (abs(low) >= 10**precision).any():
        return None
    return from_scaled(low, scale, nulls)


def read_different(target: SqlType, texts: Texts) -> list[Datum]:
    """Texts repeat (dates, words), so each is read once; raises what the type's input raises."""
    read = _quick_parser(target)
    known: dict[str | None, Datum] = {t: read(t) for t in set(texts) if t is not None}
    known[None] = None
    return [known[text] for text in texts]


def _read_one_by_one(target: SqlType, texts: Texts) -> list[Datum]:
    try:
        return read_different(target, texts)
    except SqlError:
        pass
    read = parser(target)
    for row, text in enumerate(texts):
        try:
            if text is not None:
                read(text)
        except SqlError as error:
            raise BadText(row, text or "", error) from error
    raise AssertionError("a text that cannot be read is found again")


def _quick_parser(target: SqlType) -> Callable[[str], Datum]:
    """The type's input function, after a look at the form that most dates and times have."""
    read = parser(target)

    def read_date(text: str) -> Datum:
        if len(text) == _DATE_LENGTH and text[4] == text[7] == "-":
            try:
                return date.fromisoformat(text).toordinal() - _DAY_ZERO
            except ValueError:
                pass
        return read(text)

    def read_timestamp(text: str) -> Datum:
        if len(text) in (19, 23, 26) and text[10] == " ":
            try:
                found = datetime.fromisoformat(text)
            except ValueError:
                return read(text)
            if found.tzinfo is None:
                return (found - _TIME_ZERO) // _MICRO
        return read(text)

    if target.kind is Kind.DATE:
        return read_date
    if target.kind is Kind.TIMESTAMP and target.precision is None:
        return read_timestamp
    return read
