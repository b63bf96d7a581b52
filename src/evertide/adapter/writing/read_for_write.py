"""What statements that write read first: at the last complete timestamp, and after their own
transaction's earlier changes.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from evertide.adapter.environment import Environment
from evertide.adapter.reading.at_leisure import worked_out
from evertide.adapter.reading.by_replica import by_spark
from evertide.adapter.reading.domain import hold_domain, read_domain
from evertide.adapter.reading.fetching import fetch_leaf
from evertide.adapter.reading.leaves import HeldLeaf, Leaf, ShardLeaf
from evertide.adapter.reading.question import Question, Read
from evertide.adapter.reading.read import compute_rows, plan_read, read_plan
from evertide.adapter.reading.result_stream import drain
from evertide.adapter.reading.selection import Found, find_rows
from evertide.adapter.session import Session
from evertide.adapter.temporary.tables import row_count
from evertide.adapter.transaction import ReadSet, SeenImage, Writing
from evertide.adapter.writing.direct_read import DirectRead, direct_read
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Unanswered
from evertide.controller.stillness import shards_below
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection
from evertide.expr.relation import Filter, Get
from evertide.expr.traverse import gets
from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.persist.faults import BelowSince
from evertide.persist.leases import ReadHold
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.txn import TableWrite, diff_rows
from evertide.vocab.datum import Row
from evertide.vocab.errors import InvalidTransactionState, ObjectNotInPrerequisiteState
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp, step_back


@dataclass(frozen=True, slots=True)
class WriteRead:
    """Where and when a statement that writes reads, and what its transaction has done before."""

    session: Session
    env: Environment
    snapshot: Snapshot
    writing: Writing
    in_block: bool

    @property
    def read_set(self) -> ReadSet:
        assert self.writing.read_set is not None, "it was chosen before anything is read"
        return self.writing.read_set

    @property
    def as_of(self) -> Timestamp:
        return step_back(self.read_set.upper)

    def direct(self, question: Question) -> DirectRead | None:
        """A read without choices, where there is one; what it depends on is noted.

        Only where the table's image is at hand: else an index may be the better way.
        """
        found = direct_read(question, self.snapshot)
        if found is None:
            return None
        table = found.leaf.collection
        changed = any(self.writing.changes.values())  # of which indexes do not know
        if not changed and not self.env.storage.images.kept(table.shard_id, table.desc):
            return None
        self.read_set.collections[table.shard_id] = table
        return found

    def plan(self, question: Question, *, use_indexes: bool = True) -> Read:
        """The choices of a read; what it depends on is noted."""
        for collection in base_collections(gets(question.relation), self.snapshot):
            self.read_set.collections[collection.shard_id] = collection
        return plan_read(
            question,
            self.session,
            self.env,
            self.snapshot,
            as_of=self.as_of,
            use_indexes=use_indexes,
        )

    async def hold(self, read: Read) -> ReadHold:
        """Keeps the timestamp readable: for the statement, and in a block until that ends."""
        transaction = self.session.transaction
        collections = [leaf.collection for leaf in read.shard_leaves]
        try:
            hold = await self.env.storage.hold(collections, self.as_of)
        except BelowSince:
            raise ObjectNotInPrerequisiteState(
                "the transaction's timestamp is no longer readable", hint="Restart the transaction."
            ) from None
        if self.in_block and transaction is not None and not transaction.holds:
            try:
                transaction.holds.append(await self._hold_domain(read))
            except BaseException:
                hold.release()
                raise
        return hold

    async def _hold_domain(self, read: Read) -> ReadHold:
        """As hold_domain, without a look at the store where this process's leases cover it all."""
        domain = read_domain(read.leaves, read.snapshot)
        try:
            return await self.env.storage.hold(domain, self.as_of)
        except BelowSince:
            return await hold_domain(domain, self.env, self.as_of)


def base_collections(global_ids: Sequence[GlobalId], snapshot: Snapshot) -> list[Import]:
    """The collections that all of these follow from, which follow from no others.

    A view that is refreshed at times does not change with what it follows from.
    """
    items = [snapshot.item_of(global_id) for global_id in global_ids]
    stored = snapshot.stored_inputs([item.item_id for item in items if item is not None])
    found: list[Import] = []
    waiting = [collection_of(item, snapshot) for item in stored]
    while waiting:
        collection = waiting.pop()
        assert collection is not None, "stored inputs are stored"
        if collection.derived is None or collection.derived.refresh is not None:
            found.append(collection)
        else:
            waiting.extend(collection.derived.inputs)
    return found


async def read_rows(question: Question, how: WriteRead) -> list[Row]:
    """The rows of a question."""
    rows, _ = await read_found(question, how)
    return rows


async def read_found(question: Question, how: WriteRead) -> tuple[list[Row], Found | None]:
    """The rows of a question, and where in a table's image the rows are that they were made of."""
    direct = how.direct(question)
    if direct is not None:
        found = await _found_directly(direct, how)
        if found is not None:
            rows = _repeated(found, direct.leaf.collection.desc.types)
            return direct.followed(rows), found
    question = await _lighter(question, how)
    read = how.plan(question, use_indexes=not _passes_indexes(question, how))
    if read.pause_s:
        await asyncio.sleep(read.pause_s)
    with await how.hold(read):
        try:
            return await _rows(read, how)
        except Unanswered:
            # No replica holds the index at this timestamp: compute from what is durable instead.
            return await _rows(how.plan(question, use_indexes=False), how)


