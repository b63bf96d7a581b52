"""INSERT, UPDATE and DELETE.

Rows that depend on nothing stored go to group commit, or wait for COMMIT. Rows computed from stored
ones are optimistic: they are computed at the last complete timestamp and committed only if nothing
that they read has changed since; else they are computed again.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import pyarrow as pa

from evertide.adapter.client import CommandResponse, Response, RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.lookups.session_values import session_bindings
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import run_read
from evertide.adapter.reading.selection import to_rows
from evertide.adapter.session import Session
from evertide.adapter.temporary.bounds import check_collected, check_columns, weigh
from evertide.adapter.transaction import ReadSet, Writing
from evertide.adapter.writing.group_commit import NotTheUpper
from evertide.adapter.writing.read_for_write import (
    WriteRead,
    note_gone,
    read_found,
    read_gone,
    read_rows,
)
from evertide.catalog.objects import Item, Table
from evertide.catalog.snapshot import Snapshot
from evertide.expr.compile import compile_scalar
from evertide.expr.relation import Constant, Finishing, Map
from evertide.expr.scalar import Literal
from evertide.expr.transform.substitute import substitute_scalar
from evertide.expr.traverse import gets
from evertide.persist.txn import TableWrite
from evertide.sql.plan.plans import (
    DeletePlan,
    InsertPlan,
    LiteralColumns,
    Returning,
    UpdatePlan,
)
from evertide.vocab.datum import Row
from evertide.vocab.errors import NotNullViolation, SerializationFailure, UndefinedTable
from evertide.vocab.ids import ItemId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import MIN_TS, Timestamp

# Attempts before a read-then-write gives up; after the first few it keeps others out.
MAX_ATTEMPTS = 100
OPTIMISTIC_ATTEMPTS = 3
# A try that took longer than this and was lost is not risked again: the next keeps others out.
LONG_TRY_SECONDS = 0.3


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement does to its table, how many rows it counts, and which it may return."""

    write: TableWrite
    count: int
    shown: Sequence[Row] = ()
    # Rows that go before those of `write` come.
    gone: TableWrite | None = None

    @property
    def empty(self) -> bool:
        return self.write.empty and (self.gone is None or self.gone.empty)


Compute: TypeAlias = Callable[[WriteRead], Awaitable[Change]]


