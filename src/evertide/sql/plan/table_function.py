"""Functions in FROM: functions of rows, alone or in step, and plain ones, which give one row.

Where all arguments are constants a few rows are worked out at once, so that the query can also run
where table functions cannot.
"""

from collections.abc import Sequence

from evertide.expr.functions.row import TableFunction
from evertide.expr.functions.rows import find_table_functions
from evertide.expr.functions.rows_in_step import in_step
from evertide.expr.relation import FlatMap, Map, Relation
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.plan.builder import ONE_ROW, RelationBuilder
from evertide.sql.plan.call import function_name
from evertide.sql.plan.coercion import with_position
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.planned import project
from evertide.sql.plan.scope import Scope, TableName, scope_of
from evertide.sql.plan.source import Source
from evertide.sql.plan.subquery import attach_all
from evertide.sql.plan.table_call import bound_table_call
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import FunctionCall
from evertide.sql.syntax.query import FunctionTable
from evertide.vocab.errors import FeatureNotSupported
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT8


def plan_function_table(table: FunctionTable, query: QueryContext) -> Source:
    """The rows of one call, or of several in step, under the alias or the function's name."""
    names = [function_name(call, query) for call in table.calls]
    shown = names[0] if table.alias is None else table.alias.name
    if len(names) == 1 and not find_table_functions(names[0]):
        return _value(table.calls[0], shown, table, query)
    deferred = Deferred()
    functions: list[TableFunction] = []
    arguments: list[Scalar] = []
    context = plain_context(Scope(), query, Clause.FROM, deferred)
    for name, call in zip(names, table.calls, strict=True):
        if not find_table_functions(name):
            raise FeatureNotSupported(
                f"function {name}, which gives one value, is not supported in ROWS FROM",
                position=position_of(call.at),
            )
        function, given = bound_table_call(name, call, context)
        functions.append(function)
        arguments += given
    function = in_step(functions)
    with with_position(table.calls[0].at):
        known = query.known_rows.of(function, arguments, ordinality=table.with_ordinality)
    relation = _rows(function, arguments, deferred, table) if known is None else known
    columns = [one for function in functions for one in _columns(function)]
    if len(functions) == 1 and columns == [ColumnDesc(names[0], columns[0].type)]:
        columns = [ColumnDesc(shown, columns[0].type)]  # such a function is named as a whole
    if table.with_ordinality:
        columns.append(ColumnDesc("ordinality", INT8, nullable=False))
    return Source(relation, scope_of(RelationDesc(tuple(columns)), TableName(shown)))


def _columns(function: TableFunction) -> list[ColumnDesc]:
    return [ColumnDesc(name, sql_type) for name, sql_type in function.columns]


def _value(call: FunctionCall, shown: str, table: FunctionTable, query: QueryContext) -> Source:
    """A plain function in FROM is a relation of one row."""
    deferred = Deferred()
    scalar = plain_context(Scope(), query, Clause.FROM, deferred).bind(call)
    if deferred.values:
        raise FeatureNotSupported(
            "subqueries in the arguments of a plain function in FROM are not supported",
            position=position_of(table.at),
        )
    columns = [ColumnDesc(shown, scalar.type)]
    scalars = [scalar]
    if table.with_ordinality:
        columns.append(ColumnDesc("ordinality", INT8, nullable=False))
        scalars.append(Literal(1, INT8))
    desc = RelationDesc(tuple(columns))
    return Source(Map(ONE_ROW, tuple(scalars)), scope_of(desc, TableName(shown)))


def _rows(
    function: TableFunction, arguments: Sequence[Scalar], deferred: Deferred, table: FunctionTable
) -> Relation:
    builder = RelationBuilder(ONE_ROW, [])
    fill = fill_places(attach_all(deferred, builder))
    width = builder.arity
    values = tuple(fill(argument) for argument in arguments)
    flat = FlatMap(builder.relation, function, values, table.with_ordinality)
    return project(flat, tuple(range(width, len(flat.types))))
