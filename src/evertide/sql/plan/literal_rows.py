"""Columns of constants read without a node per cell: what makes bulk INSERT fast."""

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Final

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.type_groups import RANGES
from evertide.expr.scalar import Literal
from evertide.expr.text_input import parser
from evertide.sql.plan.coercion import cast_scalar, common_type_of, with_position
from evertide.sql.plan.literal import number
from evertide.vocab.datum import NUMERIC_DIGITS, Datum, reduce_numeric
from evertide.vocab.sql_type import BOOL, INT4, TEXT, Kind, SqlType

_TRUTH: Final = {"t": True, "f": False}
# A number's text means the same to these types as the number itself cast to them.
_FLOATS: Final = {Kind.FLOAT4, Kind.FLOAT8}
# Numbers up to this length are exact in every step below.
_SHORT: Final = 20
_EXACT: Final = Context(prec=NUMERIC_DIGITS, rounding=ROUND_HALF_UP)


def common_literal_type(kinds: str, texts: Sequence[str], *, at: int) -> SqlType:
    """The type of a column of constants; strings and NULLs take that of the others."""
    types: set[SqlType] = set()
    present = set(kinds)
    if present & set("tf"):
        types.add(BOOL)
    if "n" in present:
        numbers = {text for kind, text in zip(kinds, texts, strict=True) if kind == "n"}
        small = all(len(text) < 10 and text.lstrip("-").isdecimal() for text in numbers)
        types |= {INT4} if small else {number(text, at).type for text in numbers}
    if not types:
        return TEXT
    return common_type_of(sorted(types, key=str), "VALUES", [at] * len(types))


def samples(kinds: str, texts: Sequence[str], *, at: int) -> list[Literal]:
    """One constant of each kind that is there and has a type, to check types by."""
    found: list[Literal] = []
    for kind in sorted(set(kinds) & set("ntf")):
        text = texts[kinds.index(kind)]
        found.append(number(text, at) if kind == "n" else Literal(_TRUTH[kind], BOOL))
    return found


def literal_column(
    kinds: str, texts: Sequence[str], target: SqlType, *, at: int
) -> Sequence[Datum]:
    """The constants as values of a column of this type, by assignment."""
    present = set(kinds)
    with with_position(at):
        if present == {"s"}:
            return _strings(texts, target)
        if present == {"n"}:
            if target in RANGES:
                found = _integers(texts, target)
                if found is not None:
                    return found
            elif target.kind is Kind.NUMERIC:
                return _numerics(texts, target)
            elif target.kind in _FLOATS:
                # A number, unlike a string, has no negative zero.
                return [read + 0.0 for read in map(parser(target), texts) if type(read) is float]
        return _cells(kinds, texts, target, at=at)


def _strings(texts: Sequence[str], target: SqlType) -> list[Datum]:
    """Texts repeat (dates, words), so each is read once, unless reading costs nothing."""
    read = parser(target)
    if target.kind is Kind.TEXT:
        return list(map(read, texts))
    values = {text: read(text) for text in set(texts)}
    return [values[text] for text in texts]


def _numerics(texts: Sequence[str], target: SqlType) -> list[Datum]:
    """Short plain numbers by the shortest way; `parser` would give the same and takes longer."""
    read = parser(target)
    modified = target.precision is not None
    step = Decimal(1).scaleb(-(target.scale or 0))
    digits = (target.precision or 0) - (target.scale or 0)
    values: list[Datum] = []
    for text in texts:
        if len(text) > _SHORT or "e" in text or "E" in text:
            values.append(read(text))
            continue
        value = Decimal(text)
        if modified:
            value = value.quantize(step, context=_EXACT)
            if value and value.adjusted() >= digits:
                read(text)  # says what is wrong
        values.append(reduce_numeric(value))
    return values


def _integers(texts: Sequence[str], target: SqlType) -> list[int] | None:
    """All of them at once; None if one is not written as an integer or does not fit."""
    least, greatest = RANGES[target]
    try:
        values = list(map(int, texts))
    except ValueError:
        return None
    return values if least <= min(values) and max(values) <= greatest else None


def _cells(kinds: str, texts: Sequence[str], target: SqlType, *, at: int) -> list[Datum]:
    """Cell by cell; constants repeat, so each is read once."""
    read = _reader(target, at)
    known: dict[tuple[str, str], Datum] = {}
    values: list[Datum] = []
    for cell in zip(kinds, texts, strict=True):
        if cell not in known:
            known[cell] = read(*cell)
        values.append(known[cell])
    return values


def _reader(target: SqlType, at: int) -> Callable[[str, str], Datum]:
    def read(kind: str, text: str) -> Datum:
        if kind == "0":
            return None
        if kind == "s":
            return parser(target)(text)
        literal = number(text, at) if kind == "n" else Literal(_TRUTH[kind], BOOL)
        cast = cast_scalar(literal, target, CastContext.ASSIGNMENT, at=at)
        return compile_scalar(cast)(())

    return read
