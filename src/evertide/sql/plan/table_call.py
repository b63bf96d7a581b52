"""Calls of table functions: the row of the function table that is meant, and its rows.

In a select list such a call has a value for each row that the function gives, and the row it stands
on is repeated for them. Several calls go in step: see `Standing.attach_rows`.
"""

from evertide.expr.functions.extracted_rows import with_columns
from evertide.expr.functions.resolution import resolve_table_function
from evertide.expr.functions.row import TableFunction
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.sql.plan.coercion import unify, with_position
from evertide.sql.plan.deferred import RowsUse
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.function_call import coerced_arguments
from evertide.sql.plan.place import start_of
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.vocab.errors import FeatureNotSupported


def bind_rows(name: str, node: FunctionCall, context: ExpressionContext) -> Scalar:
    """The place of a table function's values in a select list."""
    if context.inside_aggregate:
        where: str | None = "aggregate function calls"
    elif context.inside_window:
        where = "window function calls"
    elif context.clause is not Clause.SELECT:
        where = context.clause.place
    else:
        where = context.no_rows_in
    if where is not None:
        raise FeatureNotSupported(
            f"table functions are not allowed in {where} (function pg_catalog.{name})",
            position=position_of(node.at),
        )
    inside = context.without_rows("other table functions")
    function, arguments = bound_table_call(name, node, inside)
    return context.deferred.reserve(RowsUse(function, tuple(arguments)))


def bound_table_call(
    name: str, node: FunctionCall, context: ExpressionContext
) -> tuple[TableFunction, list[Scalar]]:
    """The function that the call means, and its arguments in the types it takes."""
    arguments = [context.bind(part) for part in node.args]
    query = context.query
    if len(arguments) > 1 and name == "generate_series":  # a bound of no type is of the other's
        ats = [start_of(part) for part in node.args[:2]]
        arguments[:2], _ = unify(arguments[:2], name, query, ats=ats)
    with with_position(node.at):
        found = resolve_table_function(name, [argument.type for argument in arguments])
    coerced = coerced_arguments(found.arguments, arguments, query, at=node.at)
    given = [fold_scalar(argument) for argument in coerced]
    constant = given[0].value if given and isinstance(given[0], Literal) else None
    with with_position(node.at):
        return with_columns(found.function, constant), given
