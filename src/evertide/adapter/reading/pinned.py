"""Conditions that pin a column to some values; pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from evertide.expr.scalar import Call, ColumnRef, Literal, Or, Scalar
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class Pinned:
    """A condition that a column has one of these values, none of them NULL."""

    column: int
    values: Sequence[Datum]
    type: SqlType


def pin(predicate: Scalar) -> Pinned | None:
    """`column = constant`, `column IN (constants)` or `column = ANY (constant)`."""
    match predicate:
        case (
            Call(arguments=(ColumnRef(index=index, type=sql_type), Literal(value=value)))
            | Call(arguments=(Literal(value=value), ColumnRef(index=index, type=sql_type)))
        ) if predicate.function.name == "=":
            return Pinned(index, () if value is None else (value,), sql_type)
        case Call(
            arguments=(ColumnRef(index=index, type=sql_type), Literal(value=tuple(values)))
        ) if predicate.function.name == "array_contains":
            return Pinned(index, [v for v in values if v is not None], sql_type)
        case Or(arguments=arguments):
            return _one_of(arguments)
    return None


def _one_of(terms: Sequence[Scalar]) -> Pinned | None:
    """Several conditions of which one must hold, all about the same column."""
    pinned: list[Pinned] = []
    for term in terms:
        if isinstance(term, Literal) and term.value is not True:
            continue  # what is NULL, as a comparison with it is, makes no row match
        found = pin(term)
        if found is None or (pinned and found.column != pinned[0].column):
            return None
        pinned.append(found)
    if not pinned:
        return None
    values = [value for one in pinned for value in one.values]
    return Pinned(pinned[0].column, values, pinned[0].type)
