"""Temporary tables as constants, for whoever computes elsewhere and goes on while time passes.

The session that subscribes does nothing else meanwhile, so its tables do not change. Constants are
part of a plan, which is rewritten, sent and kept as a whole, so they have to be few.
"""

from typing import Final

from evertide.adapter.temporary.objects import Temporary
from evertide.adapter.temporary.tables import HeldTable
from evertide.catalog.objects import Table
from evertide.catalog.snapshot import Snapshot
from evertide.expr.relation import Constant, Get, Relation
from evertide.expr.relation_walk import rewrite_up
from evertide.vocab.errors import ProgramLimitExceeded
from evertide.vocab.ids import ShardId

MOST_ROWS: Final = 10_000
MOST_BYTES: Final = 4 * 1024 * 1024


class HeldRows:
    """Rows of temporary tables that one plan takes, each table's as often as it reads it."""

    def __init__(self, snapshot: Snapshot, temporary: Temporary) -> None:
        self._snapshot = snapshot
        self._tables = temporary.held.tables
        self.count = 0
        self._weight = 0

    def put_into(self, relation: Relation) -> Relation:
        """The relation with the rows of temporary tables in the place of those."""
        return rewrite_up(relation, self._replaced)

    def _replaced(self, node: Relation) -> Relation:
        shard_id = self._shard_of(node)
        if shard_id is None:
            return node
        table = self._tables[shard_id]
        self._take(table)
        return Constant(tuple(table.rows), node.types)

    def _shard_of(self, node: Relation) -> ShardId | None:
        if not isinstance(node, Get):
            return None
        item = self._snapshot.item_of(node.global_id)
        if item is None or item.shard_id is not None or not isinstance(item.definition, Table):
            return None
        return item.definition.shard_id

    def _take(self, table: HeldTable) -> None:
        self.count += table.count
        self._weight += table.weight
        if self.count > MOST_ROWS or self._weight > MOST_BYTES:
            raise ProgramLimitExceeded(
                f"SUBSCRIBE is limited to {MOST_ROWS} rows, or {MOST_BYTES} bytes, of temporary"
                " tables",
                hint="Keep the rows in a table that is not temporary.",
            )
