"""How many rows a relation can have, as far as its shape tells.

A scalar subquery must not give two rows. Where the shape alone rules that out, no check is planned.
"""

from evertide.expr.relation import (
    Apply,
    Constant,
    Distinct,
    Filter,
    Join,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    TopK,
    Union,
)


def has_exactly_one_row(relation: Relation) -> bool:
    """True only if it always has one row."""
    while isinstance(relation, Project | Map):
        relation = relation.input
    match relation:
        case Constant(rows=((_, 1),)):
            return True
        case Join(inputs=inputs, equivalences=()):
            return all(has_exactly_one_row(one) for one in inputs)
        case Apply(left=left, right=right):
            return has_exactly_one_row(left) and has_exactly_one_row(right)
        case Union(inputs=(rows, Map(input=Union(inputs=(one, Negate(input=gone), *_))))):
            replaced = isinstance(gone, Project) and gone.input is rows
            return replaced and has_at_most_one_row(rows) and has_exactly_one_row(one)
        case _:
            return False


def has_at_most_one_row(relation: Relation) -> bool:
    """True only if it never has two rows."""
    while isinstance(relation, Project | Map | Filter):
        relation = relation.input
    match relation:
        case Reduce(keys=()) | TopK(group=(), limit=0 | 1) | Distinct(input=Project(columns=())):
            return True
        case Constant(rows=()):
            return True
        case Join(inputs=inputs):
            return all(has_at_most_one_row(one) for one in inputs)
        case Apply(left=left, right=right):
            return has_at_most_one_row(left) and has_at_most_one_row(right)
        case _:
            return has_exactly_one_row(relation)
