"""Calls: forms that are nodes of the tree, session values, aggregates, and plain functions."""

from collections.abc import Sequence
from typing import Final

from evertide.expr import scalar as typed
from evertide.expr.functions.cast import CastContext
from evertide.expr.functions.record import is_record
from evertide.expr.functions.rows import find_table_functions
from evertide.expr.functions.window import window_function
from evertide.expr.relation import AggregateCall
from evertide.expr.scalar import Case, Literal, Scalar, SessionCall
from evertide.expr.temporal import MZ_NOW
from evertide.sql.plan import window
from evertide.sql.plan.argument_order import bind_argument_order
from evertide.sql.plan.coercion import coerce, unify
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.expression_context import ExpressionContext
from evertide.sql.plan.filter_clause import bind_filter, over_kept
from evertide.sql.plan.function_call import (
    bound_aggregate,
    call_function,
    call_operator,
    is_aggregate,
    is_function,
    negated,
    session_call,
)
from evertide.sql.plan.pause import PAUSES, bind_pause
from evertide.sql.plan.place import start_of
from evertide.sql.plan.record import comparable, json_of, row_of_table
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.row import row_key
from evertide.sql.plan.table_call import bind_rows
from evertide.sql.resolve import position_of, resolve_database, resolve_schema
from evertide.sql.syntax.expression import Expression, FunctionCall, RowConstructor, Star
from evertide.vocab.errors import (
    FeatureNotSupported,
    GroupingError,
    SqlSyntaxError,
    UndefinedFunction,
    WrongObjectType,
)
from evertide.vocab.sql_type import BOOL, Kind, SqlType

_MOMENTS = {Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}
_COMPARED_ACROSS = (
    {Kind.INT2, Kind.INT4, Kind.INT8},
    {Kind.FLOAT4, Kind.FLOAT8},
    _MOMENTS,
)
# They take values of every type, rows among them.
_JSON_MAKERS = frozenset(
    {"to_jsonb", "jsonb_build_array", "jsonb_build_object", "jsonb_agg", "jsonb_object_agg"}
)
# There is one type of JSON, so what makes the other one makes this.
_OF_JSON: Final = {
    "json_agg": "jsonb_agg",
    "json_build_array": "jsonb_build_array",
    "json_build_object": "jsonb_build_object",
    "json_object_agg": "jsonb_object_agg",
    "row_to_json": "to_jsonb",
    "to_json": "to_jsonb",
}
_FUNCTION_SCHEMAS = ("pg_catalog", "mz_catalog", "mz_internal", "mz_unsafe")


def bind_call(node: FunctionCall, context: ExpressionContext) -> Scalar:
    """What a call means; a schema before the name must be a system one."""
    name = function_name(node, context.query)
    if node.over is not None or window_function(name) is not None:
        return window.bind_window(name, node, context)
    if is_aggregate(name):
        return _bind_aggregate(name, node, context)
    _refuse_aggregate_clauses(name, node)
    if name in PAUSES:
        return _checked_session_value(bind_pause(name, node, context), node, context)
    if find_table_functions(name):
        return bind_rows(name, node, context)
    if len(node.name.parts) == 1:
        match name:
            case "coalesce":
                return _bind_coalesce(node, context)
            case "nullif":
                return _bind_nullif(node, context)
            case "pg_typeof" if len(node.args) == 1:
                return Literal(context.bind(node.args[0]).type.oid, SqlType(Kind.REGTYPE))
    if name == "mz_logical_timestamp":
        raise UndefinedFunction(
            "mz_logical_timestamp() has been renamed to mz_now()", position=position_of(node.at)
        )
    if not is_function(name):
        raise UndefinedFunction(
            f'function "{".".join(node.name.parts)}" does not exist', position=position_of(node.at)
        )
    arguments = []
    for argument in node.args:
        arguments.append(context.bind_node(argument, context))
    if node.name.parts[-1] == "row_to_json":
        _check_row(arguments, node)
    if name in _JSON_MAKERS:
        arguments = [json_of(argument, context.query, at=node.at) for argument in arguments]
    value = session_call(name, arguments)
    if value is not None:
        return _checked_session_call(value, node, context)
    if name == "current_schemas" and len(arguments) == 1:
        return _bind_current_schemas(arguments[0], node, context)
    return call_function(name, arguments, context.query, at=node.at)


def _bind_current_schemas(
    with_own: Scalar, node: FunctionCall, context: ExpressionContext
) -> Scalar:
    """Both answers are fixed when the statement starts; which is asked for may differ by row."""
    asked = coerce(with_own, BOOL, CastContext.IMPLICIT, context.query, at=node.at)
    answers: list[Scalar] = []
    for own in (True, False):
        value = session_call("current_schemas", [Literal(own, BOOL)])
        assert value is not None, "both are known"
        answers.append(_checked_session_call(value, node, context))
    branches = tuple(zip((asked, negated(asked)), answers, strict=True))
    return Case(branches, Literal(None, answers[0].type), answers[0].type)


def function_name(node: FunctionCall, query: QueryContext) -> str:
    """The bare name of a function of the system."""
    *schema, given = node.name.parts
    name = _OF_JSON.get(given, given)
    if not schema:
        return name
    if len(schema) == 2:
        resolve_database(schema[0], query.plan.snapshot, at=node.at)
    if schema[-1:] == ["information_schema"] and name.startswith("_pg_"):
        return name
    if len(schema) <= 2 and schema[-1] in _FUNCTION_SCHEMAS:
        return name
    resolve_schema(tuple(schema), query.plan.names, at=node.at)
    raise UndefinedFunction(
        f'function "{".".join(node.name.parts)}" does not exist', position=position_of(node.at)
    )


