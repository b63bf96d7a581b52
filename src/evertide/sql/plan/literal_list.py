"""Long IN lists of constants, read as one constant."""

from collections.abc import Sequence
from typing import Final

from evertide.expr.functions.type_groups import unmodified
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.plan.coercion import is_unknown, unify
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_function
from evertide.sql.plan.literal import number
from evertide.sql.plan.literal_json import decode_columns
from evertide.sql.plan.literal_rows import literal_column
from evertide.sql.syntax.expression import Expression, RowConstructor
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import (
    BOOL,
    DATE,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    UNKNOWN,
    Kind,
    SqlType,
    array_of,
)

# Types whose constants, where they can be read as one, are of that type beside a value of it.
OWN_CONSTANTS: Final = frozenset(
    {INT4, INT8, NUMERIC, TEXT, DATE, TIMESTAMP, TIMESTAMPTZ, SqlType(Kind.UUID)}
)


def member_of(
    operand: Expression, values: LiteralValues, context: ExpressionContext
) -> Scalar | None:
    """Whether the operand is among the constants; None: ask about each of them on its own.

    That is also what becomes of a constant that cannot be read, so that the error points at it.
    What is stored is planned seldom and runs often, and Spark has its own equality but not ours.
    """
    if isinstance(operand, RowConstructor) or context.query.stored:
        return None
    bound = context.bind(operand)
    if is_unknown(bound):
        return None
    try:
        return _member_of(bound, values, context)
    except SqlError:
        return None


def _member_of(bound: Scalar, values: LiteralValues, context: ExpressionContext) -> Scalar:
    at = values.at
    if bound.type in OWN_CONSTANTS:
        known = decode_columns(values, [bound.type])
        if known is not None:
            return _call(bound, known[0], context, at)
    scalars = [bound, *_samples(values)]
    (operand, *_), shared = unify(scalars, "IN", context.query, ats=[at] * len(scalars))
    column = literal_column(values.kinds, values.texts, shared, at=at)
    return _call(operand, column, context, at)


def _call(operand: Scalar, column: Sequence[Datum], context: ExpressionContext, at: int) -> Scalar:
    members = Literal(tuple(column), array_of(unmodified(operand.type)))
    return call_function("array_contains", [operand, members], context.query, at=at)


def _samples(values: LiteralValues) -> list[Scalar]:
    """One constant of each type that is among them."""
    kinds = set(values.kinds)
    found: list[Scalar] = [Literal(True, BOOL)] if kinds & set("tf") else []
    if kinds & set("s0"):
        found.append(Literal(None, UNKNOWN))
    numbers = {text for kind, text in zip(values.kinds, values.texts, strict=True) if kind == "n"}
    types: dict[SqlType, Scalar] = {}
    for text in numbers:
        literal = number(text, values.at)
        types.setdefault(literal.type, literal)
    return [*found, *types.values()]
