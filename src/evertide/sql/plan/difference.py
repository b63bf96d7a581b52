"""What is left of one relation without the rows of another.

Negate turns around the multiplicities of errors too, so the plain difference of two relations with
the same error would hide it. Here errors of both sides only ever add up.
"""

from evertide.expr.relation import Negate, Relation, TopK, Union


def minus(left: Relation, right: Relation) -> Relation:
    """Left's rows less right's; multiplicities may be negative, those of errors never are."""
    errors = TopK(right, (), (), limit=0)
    return Union((left, Negate(right), errors, errors))
