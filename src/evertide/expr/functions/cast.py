"""Casts: which there are, how freely SQL may insert them, and what they are made of."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache, lru_cache
from typing import Final, cast

from evertide.expr.functions import conversion, jsonb_conversion, maps, text_conversion
from evertide.expr.functions.made import is_made, made_rows, type_of_text
from evertide.expr.functions.record import is_record, text_of_row
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.text_conversion import cast_name, elementwise
from evertide.expr.functions.type_groups import (
    ARRAYS,
    BPCHAR,
    CHAR,
    FLOATS,
    INTEGERS,
    LISTS,
    REGISTERED,
    SCALARS,
    SIGNED,
    STRINGS,
    UINT2,
    UINT4,
    UINT8,
    VARCHAR,
    unmodified,
)
from evertide.expr.functions.type_modifiers import FIT_BPCHAR, FIT_NUMERIC, FIT_TIMES, FIT_VARCHAR
from evertide.expr.scalar import Call, Literal, Scalar
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import (
    DATE,
    FLOAT4,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    MZ_TIMESTAMP,
    NAME,
    NUMERIC,
    OID,
    TEXT,
    TIME,
    TIMED,
    TIMESTAMP,
    TIMESTAMPTZ,
    Kind,
    SqlType,
)


class CastContext(IntEnum):
    """How freely a cast may be inserted; a greater one may be where a smaller one may."""

    EXPLICIT = 0  # only where the user writes it
    ASSIGNMENT = 1  # also to fit a value to the column it goes into
    IMPLICIT = 2  # anywhere in an expression


@dataclass(frozen=True, slots=True)
class CastStep:
    """One function of the table; `modifiers` are its arguments after the value.

    `tells_explicit`: the last argument says whether the user wrote the cast.
    """

    function: ScalarFunction
    modifiers: tuple[int, ...] = ()
    tells_explicit: bool = False


@dataclass(frozen=True, slots=True)
class Cast:
    """A way from one type to another: no step where they differ in nothing that is stored."""

    source: SqlType
    target: SqlType
    context: CastContext
    steps: tuple[CastStep, ...]

    def apply(self, argument: Scalar, *, explicit: bool) -> Scalar:
        """The argument with this cast around it."""
        result = argument
        for step in self.steps:
            extra: list[Datum] = [*step.modifiers, *([explicit] if step.tells_explicit else [])]
            types = step.function.arguments[1:]
            literals = [Literal(datum, t) for datum, t in zip(extra, types, strict=True)]
            result = Call(step.function, (result, *literals), step.function.result)
        if self.steps:
            assert isinstance(result, Call), "a step makes a call"
            result = Call(result.function, result.arguments, self.target)
        return result


def _pairs(sources: Iterable[SqlType], targets: Iterable[SqlType]) -> set[tuple[SqlType, SqlType]]:
    return {(source, target) for source in sources for target in targets}


_WIDE: Final = (FLOAT4, FLOAT8, NUMERIC)
_NUMBERS: Final = (*INTEGERS, *_WIDE)
_IMPLICIT: Final = (
    _pairs((INT2,), (INT4, INT8, *_WIDE))
    | _pairs((INT4,), (INT8, *_WIDE))
    | _pairs((INT8,), _WIDE)
    | _pairs((UINT2,), (UINT4, UINT8, INT4, INT8, *_WIDE))
    | _pairs((UINT4,), (UINT8, INT8, *_WIDE))
    | _pairs((UINT8,), _WIDE)
    | _pairs((FLOAT4,), (FLOAT8,))
    | _pairs((NUMERIC,), FLOATS)
    | _pairs(SIGNED, (OID, *REGISTERED))
    | _pairs((OID,), REGISTERED)
    | _pairs(REGISTERED, (OID,))
    | _pairs((TEXT, VARCHAR, BPCHAR), (TEXT, VARCHAR, BPCHAR, NAME))
    | _pairs((NAME, CHAR), (TEXT,))
    | _pairs((DATE,), (TIMESTAMP, TIMESTAMPTZ))
    | _pairs((TIMESTAMP,), (TIMESTAMPTZ,))
    | _pairs((TIME,), (INTERVAL,))
    | _pairs((*INTEGERS, NUMERIC, DATE, TIMESTAMP, TIMESTAMPTZ), (MZ_TIMESTAMP,))
)
_TEXTS: Final = (TEXT, VARCHAR, BPCHAR)
_ASSIGNMENT: Final = (
    _pairs(_NUMBERS, _NUMBERS)
    | _pairs((OID, *REGISTERED), (INT4, INT8))
    | _pairs((NAME, CHAR), (VARCHAR, BPCHAR))
    | _pairs((TEXT, VARCHAR, BPCHAR), (CHAR,))
    | _pairs((TIMESTAMP, TIMESTAMPTZ), (DATE, TIME))
    | _pairs((TIMESTAMPTZ,), (TIMESTAMP,))
    | _pairs((INTERVAL,), (TIME,))
    | _pairs((MZ_TIMESTAMP,), (TIMESTAMP, TIMESTAMPTZ))
    # Every value may be stored as text without being asked for; none is read from it so.
    | _pairs((t for t in (*SCALARS, *ARRAYS, *LISTS) if t not in STRINGS), (*_TEXTS, NAME))
)


def _context(source: SqlType, target: SqlType) -> CastContext:
    if (source, target) in _IMPLICIT:
        return CastContext.IMPLICIT
    if (source, target) in _ASSIGNMENT:
        return CastContext.ASSIGNMENT
    return CastContext.EXPLICIT


_SCALAR_ROWS: Final = (*conversion.ROWS, *text_conversion.CASTS, *jsonb_conversion.CASTS)
_BY_TYPES: Final[dict[tuple[SqlType, SqlType], ScalarFunction]] = {}
for _row in _SCALAR_ROWS:
    _BY_TYPES.setdefault((_row.arguments[0], _row.result), _row)


def _sequence_rows(kind: Kind) -> list[ScalarFunction]:
    """Arrays are cast by their elements, wherever these are."""
    rows = []
    for (source, target), row in _BY_TYPES.items():
        if source.element is None and target.element is None and source != target:
            sources = SqlType(kind, element=source)
            targets = SqlType(kind, element=target)
            rows.append(elementwise(cast_name(targets), row, sources, targets))
    return rows


_SEQUENCE_ROWS: Final = (*_sequence_rows(Kind.ARRAY), *_sequence_rows(Kind.LIST))
_SEQUENCES_BY_TYPES: Final = {(row.arguments[0], row.result): row for row in _SEQUENCE_ROWS}

ROWS: Final = (*_BY_TYPES.values(), *_SEQUENCE_ROWS)


@lru_cache(maxsize=4096)
def find_cast(source: SqlType, target: SqlType) -> Cast | None:
    """The cast between two types, modifiers included; None if there is none.

    A literal of unknown type has no cast: it is read by text_input when its type is settled.
    """
    plain_source, plain_target = unmodified(source), unmodified(target)
    modifier = () if source == target else _modifier_steps(target)
    if plain_source == plain_target:
        return Cast(source, target, CastContext.IMPLICIT, modifier)
    pair = (plain_source, plain_target)
    if is_record(plain_source) and plain_target == TEXT:
        step = CastStep(text_of_row(plain_source))
        return Cast(source, target, CastContext.ASSIGNMENT, (step,))
    row = _BY_TYPES.get(pair) or _SEQUENCES_BY_TYPES.get(pair) or _made_cast(*pair)
    if row is None:
        return None
    return Cast(source, target, _cast_context(*pair), (CastStep(row), *modifier))


@cache
def _made_cast(source: SqlType, target: SqlType) -> ScalarFunction | None:
    """A cast of values that are made of others: by what they hold, or by their text."""
    if is_made(source) or is_made(target):
        named = made_rows(cast_name(target), (source, target))
        found = [row for row in named if row.arguments == (source,) and row.result == target]
        if found:
            return found[0]
    if source.element is None or target.element is None:
        return None
    if source.kind is not target.kind and Kind.MAP in (source.kind, target.kind):
        return None
    held = find_cast(source.element, target.element)
    return None if held is None else _holding(held, source, target)


def _holding(held: Cast, source: SqlType, target: SqlType) -> ScalarFunction:
    """A list, array or map whose every value goes through a cast."""
    steps = [(step.function.body, step.modifiers) for step in held.steps]
    is_map = source.kind is Kind.MAP

    def convert(datum: Datum) -> Datum:
        for body, modifiers in steps:
            datum = None if datum is None else body(datum, *modifiers)
        return datum

    def body(datums: tuple[Datum, ...]) -> Datum:
        if is_map:
            pairs = cast(maps.Pairs, datums)
            return tuple((key, convert(value)) for key, value in pairs)
        return tuple(convert(datum) for datum in datums)

    fallible = any(step.function.fallible for step in held.steps)
    return ScalarFunction(cast_name(target), (source,), target, body, fallible=fallible)


def made_cast_of(signature: str) -> ScalarFunction | None:
    """The cast between types made of others that has this signature."""
    name, _, rest = signature.removesuffix(")").partition("(")
    source, target = type_of_text(rest), type_of_text(name)
    return None if source is None or target is None else _made_cast(source, target)


def _cast_context(source: SqlType, target: SqlType) -> CastContext:
    if source.element is not None and target.element is not None:
        if source.kind is not target.kind:  # an array as a list is asked for
            return CastContext.EXPLICIT
        return _cast_context(source.element, target.element)
    return _context(source, target)


def _modifier_steps(target: SqlType) -> tuple[CastStep, ...]:
    if target.kind is Kind.NUMERIC and target.precision is not None:
        return (CastStep(FIT_NUMERIC, (target.precision, target.scale or 0)),)
    if target.kind in TIMED and target.precision is not None:
        return (CastStep(FIT_TIMES[unmodified(target)], (target.precision,)),)
    if target.length is None:
        return ()
    fit = FIT_VARCHAR if target.kind is Kind.VARCHAR else FIT_BPCHAR
    return (CastStep(fit, (target.length,), tells_explicit=True),)


def single_step(row: ScalarFunction) -> Cast:
    """A function of one argument used as a cast."""
    return Cast(row.arguments[0], row.result, CastContext.EXPLICIT, (CastStep(row),))


def can_cast(source: SqlType, target: SqlType, context: CastContext) -> bool:
    """Whether a value of one type may stand where the other is wanted, in this context."""
    found = find_cast(source, target)
    return found is not None and found.context >= context
