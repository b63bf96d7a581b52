"""Subtrees that say the same become one object, so that executors compute and keep them once."""

import msgspec

from evertide.expr.codec import plain_node
from evertide.expr.relation import Relation
from evertide.expr.relation_walk import inputs_of, rewrite_up


def share(relation: Relation) -> Relation:
    """The relation with equal subtrees made one. Inputs come first, so they compare by object."""
    known: dict[bytes, Relation] = {}

    def shared(node: Relation) -> Relation:
        inputs = [id(source) for source in inputs_of(node)]
        return known.setdefault(msgspec.msgpack.encode([plain_node(node), inputs]), node)

    return rewrite_up(relation, shared)
