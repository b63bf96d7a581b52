"""Plans of statements that differ in one long list of constants alone; pure.

`INSERT INTO t VALUES (...), (...)` and `DELETE FROM t WHERE id IN (...)` come again and again with
other constants. All else about them is planned once: the list stands in one place of the plan, and
another one is put there, read in the same way as when a statement is planned by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from evertide.catalog.objects import Item
from evertide.expr.relation import Constant, Filter, Finishing, Get
from evertide.expr.scalar import Call, Literal
from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.sql.plan.literal_json import decode_arrays, decode_columns
from evertide.sql.plan.literal_list import OWN_CONSTANTS
from evertide.sql.plan.plans import DeletePlan, InsertPlan, LiteralColumns, Plan, SelectPlan
from evertide.sql.plan.target import column_position
from evertide.sql.syntax.command import DeleteStatement, InsertStatement
from evertide.sql.syntax.expression import Expression, InList, Name
from evertide.sql.syntax.literal_values import LiteralValues
from evertide.sql.syntax.query import Query
from evertide.sql.syntax.statement import Statement
from evertide.vocab.relation_desc import RelationDesc


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


def refill(
    plan: Plan, shape: InsertShape | DeleteShape, values: LiteralValues, table: Item
) -> InsertPlan | DeletePlan | None:
    """The plan with another list; None: the statement has to be planned by itself.

    So it is with constants that are not as plain as they mostly are, and all that is wrong.
    """
    match plan, shape:
        case InsertPlan(returning=None), InsertShape(columns=columns):
            source = _rows(values, columns, table)
            return None if source is None else replace(plan, source=source)
        case DeletePlan(selection=Filter(input=Get() as rows, predicates=(Call() as found,))), _:
            call = _member_of(found, values)
            return None if call is None else replace(plan, selection=Filter(rows, (call,)))
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


def without_list(plan: InsertPlan | DeletePlan) -> InsertPlan | DeletePlan:
    """What is worth keeping of a plan that can be refilled: its constants are not."""
    match plan:
        case InsertPlan(source=source):
            types = source.types if isinstance(source, LiteralColumns) else source.relation.types
            nothing = SelectPlan(Constant((), types), Finishing(), RelationDesc(()))
            return replace(plan, source=nothing)
        case DeletePlan(selection=Filter(input=rows, predicates=(Call() as call,))):
            operand, members = call.arguments
            assert isinstance(members, Literal), "a list of constants is one"
            emptied = replace(call, arguments=(operand, replace(members, value=())))
            return replace(plan, selection=Filter(rows, (emptied,)))
        case _:
            raise AssertionError("it was refilled before")


def _member_of(found: Call, values: LiteralValues) -> Call | None:
    match found:
        case Call(arguments=(operand, Literal() as members)):
            if found.function.name != "array_contains" or operand.type not in OWN_CONSTANTS:
                return None
            known = decode_columns(values, [operand.type])
            if known is None:
                return None
            return replace(found, arguments=(operand, replace(members, value=tuple(known[0]))))
        case _:
            return None


def _rows(
    values: LiteralValues, columns: Sequence[str], table: Item
) -> SelectPlan | LiteralColumns | None:
    """Rows that give every column of the table."""
    desc = table.desc
    if values.width != desc.arity:
        return None
    places = [column_position(name, table, values.at) for name in columns] or range(desc.arity)
    types = [desc.types[place] for place in places]
    in_order = sorted(range(desc.arity), key=places.__getitem__)
    if values.count >= COLUMNAR_ROWS:
        arrays = decode_arrays(values, types)
        if arrays is None:
            return None
        made = {f"c{place}": arrays[i] for place, i in enumerate(in_order)}
        return LiteralColumns(pa.table(made), desc.types)
    known = decode_columns(values, types)
    if known is None:
        return None
    given = [known[i] for i in in_order] if columns else known
    rows = tuple((row, 1) for row in zip(*given, strict=True))
    return SelectPlan(Constant(rows, desc.types), Finishing(), desc)
