"""Functions in FROM: series and arrays that are known when the query is planned, and values.

No relation here computes rows from a row, so arguments of table functions must be constants.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Final

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.cast import CastContext
from evertide.expr.relation import Constant, Map
from evertide.expr.scalar import ColumnRef, Literal, Parameter, Scalar, SessionCall
from evertide.sql.plan.builder import ONE_ROW
from evertide.sql.plan.call import function_name
from evertide.sql.plan.coercion import cast_scalar, settle, unify
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.function_call import TABLE_FUNCTIONS, call_operator
from evertide.sql.plan.place import start_of
from evertide.sql.plan.rewrite import walk_parts
from evertide.sql.plan.scope import Scope, TableName, scope_of
from evertide.sql.plan.source import Source
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.sql.syntax.query import FunctionTable
from evertide.vocab.datum import Datum, Interval
from evertide.vocab.errors import (
    FeatureNotSupported,
    InvalidParameterValue,
    ProgramLimitExceeded,
    UndefinedFunction,
)
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import DATE, INT4, INT8, INTERVAL, TIMESTAMPTZ, Kind, SqlType

MOST_ROWS: Final = 1_000_000
_INTEGERS: Final = (Kind.INT2, Kind.INT4, Kind.INT8)
_TIMES: Final = (Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ)


def plan_function_table(table: FunctionTable, query: QueryContext) -> Source:
    """The rows of one call, under the alias or the function's name."""
    if len(table.calls) > 1:
        raise FeatureNotSupported("ROWS FROM is not supported", position=position_of(table.at))
    (call,) = table.calls
    name = function_name(call)
    shown = name if table.alias is None else table.alias.name
    if name not in TABLE_FUNCTIONS:
        return _value(call, shown, table, query)
    values, sql_type = _rows(name, call, query)
    columns = [ColumnDesc(shown, sql_type)]
    rows: list[tuple[Datum, ...]] = [(value,) for value in values]
    if table.with_ordinality:
        columns.append(ColumnDesc("ordinality", INT8, nullable=False))
        rows = [(*row, number) for number, row in enumerate(rows, start=1)]
    desc = RelationDesc(tuple(columns))
    relation = Constant(tuple((row, 1) for row in rows), desc.types)
    return Source(relation, scope_of(desc, TableName(shown)))


def _value(call: FunctionCall, shown: str, table: FunctionTable, query: QueryContext) -> Source:
    """A plain function in FROM is a relation of one row."""
    deferred = Deferred()
    scalar = plain_context(Scope(), query, Clause.FROM, deferred).bind(call)
    if deferred.values or table.with_ordinality:
        raise FeatureNotSupported(
            "subqueries and WITH ORDINALITY of a function in FROM are not supported",
            position=position_of(table.at),
        )
    desc = RelationDesc((ColumnDesc(shown, scalar.type),))
    return Source(Map(ONE_ROW, (scalar,)), scope_of(desc, TableName(shown)))


def _rows(name: str, call: FunctionCall, query: QueryContext) -> tuple[Sequence[Datum], SqlType]:
    context = plain_context(Scope(), query, Clause.FROM, Deferred())
    arguments = [context.bind(node) for node in call.args]
    if len(arguments) > 1:  # a bound of no type is of the other's
        ats = [start_of(node) for node in call.args[:2]]
        arguments[:2], _ = unify(arguments[:2], name, query, ats=ats)
    arguments = [settle(argument, query.parameters) for argument in arguments]
    for scalar, node in zip(arguments, call.args, strict=True):
        if any(isinstance(p, Parameter | SessionCall | ColumnRef) for p in walk_parts(scalar)):
            raise FeatureNotSupported(
                f"arguments of {name} in FROM must be constants",
                position=position_of(start_of(node)),
            )
    kinds = [argument.type.kind for argument in arguments]
    if name == "generate_series" and len(kinds) in (2, 3):
        if all(kind in _INTEGERS for kind in kinds):
            return _integer_series(arguments, call, query)
        if len(kinds) == 3 and kinds[0] in _TIMES and kinds[2] is Kind.INTERVAL:
            return _time_series(arguments, call, query)
    if name == "unnest" and kinds in ([Kind.ARRAY], [Kind.LIST]):
        element = arguments[0].type.element
        assert element is not None, "arrays have elements"
        value = _known(arguments[0])
        return (value if isinstance(value, tuple) else ()), element
    if name not in ("generate_series", "unnest"):
        raise FeatureNotSupported(
            f"table function {name} is not supported", position=position_of(call.at)
        )
    shown = ", ".join(str(argument.type) for argument in arguments)
    raise UndefinedFunction(
        f"function {name}({shown}) does not exist", position=position_of(call.at)
    )


def _known(scalar: Scalar) -> Datum:
    return compile_scalar(scalar)(())


def _integer_series(
    arguments: Sequence[Scalar], call: FunctionCall, query: QueryContext
) -> tuple[Sequence[Datum], SqlType]:
    ats = [node.at for node in call.args]
    unified, shared = unify(arguments, "generate_series", query, ats=ats)
    sql_type = INT8 if shared == INT8 else INT4
    bounds = [value for value in map(_known, unified) if isinstance(value, int)]
    if len(bounds) < len(arguments):  # a NULL among them
        return (), sql_type
    start, stop, step = (*bounds, 1)[:3]
    if step == 0:
        raise InvalidParameterValue("step size cannot equal zero", position=position_of(call.at))
    series = range(start, stop + (1 if step > 0 else -1), step)
    if len(series) > MOST_ROWS:
        raise _too_many(call)
    return list(series), sql_type


def _time_series(
    arguments: Sequence[Scalar], call: FunctionCall, query: QueryContext
) -> tuple[Sequence[Datum], SqlType]:
    """Dates become timestamps: a step may be hours."""
    start, stop, step = arguments
    shared = start.type
    if shared == DATE:
        shared = TIMESTAMPTZ
        start = cast_scalar(start, shared, CastContext.IMPLICIT, at=call.at)
        stop = cast_scalar(stop, shared, CastContext.IMPLICIT, at=call.at)
    if None in (_known(start), _known(stop), _known(step)):
        return (), shared

    def holds(operator: str, left: Scalar, right: Scalar) -> bool:
        return _known(call_operator(operator, [left, right], query, at=call.at)) is True

    nothing = Literal(Interval(0, 0, 0), INTERVAL)
    if holds("=", step, nothing):
        raise InvalidParameterValue("step size cannot equal zero", position=position_of(call.at))
    within = "<=" if holds(">", step, nothing) else ">="

    def following(value: Literal) -> Literal | None:
        added = call_operator("+", [value, step], query, at=call.at)
        literal = Literal(_known(added), shared)
        return literal if holds(within, literal, stop) else None

    first = Literal(_known(start), shared)
    values = _steps(first if holds(within, first, stop) else None, following)
    found = list(islice(values, MOST_ROWS + 1))
    if len(found) > MOST_ROWS:
        raise _too_many(call)
    return found, shared


def _steps(
    value: Literal | None, following: Callable[[Literal], Literal | None]
) -> Iterator[Datum]:
    while value is not None:
        yield value.value
        value = following(value)


def _too_many(call: FunctionCall) -> ProgramLimitExceeded:
    return ProgramLimitExceeded(
        f"a series in FROM may have {MOST_ROWS} rows at most", position=position_of(call.at)
    )
