"""LIMIT and OFFSET: numbers known when the query is planned."""

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.scalar import ColumnRef, Literal, OuterColumn, Parameter, SessionCall
from evertide.sql.plan.coercion import coerce
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.errors import InvalidLimit, InvalidOffset
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.rewrite import replace_parts, walk_parts
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.sql_type import INT8

_NOT_CONSTANT = SessionCall | ColumnRef | OuterColumn


def plan_limit(node: Expression, query: QueryContext) -> int | None:
    """How many rows at most; None: all, which is what LIMIT NULL means."""
    limit = _constant(node, query, Clause.LIMIT)
    if limit is not None and limit < 0:
        raise InvalidLimit("LIMIT must not be negative", position=position_of(node.at))
    return limit


def plan_offset(node: Expression, query: QueryContext) -> int:
    """How many rows are passed over."""
    offset = _constant(node, query, Clause.OFFSET)
    if offset is not None and offset < 0:
        raise InvalidOffset(
            f"Invalid OFFSET clause: must not be negative, got {offset}",
            position=position_of(node.at),
        )
    return offset or 0


def _constant(node: Expression, query: QueryContext, clause: Clause) -> int | None:
    """The value of an expression without columns; with parameters only where they are known.

    While they are not, the statement is planned as if it were NULL, and again later.
    """
    deferred = Deferred()
    bound = plain_context(Scope(), query, clause, deferred).bind(node)
    if deferred.values:
        raise FeatureNotSupported(
            f"{clause} does not allow subqueries", position=position_of(node.at)
        )
    scalar = coerce(bound, INT8, CastContext.ASSIGNMENT, query, at=node.at)
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
    value = compile_scalar(known)(())
    assert value is None or isinstance(value, int), "coerced to int8"
    return value
