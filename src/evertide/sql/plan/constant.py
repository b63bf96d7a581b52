"""Expressions whose value a plan holds: it is known when the query is planned."""

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import ColumnRef, Literal, OuterColumn, Parameter, SessionCall
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.rewrite import replace_parts, walk_parts
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.sql_type import SqlType

_NOT_CONSTANT = SessionCall | ColumnRef | OuterColumn


def plan_constant(
    node: Expression,
    sql_type: SqlType,
    context: ExpressionContext,
    cast_context: CastContext = CastContext.ASSIGNMENT,
) -> Literal | None:
    """The value of an expression in a context without columns; with parameters only where they are
    known. While they are not, it is None: the statement is planned again with them.
    """
    query, clause = context.query, context.clause
    bound = context.bind(node)
    if context.deferred.values:
        raise FeatureNotSupported(
            f"{clause} does not allow subqueries", position=position_of(node.at)
        )
    scalar = coerce(bound, sql_type, cast_context, query, at=node.at)
    parameters = [part for part in walk_parts(scalar) if isinstance(part, Parameter)]
    values = {part: Literal(query.parameters.value(part), part.type) for part in parameters}
    known = replace_parts(
        scalar, lambda part: values[part] if isinstance(part, Parameter) else None
    )
    if any(isinstance(part, _NOT_CONSTANT) for part in walk_parts(known)):
        raise FeatureNotSupported(
            f"Invalid {clause} clause: must be simplifiable to a constant, possibly after parameter"
            " binding",
            position=position_of(node.at),
        )
    if parameters and query.parameters.needs_values:
        return None
    return Literal(compile_scalar(known)(()), sql_type)
