"""Statements that change objects, in a transaction block.

They are checked when they come, each against what those before it will have made, and appended to
the catalog all at once by COMMIT. If others have changed the catalog meanwhile, they are planned
again, one after another. Nobody sees any of it before, and a block that changes objects does
nothing else.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from evertide.adapter.client import CommandResponse
from evertide.adapter.ddl.entry import MAX_ATTEMPTS, run_ddl, tag_of
from evertide.adapter.ddl.ops import ops_for
from evertide.adapter.ddl.result import append_result
from evertide.adapter.ddl.size_checks import check_sizes
from evertide.adapter.environment import Environment
from evertide.adapter.rights.identity import default_role
from evertide.adapter.session import Session
from evertide.adapter.temporary.objects import marked
from evertide.adapter.temporary.parts import numbered
from evertide.adapter.transaction import Defining, Planning, Tried
from evertide.catalog.draft import Draft
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult, apply_op
from evertide.sql.plan.clusters.plans import (
    ChangePlan,
    CreateClusterPlan,
    CreateClusterProfilePlan,
)
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.named.plans import CreateTypePlan
from evertide.sql.plan.plans import (
    CreateDatabasePlan,
    CreateIndexPlan,
    CreateMaterializedViewPlan,
    CreateSchemaPlan,
    CreateTablePlan,
    CreateViewPlan,
    DdlPlan,
    DropPlan,
    RenameItemPlan,
)
from evertide.sql.plan.roles.plans import RolePlan
from evertide.vocab.errors import (
    ActiveTransaction,
    DuplicateObject,
    DuplicateTable,
    Notice,
    SerializationFailure,
)
from evertide.vocab.timestamp import Timestamp

# What is one change of the catalog and no more.
_TOGETHER: Final = (
    ChangePlan
    | CreateClusterPlan
    | CreateClusterProfilePlan
    | CreateDatabasePlan
    | CreateIndexPlan
    | CreateSchemaPlan
    | CreateTablePlan
    | CreateTypePlan
    | CreateViewPlan
    | DropPlan
    | RenameItemPlan
    | RolePlan
)
# What also takes hold of the history of its inputs, which must be there before.
_ALONE: Final = CreateMaterializedViewPlan | CreateSinkPlan | CreateSourcePlan
# So many take some ten milliseconds.
_STEPS_AT_ONCE: Final = 10


def run_in_block(
    plan: DdlPlan, planning: Planning, session: Session, env: Environment, snapshot: Snapshot
) -> CommandResponse:
    """Take note of a statement; `snapshot` has in it what those before it make."""
    assert session.transaction is not None, "a block is one"
    defining = session.transaction.start_defining()
    if not isinstance(plan, _TOGETHER | _ALONE):
        raise ActiveTransaction(
            "this statement cannot be run inside a transaction block",
            hint="Run it on its own, outside BEGIN and COMMIT.",
        )
    alone = isinstance(plan, _ALONE)
    if defining.alone or (alone and defining.steps):
        raise ActiveTransaction(
            "this transaction can only execute a single statement",
            hint="Materialized views, sources and sinks are created one at a time.",
        )
    tried, follows = defining.tried, True
    if tried is None or tried.snapshot is not snapshot:
        follows = not defining.steps
        draft = Draft(snapshot, now_ms=0, user=session.user)
        tried = Tried(snapshot.version, draft, snapshot)
    # If it fails half-way, so has the block: what the steps before it make is found out anew.
    defining.tried = None
    tried.draft.now_ms = env.clock.now_ms()
    session.notices.extend(_apply(plan, tried.draft, session, env))
    defining.steps.append(planning)
    defining.alone = alone
    if follows:
        defining.tried = replace(tried, snapshot=marked(tried.draft.snapshot))
    return CommandResponse(tag_of(plan))


async def as_seen(snapshot: Snapshot, session: Session, env: Environment) -> Snapshot:
    """The catalog as a session sees it: with its temporary objects, and what its block makes."""
    known = known_as_seen(snapshot, session)
    if known is not None:
        return known
    work = None if session.transaction is None else session.transaction.work
    assert isinstance(work, Defining), "only what a block makes has to be found out"
    work.tried = await _tried(work.steps, session.temporary.over(snapshot), session, env)
    return work.tried.snapshot


def known_as_seen(snapshot: Snapshot, session: Session) -> Snapshot | None:
    """The same; None: what its block makes of this catalog has yet to be found out."""
    over = session.temporary.over(snapshot)
    transaction = session.transaction
    if transaction is None or transaction.failed or not isinstance(transaction.work, Defining):
        return over
    tried = transaction.work.tried
    return None if tried is None or tried.version != over.version else tried.snapshot


async def commit_definitions(work: Defining, session: Session, env: Environment) -> None:
    """Append what a block has collected, in one transaction of the catalog."""
    snapshot = session.temporary.over(await env.catalog.current())
    if work.alone:
        (planning,) = work.steps
        await run_ddl(lambda newer: _planned(planning, newer), session, env, snapshot)
        return
    for _ in range(MAX_ATTEMPTS):
        tried = work.tried
        if tried is None or tried.version != snapshot.version:
            tried = await _tried(work.steps, snapshot, session, env)
        result = TransactResult(tried.draft.updates())
        if await append_result(result, (), snapshot, session, env):
            return
        snapshot = session.temporary.over(await env.catalog.current())
    raise _changed_meanwhile()


async def _tried(
    steps: Sequence[Planning], snapshot: Snapshot, session: Session, env: Environment
) -> Tried:
    """The statements one after another; others have their turn now and then."""
    draft = Draft(snapshot, now_ms=env.clock.now_ms(), user=session.user)
    for done, planning in enumerate(steps, 1):
        if done % _STEPS_AT_ONCE == 0:
            await asyncio.sleep(0)
        _apply(_planned(planning, marked(draft.snapshot)), draft, session, env)
    return Tried(snapshot.version, draft, marked(draft.snapshot))


def _apply(plan: DdlPlan, draft: Draft, session: Session, env: Environment) -> list[Notice]:
    """One statement more, and what it has to tell."""
    owner = session.role_id or default_role(draft.snapshot).role_id
    notices: list[Notice] = []
    try:
        ops = ops_for(plan, owner, Timestamp(0), draft.snapshot, now_ms=draft.now_ms)
        notices += check_sizes(ops, env.sizes)
        for op in numbered(ops):
            apply_op(draft, op)
    except (DuplicateTable, DuplicateObject) as error:
        if not getattr(plan, "if_not_exists", False):
            raise
        notices.append(Notice("NOTICE", error.code, f"{error.message}, skipping"))
    if isinstance(plan, DropPlan | CreateClusterPlan | ChangePlan | RolePlan):
        notices.extend(plan.notices)
    return notices


def _planned(planning: Planning, snapshot: Snapshot) -> DdlPlan:
    plan = planning(snapshot)
    if plan is None:
        raise _changed_meanwhile()
    return plan


def _changed_meanwhile() -> SerializationFailure:
    return SerializationFailure(
        "another session modified the catalog while this DDL transaction was open",
        hint="Run the transaction again.",
    )
