"""INSERT, UPDATE and DELETE.

Rows that depend on nothing stored go to group commit, or wait for COMMIT. Rows computed from stored
ones are optimistic: they are computed at the last complete timestamp and committed only if nothing
was committed since; else they are computed again.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from evertide.adapter.client import CommandResponse, Response, RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.group_commit import NotTheUpper
from evertide.adapter.read import Question, run_read
from evertide.adapter.session import Session
from evertide.adapter.session_values import session_bindings
from evertide.catalog.objects import Item, Table
from evertide.catalog.snapshot import Snapshot
from evertide.expr.compile import compile_scalar
from evertide.expr.relation import Finishing, Map
from evertide.expr.scalar import Literal
from evertide.expr.transform.substitute import Bindings, substitute_scalar
from evertide.expr.traverse import gets
from evertide.persist.txn import TableWrite
from evertide.sql.plan.plans import DeletePlan, InsertPlan, Returning, UpdatePlan
from evertide.vocab.datum import Row
from evertide.vocab.errors import (
    ActiveTransaction,
    NotNullViolation,
    SerializationFailure,
    UndefinedTable,
)
from evertide.vocab.ids import ItemId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp, step_back

# Attempts before a read-then-write gives up; after the first few it keeps others out.
MAX_ATTEMPTS = 100
OPTIMISTIC_ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement does to its table: rows that go and rows that come, and its answer."""

    removed: Sequence[Row]
    added: Sequence[Row]
    count: int

    @property
    def diffs(self) -> list[tuple[Row, int]]:
        return [(row, -1) for row in self.removed] + [(row, 1) for row in self.added]


async def run_insert(
    plan: InsertPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    """INSERT ... VALUES at once, INSERT ... SELECT of stored rows by read-then-write."""
    table = _table(plan.table_id, snapshot)
    question = Question(plan.source.relation, plan.source.finishing, parameters)

    async def compute(as_of: Timestamp | None) -> Change:
        rows = await run_read(question, session, env, snapshot, wanted_as_of=as_of)
        check_not_null(rows, table.desc, table.name)
        return Change([], rows, len(rows))

    if gets(plan.source.relation):
        change = await _read_then_write(table, compute, session, env)
    else:
        change = await compute(None)
        await _write(table, change, session, env)
    return _answer(
        "INSERT 0", change, change.added, plan.returning, _bindings(question, session, env)
    )


async def run_delete(
    plan: DeletePlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Response:
    """DELETE: the selected rows go."""
    table = _table(plan.table_id, snapshot)
    question = Question(plan.selection, Finishing(), parameters)

    async def compute(as_of: Timestamp | None) -> Change:
        rows = await run_read(question, session, env, snapshot, wanted_as_of=as_of)
        return Change(rows, [], len(rows))

    change = await _read_then_write(table, compute, session, env)
    return _answer(
        "DELETE", change, change.removed, plan.returning, _bindings(question, session, env)
    )


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
    table = _table(plan.table_id, snapshot)
    arity = table.desc.arity
    question = Question(Map(plan.selection, plan.assignments), Finishing(), parameters)

    async def compute(as_of: Timestamp | None) -> Change:
        both = await run_read(question, session, env, snapshot, wanted_as_of=as_of)
        added = [row[arity:] for row in both]
        check_not_null(added, table.desc, table.name)
        return Change([row[:arity] for row in both], added, len(both))

    change = await _read_then_write(table, compute, session, env)
    return _answer(
        "UPDATE", change, change.added, plan.returning, _bindings(question, session, env)
    )


async def _read_then_write(
    table: Item,
    compute: Callable[[Timestamp | None], Awaitable[Change]],
    session: Session,
    env: Environment,
) -> Change:
    """Compute at the last complete timestamp, commit at the very next, or start again."""
    if session.transaction is not None and session.transaction.explicit:
        raise ActiveTransaction(
            "statements that read and write cannot be run inside a transaction block",
            hint="Run the statement on its own, outside BEGIN and COMMIT.",
        )
    for attempt in range(MAX_ATTEMPTS):
        if attempt < OPTIMISTIC_ATTEMPTS:
            change = await _attempt(table, compute, env)
        else:
            async with env.writes.lock:
                change = await _attempt(table, compute, env)
        if change is not None:
            return change
    raise SerializationFailure(
        f'could not write to table "{table.name}": other writers were always first',
        hint="Try the statement again.",
    )


async def _attempt(
    table: Item, compute: Callable[[Timestamp | None], Awaitable[Change]], env: Environment
) -> Change | None:
    """One optimistic try; None if somebody else committed in between."""
    upper = await env.txns.upper()
    change = await compute(step_back(upper))
    if not change.diffs:
        return change
    assert table.shard_id is not None
    writes = {table.shard_id: TableWrite(table.desc, change.diffs)}
    outcome = await env.writes.write_if(writes, {table.shard_id: table.name}, upper)
    return None if isinstance(outcome, NotTheUpper) else change


async def _write(table: Item, change: Change, session: Session, env: Environment) -> None:
    """Into the transaction's collected writes, or committed with whoever waits now."""
    assert table.shard_id is not None
    transaction = session.transaction
    if transaction is not None and transaction.explicit:
        writing = transaction.start_writing()
        writing.add(table.shard_id, table.name, table.desc, change.diffs)
    elif change.diffs:
        writes = {table.shard_id: TableWrite(table.desc, change.diffs)}
        await env.writes.write(writes, {table.shard_id: table.name})


def _bindings(question: Question, session: Session, env: Environment) -> Bindings:
    """What RETURNING may name beside columns; no timestamp was chosen for mz_now()."""
    return question.bindings | session_bindings(session, env, Timestamp(0))


def check_not_null(rows: Sequence[Row], desc: RelationDesc, table: str) -> None:
    """NOT NULL is the one constraint there is; 23502 names the column."""
    required = [i for i, column in enumerate(desc.columns) if not column.nullable]
    for row in rows:
        for i in required:
            if row[i] is None:
                name = desc.columns[i].name
                raise NotNullViolation(
                    f'null value in column "{name}" of relation "{table}" violates not-null'
                    " constraint"
                )


def _table(table_id: ItemId, snapshot: Snapshot) -> Item:
    item = snapshot.items.get(table_id)
    if item is None or not isinstance(item.definition, Table):
        raise UndefinedTable(f"unknown catalog item '{table_id}'")
    return item


def _answer(
    word: str, change: Change, rows: Sequence[Row], returning: Returning | None, bindings: Bindings
) -> Response:
    if returning is None:
        return CommandResponse(f"{word} {change.count}")
    bound = [substitute_scalar(scalar, bindings) for scalar in returning.scalars]
    functions = [compile_scalar(scalar) for scalar in bound]
    returned = [tuple(function(row) for function in functions) for row in rows]
    return RowsResponse(returning.desc, returned, tag=word)
