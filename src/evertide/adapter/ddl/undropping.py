"""UNDROP: where each materialized view goes on, and the transaction that brings all of it back.

A view goes on where its rows ended, as after a restart, if what it reads is still known from there
on. Else it is computed anew from now on, as if it had just been created.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

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
from evertide.persist.handle import Appended
from evertide.persist.state import ShardState
from evertide.sql.plan.plans import DdlPlan
from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.sql.views import plan_item
from evertide.vocab.errors import ObjectNotInPrerequisiteState, SerializationFailure
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
            session.notices.extend(plan.notices)
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

    async def run(self, items: Sequence[Returning]) -> bool:
        """Whether it was done; else somebody else was first."""
        views = self._views(items)
        starts: Mapping[ItemId, Start] = {}
        if views:
            read_ts = await self._env.oracle.read_ts(Timeline.EPOCH_MS)
            shards = {one.shard_id for view in views for one in (view.own, *view.inputs)}
            states = await self._env.storage.following.states(shards)
            starts = choose_starts(views, states, read_ts)
        chosen = [
            replace(one, anew_from=starts[one.item_id].anew_from) if one.item_id in starts else one
            for one in items
        ]
        result = self._transact(chosen)
        after = self._after(result)
        returning = {
            item_id: ViewStart(_inputs(item_id, after), start.hold_ts)
            for item_id, start in starts.items()
        }
        appending = self._env.catalog.compare_and_append(
            result.updates,
            expected_upper=self._snapshot.upper,
            shard_changes=shard_changes(result, (), self._snapshot, returning),
        )
        return isinstance(await see_through(appending), Appended)

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

    hold_ts: Timestamp
    anew_from: Timestamp | None = None


def choose_starts(
    views: Sequence[View], states: Mapping[ShardId, ShardState], read_ts: Timestamp
) -> dict[ItemId, Start]:
    """Where each view goes on, or begins anew. Inputs come before users."""
    sinces = {shard_id: state.since for shard_id, state in states.items()}
    starts: dict[ItemId, Start] = {}
    for view in views:
        own = states[view.own.shard_id]
        below = [sinces[one.shard_id] for one in view.inputs]
        hold_ts = _restart(view, own)
        if _goes_on(view, own) and all(since <= hold_ts for since in below):
            starts[view.returning.item_id] = Start(hold_ts)
        else:
            as_of = _begin(view, select_as_of(oracle_read_ts=read_ts, sinces=below))
            starts[view.returning.item_id] = Start(as_of, as_of)
            # Who reads it finds nothing there from before.
            sinces[view.own.shard_id] = as_of
    return starts


def _restart(view: View, state: ShardState) -> Timestamp:
    """Where a replica begins that finds the shard like this; one that is complete is computed once
    more from its beginning."""
    as_of = view.definition.as_of
    return as_of if state.upper == EMPTY_FRONTIER else max(as_of, step_back(state.upper))


def _goes_on(view: View, state: ShardState) -> bool:
    """Whether its shard holds what its definition says, up to where it ends.

    Not if it was just changing hands.
    """
    return (
        not view.definition.handing_over
        and state.pending is None
        and state.writer == view.dropped.item.global_id
    )


def _begin(view: View, now: Timestamp) -> Timestamp:
    """Where a view begins anew: now, or where its next refresh is."""
    if view.definition.refresh is None:
        return now
    found = view.definition.refresh.schedule.next_at(now)
    if found == EMPTY_FRONTIER:
        raise ObjectNotInPrerequisiteState(
            f'cannot undrop materialized view "{view.dropped.name}": its last refresh is over, and'
            " what it read then is no longer known",
            hint="Create it anew.",
        )
    return found
