"""All rewrites in their order."""

from collections.abc import Callable
from typing import TypeAlias

from evertide.expr.heavy import leaves_work
from evertide.expr.relation import Relation
from evertide.expr.transform.decorrelate import decorrelate
from evertide.expr.transform.drop_columns import drop_columns
from evertide.expr.transform.flatten_joins import flatten_joins
from evertide.expr.transform.fold_constants import fold_constants
from evertide.expr.transform.fuse import fuse
from evertide.expr.transform.lift_bodies import lift_bodies
from evertide.expr.transform.limit_windows import limit_windows
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.push_predicates import push_predicates
from evertide.expr.transform.share import share

Pass: TypeAlias = Callable[[Relation], Relation]

PASSES: tuple[Pass, ...] = (
    lower_outer_join,  # all that follow, and every executor, know no outer joins
    decorrelate,  # nor subqueries that see a row around
    lift_bodies,
    fold_constants,
    fuse,
    push_predicates,  # makes joins of products, so that there is something to flatten
    fuse,
    flatten_joins,
    fuse,
    push_predicates,  # what flattening brought together may now be an equivalence
    fold_constants,  # NULLs of padded rows have met the predicates above them
    fuse,
    limit_windows,  # predicates have met the windows they are about
    drop_columns,
    fuse,
    share,
)


def optimize(relation: Relation) -> Relation:
    """The relation that executors run: same rows, fewer of them on the way."""
    for rewrite in PASSES:
        relation = rewrite(relation)
    return relation


def optimize_at_leisure(relation: Relation) -> Relation:
    """The same where nobody waits: constants are worked out however long that takes."""
    relation = optimize(relation)
    return optimize(fold_constants(relation, heavy=True)) if leaves_work(relation) else relation
