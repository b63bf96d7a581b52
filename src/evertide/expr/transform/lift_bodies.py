"""What is made of a recursion's result leaves the recursion.

A body that reads one binding becomes an ordinary relation over that binding, so that predicates,
joins and executors treat it as any other, and a recursion is no more than what goes round.
"""

from dataclasses import replace

from evertide.expr.recursion import FreeNames
from evertide.expr.relation import LetRec, LocalGet, Relation
from evertide.expr.relation_walk import rewrite_up


def lift_bodies(relation: Relation) -> Relation:
    """The relation with the bodies of its recursions above them, where one binding is read."""
    return rewrite_up(relation, lambda node: _lifted(node) if isinstance(node, LetRec) else node)


def _lifted(node: LetRec) -> Relation:
    """A body that reads none needs no recursion; one that reads several stays in it."""
    read = FreeNames().of(node.body) & set(node.names)
    if isinstance(node.body, LocalGet) or len(read) > 1:
        return node

    # One object for all places where the binding is read.
    known: dict[str, Relation] = {}

    def bound(part: Relation) -> Relation:
        if not isinstance(part, LocalGet) or part.name not in read:
            return part
        return known.setdefault(part.name, replace(node, body=part))

    return rewrite_up(node.body, bound)
