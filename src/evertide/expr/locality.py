"""What of a tree only the interpreter can run, in this process and for one statement."""

from evertide.expr.functions.row import Knowledge
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import scalars_of
from evertide.expr.scalar import Call, Scalar
from evertide.expr.scalar_walk import children
from evertide.expr.traverse import walk
from evertide.vocab.sql_type import Kind, SqlType


def interpreted_only(relation: Relation) -> str | None:
    """Words for the first such part; None: every executor can run the relation."""
    for node in walk(relation):
        for scalar in scalars_of(node):
            found = _catalog_function(scalar)
            if found is not None:
                return f"catalog function {found}"
            if _has_row(scalar):
                return "a row as a value"
    return None


def _has_row(scalar: Scalar) -> bool:
    """Rows have no place in stored columns, nor in Spark's."""
    return _is_of_rows(scalar.type) or any(_has_row(part) for part in children(scalar))


def _is_of_rows(sql_type: SqlType) -> bool:
    held = sql_type.element
    return sql_type.kind is Kind.RECORD or (held is not None and _is_of_rows(held))


def _catalog_function(scalar: Scalar) -> str | None:
    if isinstance(scalar, Call) and scalar.function.knowledge is not Knowledge.ARGUMENTS:
        return scalar.function.name
    return next((found for part in children(scalar) if (found := _catalog_function(part))), None)
