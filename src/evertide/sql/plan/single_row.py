"""Relations of one row, or of none, that a subquery becomes."""

from collections.abc import Sequence

from evertide.expr.outer_columns import free_columns
from evertide.expr.relation import (
    AggregateCall,
    Distinct,
    Filter,
    Join,
    Map,
    Project,
    Reduce,
    Relation,
    Union,
)
from evertide.expr.scalar import Call, ColumnRef, Literal
from evertide.sql.plan.builder import ONE_ROW
from evertide.sql.plan.cardinality import has_at_most_one_row, has_exactly_one_row
from evertide.sql.plan.difference import minus
from evertide.sql.plan.function_call import AT_MOST_ONE_ROW, aggregate_over
from evertide.vocab.sql_type import BOOL

TRUE = Literal(True, BOOL)
FALSE = Literal(False, BOOL)
UNDECIDED = Literal(None, BOOL)


def looks_around(query: Relation) -> bool:
    """Whether a subquery depends on the row that its value is for."""
    return any(column.depth == 0 for column in free_columns(query))


def with_default_row(rows: Relation, defaults: Sequence[Literal]) -> Relation:
    """`rows`, of which there is at most one, or these values if there is none."""
    return Union((rows, Map(minus(ONE_ROW, Project(rows, ())), tuple(defaults))))


def value_relation(query: Relation) -> Relation:
    """The one row of a scalar subquery: its value, or NULL; an error if it has two rows."""
    if has_exactly_one_row(query):
        return query
    null = Literal(None, query.types[0])
    if has_at_most_one_row(query):
        return with_default_row(query, [null])
    counted = Reduce(query, (), (AggregateCall(aggregate_over("count", None), None),))
    count = ColumnRef(0, counted.types[0])
    checked = Filter(counted, (Call(AT_MOST_ONE_ROW, (count,), AT_MOST_ONE_ROW.result),))
    value = Project(Join((query, checked)), (0,))
    return Union((value, Map(minus(ONE_ROW, Project(counted, ())), (null,))))


def presence(query: Relation) -> Relation:
    """One row without columns if the query has rows, none otherwise."""
    return Distinct(Project(query, ()))


def absence(query: Relation) -> Relation:
    """One row without columns if the query has none."""
    return minus(ONE_ROW, presence(query))


def exists_relation(query: Relation) -> Relation:
    """One row with one boolean: whether the query has rows."""
    found = presence(query)
    return Union((Map(found, (TRUE,)), Map(minus(ONE_ROW, found), (FALSE,))))