async def run_insert(
    plan: InsertPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    """INSERT ... VALUES at once, INSERT ... SELECT of stored rows by read-then-write."""
    table = table_of(plan.table_id, snapshot)
    if isinstance(plan.source, LiteralColumns):
        return await _insert_columns(plan, plan.source.table, session, env, snapshot)
    question = Question(plan.source.relation, plan.source.finishing, parameters)

    def added(rows: Sequence[Row]) -> Change:
        check_not_null(rows, table.desc, table.name)
        return Change(TableWrite(table.desc, [(row, 1) for row in rows]), len(rows), rows)

    async def compute(how: WriteRead) -> Change:
        return added(await read_rows(question, how))

    if isinstance(plan.source.relation, Constant) and plan.source.finishing == Finishing():
        change = added([row for row, times in plan.source.relation.rows for _ in range(times)])
        await write_change(table, change.write, session, env)
    elif gets(plan.source.relation):
        change = await _read_then_write(table, compute, session, env, snapshot)
    else:
        change = added(await run_read(question, session, env, snapshot))
        await write_change(table, change.write, session, env)
    return _answer("INSERT 0", change, plan.returning, question, session, env, snapshot)


async def _insert_columns(
    plan: InsertPlan, rows: pa.Table, session: Session, env: Environment, snapshot: Snapshot
) -> Response:
    """INSERT of constants that are columns already."""
    table = table_of(plan.table_id, snapshot)
    for column, values in zip(table.desc.columns, rows.columns, strict=True):
        if not column.nullable and values.null_count:
            raise null_in(column.name, table.name)
    diffs = rows.append_column("d", pa.repeat(pa.scalar(1, pa.int64()), rows.num_rows))
    shown = [] if plan.returning is None else to_rows(rows, table.desc.types)
    change = Change(TableWrite(table.desc, (), (diffs,)), rows.num_rows, shown)
    await write_change(table, change.write, session, env)
    return _answer("INSERT 0", change, plan.returning, None, session, env, snapshot)


async def run_delete(
    plan: DeletePlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    """DELETE: the selected rows go."""
    table = table_of(plan.table_id, snapshot)
    question = Question(plan.selection, Finishing(), parameters)

    async def compute(how: WriteRead) -> Change:
        if plan.returning is None:
            gone = await read_gone(question, table.desc, how)
            if gone is not None:
                return Change(*gone)
        rows = await read_rows(question, how)
        return Change(TableWrite(table.desc, [(row, -1) for row in rows]), len(rows), rows)

    change = await _read_then_write(table, compute, session, env, snapshot)
    return _answer("DELETE", change, plan.returning, question, session, env, snapshot)


async def run_update(
    plan: UpdatePlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    """UPDATE: the selected rows go, and their new versions come, at one timestamp.

    One query computes both: the new values stand behind the old ones.
    """
    table = table_of(plan.table_id, snapshot)
    arity, width = table.desc.arity, len(plan.selection.types)
    question = Question(Map(plan.selection, plan.assignments), Finishing(), parameters)

    async def compute(how: WriteRead) -> Change:
        both, found = await read_found(question, how)
        added = [row[width:] for row in both]
        check_not_null(added, table.desc, table.name)
        if found is not None and both and width == arity:
            assert table.shard_id is not None
            note_gone(found, table.shard_id, len(both), how)
        gone = TableWrite(table.desc, [(row[:arity], -1) for row in both])
        new = TableWrite(table.desc, [(row, 1) for row in added])
        return Change(new, len(both), added, gone)

    change = await _read_then_write(table, compute, session, env, snapshot)
    return _answer("UPDATE", change, plan.returning, question, session, env, snapshot)


async def _read_then_write(
    table: Item, compute: Compute, session: Session, env: Environment, snapshot: Snapshot
) -> Change:
    """Compute at the last complete timestamp, commit while that still holds, or start again.

    In a block the commit comes with COMMIT, and what does not hold any more is an error there.
    """
    transaction = session.transaction
    if transaction is not None and transaction.goes_on:
        writing = transaction.start_writing()
        if writing.read_set is None:
            writing.read_set = ReadSet(await env.txns.upper())
        return await _compute(table, compute, WriteRead(session, env, snapshot, writing, True))
    if table.shard_id is None:
        own = Writing(read_set=ReadSet(await env.txns.upper()))
        change = await _compute(table, compute, WriteRead(session, env, snapshot, own, False))
        session.temporary.take(await session.temporary.written(own.own_writes()))
        return change
    long = False
    for attempt in range(MAX_ATTEMPTS):
        began = time.monotonic()
        async with env.writes.lock if long or attempt >= OPTIMISTIC_ATTEMPTS else nullcontext():
            alone = Writing(read_set=ReadSet(await env.txns.upper()))
            how = WriteRead(session, env, snapshot, alone, False)
            change = await _compute(table, compute, how)
            if change.empty or await commit_if_unchanged(alone, env) is True:
                return change
        long = time.monotonic() - began > LONG_TRY_SECONDS
    raise SerializationFailure(
        f'could not write to table "{table.name}": other writers were always first',
        hint="Try the statement again.",
    )


async def _compute(table: Item, compute: Compute, how: WriteRead) -> Change:
    change = await compute(how)
    for write in (change.gone, change.write):
        if write is not None and how.in_block:
            await _collect(table, write, how.writing)
        elif write is not None:
            how.writing.add(rows_of(table), table.name, write)
    return change


async def _collect(table: Item, write: TableWrite, writing: Writing) -> None:
    """Keep it for COMMIT; rows of temporary tables are in bounded memory before that, too."""
    weight = 0 if table.shard_id is not None else await weigh(write)
    check_collected(writing.collected, weight)
    writing.add(rows_of(table), table.name, write, weight)


async def commit_transaction(work: Writing, session: Session, env: Environment) -> None:
    """Commit what a block has collected; 40001 if something that it read has changed since.

    Rows of temporary tables are the last to be taken over, which cannot fail any more.
    """
    held = await session.temporary.written(work.own_writes())
    await _commit_stored(work, env)
    session.temporary.take(held)


async def _commit_stored(work: Writing, env: Environment) -> None:
    writes = work.writes()
    if not writes:
        return
    if work.read_set is None:
        await env.writes.write(writes, work.names)
        return
    done = await commit_if_unchanged(work, env)
    if done is None:
        async with env.writes.lock:
            done = await commit_if_unchanged(work, env, MAX_ATTEMPTS)
    if not done:
        raise SerializationFailure(
            "could not serialize access due to concurrent update",
            hint="Rows that the transaction read have changed since. Run it again.",
        )


async def commit_if_unchanged(
    work: Writing, env: Environment, attempts: int = OPTIMISTIC_ATTEMPTS
) -> bool | None:
    """Commit, unless something that was read has changed since: False.

    Each try names the upper of all tables up to which that is known, and the store commits only if
    it is still that. None: others were always first, with writes that do not matter here.
    """
    writes, read_set = work.writes(), work.read_set
    assert read_set is not None, "what depends on nothing goes to group commit"
    upper = read_set.upper
    began = time.monotonic()
    for _ in range(attempts):
        if attempts == OPTIMISTIC_ATTEMPTS and time.monotonic() - began > LONG_TRY_SECONDS:
            break
        outcome = await env.writes.write_if(writes, work.names, upper)
        if not isinstance(outcome, NotTheUpper):
            # Whoever waits is told first: an image that lags behind is brought forward anyway.
            asyncio.get_running_loop().call_soon(_note_images, work, outcome, env)
            return True
        # First the upper, then the states: these hold at least what that promises.
        upper = outcome.actual
        if not await _unchanged(read_set, env):
            return False
    return None


async def _unchanged(read_set: ReadSet, env: Environment) -> bool:
    collections = list(read_set.collections.values())
    look = await env.storage.look(collections)
    return all(look.unchanged(one, read_set.upper) for one in collections)


def _note_images(work: Writing, at: Timestamp, env: Environment) -> None:
    """The next statement that looks for rows should find the images up to date.

    Nobody else has changed the tables that were read, so an image with all of the transaction's
    changes is the table at its timestamp. Rows that came last may still be missing in it: they are
    added when somebody looks for some.
    """
    for shard_id, changes in work.changes.items():
        if not changes:
            continue
        seen, images, desc = work.images.get(shard_id), env.storage.images, changes[-1].desc
        later = [] if seen is None else changes[seen.changes :]
        if seen is not None and all(change.only_adds for change in later):
            images.committed(shard_id, desc, seen.base, at, later, gone=seen.gone)
        else:
            images.committed(shard_id, desc, None, at)


async def write_change(table: Item, write: TableWrite, session: Session, env: Environment) -> None:
    """Into the transaction's collected writes, or committed with whoever waits now."""
    transaction = session.transaction
    if transaction is not None and transaction.goes_on:
        await _collect(table, write, transaction.start_writing())
    elif table.shard_id is None:
        check_columns(write)
        session.temporary.take(await session.temporary.written({rows_of(table): write}))
    elif not write.empty:
        at = await env.writes.write({table.shard_id: write}, {table.shard_id: table.name})
        note = partial(env.storage.images.committed, table.shard_id, table.desc, None, at)
        asyncio.get_running_loop().call_soon(note)


def rows_of(table: Item) -> ShardId:
    """What names a table's rows, be they in a shard or in the session's memory."""
    assert isinstance(table.definition, Table), "only tables are written to"
    return table.definition.shard_id


def check_not_null(rows: Sequence[Row], desc: RelationDesc, table: str) -> None:
    """NOT NULL is the one constraint there is; 23502 names the column."""
    required = [i for i, column in enumerate(desc.columns) if not column.nullable]
    for row in rows:
        for i in required:
            if row[i] is None:
                raise null_in(desc.columns[i].name, table)


def null_in(column: str, table: str) -> NotNullViolation:
    """23502, which names the column."""
    return NotNullViolation(
        f'null value in column "{column}" of relation "{table}" violates not-null constraint'
    )


def table_of(table_id: ItemId, snapshot: Snapshot) -> Item:
    """The table, if it is still there."""
    item = snapshot.items.get(table_id)
    if item is None or not isinstance(item.definition, Table):
        raise UndefinedTable(f"unknown catalog item '{table_id}'")
    return item


def _answer(
    word: str,
    change: Change,
    returning: Returning | None,
    question: Question | None,
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    if returning is None:
        return CommandResponse(f"{word} {change.count}")
    # What RETURNING may name beside columns; no timestamp was chosen for mz_now().
    bindings = session_bindings(session, env, snapshot, MIN_TS)
    if question is not None:
        bindings = question.bindings | bindings
    bound = [substitute_scalar(scalar, bindings) for scalar in returning.scalars]
    functions = [compile_scalar(scalar) for scalar in bound]
    returned = [tuple(function(row) for function in functions) for row in change.shown]
    return RowsResponse(returning.desc, returned, tag=word)
