"""Tables: one timestamp over many shards.

All table writes of an environment commit through one `txns` shard. Its upper is the upper of every
table: a commit moves it and appends the rows to the written tables' shards, all in one store
transaction (docs/adr/2026-11-15-txns-in-one-transaction.md). A table's own shard keeps the upper of
its last write; what it holds is complete up to the txns upper nevertheless, because nothing can be
written to a table below that.

Readers take the txns upper first and a table's state second, so that the state holds at least what
that upper promises.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from evertide.persist.coding.batch import UpdateBatch
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.parts import table_to_columns
from evertide.persist.coding.updates import UpdateColumns
from evertide.persist.contents import Contents
from evertide.persist.handle import Append, Appended, PersistClient, Refused
from evertide.persist.state import (
    Changed,
    Forgotten,
    Missing,
    ShardChange,
    ShardState,
    UpperMismatch,
    append,
    create,
    existing,
    forget,
    initial_state,
    restore,
)
from evertide.persist.store.protocol import (
    AppliedWrite,
    ClaimedWrite,
    ClaimLost,
    StashMismatch,
)
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import EMPTY_FRONTIER, MIN_TS, Timeline, Timestamp, step_forward
from evertide.vocab.update import Update


@dataclass(frozen=True, slots=True)
class TableWrite:
    """Rows with their diffs for one table.

    Those in `tables` are Arrow columns c0, c1, ... in the physical encoding, and their diffs d.
    """

    desc: RelationDesc
    rows: Sequence[tuple[Row, int]]
    tables: Sequence[pa.Table] = ()

    @property
    def empty(self) -> bool:
        return not self.rows and not any(table.num_rows for table in self.tables)

    @property
    def only_adds(self) -> bool:
        """Whether no row goes."""
        if any(diff < 0 for _, diff in self.rows):
            return False
        return all(bool((table["d"].to_numpy() > 0).all()) for table in self.tables)


@dataclass(frozen=True, slots=True)
class Committed:
    """Durable at this timestamp; the upper of all tables is one beyond it."""

    at: Timestamp


@dataclass(frozen=True, slots=True)
class TxnsUpperMismatch:
    """Another commit was first: take a new timestamp, and look again at what was read."""

    actual: Timestamp


@dataclass(frozen=True, slots=True)
class TableForgotten:
    """The table was dropped before the commit."""

    shard_id: ShardId


@dataclass(frozen=True, slots=True)
class TimestampTaken:
    """The timestamp was not beyond all handed out before: claim one beyond `last`."""

    last: Timestamp


CommitOutcome: TypeAlias = Committed | TxnsUpperMismatch | TableForgotten


class Txns:
    """All tables of an environment."""

    def __init__(self, client: PersistClient, txns_shard: ShardId) -> None:
        self._client = client
        self.shard_id = txns_shard

    async def ensure(self) -> None:
        """Make the txns shard if it does not exist."""
        await self._client.machine.apply_all([create(self.shard_id, initial_state())])

    async def upper(self) -> Timestamp:
        """THE upper of every table."""
        return (await self._client.state(self.shard_id)).upper

    @property
    def known_upper(self) -> Timestamp | None:
        """The upper that was read or set last; it may have moved on. None: none was."""
        state = self._client.machine.known_state(self.shard_id)
        return None if state is None else state.upper

    async def wait_for_upper(self, beyond: Timestamp) -> Timestamp:
        """The upper of every table, once it is > beyond."""
        return await self._client.wait_for_upper(self.shard_id, beyond)

    async def commit(
        self,
        writes: Mapping[ShardId, TableWrite],
        *,
        at: Timestamp,
        expected_upper: Timestamp | None = None,
        applied: Sequence[AppliedWrite] = (),
    ) -> CommitOutcome:
        """All writes at `at`, or nothing; without writes only time moves on.

        Needs at >= upper. With `expected_upper` the upper must still be exactly that: nothing was
        written since a reader saw all tables complete up to it. `applied` rides along, so that the
        commit and the oracle's apply_write cost one store transaction.
        """
        appends, also = self._changes(writes, at, expected_upper)
        outcome = await self._client.append_all(appends, also=also, applied=applied)
        return Committed(at) if isinstance(outcome, Appended) else _lost(outcome)

    async def commit_claiming(
        self,
        writes: Mapping[ShardId, TableWrite],
        *,
        at: Timestamp,
        expected_upper: Timestamp | None = None,
    ) -> CommitOutcome | TimestampTaken:
        """As commit, where `at` was not handed out by the oracle: the store transaction takes it.

        Only where the oracle lives in the consensus store. One durable commit instead of two.
        """
        appends, also = self._changes(writes, at, expected_upper)
        claimed = ClaimedWrite(Timeline.EPOCH_MS, at)
        outcome = await self._client.appender.append_claiming(appends, claimed, also=also)
        assert not isinstance(outcome, StashMismatch), "nothing went to the stash"
        match outcome:
            case Appended():
                return Committed(at)
            case ClaimLost(last):
                return TimestampTaken(last)
            case Refused():
                return _lost(outcome)

    def _changes(
        self,
        writes: Mapping[ShardId, TableWrite],
        at: Timestamp,
        expected_upper: Timestamp | None,
    ) -> tuple[list[Append], list[ShardChange]]:
        upper = step_forward(at)
        appends = [
            Append(shard_id, write.desc, _updates(write, at), None, upper)
            for shard_id, write in writes.items()
            if not write.empty
        ]
        # A write without rows still needs its table to be there.
        present = [ShardChange(s, existing(_check_kept)) for s, w in writes.items() if w.empty]
        advance = ShardChange(self.shard_id, existing(lambda s: _advance(s, at, expected_upper)))
        return appends, [advance, *present]

    async def table_contents(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
    ) -> Contents:
        """What the table holds at as_of, shared with other readers: the cheapest form of a read.

        Waits until upper > as_of; raises BelowSince.
        """
        await self.wait_for_upper(as_of)
        return await self._client.reader.contents(shard_id, desc, as_of)

    async def table_snapshot(
        self, shard_id: ShardId, desc: RelationDesc, as_of: Timestamp
    ) -> list[Update]:
        """The same as updates, consolidated, every ts = as_of."""
        return (await self.table_contents(shard_id, desc, as_of)).updates()

    async def table_updates(
        self, shard_id: ShardId, desc: RelationDesc, lower: Timestamp, upper: Timestamp
    ) -> list[Update]:
        """Updates with lower <= ts < upper; waits until the upper of all tables >= `upper`."""
        await self.wait_for_upper(Timestamp(upper - 1))
        return await self._client.reader.updates(shard_id, desc, lower, upper)

    async def table_listen(
        self, shard_id: ShardId, desc: RelationDesc, from_ts: Timestamp
    ) -> AsyncIterator[tuple[list[Update], Timestamp]]:
        """(updates, new upper) each time the upper of all tables moves, from from_ts on."""
        lower = from_ts
        while lower != EMPTY_FRONTIER:
            upper = await self.wait_for_upper(lower)
            yield await self._client.reader.updates(shard_id, desc, lower, upper), upper
            lower = upper


def register_table(shard_id: ShardId, since: Timestamp = MIN_TS) -> ShardChange:
    """Make a table's shard, or bring it back after forget_table with the contents it had.

    To be made in one store transaction with the catalog's append (PersistClient.append_all).
    """
    return ShardChange(
        shard_id, lambda state: initial_state(since=since) if state is None else restore(state)
    )


def forget_table(shard_id: ShardId) -> ShardChange:
    """From the transaction that makes this change on, commits to the table are refused."""
    return ShardChange(shard_id, existing(forget))


def _updates(write: TableWrite, at: Timestamp) -> UpdateBatch:
    rows = _row_updates(write, at) if write.rows else None
    tables = [diffs_at(write.desc, table, at) for table in write.tables if table.num_rows]
    if rows is not None and not tables:
        return rows
    table = pa.concat_tables(tables if rows is None else [*tables, rows.table])
    return UpdateBatch(write.desc, table=table, count=table.num_rows, span=(at, at))


def _row_updates(write: TableWrite, at: Timestamp) -> UpdateBatch:
    rows, diffs = [row for row, _ in write.rows], [diff for _, diff in write.rows]
    columns = UpdateColumns(rows, (at,) * len(rows), diffs)
    return UpdateBatch(write.desc, columns=columns, count=len(rows), span=(at, at))


def join_writes(changes: Sequence[TableWrite]) -> TableWrite:
    """All changes of one table as one."""
    if len(changes) == 1:
        return changes[0]
    rows = [row for change in changes for row in change.rows]
    tables = [table for change in changes for table in change.tables]
    return TableWrite(changes[-1].desc, rows, tables)


def diff_table(write: TableWrite) -> pa.Table:
    """All diffs of a write as columns."""
    names = [f"c{i}" for i in range(write.desc.arity)]
    tables = [table.select([*names, "d"]) for table in write.tables]
    if write.rows:
        tables.append(_row_updates(write, MIN_TS).table.select([*names, "d"]))
    return pa.concat_tables(tables)


def diff_rows(write: TableWrite) -> list[tuple[Row, int]]:
    """All diffs of a write as rows."""
    rows = list(write.rows)
    for table in write.tables:
        updates = table_to_columns(write.desc, diffs_at(write.desc, table, MIN_TS))
        rows += zip(updates.rows, updates.diffs, strict=True)
    return rows


def diffs_at(desc: RelationDesc, table: pa.Table, at: Timestamp) -> pa.Table:
    """Diffs of a table as updates at this time, none of them an error."""
    schema = update_schema(desc)
    errors = pa.nulls(table.num_rows, pa.string())
    times = pa.repeat(pa.scalar(at, pa.int64()), table.num_rows)
    columns = [table.column(i) for i in range(desc.arity)]
    return pa.Table.from_arrays([*columns, errors, times, table.column("d")], schema=schema)


def _check_kept(state: ShardState) -> Changed:
    return Forgotten() if state.forgotten else state


def _advance(state: ShardState, at: Timestamp, expected_upper: Timestamp | None) -> Changed:
    """Move the upper of all tables beyond `at`, from wherever it is or from exactly there."""
    if state.upper > at or (expected_upper is not None and state.upper != expected_upper):
        return UpperMismatch(state.upper)
    return append(state, lower=state.upper, upper=step_forward(at), writer=None)


def _lost(refused: Refused) -> TxnsUpperMismatch | TableForgotten:
    match refused.refusal:
        case UpperMismatch(actual):
            return TxnsUpperMismatch(actual)
        case Forgotten() | Missing():
            return TableForgotten(refused.shard_id)
        case _:
            raise AssertionError(f"a commit is not refused by {refused}")
