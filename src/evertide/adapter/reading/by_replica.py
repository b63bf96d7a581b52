"""What replicas compute for a read: rows of an index, and large queries as Spark jobs."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from evertide.adapter.environment import Environment
from evertide.adapter.reading.leaves import IndexLeaf
from evertide.adapter.reading.metrics import count_index_read
from evertide.adapter.reading.question import Read
from evertide.adapter.reading.result_rows import Finisher
from evertide.adapter.reading.result_stream import ResultStream
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import RunningSelect, Unanswered, replica_processes
from evertide.dataflow.protocol import SelectCommand
from evertide.expr.codec import encode_relation
from evertide.expr.interpret import Collection
from evertide.expr.locality import interpreted_only
from evertide.expr.recursion import is_recursive
from evertide.vocab.errors import ObjectNotInPrerequisiteState
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

log = structlog.get_logger()

# Above this many updates, or bytes of them, a query runs as a Spark job on a replica.
SPARK_RECORDS = 200_000
SPARK_BYTES = 128 << 20
# The same for one that goes round: a replica follows what each iteration changes, the interpreter
# here computes all of it each time. A chain of 20 edges takes either some tens of milliseconds.
RECURSION_RECORDS = 20
# More than this many updates are not interpreted here, whoever is there to compute the query: as
# Python's objects they take a gigabyte and more.
INTERPRETED_RECORDS = 2_000_000
INTERPRETED_BYTES = 512 << 20

_FIRST_RETRY_S: Final = 0.05
_LONGEST_RETRY_S: Final = 1.0


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
    read_size = await size_of(read, env)
    if is_recursive(read.relation):
        return read_size.records > RECURSION_RECORDS
    return read_size.is_over(SPARK_RECORDS, SPARK_BYTES)


@dataclass(frozen=True, slots=True)
class ReadSize:
    """How much a read looks at: updates, and about how much memory they take as columns."""

    records: int
    decoded_bytes: int

    def is_over(self, records: int, decoded_bytes: int) -> bool:
        """Whether it is too much in either way."""
        return self.records > records or self.decoded_bytes > decoded_bytes


async def size_of(read: Read, env: Environment) -> ReadSize:
    """Of all collections that lie in shards."""
    collections, storage = [leaf.collection for leaf in read.shard_leaves], env.storage
    return ReadSize(
        sum([await storage.records(one) for one in collections]),
        sum([await storage.decoded_bytes(one) for one in collections]),
    )


async def by_spark(read: Read, env: Environment, as_of: Timestamp) -> ResultStream | None:
    """The rows computed by a replica's Spark, once they are; None where the interpreter should do
    it. Nothing is read of the collections any more when this returns."""
    if not await large(read, env):
        return None
    running = await _run_select(read, env, as_of)
    if running is None:
        return None
    announced = await running.wait_for_result()
    finisher = Finisher(read.finishing, read.relation.types)
    weight = finisher.weight_of(announced.rows, announced.bytes)
    return ResultStream(running, finisher, weight)


async def _run_select(read: Read, env: Environment, as_of: Timestamp) -> RunningSelect | None:
    """None where no replica answers and the query is small enough for the interpreter.

    Others wait for one: it may be starting, and to interpret them would end this process.
    """
    assert read.cluster_id is not None, "without a cluster it is not large"
    body, finishing = encode_relation(read.relation), read.finishing
    most = None if finishing.limit is None else finishing.offset + finishing.limit

    def command(request_id: int) -> SelectCommand:
        return SelectCommand(
            request_id=request_id,
            catalog_ts=read.snapshot.catalog_ts,
            relation=body,
            imports=tuple(read.leaves),
            as_of=as_of,
            order=tuple((k.column, k.descending, k.nulls_first) for k in finishing.order),
            most=most,
        )

    snapshot, retry_s = read.snapshot, 0.0
    while True:
        names = replica_processes(snapshot, read.cluster_id)
        try:
            return await env.compute.select(names, command)
        except Unanswered as unanswered:
            if not retry_s:
                read_size = await size_of(read, env)
                if not read_size.is_over(INTERPRETED_RECORDS, INTERPRETED_BYTES):
                    return None
                records, reason = read_size.records, str(unanswered)
                log.warning("a query waits for a replica", reason=reason, records=records)
        if not names:
            raise _no_replicas(read)
        retry_s = min(retry_s * 2, _LONGEST_RETRY_S) or _FIRST_RETRY_S
        await asyncio.sleep(retry_s)
        snapshot = env.catalog.newest


def _no_replicas(read: Read) -> ObjectNotInPrerequisiteState:
    """Nobody is there who could be waited for."""
    assert read.cluster_id is not None, "without a cluster it is not large"
    cluster = read.snapshot.clusters[read.cluster_id].name
    return ObjectNotInPrerequisiteState(
        f'cluster "{cluster}" has no replica to compute the query, which is too large to be'
        " interpreted",
        hint="ALTER CLUSTER … SET (REPLICATION FACTOR 1), or SET cluster to another one.",
    )


def _collection(updates: Sequence[Update]) -> Collection:
    rows = [(u.row, u.diff) for u in updates if u.error is None]
    errors = [(u.error, u.diff) for u in updates if u.error is not None]
    return Collection(rows, errors)
