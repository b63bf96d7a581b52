"""Window functions: which one a call means, where it may stand, and what its window is."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.resolution import no_such_function
from evertide.expr.functions.type_groups import unmodified
from evertide.expr.functions.window import (
    ARITIES,
    NULL_SKIPPING,
    RESULTS,
    WindowFunction,
    window_function,
)
from evertide.expr.relation import USUAL_FRAME, ArgumentOrder, Frame, WindowCall
from evertide.expr.scalar import Scalar
from evertide.sql.plan.coercion import can_coerce, coerce, settle, unify
from evertide.sql.plan.deferred import WindowUse
from evertide.sql.plan.expression_context import Clause, ExpressionContext
from evertide.sql.plan.filter_clause import filtered_aggregate
from evertide.sql.plan.function_call import bound_aggregate, call_function, is_aggregate
from evertide.sql.plan.place import start_of
from evertide.sql.plan.window_frame import plan_frame, resolved
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall, Window
from evertide.vocab.errors import (
    DatatypeMismatch,
    FeatureNotSupported,
    GroupingError,
    UndefinedFunction,
    WindowingError,
    WrongObjectType,
)
from evertide.vocab.sql_type import INT4


def bind_window(name: str, node: FunctionCall, context: ExpressionContext) -> Scalar:
    """The place of a window function's value."""
    function = window_function(name)
    if node.over is None:
        raise WrongObjectType(
            f"window function {name} requires an OVER clause", position=position_of(node.at)
        )
    if function is None and not is_aggregate(name):
        # A name that means nothing at all is told of first.
        call_function(name, [context.bind(arg) for arg in node.args], context.query, at=node.at)
        raise WrongObjectType(
            f"OVER specified, but {name} is not a window function nor an aggregate function",
            position=position_of(node.at),
        )
    _check_place(node, context)
    _check_clauses(name, node, function)
    partition, order, frame = bind_definition(node.over, context)
    inner = context.in_window()
    if function is None:
        call = _aggregate_call(name, node, frame, inner)
    else:
        call = _own_call(function, node, frame, inner)
    return context.deferred.reserve(WindowUse(call, partition, order))


def bind_definition(
    window: Window, context: ExpressionContext
) -> tuple[tuple[Scalar, ...], tuple[ArgumentOrder, ...], Frame]:
    """What a window is partitioned by, ordered by, and its frame."""
    assert context.windows is not None, "window functions are allowed here"
    whole = resolved(window, context.windows)
    inside = context.in_window_definition()
    parameters = context.query.parameters
    partition = tuple(settle(inside.bind(one), parameters) for one in whole.partition_by)
    order = tuple(
        ArgumentOrder(
            settle(inside.bind(item.expression), parameters),
            item.descending,
            item.descending if item.nulls_first is None else item.nulls_first,
        )
        for item in whole.order_by
    )
    frame = USUAL_FRAME
    if whole.frame is not None:
        frame = plan_frame(whole.frame, order, context.without_columns(Clause.RANGE), window.at)
    return partition, order, frame


def _check_place(node: FunctionCall, context: ExpressionContext) -> None:
    at = position_of(node.at)
    if context.inside_aggregate:
        raise GroupingError(
            "aggregate function calls cannot contain window function calls", position=at
        )
    if context.inside_window:
        raise WindowingError("window function calls cannot be nested", position=at)
    if context.windows is None:
        raise WindowingError(
            f"window functions are not allowed in {context.clause.place}"
            f" (function pg_catalog.{node.name.parts[-1]})",
            position=at,
        )


def _check_clauses(name: str, node: FunctionCall, function: WindowFunction | None) -> None:
    at = position_of(node.at)
    if node.distinct:
        raise FeatureNotSupported("DISTINCT is not implemented for window functions", position=at)
    if node.order_by:
        raise FeatureNotSupported(
            "aggregate ORDER BY is not implemented for window functions", position=at
        )
    if node.ignore_nulls and function not in NULL_SKIPPING:
        raise FeatureNotSupported(f"IGNORE NULLS is not supported for {name}", position=at)
    if function is None:
        return
    if node.filter_ is not None:
        raise FeatureNotSupported(
            "FILTER is not implemented for non-aggregate window functions", position=at
        )
    if node.star:
        raise WrongObjectType(
            f"{name}(*) specified, but {name} is not an aggregate function", position=at
        )


def _aggregate_call(
    name: str, node: FunctionCall, frame: Frame, inner: ExpressionContext
) -> WindowCall:
    arguments = [inner.bind(argument) for argument in node.args]
    if not arguments and not node.star:
        raise WrongObjectType(
            f"{name}(*) must be used to call a parameterless aggregate function",
            position=position_of(node.at),
        )
    function, argument = bound_aggregate(name, arguments, inner.query, at=node.at)
    function, argument = filtered_aggregate(function, argument, node, inner)
    given = () if argument is None else (argument,)
    return WindowCall(function, given, function.result, frame)


def _own_call(
    function: WindowFunction, node: FunctionCall, frame: Frame, inner: ExpressionContext
) -> WindowCall:
    arguments = [inner.bind(argument) for argument in node.args]
    least, most = ARITIES[function]
    if not least <= len(arguments) <= most:
        raise _missing(function, arguments, node)
    ats = [start_of(argument) for argument in node.args]
    if function in RESULTS:
        given = [_whole_number(function, arguments, 0, node, inner)] if arguments else []
        return WindowCall(function, tuple(given), RESULTS[function], frame)
    value, shared = arguments[0], []
    if len(arguments) == 3:
        try:
            (value, default), _ = unify(
                [value, arguments[2]], function, inner.query, ats=[ats[0], ats[2]]
            )
        except DatatypeMismatch:
            raise _missing(function, arguments, node) from None
        shared = [settle(default, inner.query.parameters)]
    value = settle(value, inner.query.parameters)
    if len(arguments) > 1:
        shared = [_whole_number(function, arguments, 1, node, inner), *shared]
    call = WindowCall(function, (value, *shared), unmodified(value.type), frame)
    return replace(call, ignore_nulls=node.ignore_nulls)


def _whole_number(
    function: WindowFunction,
    arguments: Sequence[Scalar],
    at: int,
    node: FunctionCall,
    inner: ExpressionContext,
) -> Scalar:
    """An argument that must be an integer."""
    argument = arguments[at]
    if not can_coerce(argument.type, INT4, CastContext.IMPLICIT):
        raise _missing(function, arguments, node)
    start = start_of(node.args[at])
    return coerce(argument, INT4, CastContext.IMPLICIT, inner.query, at=start)


def _missing(
    function: WindowFunction, arguments: Sequence[Scalar], node: FunctionCall
) -> UndefinedFunction:
    types = [unmodified(argument.type) for argument in arguments]
    error = no_such_function(function.value, types)
    error.position = position_of(node.at)
    return error
