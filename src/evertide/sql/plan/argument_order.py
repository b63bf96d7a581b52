"""ORDER BY inside an aggregate: what it may name, and the order of the arguments it asks for."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from evertide.expr.functions.aggregate import shows_order
from evertide.expr.functions.record import is_record
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.relation import ArgumentOrder
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.plan.coercion import is_unknown, settle
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.filter_clause import kept_only
from evertide.sql.plan.place import start_of
from evertide.sql.plan.record import comparable, written_out
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Expression, FunctionCall
from evertide.sql.syntax.query import OrderItem
from evertide.vocab.errors import InvalidColumnReference

# What they make of an argument has another order than the argument.
_OF_JSON: Final = frozenset({"jsonb_agg", "jsonb_object_agg"})


def bind_argument_order(
    node: FunctionCall,
    function: AggregateFunction,
    kept: Scalar | None,
    inner: ExpressionContext,
) -> tuple[ArgumentOrder, ...]:
    """How the arguments are to come, of rows for which `kept` holds; (): in value order.

    Mistakes are found in every aggregate, also in one whose result is the same in any order.
    """
    if node.distinct:
        _check_arguments(node, inner)
    seen = shows_order(function)
    context = inner if seen else _aside(inner)
    keys = [settle(context.bind(item.expression), inner.query.parameters) for item in node.order_by]
    if not seen or (function.name not in _OF_JSON and _is_value_order(node)):
        return ()
    orders = [
        order for item, key in zip(node.order_by, keys, strict=True) for order in _orders(key, item)
    ]
    return tuple(replace(order, key=kept_only(kept, order.key)) for order in orders)


def _aside(context: ExpressionContext) -> ExpressionContext:
    """The context of what is only looked at: nothing is computed for it.

    Places go on from those that are taken, so that no two values have one.
    """
    deferred = Deferred()
    deferred.values += context.deferred.values
    return replace(context, deferred=deferred)


def _check_arguments(node: FunctionCall, inner: ExpressionContext) -> None:
    """Equal arguments count once, so what orders them must be a part of them."""
    for item in node.order_by:
        if not _is_argument(item.expression, node, _aside(inner)):
            raise InvalidColumnReference(
                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                position=position_of(start_of(item.expression)),
            )


def _is_argument(expression: Expression, node: FunctionCall, context: ExpressionContext) -> bool:
    """Whether it is one of the arguments as it is written, or by another name: x and t.x."""
    key = context.bind(expression)
    if isinstance(key, Literal) and is_unknown(key):
        return False  # an argument has been given a type, and this has not
    parameters = context.query.parameters
    return expression in node.args or any(
        settle(context.bind(argument), parameters) == key for argument in node.args
    )


def _is_value_order(node: FunctionCall) -> bool:
    """Whether arguments come so in any case, if nothing has changed their type."""
    match node.order_by:
        case (only,):
            ascending = not only.descending and only.nulls_first is not True
            return ascending and only.expression == node.args[0]
        case _:
            return False


def _orders(key: Scalar, item: OrderItem) -> Iterator[ArgumentOrder]:
    """A row put together here is not made: rows are ordered by one field after the other."""
    fields = written_out(key)
    if fields is None:
        key = comparable(key) if is_record(key.type) else key
        nulls_first = item.descending if item.nulls_first is None else item.nulls_first
        yield ArgumentOrder(key, item.descending, nulls_first)
        return
    # The row is never NULL itself, and in it NULL is the greatest value.
    within = replace(item, nulls_first=None)
    for field in fields:
        yield from _orders(field, within)
