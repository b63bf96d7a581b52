"""Temporary tables as constants, for whoever computes elsewhere and goes on while time passes.

The session that subscribes does nothing else meanwhile, so its tables do not change.
"""

from evertide.adapter.temporary.objects import Temporary
from evertide.catalog.objects import Table
from evertide.catalog.snapshot import Snapshot
from evertide.expr.relation import Constant, Get, Relation
from evertide.expr.relation_walk import rewrite_up


def with_held_rows(relation: Relation, snapshot: Snapshot, temporary: Temporary) -> Relation:
    """The relation with the rows of temporary tables in the place of those."""

    def replaced(node: Relation) -> Relation:
        if not isinstance(node, Get):
            return node
        item = snapshot.item_of(node.global_id)
        if item is None or item.shard_id is not None or not isinstance(item.definition, Table):
            return node
        return Constant(tuple(temporary.rows(item.definition.shard_id).rows), node.types)

    return rewrite_up(relation, replaced)