def _refuse_aggregate_clauses(name: str, node: FunctionCall) -> None:
    words = {
        "DISTINCT": node.distinct,
        "ORDER BY": bool(node.order_by),
        "FILTER": node.filter_ is not None,
        "*": node.star,
    }
    for word, given in words.items():
        if given:
            raise WrongObjectType(
                f"{word} specified, but {name} is not an aggregate function",
                position=position_of(node.at),
            )


def _check_row(arguments: Sequence[Scalar], node: FunctionCall) -> None:
    if len(arguments) != 1 or not is_record(arguments[0].type):
        types = ", ".join(str(argument.type) for argument in arguments)
        raise UndefinedFunction(
            f"function row_to_json({types}) does not exist",
            hint="It takes one row; to_jsonb takes any value.",
            position=position_of(node.at),
        )


def _checked_session_call(
    value: SessionCall, node: FunctionCall, context: ExpressionContext
) -> Scalar:
    if context.query.maintained and value != MZ_NOW:
        raise FeatureNotSupported(
            f"cannot materialize call to {value.name}",
            detail="Its value differs between statements; no materialized view could hold all of"
            " them.",
            hint="Compare mz_now() in WHERE, HAVING or ON instead."
            if value.type.kind in _MOMENTS
            else None,
            position=position_of(node.at),
        )
    return value


def _checked_session_value(value: Scalar, node: FunctionCall, context: ExpressionContext) -> Scalar:
    return _checked_session_call(value, node, context) if isinstance(value, SessionCall) else value


def _bind_coalesce(node: FunctionCall, context: ExpressionContext) -> Scalar:
    if not node.args:
        raise SqlSyntaxError("COALESCE requires an argument", position=position_of(node.at))
    inside = context.without_rows("COALESCE")
    bound = [inside.bind(argument) for argument in node.args]
    ats = [start_of(argument) for argument in node.args]
    values, shared = unify(bound, "COALESCE", context.query, ats=ats)
    return typed.Coalesce(tuple(values), shared)


def _bind_nullif(node: FunctionCall, context: ExpressionContext) -> Scalar:
    """NULL where both are equal, else the first: its type is what the comparison makes of it."""
    if len(node.args) != 2:
        raise SqlSyntaxError("NULLIF requires two arguments", position=position_of(node.at))
    pair = [context.bind(argument) for argument in node.args]
    equal = call_operator("=", pair, context.query, at=node.at)
    assert isinstance(equal, typed.Call), "comparisons are calls"
    kinds = {operand.type.kind for operand in pair}
    # PostgreSQL compares these as they are, so the value keeps its type.
    alike = any(kinds <= family for family in _COMPARED_ACROSS)
    value = pair[0] if alike else equal.arguments[0]
    if Kind.RECORD in kinds:  # which are compared by keys; beside a row is a row, or NULL
        rows = is_record(pair[0].type)
        value = pair[0] if rows else Literal(None, pair[1].type)
    return typed.Case(((equal, Literal(None, value.type)),), value, value.type)


def _bind_aggregate(name: str, node: FunctionCall, context: ExpressionContext) -> Scalar:
    _check_aggregate_place(context, node)
    inner = context.in_aggregate()
    arguments = [_bind_argument(name, argument, inner) for argument in node.args]
    if not arguments and not node.star:
        raise WrongObjectType(
            f"{name}(*) must be used to call a parameterless aggregate function",
            position=position_of(node.at),
        )
    function, argument = bound_aggregate(name, arguments, context.query, at=node.at)
    _check_level(name, [] if argument is None else [argument], node)
    kept = bind_filter(node, inner)
    order = bind_argument_order(node, function, kept, inner)
    function, argument = over_kept(function, argument, kept)
    return context.deferred.reserve(AggregateCall(function, argument, node.distinct, order))


def _bind_argument(name: str, node: Expression, inner: ExpressionContext) -> Scalar:
    """Rows are counted by what makes them equal; no other aggregate takes them as they are."""
    if name == "count" and isinstance(node, Star) and node.qualifier:
        node = row_of_table(node, inner)
    if name == "count" and isinstance(node, RowConstructor):
        return row_key(node, inner)
    value = inner.bind(node)
    if name == "count" and is_record(value.type):
        return comparable(value)
    return json_of(value, inner.query, at=node.at) if name in _JSON_MAKERS else value


def _check_aggregate_place(context: ExpressionContext, node: FunctionCall) -> None:
    if context.inside_aggregate:
        raise GroupingError(
            "nested aggregate functions are not allowed", position=position_of(node.at)
        )
    if context.inner is None:
        raise GroupingError(
            f"aggregate functions are not allowed in {context.clause.place}"
            f" (function pg_catalog.{node.name.parts[-1]})",
            position=position_of(node.at),
        )


def _check_level(name: str, arguments: Sequence[Scalar], node: FunctionCall) -> None:
    """Over columns of a query around alone, an aggregate would be that query's."""
    parts = [part for argument in arguments for part in walk_parts(argument)]
    around = any(isinstance(part, typed.OuterColumn) for part in parts)
    if around and not any(isinstance(part, typed.ColumnRef) for part in parts):
        raise FeatureNotSupported(
            f"aggregate {name} over columns of the query around is not supported",
            hint="Compute it in that query, and name its column here.",
            position=position_of(node.at),
        )
