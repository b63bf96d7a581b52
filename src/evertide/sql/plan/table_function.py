"""Functions in FROM: functions of rows, and plain ones, which give one row.

Where all arguments are constants the rows are worked out at once, so that the query can also run
where table functions cannot.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from evertide.expr.functions.resolution import resolve_table_function
from evertide.expr.functions.row import TableFunction
from evertide.expr.functions.rows import find_table_functions
from evertide.expr.relation import Constant, FlatMap, Map, Relation
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.sql.plan.builder import ONE_ROW, RelationBuilder
from evertide.sql.plan.call import function_name
from evertide.sql.plan.coercion import unify, with_position
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.function_call import TABLE_FUNCTIONS, coerced_arguments
from evertide.sql.plan.place import start_of
from evertide.sql.plan.planned import project
from evertide.sql.plan.scope import Scope, TableName, scope_of
from evertide.sql.plan.source import Source
from evertide.sql.plan.subquery import attach_all
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.sql.syntax.query import FunctionTable
from evertide.vocab.datum import Row
from evertide.vocab.errors import FeatureNotSupported, ProgramLimitExceeded
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT8

MOST_ROWS: Final = 1_000_000


def plan_function_table(table: FunctionTable, query: QueryContext) -> Source:
    """The rows of one call, under the alias or the function's name."""
    if len(table.calls) > 1:
        raise FeatureNotSupported("ROWS FROM is not supported", position=position_of(table.at))
    (call,) = table.calls
    name = function_name(call)
    shown = name if table.alias is None else table.alias.name
    if not find_table_functions(name):
        if name in TABLE_FUNCTIONS:
            raise FeatureNotSupported(
                f"table function {name} is not supported", position=position_of(call.at)
            )
        return _value(call, shown, table, query)
    deferred = Deferred()
    function, arguments = _bound(name, call, query, deferred)
    relation = _rows(function, arguments, deferred, table)
    columns = [ColumnDesc(column, sql_type) for column, sql_type in function.columns]
    if len(columns) == 1 and columns[0].name == name:  # such a function is named as a whole
        columns = [ColumnDesc(shown, columns[0].type)]
    if table.with_ordinality:
        columns.append(ColumnDesc("ordinality", INT8, nullable=False))
    return Source(relation, scope_of(RelationDesc(tuple(columns)), TableName(shown)))


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


def _bound(
    name: str, call: FunctionCall, query: QueryContext, deferred: Deferred
) -> tuple[TableFunction, list[Scalar]]:
    """The function that the call means, and its arguments in the types it takes."""
    context = plain_context(Scope(), query, Clause.FROM, deferred)
    arguments = [context.bind(node) for node in call.args]
    if len(arguments) > 1 and name == "generate_series":  # a bound of no type is of the other's
        ats = [start_of(node) for node in call.args[:2]]
        arguments[:2], _ = unify(arguments[:2], name, query, ats=ats)
    with with_position(call.at):
        found = resolve_table_function(name, [argument.type for argument in arguments])
    coerced = coerced_arguments(found.arguments, arguments, query, at=call.at)
    return found.function, [fold_scalar(argument) for argument in coerced]


def _rows(
    function: TableFunction, arguments: Sequence[Scalar], deferred: Deferred, table: FunctionTable
) -> Relation:
    literals = [argument for argument in arguments if isinstance(argument, Literal)]
    if len(literals) == len(arguments):
        return _known(function, literals, table)
    builder = RelationBuilder(ONE_ROW, [])
    fill = fill_places(attach_all(deferred, builder))
    width = builder.arity
    values = tuple(fill(argument) for argument in arguments)
    flat = FlatMap(builder.relation, function, values, table.with_ordinality)
    return project(flat, tuple(range(width, len(flat.types))))


def _known(function: TableFunction, literals: Sequence[Literal], table: FunctionTable) -> Relation:
    """The rows of constant arguments."""
    at = table.calls[0].at
    values = [literal.value for literal in literals]
    with with_position(at):
        given = () if None in values else function.body(*values)
        rows: list[Row] = list(islice(given, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS:
        raise ProgramLimitExceeded(
            f"a series in FROM may have {MOST_ROWS} rows at most", position=position_of(at)
        )
    if table.with_ordinality:
        rows = [(*row, number) for number, row in enumerate(rows, start=1)]
    flat = FlatMap(ONE_ROW, function, tuple(literals), table.with_ordinality)
    return Constant(tuple((row, 1) for row in rows), flat.types)
