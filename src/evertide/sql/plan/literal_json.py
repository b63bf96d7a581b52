"""Columns of constants decoded from JSON: the quickest way from text to values.

Only what cannot be misread goes this way: integers for integers that hold them, strings for text,
and whatever a type's own input function makes of a string. For all else the answer is None, and
the constants are read with their types (literal_rows.py), which also says what is wrong with them.
"""

from collections.abc import Iterable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache, partial
from typing import Annotated, Any, Final, TypeAlias

import msgspec
import pyarrow as pa

from evertide.expr.columnar.text_columns import read_dates, read_different, read_numerics
from evertide.expr.functions.type_groups import RANGES
from evertide.persist.coding.encoding import encode_column
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.vocab.datum import NUMERIC_CONTEXT, NUMERIC_DIGITS, Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import Kind, SqlType

_Columns: TypeAlias = list[Sequence[Datum]]

# Numbers up to this length are exact in every step below.
_SHORT: Final = 20
# From so many on, texts are worth being read as columns.
_MANY: Final = 200
_EXACT: Final = Context(prec=NUMERIC_DIGITS)
_ZERO: Final = Decimal(0)


class _Misfit(Exception):  # not an error: the constants are read in another way
    """Something about a column is not as plain as it must be here."""


def decode_columns(values: LiteralValues, targets: Sequence[SqlType]) -> _Columns | None:
    """The constants as columns of these types; None where they must be read one by one."""
    return column_reader(tuple(targets), listed=values.listed).columns(values)


def decode_arrays(values: LiteralValues, targets: Sequence[SqlType]) -> list[pa.Array] | None:
    """The same in the columns' physical encoding."""
    return column_reader(tuple(targets), listed=values.listed).arrays(values)


class ColumnReader:
    """Reads constants as columns of some types, and knows once for all how each is read."""

    def __init__(self, targets: tuple[SqlType, ...], *, listed: bool) -> None:
        self._targets = targets
        self._listed = listed
        fits = not any(target.kind is Kind.UINT8 for target in targets)
        self._decoder = _decoder(targets, listed) if fits else None
        self._finish = [None if _is_finished(t) else partial(_finished, t) for t in targets]

    def columns(self, values: LiteralValues) -> _Columns | None:
        """As decode_columns."""
        try:
            pairs = zip(self._finish, self._decode(values), strict=True)
            return [found if finish is None else finish(found) for finish, found in pairs]
        except (msgspec.DecodeError, SqlError, _Misfit):
            return None

    def arrays(self, values: LiteralValues) -> list[pa.Array] | None:
        """As decode_arrays."""
        try:
            pairs = zip(self._targets, self._decode(values), strict=True)
            return [_array(target, found) for target, found in pairs]
        except (msgspec.DecodeError, SqlError, _Misfit):
            return None

    def _decode(self, values: LiteralValues) -> Iterable[Sequence[Any]]:
        if values.encoded is None or self._decoder is None or values.listed != self._listed:
            raise _Misfit
        decoded = self._decoder.decode(values.encoded)
        return decoded if self._listed else zip(*decoded, strict=True)


@lru_cache(maxsize=256)
def column_reader(targets: tuple[SqlType, ...], *, listed: bool) -> ColumnReader:
    """What reads constants of these types, each in parentheses of its own or all in one pair."""
    return ColumnReader(targets, listed=listed)


def _array(target: SqlType, column: Sequence[Any]) -> pa.Array:
    quick = _quick(target, column) if len(column) >= _MANY else None
    return encode_column(target, _finished(target, column)) if quick is None else quick


def _quick(target: SqlType, column: Sequence[Any]) -> pa.Array | None:
    """Texts read as a column: of few, reading one after the other is several times quicker."""
    match target.kind:
        case Kind.NUMERIC:
            return read_numerics(target, pa.array(_number_texts(column), pa.string()))
        case Kind.DATE:
            return read_dates(column)
        case _:
            return None


def _decoder(targets: tuple[SqlType, ...], listed: bool) -> msgspec.json.Decoder[Any]:
    if listed:
        items = list.__class_getitem__(_decoded_type(targets[0]))
        return msgspec.json.Decoder(list[items])  # type: ignore[valid-type]
    row = tuple.__class_getitem__(tuple(_decoded_type(target) for target in targets))
    return msgspec.json.Decoder(list[row])  # type: ignore[valid-type]


def _decoded_type(target: SqlType) -> object:
    if target in RANGES:
        least, greatest = RANGES[target]
        return Annotated[int, msgspec.Meta(ge=least, le=greatest)] | None
    match target.kind:
        case Kind.BOOL:
            return bool | None
        case Kind.FLOAT8:
            return float | None
        case Kind.NUMERIC:
            return msgspec.Raw
        case _:
            return str | None


def _is_finished(target: SqlType) -> bool:
    """Whether what was decoded is the datum."""
    return target in RANGES or target.kind in (Kind.BOOL, Kind.TEXT)


def _finished(target: SqlType, column: Sequence[Any]) -> Sequence[Datum]:
    if _is_finished(target):
        return column
    match target.kind:
        case Kind.FLOAT8:
            # A number, unlike a string, has no negative zero.
            return [None if value is None else value + 0.0 for value in column]
        case Kind.NUMERIC:
            return _numerics(target, column)
        case _:
            return read_different(target, column)


def _numerics(target: SqlType, column: Sequence[Any]) -> Sequence[Datum]:
    numbers = [None if text is None else Decimal(text) for text in _number_texts(column)]
    if target.precision is not None:
        numbers = _fitted(numbers, target.precision, target.scale or 0)
    normalize = Decimal.normalize
    return [normalize(n, NUMERIC_CONTEXT) if n else None if n is None else _ZERO for n in numbers]


def _number_texts(column: Sequence[Any]) -> list[str | None]:
    """Numbers as they are written, if they are all short and plain."""
    joined = b",".join(column)
    if any(mark in joined for mark in b'"tfe'):
        raise _Misfit
    texts: list[str | None] = [*joined.decode().split(",")]
    if max(map(len, joined.split(b","))) > _SHORT:
        raise _Misfit
    return [None if text == "null" else text for text in texts] if b"n" in joined else texts


def _fitted(numbers: list[Decimal | None], precision: int, scale: int) -> list[Decimal | None]:
    """Rounded to the scale; numbers that are too large are for others to refuse."""
    step, limit = Decimal(1).scaleb(-scale), Decimal(10) ** (precision - scale)
    try:
        fitted = [None if n is None else n.quantize(step, ROUND_HALF_UP, _EXACT) for n in numbers]
    except InvalidOperation:
        raise _Misfit from None
    known = [n for n in fitted if n is not None]
    if known and not -limit < min(known) <= max(known) < limit:
        raise _Misfit
    return fitted
