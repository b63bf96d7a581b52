"""Window functions as plain values, for plans that travel."""

from collections.abc import Sequence

from evertide.expr.functions.row import AggregateFunction, ScalarFunction
from evertide.expr.functions.window import window_function
from evertide.expr.relation import Distance, Frame, WindowCall
from evertide.expr.scalar import Literal
from evertide.expr.scalar_codec import (
    FunctionLookup,
    Plain,
    UnreadablePlan,
    as_list,
    as_str,
    plain_scalar,
    plain_scalars,
    plain_types,
    read_scalar,
    read_scalars,
    read_types,
)


def plain_window_calls(calls: Sequence[WindowCall]) -> Plain:
    """Aggregates by signature, which has parentheses; the others by name."""
    return [
        [
            call.function.signature
            if isinstance(call.function, AggregateFunction)
            else call.function.value,
            plain_scalars(call.arguments),
            plain_types((call.type,)),
            [call.frame.unit, _plain_bound(call.frame.start), _plain_bound(call.frame.end)],
            call.ignore_nulls,
        ]
        for call in calls
    ]


def read_window_calls(plain: Plain, functions: FunctionLookup) -> tuple[WindowCall, ...]:
    """Inverse of plain_window_calls."""
    return tuple([_read_call(call, functions) for call in as_list(plain)])


def _read_call(plain: Plain, functions: FunctionLookup) -> WindowCall:
    name, arguments, types, frame, ignore_nulls = as_list(plain)
    function = window_function(as_str(name)) or functions(as_str(name))
    if isinstance(function, ScalarFunction):
        raise UnreadablePlan(f"not a window function: {name!r}")
    (sql_type,) = read_types(types)
    unit, start, end = as_list(frame)
    return WindowCall(
        function,
        read_scalars(arguments, functions),
        sql_type,
        Frame(as_str(unit), _read_bound(start, functions), _read_bound(end, functions)),
        bool(ignore_nulls),
    )


def _plain_bound(bound: int | Distance | None) -> Plain:
    if isinstance(bound, Distance):
        return [plain_scalar(bound.by), bound.following]
    return bound


def _read_bound(plain: Plain, functions: FunctionLookup) -> int | Distance | None:
    if plain is None or isinstance(plain, int):
        return plain
    by, following = as_list(plain)
    literal = read_scalar(by, functions)
    if not isinstance(literal, Literal):
        raise UnreadablePlan("a distance that is not known")
    return Distance(literal, bool(following))
