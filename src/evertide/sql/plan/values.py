"""VALUES: rows written out in the query."""

from collections.abc import Sequence
from dataclasses import dataclass

from evertide.expr.relation import Constant, Relation, Union
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.transform.fold_scalar import fold_scalar
from evertide.sql.plan.builder import ONE_ROW, RelationBuilder
from evertide.sql.plan.coercion import unify
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.deferred import Deferred, fill_places
from evertide.sql.plan.expression import plain_context
from evertide.sql.plan.expression_context import Clause
from evertide.sql.plan.literal_rows import common_literal_type, literal_column
from evertide.sql.plan.place import start_of
from evertide.sql.plan.planned import PlannedQuery
from evertide.sql.plan.scope import Scope
from evertide.sql.plan.subquery import attach_all
from evertide.sql.syntax.expression import Expression
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import Values
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import SqlType


@dataclass(frozen=True, slots=True)
class BoundRow:
    """A row's values, and the subqueries they still need."""

    scalars: list[Scalar]
    deferred: Deferred


def bind_row(cells: Sequence[Expression], query: QueryContext) -> BoundRow:
    """One row of VALUES."""
    deferred = Deferred()
    context = plain_context(Scope(), query, Clause.VALUES, deferred)
    return BoundRow([context.bind(cell) for cell in cells], deferred)


def plan_values(values: Values, query: QueryContext) -> PlannedQuery:
    """VALUES as a query: columns column1, column2, ... in types common to all rows."""
    rows = [bind_row(cells, query) for cells in values.rows]
    types: list[SqlType] = []
    for column in range(len(values.rows[0])):
        cells = [row.scalars[column] for row in rows]
        ats = [start_of(row_cells[column]) for row_cells in values.rows]
        unified, shared = unify(cells, "VALUES", query, ats=ats)
        types.append(shared)
        for row, scalar in zip(rows, unified, strict=True):
            row.scalars[column] = scalar
    nullable = [any(_may_be_null(row.scalars[i]) for row in rows) for i in range(len(types))]
    return planned_rows(rows_relation(rows, tuple(types)), nullable)


def _may_be_null(scalar: Scalar) -> bool:
    return not isinstance(scalar, Literal) or scalar.value is None


def planned_rows(relation: Relation, nullable: Sequence[bool]) -> PlannedQuery:
    """Rows under the names that VALUES gives its columns."""
    columns = tuple(
        ColumnDesc(f"column{i}", sql_type, may_be_null)
        for i, (sql_type, may_be_null) in enumerate(
            zip(relation.types, nullable, strict=True), start=1
        )
    )
    return PlannedQuery(relation, tuple(range(len(columns))), RelationDesc(columns))


def rows_relation(rows: Sequence[BoundRow], types: tuple[SqlType, ...]) -> Relation:
    """The rows as one relation: those that are known now in one Constant, the others computed."""
    known: list[tuple[Row, int]] = []
    computed: list[Relation] = []
    for row in rows:
        folded = [fold_scalar(scalar) for scalar in row.scalars]
        literals = [scalar for scalar in folded if isinstance(scalar, Literal)]
        if len(literals) == len(folded):
            known.append((tuple(literal.value for literal in literals), 1))
        else:
            computed.append(_computed_row(BoundRow(folded, row.deferred)))
    if known or not computed:
        computed.insert(0, Constant(tuple(known), types))
    return computed[0] if len(computed) == 1 else Union(tuple(computed))


def _computed_row(row: BoundRow) -> Relation:
    builder = RelationBuilder(ONE_ROW, [])
    fill = fill_places(attach_all(row.deferred, builder))
    builder.project(builder.map([fill(scalar) for scalar in row.scalars]))
    return builder.relation


def plan_literal_values(values: LiteralValues) -> PlannedQuery:
    """A long VALUES list of constants as a query, column by column."""
    columns = []
    types = []
    for i in range(values.width):
        kinds, texts = values.kinds[i :: values.width], values.texts[i :: values.width]
        sql_type = common_literal_type(kinds, texts, at=values.at)
        types.append(sql_type)
        columns.append(literal_column(kinds, texts, sql_type, at=values.at))
    rows = tuple((row, 1) for row in zip(*columns, strict=True))
    nullable = [None in column for column in columns]
    return planned_rows(Constant(rows, tuple(types)), nullable)
