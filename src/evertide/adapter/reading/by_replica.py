"""What replicas compute for a read: rows of an index, and large queries as Spark jobs."""

from collections.abc import Sequence

from evertide.adapter.environment import Environment
from evertide.adapter.reading.leaves import IndexLeaf
from evertide.adapter.reading.metrics import count_index_read
from evertide.adapter.reading.question import Read
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Unanswered
from evertide.expr.interpret import Collection
from evertide.expr.locality import interpreted_only
from evertide.expr.recursion import is_recursive
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Above this many updates a query runs as a Spark job on a replica.
SPARK_RECORDS = 200_000
# The same for one that goes round: a replica follows what each iteration changes, the interpreter
# here computes all of it each time. A chain of 20 edges takes either some tens of milliseconds.
RECURSION_RECORDS = 20


async def peek_index(
    leaf: IndexLeaf, snapshot: Snapshot, env: Environment, as_of: Timestamp
) -> Collection:
    try:
        updates = await env.compute.peek_index(
            snapshot, leaf.cluster_id, leaf.index_id, leaf.desc, leaf.lookup, as_of
        )
    except Unanswered:
        count_index_read(answered=False)
        raise
    count_index_read(answered=True)
    return _collection(updates)


async def large(read: Read, env: Environment) -> bool:
    """Whether Spark should run it: many records, all in shards, and nothing but what it can."""
    shards = read.shard_leaves
    if not shards or len(shards) != len(read.leaves) or read.cluster_id is None:
        return False
    if interpreted_only(read.relation) is not None:
        return False
    most = RECURSION_RECORDS if is_recursive(read.relation) else SPARK_RECORDS
    return sum([await env.storage.records(leaf.collection) for leaf in shards]) > most


async def by_spark(read: Read, env: Environment, as_of: Timestamp) -> Collection | None:
    """The rows computed by a replica's Spark; None where the interpreter should do it."""
    if not await large(read, env):
        return None
    assert read.cluster_id is not None
    types = read.relation.types
    desc = RelationDesc(tuple(ColumnDesc(f"c{i}", t) for i, t in enumerate(types)))
    try:
        updates = await env.compute.peek_relation(
            read.snapshot, read.cluster_id, read.relation, list(read.leaves), desc, as_of
        )
    except Unanswered:
        return None
    return _collection(updates)


def _collection(updates: Sequence[Update]) -> Collection:
    rows = [(u.row, u.diff) for u in updates if u.error is None]
    errors = [(u.error, u.diff) for u in updates if u.error is not None]
    return Collection(rows, errors)
