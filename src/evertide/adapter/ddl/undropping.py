"""UNDROP: where each materialized view goes on, and the transaction that brings all of it back.

A view goes on where its rows ended, as after a restart, if what it reads is still known from there
on, or if it is complete and needs nothing any more. Else it is computed anew from now on, as if it
had just been created. What was dropped along with something and can do neither stays dropped.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evertide.adapter.client import CommandResponse
from evertide.adapter.environment import Environment
from evertide.adapter.reading.timestamp import select_as_of
from evertide.adapter.see_through import see_through
from evertide.adapter.session import Session
from evertide.adapter.writing.shard_changes import ViewStart, shard_changes
from evertide.catalog.dropped_ops import Returning, UndropItemsOp
from evertide.catalog.objects import DroppedItem, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult, transact
from evertide.controller.follow import imports_of
from evertide.dataflow.description import Import
from evertide.persist.handle import Appended, Refused
from evertide.persist.state import Purged, ShardState
from evertide.sql.plan.plans import DdlPlan
from evertide.sql.plan.undrop.leaving import leave_out
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.views import plan_item
from evertide.vocab.errors import (
    Notice,
    ObjectNotInPrerequisiteState,
    SerializationFailure,
    SqlError,
)
from evertide.vocab.ids import ItemId, ShardId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp, step_back

MAX_ATTEMPTS = 100


async def run_undrop(
    plan_again: Callable[[Snapshot], DdlPlan],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> CommandResponse:
    """Append the change; decided anew when others change the catalog, or the shards, first."""
    for _ in range(MAX_ATTEMPTS):
        plan = plan_again(snapshot)
        assert isinstance(plan, UndropPlan), "the same statement"
        undropping = _Undropping(session, env, snapshot)
        if await undropping.run(plan.items):
            session.notices.extend((*plan.notices, *undropping.notices))
            return CommandResponse(plan.tag)
        snapshot = session.temporary.over(await env.catalog.current())
    raise SerializationFailure(
        "could not change the catalog: other changes were always first",
        hint="Try the statement again.",
    )


@dataclass(frozen=True, slots=True)
class View:
    """A materialized view that comes back, and the collections that it reads."""

    returning: Returning
    dropped: DroppedItem
    own: Import  # what it will be; its shard is the one that it had
    inputs: tuple[Import, ...]

    @property
    def definition(self) -> MaterializedView:
        assert isinstance(self.dropped.item.definition, MaterializedView), "only those have starts"
        return self.dropped.item.definition


class _Undropping:
    """One try against one snapshot."""

    def __init__(self, session: Session, env: Environment, snapshot: Snapshot) -> None:
        self._session = session
        self._env = env
        self._snapshot = snapshot
        self.notices: tuple[Notice, ...] = ()

    async def run(self, items: Sequence[Returning]) -> bool:
        """Whether it was done; else somebody else was first."""
        found = await self._starts(items)
        root = items[0].item_id
        if root in found.refused:
            raise found.refused[root]
        coming, self.notices = leave_out(items, found.refused, self._snapshot)
        starts = {one.item_id: found.starts.get(one.item_id, Start(None)) for one in coming}
        chosen = [replace(one, anew_from=starts[one.item_id].anew_from) for one in coming]
        result = self._transact(chosen)
        after = self._after(result)
        returning = {
            item_id: ViewStart(_inputs(item_id, after), start.hold_ts)
            for item_id, start in starts.items()
            if start.hold_ts is not None
        }
        appending = self._env.catalog.compare_and_append(
            result.updates,
            expected_upper=self._snapshot.upper,
            shard_changes=shard_changes(result, (), self._snapshot, returning),
        )
        outcome = await see_through(appending)
        if isinstance(outcome, Refused) and isinstance(outcome.refusal, Purged):
            raise _purged(outcome.shard_id, self._snapshot)
        return isinstance(outcome, Appended)

    async def _starts(self, items: Sequence[Returning]) -> "Starts":
        views = self._views(items)
        if not views:
            return Starts()
        read_ts = await self._env.oracle.read_ts(Timeline.EPOCH_MS)
        shards = {one.shard_id for view in views for one in (view.own, *view.inputs)}
        states = await self._env.storage.following.states(shards)
        return choose_starts(views, states, read_ts)

    def _views(self, items: Sequence[Returning]) -> list[View]:
        """Those among them that are materialized, inputs before users."""
        after = self._after(self._transact(items))
        found: list[View] = []
        for one in items:
            item = after.items[one.item_id]
            if isinstance(item.definition, MaterializedView):
                dropped = self._snapshot.dropped_items[one.item_id]
                own = Import(item.global_id, item.definition.shard_id, item.desc, is_table=False)
                found.append(View(one, dropped, own, _inputs(one.item_id, after)))
        return found

    def _transact(self, items: Sequence[Returning]) -> TransactResult:
        return transact(
            self._snapshot,
            [UndropItemsOp(tuple(items))],
            now_ms=self._env.clock.now_ms(),
            user=self._session.user,
        )

    def _after(self, result: TransactResult) -> Snapshot:
        return self._snapshot.apply(result.updates, self._snapshot.upper)


def _inputs(item_id: ItemId, snapshot: Snapshot) -> tuple[Import, ...]:
    relation, _ = plan_item(snapshot.items[item_id], snapshot)
    return imports_of(relation, snapshot)


@dataclass(frozen=True, slots=True)
class Start:
    """From where on a view needs what it reads; `anew_from`: its rows begin there, too."""

    hold_ts: Timestamp | None  # None: it needs none of it
    anew_from: Timestamp | None = None


@dataclass(frozen=True, slots=True)
class Starts:
    """Where each view starts, and why some cannot; those that read one of these are in neither."""

    starts: dict[ItemId, Start] = field(default_factory=dict)
    refused: dict[ItemId, SqlError] = field(default_factory=dict)


def choose_starts(
    views: Sequence[View], states: Mapping[ShardId, ShardState], read_ts: Timestamp
) -> Starts:
    """Where each view goes on, or begins anew. Inputs come before users."""
    found = Starts()
    anew: dict[ShardId, Timestamp] = {}
    lost: set[ShardId] = set()
    for view in views:
        item_id, shard_id = view.returning.item_id, view.own.shard_id
        if any(one.shard_id in lost for one in view.inputs):
            lost.add(shard_id)
            continue
        start = _going_on(view, states, anew, read_ts)
        if start is None:
            below = [anew.get(one.shard_id, states[one.shard_id].since) for one in view.inputs]
            as_of = _next_change(view, select_as_of(oracle_read_ts=read_ts, sinces=below))
            if as_of is None:
                lost.add(shard_id)
                found.refused[item_id] = _too_late(view)
                continue
            start = Start(as_of, as_of)
            # Who reads it finds nothing there from before.
            anew[shard_id] = as_of
        found.starts[item_id] = start
    return found


def _going_on(
    view: View,
    states: Mapping[ShardId, ShardState],
    anew: Mapping[ShardId, Timestamp],
    read_ts: Timestamp,
) -> Start | None:
    """How it goes on where its rows ended; None: it cannot."""
    own = states[view.own.shard_id]
    if not _is_last_definitions(view, own):
        return None
    below = {one.shard_id: states[one.shard_id] for one in view.inputs}
    if own.upper == EMPTY_FRONTIER:
        uppers = [anew.get(s, state.upper) for s, state in below.items()]
        then = max(read_ts, min(uppers, default=EMPTY_FRONTIER))
        return Start(None) if _next_change(view, then) is None else None
    hold_ts = max(view.definition.as_of, step_back(own.upper))
    known = all(anew.get(s, state.since) <= hold_ts for s, state in below.items())
    return Start(hold_ts) if known else None


def _is_last_definitions(view: View, state: ShardState) -> bool:
    """Whether its shard holds what its definition says, up to where it ends.

    Not if it was just changing hands.
    """
    return (
        not view.definition.handing_over
        and state.pending is None
        and state.writer == view.dropped.item.global_id
    )


def _next_change(view: View, then: Timestamp) -> Timestamp | None:
    """When it changes next if its inputs do from then on; None: never again, for its last refresh
    is over, or they will not."""
    refresh = view.definition.refresh
    found = then if refresh is None else refresh.schedule.next_at(then)
    return None if found == EMPTY_FRONTIER else found


def _purged(shard_id: ShardId, snapshot: Snapshot) -> SqlError:
    """It was damaged when it was dropped."""
    dropped = snapshot.dropped_items.values()
    names = (f'"{one.name}"' for one in dropped if one.item.shard_id == shard_id)
    return ObjectNotInPrerequisiteState(
        f"cannot undrop {next(names, shard_id)}: its contents are gone",
        detail="Its state was damaged when it was dropped.",
        hint="Create it anew.",
    )


def _too_late(view: View) -> SqlError:
    return ObjectNotInPrerequisiteState(
        f'cannot undrop materialized view "{view.dropped.name}": its last refresh is over, and'
        " what it read then is no longer known",
        hint="Create it anew.",
    )
