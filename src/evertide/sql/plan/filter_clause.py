"""FILTER (WHERE ..) of an aggregate: NULL, which aggregates pass over, where it does not hold."""

from evertide.expr.functions.row import AggregateFunction
from evertide.expr.scalar import Case, Literal, Scalar
from evertide.sql.plan.coercion import to_boolean
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.function_call import aggregate_over
from evertide.sql.plan.place import start_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.vocab.sql_type import BOOL


def filtered_aggregate(
    function: AggregateFunction,
    argument: Scalar | None,
    node: FunctionCall,
    context: ExpressionContext,
) -> tuple[AggregateFunction, Scalar | None]:
    """The aggregate over the rows that its FILTER keeps."""
    return over_kept(function, argument, bind_filter(node, context))


def bind_filter(node: FunctionCall, context: ExpressionContext) -> Scalar | None:
    """What holds of the rows that FILTER keeps; None: all are kept."""
    if node.filter_ is None:
        return None
    at = start_of(node.filter_)
    return to_boolean(context.bind(node.filter_), "FILTER", context.query, at=at)


def over_kept(
    function: AggregateFunction, argument: Scalar | None, kept: Scalar | None
) -> tuple[AggregateFunction, Scalar | None]:
    """The aggregate over those rows; one of rows counts a value instead."""
    if kept is not None and argument is None:
        function, argument = aggregate_over(function.name, BOOL), Literal(True, BOOL)
    return function, None if argument is None else kept_only(kept, argument)


def kept_only(kept: Scalar | None, value: Scalar) -> Scalar:
    """The value, which is not computed for rows that FILTER leaves out."""
    if kept is None:
        return value
    return Case(((kept, value),), Literal(None, value.type), value.type)
