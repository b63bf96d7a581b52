"""COPY ... FROM STDIN: which columns come, and how their text is to be read."""

from evertide.expr.scalar import Scalar
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.copy_format import copy_format
from evertide.sql.plan.plans import CopyFromPlan
from evertide.sql.plan.target import column_position, default_of, writable_table
from evertide.sql.resolve import position_of
from evertide.sql.syntax.command import CopyFromStatement
from evertide.vocab.errors import DuplicateColumn


def plan_copy_from(statement: CopyFromStatement, query: QueryContext) -> CopyFromPlan:
    """Rows for a table, that the client sends as lines of text."""
    table = writable_table(statement.target.name, "copy to", query)
    names, at = statement.target.columns, statement.target.at
    targets = [column_position(name, table, at) for name in names]
    for name, target in zip(names, targets, strict=True):
        if targets.count(target) > 1:
            raise DuplicateColumn(
                f'column "{name}" specified more than once', position=position_of(at)
            )
    if not names:
        targets = list(range(table.desc.arity))
    defaults: dict[int, Scalar] = {
        i: default_of(table, i, query) for i in range(table.desc.arity) if i not in targets
    }
    return CopyFromPlan(table.item_id, tuple(targets), defaults, copy_format(statement.options))
