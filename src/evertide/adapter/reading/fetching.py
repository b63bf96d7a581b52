"""What the collections that a read looks at hold, from wherever each of them is read."""

from collections.abc import Mapping, Sequence

from evertide.adapter.environment import Environment
from evertide.adapter.reading.ahead import changes, look_ahead
from evertide.adapter.reading.asking import Ahead
from evertide.adapter.reading.by_replica import SPARK_RECORDS, peek_index
from evertide.adapter.reading.dynamic import dynamic_rows
from evertide.adapter.reading.found_rows import (
    pinned_for_rows,
    rows_after,
    rows_before,
    rows_found,
)
from evertide.adapter.reading.leaves import BuiltinLeaf, HeldLeaf, IndexLeaf, Leaf, ShardLeaf
from evertide.adapter.reading.pinned import Pinned
from evertide.adapter.reading.question import Read
from evertide.adapter.session import Session
from evertide.catalog.builtin.registry import builtin_rows
from evertide.expr.group_rows import consolidated
from evertide.expr.interpret import Collection
from evertide.persist.faults import BelowSince
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp

# From so many updates on, rows are looked for in columns.
IMAGE_RECORDS = 500


async def fetch_leaf(
    leaf: Leaf, read: Read, env: Environment, session: Session, as_of: Timestamp
) -> Collection:
    """What a collection holds at the timestamp, or that part of it which the read needs."""
    match leaf:
        case BuiltinLeaf(builtin=builtin):
            if builtin.dynamic:
                rows: Sequence[Row] = await dynamic_rows(builtin, session, env, read.snapshot)
            else:
                rows = list(builtin_rows(builtin, read.snapshot, database=session.database))
            return Collection([(row, 1) for row in rows], [])
        case ShardLeaf(collection=collection):
            ahead = await _contents_ahead(leaf, read, env, as_of)
            if ahead is not None:
                return ahead
            contents = await env.storage.contents(collection, as_of)
            return Collection(list(contents.rows), list(contents.errors))
        case IndexLeaf():
            return await peek_index(leaf, read.snapshot, env, as_of)
        case HeldLeaf(shard_id=shard_id):
            return session.temporary.rows(shard_id)


async def found_by_columns(
    read: Read, env: Environment, as_of: Timestamp
) -> Mapping[GlobalId, Collection] | None:
    """Some rows of one large collection, found by columns; None where that is no way to do it."""
    leaf = _searched_leaf(read)
    if leaf is None:
        return None
    if not await env.storage.following.has_records(leaf.collection, IMAGE_RECORDS):
        return None
    rows = await _found_ahead(leaf, read, env, as_of)
    if rows is None:
        await env.storage.wait_for_upper(leaf.collection, as_of)
    if rows is None and (pinned := _pinned(leaf)) is not None:
        near = await env.storage.columns.near.at(leaf.collection, as_of)
        if near is not None:
            later = near.later(pinned.column, pinned.values, as_of)
            rows = rows_found(near.image, leaf, later, SPARK_RECORDS)
    if rows is None:
        image = await env.storage.columns.image(leaf.collection, as_of)
        rows = None if image is None else rows_found(image, leaf, (), SPARK_RECORDS)
    return None if rows is None else dict.fromkeys(read.leaves, Collection(rows, []))


def _pinned(leaf: ShardLeaf) -> Pinned | None:
    """By what changed rows of a view may be picked, if the leaf is one."""
    return None if leaf.collection.is_table else pinned_for_rows(leaf.predicates)


async def _found_ahead(
    leaf: ShardLeaf, read: Read, env: Environment, as_of: Timestamp
) -> list[tuple[Row, int]] | None:
    """Rows of a view, the newest of them told by its replica; None if its shard must be waited for.

    What the shard has is looked at while the replica still computes.
    """
    pinned = _pinned(leaf)
    if pinned is None:
        return None
    ahead = await _ahead(leaf, read, env, as_of)
    if ahead is None:
        return None
    with ahead:
        try:
            near = await env.storage.columns.near.at(leaf.collection, ahead.durable)
        except BelowSince:
            return None  # what lies at the end of the shard has been merged with what came since
        if near is None:
            return None
        column, values = pinned.column, set(pinned.values)
        later = near.later(column, values, ahead.durable)
        before = rows_before(near.image, leaf, SPARK_RECORDS)
        told = None if before is None else await changes(ahead, env, as_of)
        if before is None or told is None:
            return None
        later += [change for change in told if change[0][column] in values]
        return rows_after(before, leaf, later)


async def _ahead(leaf: ShardLeaf, read: Read, env: Environment, as_of: Timestamp) -> Ahead | None:
    """What a view's replicas were asked for, by now at the latest."""
    if read.early is not None and read.early.as_of == as_of:
        return read.early.ahead
    return await look_ahead(leaf.collection, read.snapshot, env, as_of)


async def _contents_ahead(
    leaf: ShardLeaf, read: Read, env: Environment, as_of: Timestamp
) -> Collection | None:
    """All of a view, its newest changes told by its replica; None as above."""
    ahead = await _ahead(leaf, read, env, as_of)
    if ahead is None:
        return None
    with ahead:
        try:
            contents = await env.storage.contents(leaf.collection, ahead.durable)
        except BelowSince:
            return None
        told = await changes(ahead, env, as_of)
        if told is None or contents.errors:
            return None
        types = leaf.collection.desc.types
        return Collection(consolidated([*contents.rows, *told], types), [])


def _searched_leaf(read: Read) -> ShardLeaf | None:
    """The collection that is all a read looks at, if it looks for some of its rows only."""
    match list(read.leaves.values()):
        case [ShardLeaf(once=True, predicates=(_, *_)) as leaf]:
            return leaf
        case _:
            return None
