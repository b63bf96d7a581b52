"""Looking into scalar expressions and rebuilding them: what every rewrite and executor needs."""

from collections.abc import Callable, Mapping
from typing import Final, assert_never

from evertide.expr.functions.row import Knowledge
from evertide.expr.scalar import (
    And,
    Call,
    Case,
    Coalesce,
    ColumnRef,
    IsNull,
    Literal,
    Or,
    OuterColumn,
    Parameter,
    Scalar,
    SessionCall,
)
from evertide.vocab.sql_type import Kind

_REMAINDERS: Final = ("%", "mod")
_INTEGERS: Final = frozenset({Kind.INT2, Kind.INT4, Kind.INT8})


def children(scalar: Scalar) -> tuple[Scalar, ...]:
    """The scalars directly below, in order of evaluation."""
    match scalar:
        case ColumnRef() | OuterColumn() | Literal() | Parameter() | SessionCall():
            return ()
        case Call(arguments=arguments) | And(arguments) | Or(arguments):
            return arguments
        case Coalesce(arguments=arguments):
            return arguments
        case Case(branches=branches, otherwise=otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case IsNull(argument):
            return (argument,)
        case _:
            assert_never(scalar)


def with_children(scalar: Scalar, parts: tuple[Scalar, ...]) -> Scalar:
    """The same scalar over other parts, given in the order of `children`."""
    match scalar:
        case ColumnRef() | OuterColumn() | Literal() | Parameter() | SessionCall():
            return scalar
        case Call(function=function, type=sql_type):
            return Call(function, parts, sql_type)
        case And():
            return And(parts)
        case Or():
            return Or(parts)
        case Coalesce(type=sql_type):
            return Coalesce(parts, sql_type)
        case Case(type=sql_type):
            pairs = tuple(zip(parts[:-1:2], parts[1:-1:2], strict=True))
            return Case(pairs, parts[-1], sql_type)
        case IsNull():
            return IsNull(parts[0])
        case _:
            assert_never(scalar)


def rewrite(scalar: Scalar, change: Callable[[Scalar], Scalar]) -> Scalar:
    """Apply `change` to every part, innermost first."""
    below = children(scalar)
    if below:
        scalar = with_children(scalar, tuple(rewrite(part, change) for part in below))
    return change(scalar)


def columns_of(scalar: Scalar) -> frozenset[int]:
    """The columns of the input row that the scalar looks at."""
    if isinstance(scalar, ColumnRef):
        return frozenset((scalar.index,))
    return frozenset().union(*(columns_of(part) for part in children(scalar)))


def move_columns(scalar: Scalar, positions: Mapping[int, int]) -> Scalar:
    """The same scalar over a row whose columns are elsewhere: old position to new."""

    def moved(part: Scalar) -> Scalar:
        if isinstance(part, ColumnRef):
            return ColumnRef(positions[part.index], part.type)
        return part

    return rewrite(scalar, moved)


def shift_columns(scalar: Scalar, by: int) -> Scalar:
    """The same scalar over a row with `by` more columns in front (fewer, if negative)."""
    return move_columns(scalar, {index: index + by for index in columns_of(scalar)})


def inline_columns(scalar: Scalar, values: Mapping[int, Scalar]) -> Scalar:
    """Put scalars in the place of columns."""

    def inlined(part: Scalar) -> Scalar:
        return values[part.index] if isinstance(part, ColumnRef) else part

    return rewrite(scalar, inlined)


def is_fallible(scalar: Scalar) -> bool:
    """Whether evaluation may raise for some row."""
    if isinstance(scalar, Call) and may_raise(scalar):
        return True
    return any(is_fallible(part) for part in children(scalar))


def may_raise(call: Call) -> bool:
    """Whether the function itself may, whatever its arguments' values are.

    An integer's remainder by a number that is known fails for none.
    """
    function = call.function
    if function.fallible and function.name in _REMAINDERS:
        divisor = call.arguments[1]
        if isinstance(divisor, Literal) and divisor.type.kind in _INTEGERS:
            return divisor.value == 0
    return function.fallible


def is_bound(scalar: Scalar) -> bool:
    """Whether nothing in it waits for a statement to start, a snapshot, or a row around."""
    if isinstance(scalar, OuterColumn | Parameter | SessionCall):
        return False
    if isinstance(scalar, Call) and scalar.function.knowledge is Knowledge.CATALOG:
        return False
    return all(is_bound(part) for part in children(scalar))


def size_of(scalar: Scalar) -> int:
    """How many parts the scalar has: rewrites that copy scalars use it to stay small."""
    return 1 + sum(size_of(part) for part in children(scalar))