def note_gone(found: Found, shard_id: ShardId, count: int, how: WriteRead) -> None:
    """What the transaction sees once so many rows, those found, are gone: its next change."""
    if found.exact and found.count == count:
        changes = len(how.writing.changes_of(shard_id)) + 1
        how.writing.images[shard_id] = SeenImage(found.image, changes, found.places)


async def read_gone(
    question: Question, desc: RelationDesc, how: WriteRead
) -> tuple[TableWrite, int] | None:
    """Rows that a DELETE selects, which go, and how many they are; many are left as columns.

    None where that cannot be told without looking at them one by one.
    """
    read = how.direct(question) or _selected(await _lighter(question, how), how)
    if read is None:
        return None
    found = await _found_directly(read, how)
    if found is None:
        return None
    count = found.count
    if count:
        note_gone(found, read.leaf.collection.shard_id, count, how)
    if len(found) < COLUMNAR_ROWS:
        rows = found.rows(desc.types)
        return TableWrite(desc, [(r, -n) for r, n in zip(rows, found.counts, strict=True)]), count
    table, counts = found.table()
    gone = table.append_column("d", pa.array(-counts))
    return TableWrite(desc, (), (gone,)), count


async def _lighter(question: Question, how: WriteRead) -> Question:
    """The question with constants worked out that take long."""
    indexed = not _passes_indexes(question, how)
    plan = read_plan(question, how.session, how.env, how.snapshot, use_indexes=indexed)
    relation = await worked_out(plan, question.parameters, question.bindings)
    return question if relation is None else Question(relation, question.finishing)


def _selected(question: Question, how: WriteRead) -> DirectRead | None:
    """Conditions over one table that had to be planned; None where it is more than that."""
    read = how.plan(question, use_indexes=not _passes_indexes(question, how))
    match read.relation:
        case Get(global_id=global_id) | Filter(input=Get(global_id=global_id)):
            leaf = read.leaves[global_id]
        case _:
            return None
    if not isinstance(leaf, ShardLeaf) or not leaf.collection.is_table:
        return None
    return DirectRead(read, leaf, ())


async def _found_directly(read: DirectRead, how: WriteRead) -> Found | None:
    """Exactly the rows that match; None where columns cannot tell."""
    with await how.hold(read.read):
        found = await find_rows(read.leaf, how.env.storage, how.as_of, how.writing)
    return found if found is not None and found.exact else None


def _repeated(found: Found, types: tuple[SqlType, ...]) -> list[Row]:
    """The rows, each as often as it is there."""
    rows = found.rows(types)
    if len(rows) == found.count:
        return rows
    return [row for row, count in zip(rows, found.counts, strict=True) for _ in range(count)]


def _passes_indexes(question: Question, how: WriteRead) -> bool:
    """Whether indexes are not asked: a table's image, where it has one, is quicker."""
    if any(how.writing.changes.values()):
        return True  # and an index does not know what the transaction did
    match [how.snapshot.item_of(global_id) for global_id in gets(question.relation)]:
        case [item] if item is not None and item.shard_id is not None:
            return how.env.storage.images.kept(item.shard_id, item.desc)
    return False


async def _rows(read: Read, how: WriteRead) -> tuple[list[Row], Found | None]:
    fetched: dict[GlobalId, Collection] = {}
    found = await _found(read, how)
    if found is None and not any(_changes(leaf, how) for leaf in read.leaves.values()):
        by_job = await by_spark(read, how.env, how.as_of)
        if by_job is not None:
            return await drain(by_job), None
    for global_id, leaf in read.leaves.items():
        if found is not None:
            assert isinstance(leaf, ShardLeaf), "only tables are searched"
            rows = found.rows(leaf.collection.desc.types)
            fetched[global_id] = Collection(list(zip(rows, found.counts, strict=True)))
        else:
            fetched[global_id] = await _fetch(leaf, read, how)
    return await compute_rows(read, fetched), found


async def _found(read: Read, how: WriteRead) -> Found | None:
    """Rows found by columns, where one table is all that is read, and some of it."""
    match list(read.leaves.values()):
        case [ShardLeaf(once=True, predicates=(_, *_)) as leaf] if leaf.collection.is_table:
            return await find_rows(leaf, how.env.storage, how.as_of, how.writing)
    return None


async def _fetch(leaf: Leaf, read: Read, how: WriteRead) -> Collection:
    stored = await fetch_leaf(leaf, read, how.env, how.session, how.as_of)
    changes = _changes(leaf, how)
    if not changes:
        return stored
    assert isinstance(leaf, ShardLeaf | HeldLeaf), "only tables are changed"
    desc = leaf.desc if isinstance(leaf, HeldLeaf) else leaf.collection.desc

    def changed() -> Collection:
        rows = [*stored.rows, *(diff for change in changes for diff in diff_rows(change))]
        return Collection(consolidated(rows, desc.types), stored.errors)

    if len(stored.rows) + sum(map(row_count, changes)) <= THREAD_ROWS:
        return changed()
    return await asyncio.to_thread(changed)


def _changes(leaf: Leaf, how: WriteRead) -> list[TableWrite]:
    """What the transaction has done to a table so far."""
    if isinstance(leaf, HeldLeaf):
        return how.writing.changes_of(leaf.shard_id)
    if not isinstance(leaf, ShardLeaf):
        return []
    if leaf.collection.is_table:
        return how.writing.changes_of(leaf.collection.shard_id)
    if any(how.writing.changes_of(shard_id) for shard_id in shards_below(leaf.collection)):
        raise InvalidTransactionState(
            f'materialized view "{leaf.name}" cannot be read here: the transaction has changed what'
            " it follows from",
            hint="Commit first.",
        )
    return []
