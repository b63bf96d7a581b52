"""DDL: a plan becomes ops, ops become updates, updates are appended; a lost race plans again.

Nothing is told to anyone afterwards: whoever must act follows the catalog.
"""

from collections.abc import Callable

from evertide.adapter.client import CommandResponse
from evertide.adapter.ddl_ops import TAGS, ops_for
from evertide.adapter.environment import Environment
from evertide.adapter.reading.timestamp import select_as_of
from evertide.adapter.see_through import see_through
from evertide.adapter.session import DEFAULT_USER, Session
from evertide.adapter.writing.shard_changes import shard_changes
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.controller.follow import imports_of
from evertide.dataflow.description import Import
from evertide.persist.handle import Appended
from evertide.sql.plan.plans import (
    AlterHistoryPlan,
    CreateMaterializedViewPlan,
    DdlPlan,
    DropPlan,
    RenameItemPlan,
)
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
        attempt = _Attempt(plan_again(snapshot), session, env, snapshot)
        tag = await attempt.run()
        if tag is not None:
            return CommandResponse(tag)
        snapshot = await env.catalog.current()
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
        role = snapshot.role_named(session.user) or snapshot.role_named(DEFAULT_USER)
        assert role is not None, "every environment has the default role"
        self._owner = role.role_id

    async def run(self) -> str | None:
        """The command tag once it is durable; None if another writer was first."""
        imports, as_of = await self._inputs()
        try:
            ops = ops_for(self._plan, self._owner, as_of, self._snapshot)
            result = transact(
                self._snapshot,
                ops,
                now_ms=self._env.clock.now_ms(),
                user=self._session.user,
            )
        except (DuplicateTable, DuplicateObject) as error:
            if not getattr(self._plan, "if_not_exists", False):
                raise
            note = Notice("NOTICE", error.code, f"{error.message}, skipping")
            self._session.notices.append(note)
            return _tag(self._plan)
        if result.updates:
            changes = shard_changes(result, imports, self._snapshot)
            appending = self._env.catalog.compare_and_append(
                result.updates, expected_upper=self._snapshot.upper, shard_changes=changes
            )
            outcome = await see_through(appending)
            if not isinstance(outcome, Appended):
                return None
        if isinstance(self._plan, DropPlan):
            self._session.notices.extend(self._plan.notices)
        return _tag(self._plan)

    async def _inputs(self) -> tuple[tuple[Import, ...], Timestamp]:
        """A new view's inputs, and the timestamp from which it is exact: not before now, and not
        where an input's history has been merged."""
        if not isinstance(self._plan, CreateMaterializedViewPlan):
            return (), Timestamp(0)
        relation = inline_views(self._plan.relation, self._snapshot, ())
        imports = imports_of(relation, self._snapshot)
        read_ts = await self._env.oracle.read_ts(Timeline.EPOCH_MS)
        sinces = await self._env.storage.sinces(imports)
        return imports, select_as_of(oracle_read_ts=read_ts, sinces=sinces)


def _tag(plan: DdlPlan) -> str:
    """The command tag: the plan's own, or the words of its kind."""
    return (
        plan.tag
        if isinstance(plan, AlterHistoryPlan | DropPlan | RenameItemPlan)
        else TAGS[type(plan)]
    )
