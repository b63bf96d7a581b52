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
    """The aggregate over the rows that its FILTER keeps; one of rows counts a value instead."""
    if node.filter_ is None:
        return function, argument
    at = start_of(node.filter_)
    kept = to_boolean(context.bind(node.filter_), "FILTER", context.query, at=at)
    if argument is None:
        function, argument = aggregate_over(function.name, BOOL), Literal(True, BOOL)
    nothing = Literal(None, argument.type)
    return function, Case(((kept, argument),), nothing, argument.type)
