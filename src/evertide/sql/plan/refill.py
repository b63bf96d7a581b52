"""Plans of statements that differ in one long list of constants alone; pure.

`INSERT INTO t VALUES (...), (...)` and `DELETE FROM t WHERE id IN (...)` come again and again with
other constants. All else about them is planned once: the list stands in one place of the plan, and
another one is put there, read in the same way as when a statement is planned by itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import pyarrow as pa

from evertide.catalog.objects import Item
from evertide.expr.relation import Constant, Filter, Finishing, Get
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.sql.parser.entry import parse_statement
from evertide.sql.parser.literal_rows import CHANGED_ITEMS
from evertide.sql.plan.literal_json import column_reader
from evertide.sql.plan.literal_list import OWN_CONSTANTS
from evertide.sql.plan.plans import DeletePlan, InsertPlan, LiteralColumns, Plan, SelectPlan
from evertide.sql.plan.target import column_position
from evertide.sql.syntax.command import DeleteStatement, InsertStatement
from evertide.sql.syntax.expression import UNPLACED, Expression, InList, Name
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import Query
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import SqlError

# The plan with another list; None: the statement has to be planned by itself. So it is with
# constants that are not as plain as they mostly are, and all that is wrong.
Refill: TypeAlias = Callable[[LiteralValues], InsertPlan | DeletePlan | None]


@dataclass(frozen=True, slots=True)
class InsertShape:
    """All of an INSERT but its rows."""

    table: Name
    columns: tuple[str, ...]
    width: int


@dataclass(frozen=True, slots=True)
class DeleteShape:
    """All of a DELETE but the list that its condition looks in."""

    table: Name
    alias: str | None
    operand: Expression


def shape_of(statement: Statement) -> tuple[InsertShape | DeleteShape, LiteralValues] | None:
    """What remains of a statement without its list, and the list; None where there is none."""
    match statement:
        case InsertStatement(
            source=Query(
                body=LiteralValues() as values, with_=None, order_by=(), limit=None, offset=None
            ),
            returning=(),
        ):
            return InsertShape(statement.table, statement.columns, values.width), values
        case DeleteStatement(
            using=(),
            where=InList(operand=operand, items=LiteralValues() as values, negated=False),
            returning=(),
        ):
            return DeleteShape(statement.table, statement.alias, operand), values
        case _:
            return None


@lru_cache(maxsize=1_024)
def shape_begun(beginning: str, width: int, *, listed: bool) -> InsertShape | DeleteShape | None:
    """The shape of every statement that is this beginning and a list, rows of so many constants.

    The grammar tells it from the beginning with one such list: its own length and its constants
    make no odds to all that stands before it. None: not such a statement.
    """
    zeros = ", ".join(["0"] * (CHANGED_ITEMS if listed else width))
    try:
        found = shape_of(parse_statement(f"{beginning}({zeros})"))
    except SqlError:
        return None
    if found is None:
        return None
    shape, values = found
    return shape if values.listed == listed and values.at == len(beginning) else None


def refilling(plan: Plan, shape: InsertShape | DeleteShape, table: Item) -> Refill | None:
    """How another list is put into the plan; None where there is no place for one.

    What this gives is used for every list to come: all that does not depend on one is done here.
    """
    match plan, shape:
        case InsertPlan(returning=None), InsertShape(columns=columns, width=width):
            return _insert_refill(columns, width, table)
        case DeletePlan(selection=Filter(input=Get() as rows, predicates=(Call() as found,))), _:
            return _delete_refill(plan, rows, found)
        case _:
            return None


def same_plan(one: Plan, other: Plan) -> bool:
    """Whether two plans are equal, the columns of constants in them included."""
    match one, other:
        case (
            InsertPlan(source=LiteralColumns() as left),
            InsertPlan(source=LiteralColumns() as right),
        ):
            alike = one.table_id == other.table_id and one.returning == other.returning
            return alike and left.types == right.types and bool(left.table.equals(right.table))
        case _:
            return one == other


def _delete_refill(plan: DeletePlan, rows: Get, found: Call) -> Refill | None:
    match found:
        # The column itself: one that is cast was compared with constants of another type, which
        # the next list need not have.
        case Call(arguments=(ColumnRef() as operand, Literal(type=members))):
            if found.function.name != "array_contains" or operand.type not in OWN_CONSTANTS:
                return None
        case _:
            return None
    reader = column_reader((operand.type,), listed=True)
    # Neither the plan nor the call is held on to: both hold a list.
    table_id, returning, function, result = (
        plan.table_id,
        plan.returning,
        found.function,
        found.type,
    )

    def refill(values: LiteralValues) -> DeletePlan | None:
        known = reader.columns(values)
        if known is None:
            return None
        call = Call(function, (operand, Literal(tuple(known[0]), members)), result)
        return DeletePlan(table_id, Filter(rows, (call,)), returning)

    return refill


def _insert_refill(columns: Sequence[str], width: int, table: Item) -> Refill | None:
    """Rows that give every column of the table."""
    table_id, desc, types = table.item_id, table.desc, table.desc.types
    if width != desc.arity:
        return None
    places = [column_position(name, table, UNPLACED) for name in columns] or range(desc.arity)
    in_order = sorted(range(desc.arity), key=places.__getitem__)
    reader = column_reader(tuple(types[place] for place in places), listed=False)

    def refill(values: LiteralValues) -> InsertPlan | None:
        source: LiteralColumns | SelectPlan
        if values.count >= COLUMNAR_ROWS:
            arrays = reader.arrays(values)
            if arrays is None:
                return None
            made = {f"c{place}": arrays[i] for place, i in enumerate(in_order)}
            source = LiteralColumns(pa.table(made), types)
        else:
            known = reader.columns(values)
            if known is None:
                return None
            given = [known[i] for i in in_order] if columns else known
            rows = tuple([(row, 1) for row in zip(*given, strict=True)])
            source = SelectPlan(Constant(rows, types), Finishing(), desc)
        return InsertPlan(table_id, source)

    return refill
