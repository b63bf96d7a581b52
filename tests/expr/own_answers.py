"""What expressions over a table of values give here, row by row, as they are planned and run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.expr.compile import compile_scalar
from evertide.expr.relation import Get, Map, Project, Relation
from evertide.expr.scalar import ColumnRef, Scalar
from evertide.expr.scalar_walk import inline_columns
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import SelectPlan
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError
from evertide.vocab.sql_type import SqlType
from tests.expr.postgres_oracle import type_name
from tests.expr.random_expressions import COLUMNS
from tests.sql.database import Database, new_database

# A value, or the SQLSTATE of an error.
Outcome: TypeAlias = tuple[Datum, str | None]
TABLE = "samples"
DEFINITION = f"CREATE TABLE {TABLE} (id int4, {{}})".format(
    ", ".join(f"{name} {type_name(sql_type)}" for name, sql_type in COLUMNS)
)


@dataclass
class OwnAnswers:
    """A table of rows, and a planner that knows it."""

    rows: Sequence[Row]
    database: Database = field(default_factory=new_database)

    def __post_init__(self) -> None:
        self.database.run(DEFINITION)

    def plan(self, expression: str) -> SelectPlan:
        """The plan of a SELECT of this expression alone."""
        plan = self.database.plan(f"SELECT {expression} FROM {TABLE}")
        assert isinstance(plan, SelectPlan)
        return plan

    def scalar(self, expression: str) -> tuple[Scalar, SqlType]:
        """The expression as executors get it, over the table's columns, and its type."""
        plan = self.plan(expression)
        shown = 0 if plan.finishing.project is None else plan.finishing.project[0]
        return column_of(optimize(plan.relation), shown), plan.desc.types[0]

    def outcomes(self, scalar: Scalar) -> list[Outcome]:
        """One for each row."""
        evaluate = compile_scalar(scalar)
        found: list[Outcome] = []
        for row in self.rows:
            try:
                found.append((evaluate(row), None))
            except SqlError as error:
                found.append((None, error.code))
        return found


def column_of(relation: Relation, index: int) -> Scalar:
    """A column of a query without filters as one scalar over the collection that it reads."""
    match relation:
        case Get(types=types):
            return ColumnRef(index, types[index])
        case Project(below, columns):
            return column_of(below, columns[index])
        case Map(below, scalars):
            width = len(below.types)
            if index < width:
                return column_of(below, index)
            values = {i: column_of(below, i) for i in range(width)}
            return inline_columns(scalars[index - width], values)
    raise AssertionError(f"{relation} is more than an expression over a table")
