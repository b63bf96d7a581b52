"""INSERT: rows for a table, in its column order, cast and with defaults filled in."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from evertide.catalog.objects import Item
from evertide.expr.relation import Constant, Finishing, Relation
from evertide.expr.scalar import ColumnRef, Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.persist.coding.encoding import encode_column
from evertide.sql.plan.assignment import assign
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.literal_json import decode_arrays, decode_columns
from evertide.sql.plan.literal_rows import literal_column, samples
from evertide.sql.plan.no_clock import refuse_mz_now
from evertide.sql.plan.place import start_of
from evertide.sql.plan.planned import fold_finishing
from evertide.sql.plan.plans import InsertPlan, LiteralColumns, SelectPlan
from evertide.sql.plan.query import plan_untyped_query
from evertide.sql.plan.scope import Scope
from evertide.sql.plan.set_operation import with_columns
from evertide.sql.plan.target import (
    column_position,
    default_of,
    plan_returning,
    table_scope,
    writable_table,
)
from evertide.sql.plan.values import BoundRow, rows_relation
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import InsertStatement
from evertide.sql.syntax.expression import DefaultValue, Expression
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import Query, Values
from evertide.vocab.datum import Datum
from evertide.vocab.errors import DuplicateColumn, SqlError, SqlSyntaxError


def plan_insert(statement: InsertStatement, query: QueryContext) -> InsertPlan:
    """New rows for a table."""
    table = writable_table(statement.table, "insert into", query)
    targets = _targets(statement, table)
    columns = _literal_table(statement, table, targets, query)
    if columns is None:
        relation = _source(statement, table, targets, query)
    returning = plan_returning(statement.returning, table_scope(table, None, query), query)
    if columns is None:
        refuse_mz_now(relation, returning)
    source = columns or SelectPlan(relation, Finishing(), table.desc)
    return InsertPlan(table.item_id, source, returning)


def _targets(statement: InsertStatement, table: Item) -> list[int]:
    """The positions of the columns that are given."""
    if not statement.columns:
        return list(range(table.desc.arity))
    targets = [column_position(name, table, statement.at) for name in statement.columns]
    for name, position in zip(statement.columns, targets, strict=True):
        if targets.count(position) > 1:
            raise DuplicateColumn(
                f'column "{name}" specified more than once', position=position_of(statement.at)
            )
    return targets


def _source(
    statement: InsertStatement, table: Item, targets: Sequence[int], query: QueryContext
) -> Relation:
    source = statement.source
    if source is None:
        return _rows([[]], table, [], query)
    if _is_bare(source):
        match source.body:
            case Values(rows=rows):
                extra = rows[0][len(targets) :]
                at = start_of(extra[0]) if extra else source.body.at
                _check_width(statement, len(rows[0]), targets, at)
                return _rows(rows, table, targets[: len(rows[0])], query)
            case LiteralValues() as values:
                _check_literal_width(statement, source, values, targets)
                given = targets[: values.width]
                try:
                    return _literal_rows(values, table, given, query)
                except SqlError:
                    # Read again with a node per cell, so that the error points at the right one.
                    cells = values.nodes()
                    starts = range(0, len(cells), values.width)
                    by_row = [cells[i : i + values.width] for i in starts]
                    return _rows(by_row, table, given, query)
            case _:
                pass
    return _query(statement, source, table, targets, query)


def _check_width(statement: InsertStatement, width: int, targets: Sequence[int], at: int) -> None:
    """Columns that no list names may be left out at the end."""
    if width > len(targets):
        raise SqlSyntaxError(
            "INSERT has more expressions than target columns", position=position_of(at)
        )
    if width < len(targets) and statement.columns:
        raise SqlSyntaxError(
            "INSERT has more target columns than expressions", position=position_of(at)
        )


def _check_literal_width(
    statement: InsertStatement, source: Query, values: LiteralValues, targets: Sequence[int]
) -> None:
    """The same, of a list whose cells know their places only when asked."""
    if values.width != len(targets):
        many = values.width > len(targets)
        at = start_of(values.nodes()[len(targets)]) if many else source.at
        _check_width(statement, values.width, targets, at)


def _rows(
    rows: Sequence[Sequence[Expression]], table: Item, targets: Sequence[int], query: QueryContext
) -> Relation:
    defaults = [default_of(table, column, query) for column in range(table.desc.arity)]
    bound = [_row(cells, table, targets, defaults, query) for cells in rows]
    return rows_relation(bound, table.desc.types)


def _row(
    cells: Sequence[Expression],
    table: Item,
    targets: Sequence[int],
    defaults: Sequence[Scalar],
    query: QueryContext,
) -> BoundRow:
    deferred = Deferred()
    context = plain_context(Scope(), query, Clause.VALUES, deferred)
    values = list(defaults)
    for target, cell in zip(targets, cells, strict=True):
        if not isinstance(cell, DefaultValue):
            column = table.desc.columns[target]
            values[target] = assign(context.bind(cell), column, query, at=start_of(cell))
    return BoundRow(values, deferred)


def _literal_table(
    statement: InsertStatement, table: Item, targets: Sequence[int], query: QueryContext
) -> LiteralColumns | None:
    """A long list of constants by columns; None: it is none, or not as plain as it must be."""
    source = statement.source
    values = None if source is None else source.body
    if source is None or not isinstance(values, LiteralValues) or not _is_bare(source):
        return None
    if values.count < COLUMNAR_ROWS:
        return None
    _check_literal_width(statement, source, values, targets)
    given = targets[: values.width]
    arrays = decode_arrays(values, [table.desc.types[target] for target in given])
    if arrays is None:
        return None
    columns = dict(zip(given, arrays, strict=True))
    for position, sql_type in enumerate(table.desc.types):
        if position not in columns:
            default = fold_scalar(default_of(table, position, query))
            if not isinstance(default, Literal):
                return None
            once = encode_column(sql_type, [default.value])
            columns[position] = once.take(pa.array(np.zeros(values.count, np.int64)))
    names = {f"c{position}": columns[position] for position in range(table.desc.arity)}
    return LiteralColumns(pa.table(names), table.desc.types)


def _is_bare(source: Query | None) -> bool:
    """Whether a query is its body and nothing else."""
    if source is None or source.with_ is not None or source.order_by:
        return False
    return source.limit is None and source.offset is None


def _literal_rows(
    values: LiteralValues, table: Item, targets: Sequence[int], query: QueryContext
) -> Relation:
    """Constants by column, and defaults beside them; a default may have to be computed."""
    given = _literal_columns(values, table, targets, query)
    count = values.count
    computed: dict[int, Scalar] = {}
    for position in range(table.desc.arity):
        if position in given:
            continue
        default = fold_scalar(default_of(table, position, query))
        if isinstance(default, Literal):
            given[position] = [default.value] * count
        else:
            computed[position] = default
    known = sorted(given)
    rows = tuple((row, 1) for row in zip(*(given[position] for position in known), strict=True))
    constant = Constant(rows, tuple(table.desc.types[position] for position in known))
    if not computed:
        return constant
    places = {position: ColumnRef(i, constant.types[i]) for i, position in enumerate(known)}
    return with_columns(constant, [computed.get(i) or places[i] for i in range(table.desc.arity)])


def _literal_columns(
    values: LiteralValues, table: Item, targets: Sequence[int], query: QueryContext
) -> dict[int, Sequence[Datum]]:
    """The values of the columns that are given, by their positions in the table."""
    types = [table.desc.columns[target].type for target in targets]
    decoded = decode_columns(values, types)
    if decoded is not None:
        return dict(zip(targets, decoded, strict=True))
    given: dict[int, Sequence[Datum]] = {}
    for i, target in enumerate(targets):
        kinds, texts = values.kinds[i :: values.width], values.texts[i :: values.width]
        column = table.desc.columns[target]
        for sample in samples(kinds, texts, at=values.at):
            assign(sample, column, query, at=values.at)
        given[target] = literal_column(kinds, texts, column.type, at=values.at)
    return given


def _query(
    statement: InsertStatement,
    source: Query,
    table: Item,
    targets: Sequence[int],
    query: QueryContext,
) -> Relation:
    """INSERT ... SELECT: its columns are assigned in order."""
    planned = plan_untyped_query(source, query)
    _check_width(statement, planned.desc.arity, targets, source.at)
    values = [default_of(table, column, query) for column in range(table.desc.arity)]
    for i, target in enumerate(targets[: planned.desc.arity]):
        output = planned.untyped.get(i) or ColumnRef(i, planned.desc.columns[i].type)
        values[target] = assign(
            output, table.desc.columns[target], query, at=planned.at_of(i, source.at)
        )
    return with_columns(fold_finishing(planned), values)
