"""Expressions: one exhaustive match from syntax node to the function that plans it.

Those functions get at parts through their context, not by importing this module, so the graph of
imports stays a tree.
"""

from typing import assert_never

from evertide.expr.outer_columns import lifted
from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.sql.plan import call, literal, operator, predicate, quantified, record, structure
from evertide.sql.plan.coercion import to_boolean
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.place import start_of
from evertide.sql.plan.rewrite import replace_parts, walk_parts
from evertide.sql.plan.scope import Scope, ScopeColumn, find_column, is_whole_row
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import (
    And,
    AnyAll,
    ArrayConstructor,
    ArraySubquery,
    Between,
    Binary,
    BooleanLiteral,
    Case,
    Cast,
    Collate,
    DefaultValue,
    Exists,
    Expression,
    FieldAccess,
    FunctionCall,
    InList,
    InSubquery,
    IsDistinct,
    IsTest,
    ListConstructor,
    MapConstructor,
    Name,
    Not,
    NullLiteral,
    NumberLiteral,
    Or,
    Parameter,
    PatternMatch,
    RowConstructor,
    RowStar,
    ScalarSubquery,
    Star,
    StringLiteral,
    Subscript,
    TypedLiteral,
    Unary,
)
from evertide.vocab.sql_type import BOOL, UNKNOWN


def plain_context(
    scope: Scope, query: QueryContext, clause: Clause, deferred: Deferred
) -> ExpressionContext:
    """The context of an expression that may not hold aggregates."""
    return ExpressionContext(
        query=query, scope=scope, clause=clause, deferred=deferred, bind_node=bind_expression
    )


def bind_condition(node: Expression, context: ExpressionContext) -> Scalar:
    """An expression that must be a boolean: WHERE, ON, HAVING."""
    what = "JOIN/ON" if context.clause is Clause.ON else context.clause.value
    return to_boolean(context.bind(node), what, context.query, at=start_of(node))


def refer(column: ScopeColumn, context: ExpressionContext, at: int) -> Scalar:
    """The value of a column of the scope; where it is named is kept for errors about grouping."""
    name = column.name if column.table is None else f"{column.table.name}.{column.name}"

    def remembered(part: Scalar) -> Scalar | None:
        return context.deferred.refer(part, name, at) if isinstance(part, ColumnRef) else None

    return replace_parts(column.scalar, remembered)


def _bind_name(node: Name, context: ExpressionContext) -> Scalar:
    """A column of this row, or of one around."""
    outer = context.query.outer
    scopes = (context.scope, *(around.scope for around in outer))
    if is_whole_row(node, scopes):
        return record.bind_whole_row(Star(node.parts, at=node.at), context)
    depth, column = find_column(node, scopes)
    if depth == 0:
        return refer(column, context, node.at)
    name = column.name if column.table is None else f"{column.table.name}.{column.name}"
    for part in walk_parts(column.scalar):
        if isinstance(part, ColumnRef):
            outer[depth - 1].deferred.refer_from_subquery(part, name, node.at)
    plain = isinstance(column.scalar, ColumnRef)
    return lifted(column.scalar, depth=depth - 1, nullable=lambda _: column.nullable or not plain)


def bind_expression(node: Expression, context: ExpressionContext) -> Scalar:
    """The scalar that an expression means. One match, so that a level costs few frames."""
    match node:
        case Name():
            return _bind_name(node, context)
        case NumberLiteral(text=text):
            return literal.number(text, node.at)
        case StringLiteral(value=value):
            return context.query.origins.remember(Literal(value, UNKNOWN), node.at)
        case BooleanLiteral(value=truth):
            return Literal(truth, BOOL)
        case NullLiteral():
            return Literal(None, UNKNOWN)
        case Parameter(number=number):
            return context.query.parameters.reference(number, position=position_of(node.at))
        case TypedLiteral():
            return literal.bind_typed_literal(node, context)
        case Cast():
            return literal.bind_cast(node, context)
        case FunctionCall():
            return call.bind_call(node, context)
        case Unary():
            return operator.bind_unary(node, context)
        case Binary():
            return operator.bind_binary(node, context)
        case And() | Or() | Not():
            return predicate.bind_junction(node, context)
        case IsTest():
            return predicate.bind_test(node, context)
        case IsDistinct():
            return predicate.bind_distinct(node, context)
        case Between():
            return predicate.bind_between(node, context)
        case InList():
            return predicate.bind_in_list(node, context)
        case PatternMatch():
            return predicate.bind_pattern(node, context)
        case Case():
            return structure.bind_case(node, context)
        case Collate():
            return structure.bind_collate(node, context)
        case ArrayConstructor() | ListConstructor():
            return structure.bind_elements(node, context)
        case Subscript():
            return structure.bind_subscript(node, context)
        case Exists() | ScalarSubquery() | InSubquery() | AnyAll() | ArraySubquery():
            return quantified.bind_subquery(node, context)
        case RowConstructor():
            return record.bind_row(node, context)
        case FieldAccess():
            return record.bind_field(node, context)
        case Star(qualifier=qualifier) if qualifier:
            return record.bind_whole_row(node, context)
        case MapConstructor():
            return structure.bind_map(node, context)
        case Star() | RowStar() | DefaultValue():
            raise structure.refusal(node)
        case _:
            assert_never(node)
