"""DDL: a plan becomes ops, ops become updates, updates are appended; a lost race plans again.

Nothing is told to anyone afterwards: whoever must act follows the catalog.
"""

from collections.abc import Callable
from typing import TypeAlias

from evertide.adapter.client import CommandResponse
from evertide.adapter.ddl.ops import TAGS, ops_for
from evertide.adapter.ddl.reconfigured import wait_reconfigured
from evertide.adapter.ddl.refreshes import with_refreshes
from evertide.adapter.ddl.result import append_result
from evertide.adapter.ddl.secret_values import Fate, Kept, kept_value
from evertide.adapter.ddl.sink_files import refuse_existing_file
from evertide.adapter.ddl.size_checks import check_sizes
from evertide.adapter.ddl.staging import (
    replacement_as_of,
    settled,
    stored_target,
    target_upper,
)
from evertide.adapter.environment import Environment
from evertide.adapter.reading.timestamp import select_as_of
from evertide.adapter.rights.identity import default_role
from evertide.adapter.session import Session
from evertide.adapter.stored_variables import unknown_flags
from evertide.adapter.temporary.parts import numbered
from evertide.adapter.writing.group_commit import IDLE_ADVANCE_MS
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.follow import imports_by_id, imports_of
from evertide.dataflow.description import Import
from evertide.sql.plan.clusters.plans import ChangePlan, CreateClusterPlan, ReconfigureClusterPlan
from evertide.sql.plan.external.plans import CreateSinkPlan, CreateSourcePlan
from evertide.sql.plan.plans import (
    AlterHistoryPlan,
    CreateMaterializedViewPlan,
    CreateTablePlan,
    DdlPlan,
    DropPlan,
    RenameItemPlan,
)
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.views import inline_views
from evertide.vocab.errors import DuplicateObject, DuplicateTable, Notice, SerializationFailure
from evertide.vocab.timestamp import Timeline, Timestamp

MAX_ATTEMPTS = 100


async def run_ddl(
    plan_again: Callable[[Snapshot], DdlPlan],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> CommandResponse:
    """Append the change, planning anew against each snapshot that another writer made first.

    `snapshot` is the one that the statement was planned with: if it is still the newest, nobody
    need be asked for another.
    """
    for _ in range(MAX_ATTEMPTS):
        plan = plan_again(snapshot)
        if await settled(plan, env.catalog, snapshot):
            attempt = _Attempt(plan, session, env, snapshot)
            tag = await attempt.run()
            if tag is not None:
                await attempt.finish()
                return CommandResponse(tag)
        snapshot = session.temporary.over(await env.catalog.current())
    raise SerializationFailure(
        "could not change the catalog: other changes were always first",
        hint="Try the statement again.",
    )


class _Attempt:
    """One try against one snapshot."""

    def __init__(
        self, plan: DdlPlan, session: Session, env: Environment, snapshot: Snapshot
    ) -> None:
        self._plan = plan
        self._session = session
        self._env = env
        self._snapshot = snapshot
        self._owner = session.role_id or default_role(snapshot).role_id
        self._now_ms = 0  # of the transaction

    async def run(self) -> str | None:
        """The command tag once it is durable; None if another writer was first."""
        imports, as_of = await self._inputs()
        async with kept_value(self._plan, self._env, self._snapshot) as kept:
            self._plan = kept.plan
            return await self._append(kept, imports, as_of)

    async def _append(
        self, kept: Kept, imports: tuple[Import, ...], as_of: Timestamp
    ) -> str | None:
        try:
            self._now_ms = now_ms = self._env.clock.now_ms()
            ops = ops_for(self._plan, self._owner, as_of, self._snapshot, now_ms=now_ms)
            notices = [*check_sizes(ops, self._env.sizes), *unknown_flags(ops)]
            result = transact(
                self._snapshot,
                numbered(ops),
                now_ms=now_ms,
                user=self._session.user,
            )
        except (DuplicateTable, DuplicateObject) as error:
            if not getattr(self._plan, "if_not_exists", False):
                raise
            note = Notice("NOTICE", error.code, f"{error.message}, skipping")
            self._session.notices.append(note)
            return tag_of(self._plan)
        ending = self._plan.on_commit if isinstance(self._plan, CreateTablePlan) else None
        session, env, snapshot = self._session, self._env, self._snapshot
        kept.fate = Fate.ASKED
        appended = await append_result(result, imports, snapshot, session, env, ending)
        kept.fate = Fate.NAMED if appended else Fate.UNNAMED
        if not appended:
            return None
        if isinstance(
            self._plan,
            DropPlan | CreateClusterPlan | ReconfigureClusterPlan | ChangePlan | RolePlan,
        ):
            notices.extend(self._plan.notices)
        self._session.notices.extend(notices)
        return tag_of(self._plan)

    async def finish(self) -> None:
        """Wait for what the statement said it would wait for."""
        if isinstance(self._plan, ReconfigureClusterPlan):
            await wait_reconfigured(self._plan, self._now_ms, self._env.catalog)

    async def _inputs(self) -> tuple[tuple[Import, ...], Timestamp]:
        """What a new view or sink reads, and the timestamp from which it is exact: not before now,
        and not where an input's history has been merged. A new source begins now."""
        match self._plan:
            case CreateMaterializedViewPlan(relation=relation):
                imports = imports_of(inline_views(relation, self._snapshot, ()), self._snapshot)
            case CreateSinkPlan(item=item, from_id=from_id, path=path):
                if self._snapshot.item_named(item.schema_id, item.name) is None:
                    await refuse_existing_file(self._env.sink_directory, path)
                imports = imports_by_id([self._snapshot.items[from_id].global_id], self._snapshot)
            case CreateSourcePlan():
                imports = ()
            case _:
                return (), Timestamp(0)
        read_ts = await self._env.oracle.read_ts(Timeline.EPOCH_MS)
        sinces = await self._env.storage.sinces(imports)
        if isinstance(self._plan, CreateMaterializedViewPlan) and self._plan.replacement:
            target = self._snapshot.items[self._plan.replacement.target]
            upper = await target_upper(target, self._env, self._snapshot)
            sinces += await self._env.storage.sinces([stored_target(target, self._snapshot)])
            as_of = replacement_as_of(read_ts=read_ts, target_upper=upper, sinces=sinces)
            return imports, as_of
        if isinstance(self._plan, CreateSourcePlan):
            # Nothing may have been written for years, or ever, and ticks count from here on. Tables
            # trail the clock by a second: a source that begins then is readable at once.
            sinces = [Timestamp(self._env.clock.now_ms() - IDLE_ADVANCE_MS)]
        as_of = select_as_of(oracle_read_ts=read_ts, sinces=sinces)
        if isinstance(self._plan, CreateMaterializedViewPlan) and self._plan.asked_refresh:
            self._plan, as_of = with_refreshes(self._plan, created_at=as_of, reads=bool(imports))
        return imports, as_of


_Tagged: TypeAlias = (
    AlterHistoryPlan
    | ChangePlan
    | CreateMaterializedViewPlan
    | DropPlan
    | RenameItemPlan
    | RolePlan
    | UndropPlan
)


def tag_of(plan: DdlPlan) -> str:
    """The command tag: the plan's own, or the words of its kind."""
    return plan.tag if isinstance(plan, _Tagged) else TAGS[type(plan)]
