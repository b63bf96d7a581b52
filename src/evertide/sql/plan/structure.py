"""CASE, COLLATE, arrays and lists, and the forms that have no meaning here."""

from typing import assert_never

from evertide.expr import scalar as typed
from evertide.expr.dimensions import base_of
from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.plan.coercion import coerce, settle, to_boolean, unify
from evertide.sql.plan.dimensions import checked_subscripts
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import call_function, call_operator
from evertide.sql.plan.place import start_of
from evertide.sql.plan.scope import find_column
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    ArrayConstructor,
    Case,
    Collate,
    DefaultValue,
    Expression,
    ListConstructor,
    MapConstructor,
    Name,
    RowStar,
    Slice,
    Star,
    Subscript,
)
from evertide.vocab.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    IndeterminateType,
    SqlError,
    SqlSyntaxError,
    UndefinedObject,
)
from evertide.vocab.sql_type import INT4, JSONB, TEXT, UNKNOWN, Kind, SqlType

# Text is ordered by its bytes; every collation that says so means the same.
# A slice that is open to the right ends here.
_LAST = 2**31 - 1
_COLLATIONS = {"c", "posix", "default", "ucs_basic", "C", "POSIX"}


def bind_case(node: Case, context: ExpressionContext) -> Scalar:
    """CASE: results share one type; with an operand each condition is an equality."""
    context = context.without_rows("CASE")
    operand = None if node.operand is None else context.bind(node.operand)
    conditions: list[Scalar] = []
    results: list[Scalar] = []
    for branch in node.branches:
        condition = context.bind(branch.condition)
        if operand is None:
            at = start_of(branch.condition)
            conditions.append(to_boolean(condition, "CASE/WHEN", context.query, at=at))
        else:
            pair = [operand, condition]
            conditions.append(call_operator("=", pair, context.query, at=branch.at))
        results.append(context.bind(branch.result))
    nothing = Literal(None, UNKNOWN)
    last = nothing if node.otherwise is None else context.bind(node.otherwise)
    ats = [start_of(branch.result) for branch in node.branches]
    at = node.at if node.otherwise is None else start_of(node.otherwise)
    # PostgreSQL looks at ELSE first, which decides between types that cast both ways.
    (otherwise, *values), shared = unify([last, *results], "CASE", context.query, ats=[at, *ats])
    return typed.Case(tuple(zip(conditions, values, strict=True)), otherwise, shared)


def check_collation(name: Name) -> None:
    """Refuse any other order than the one that text has anyway."""
    if name.parts[-1] not in _COLLATIONS:
        raise UndefinedObject(
            f'collation "{".".join(name.parts)}" for encoding "UTF8" does not exist',
            position=position_of(name.at),
        )


def bind_collate(node: Collate, context: ExpressionContext) -> Scalar:
    """COLLATE of what text is ordered by anyway."""
    check_collation(node.collation)
    return settle(context.bind_node(node.operand, context), context.query.parameters)


def bind_elements(node: ArrayConstructor | ListConstructor, context: ExpressionContext) -> Scalar:
    """`ARRAY[a, b]`: elements share one type."""
    what = "ARRAY" if isinstance(node, ArrayConstructor) else "LIST"
    if not node.items:
        raise IndeterminateType(
            f"cannot determine type of empty {what.lower()}",
            hint="Explicitly cast to the desired type, for example ARRAY[]::integer[].",
            position=position_of(node.at),
        )
    bound = [context.bind(item) for item in node.items]
    ats = [start_of(item) for item in node.items]
    elements, shared = unify(bound, what, context.query, ats=ats)
    if what == "ARRAY" and shared.kind in (Kind.LIST, Kind.MAP):
        raise FeatureNotSupported(
            f"arrays of {shared.kind.value}s are not supported",
            position=position_of(node.at),
        )
    return call_function(what.lower(), elements, context.query, at=node.at)


def bind_map(node: MapConstructor, context: ExpressionContext) -> Scalar:
    """`MAP[key => value]`: keys are text, values share one type."""
    if not node.entries:
        raise IndeterminateType(
            "cannot determine type of empty map",
            hint="Explicitly cast to the desired type, for example MAP[]::map[text=>integer].",
            position=position_of(node.at),
        )
    query = context.query
    keys = [
        coerce(context.bind(key), TEXT, CastContext.IMPLICIT, query, at=start_of(key))
        for key, _ in node.entries
    ]
    bound = [context.bind(value) for _, value in node.entries]
    ats = [start_of(value) for _, value in node.entries]
    values, _ = unify(bound, "MAP", query, ats=ats)
    held = [
        call_function("array", keys, query, at=node.at),
        call_function("list", values, query, at=node.at),
    ]
    return call_function("map", held, query, at=node.at)


def bind_subscript(node: Subscript, context: ExpressionContext) -> Scalar:
    """`x[i]` of an array counts from 1; of jsonb it is the operator ->."""
    value, whole = _subscripted(node, context)
    return checked_subscripts(node, whole, value)


def _subscripted(node: Subscript, context: ExpressionContext) -> tuple[Scalar, SqlType]:
    """The value that a subscript leads to, and the type of what the first one of all was of."""
    if isinstance(node.operand, Subscript):
        operand, whole = _subscripted(node.operand, context)
        if operand.type.kind is not Kind.ARRAY:
            operand = checked_subscripts(node.operand, whole, operand)
    else:
        operand = context.bind_node(node.operand, context)
        whole = operand.type
    if operand.type == JSONB:
        if isinstance(node.index, Slice):
            bound = node.index.upper or node.index.lower
            raise DatatypeMismatch(
                "jsonb subscript does not support slices",
                position=position_of(node.at if bound is None else start_of(bound)),
            )
        pair = [operand, context.bind(node.index)]
        return call_operator("->", pair, context.query, at=node.at), whole
    if whole.kind is Kind.ARRAY and operand.type == base_of(whole):
        return Literal(None, operand.type), whole  # there are no more dimensions
    if operand.type.kind not in (Kind.ARRAY, Kind.LIST):
        raise DatatypeMismatch(
            f"cannot subscript type {operand.type} because it does not support subscripting",
            position=position_of(node.operand.at),
        )
    match node.index:
        case Slice(lower=lower, upper=upper):
            bounds = [
                Literal(end, INT4) if bound is None else _index(bound, context)
                for bound, end in ((lower, 1), (upper, _LAST))
            ]
            sliced = call_function("array_slice", [operand, *bounds], context.query, at=node.at)
            return sliced, whole
        case index:
            number = _index(index, context)
            if _counts_from_zero(node.operand, context):
                one = Literal(1, INT4)
                number = call_operator("+", [number, one], context.query, at=node.at)
            arguments = [operand, number]
            return call_function("array_get", arguments, context.query, at=node.at), whole


def _counts_from_zero(node: Expression, context: ExpressionContext) -> bool:
    if not isinstance(node, Name):
        return False
    scopes = (context.scope, *(around.scope for around in context.query.outer))
    return find_column(node, scopes)[1].from_zero


def _index(node: Expression, context: ExpressionContext) -> Scalar:
    return coerce(context.bind(node), INT4, CastContext.ASSIGNMENT, context.query, at=node.at)


def refusal(
    node: Star | RowStar | DefaultValue,
) -> SqlError:
    """Why a form that parses cannot be planned as a value."""
    position = position_of(node.at)
    match node:
        case DefaultValue():
            return SqlSyntaxError("DEFAULT is not allowed in this context", position=position)
        case Star() | RowStar():
            return SqlSyntaxError("* is not allowed in this context", position=position)
        case _:
            assert_never(node)
