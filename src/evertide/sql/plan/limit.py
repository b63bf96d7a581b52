"""LIMIT and OFFSET: numbers known when the query is planned."""

from evertide.sql.plan.constant import plan_constant
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.errors import InvalidLimit, InvalidOffset
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.scope import Scope
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression
from evertide.vocab.sql_type import INT8


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
    known = plan_constant(node, INT8, plain_context(Scope(), query, clause, Deferred()))
    value = None if known is None else known.value
    assert value is None or isinstance(value, int), "coerced to int8"
    return value
