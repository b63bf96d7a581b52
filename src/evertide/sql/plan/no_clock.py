"""Statements that write do not ask at what time they run: that is known only afterwards."""

from collections.abc import Iterable

from evertide.expr.relation import Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Scalar
from evertide.expr.temporal import MZ_NOW
from evertide.sql.plan.plans import Returning
from evertide.sql.plan.rewrite import walk_parts
from evertide.vocab.errors import FeatureNotSupported


def refuse_mz_now(
    relation: Relation, returning: Returning | None, scalars: Iterable[Scalar] = ()
) -> None:
    """Neither what is selected, nor what it becomes, nor what is returned may ask for it."""
    selected = (scalar for node in in_order_of_use(relation) for scalar in scalars_of(node))
    returned = () if returning is None else returning.scalars
    for scalar in (*scalars, *returned, *selected):
        if any(part == MZ_NOW for part in walk_parts(scalar)):
            raise FeatureNotSupported(
                "calls to mz_now in write statements are not supported",
                hint="now() is the time of the statement.",
            )
