"""A view's newest changes, told by its replica before its shard has them.

A view is a function of its inputs, so what a replica computed from durable inputs is right whether
or not it is stored already, as an index is. Waiting for the store would cost a reader who has just
written half as much again (docs/adr/2026-11-16-views-are-read-before-they-are-stored.md).

Unless another definition may have taken the view over by then: the replica might compute by one
that is not in force at that timestamp. A new definition begins beyond every timestamp that could be
read when the catalog switched to it. So once a timestamp can be read, a look at the catalog tells
whether the definition holds there (docs/adr/2026-11-16-how-a-view-changes-hands.md).
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final

from evertide.adapter.environment import Environment
from evertide.adapter.reading.metrics import count_read_ahead
from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import Unanswered
from evertide.controller.stillness import Look
from evertide.dataflow.description import Import
from evertide.dataflow.protocol import Response, RowsResponse
from evertide.persist.coding.batch import from_payload
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timeline, Timestamp, step_back

# A replica that has not answered by then may be dead or far behind: the shard is watched as well.
_PATIENCE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class Ahead:
    """Asked for: what changed after `durable`, up to which the view's shard is complete.

    Leave the context once the answer is of no use any more.
    """

    view: Import
    durable: Timestamp
    # By whose current version the replicas compute.
    _item: Item
    _asked: "list[asyncio.Future[Response]]"

    def __enter__(self) -> "Ahead":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for future in self._asked:
            future.cancel()

    async def changes(self, env: Environment, as_of: Timestamp) -> Sequence[tuple[Row, int]] | None:
        """The changes, as rows that come and go; None: the shard itself has them.

        Errors are left to the shard as well: they are rare, and nobody hurries for them.
        """
        if not await self._in_force(env, as_of):
            return None
        found, waiting = await self._first_told(set(self._asked), _PATIENCE_S)
        if found is None and waiting:
            stored = asyncio.create_task(env.storage.wait_for_upper(self.view, as_of))
            try:
                while found is None and waiting and not stored.done():
                    both: set[asyncio.Future[Any]] = {stored, *waiting}
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                    found, waiting = _told(waiting)
                if found is None:
                    await stored
            finally:
                stored.cancel()
        rows = None if found is None else self._rows(found)
        count_read_ahead(by_replica=rows is not None)
        return rows

    async def _in_force(self, env: Environment, as_of: Timestamp) -> bool:
        """Whether the definition holds at as_of, which is looked at while the replicas compute.

        In this order: the catalog must not have switched after as_of could be read.
        """
        if as_of > await env.oracle.read_ts(Timeline.EPOCH_MS):
            return False
        item = (await env.catalog.current()).items.get(self._item.item_id)
        return item is not None and item.global_id == self._item.global_id and _settled(item)

    async def _first_told(
        self, waiting: "set[asyncio.Future[Response]]", at_most_s: float
    ) -> "tuple[bytes | None, set[asyncio.Future[Response]]]":
        found: bytes | None = None
        while found is None and waiting:
            first = asyncio.FIRST_COMPLETED
            done, _ = await asyncio.wait(waiting, timeout=at_most_s, return_when=first)
            if not done:
                break
            found, waiting = _told(waiting)
        return found, waiting

    def _rows(self, payload: bytes) -> Sequence[tuple[Row, int]] | None:
        if not payload:
            return ()
        columns = from_payload(self.view.desc, payload).columns
        if columns.errors is not None and any(columns.errors):
            return None
        return list(zip(columns.rows, columns.diffs, strict=True))


def _told(
    waiting: "set[asyncio.Future[Response]]",
) -> "tuple[bytes | None, set[asyncio.Future[Response]]]":
    """What one of them has told, and who has not answered yet."""
    for future in waiting:
        if future.done() and not future.cancelled():
            try:
                response = future.result()
            except Unanswered:
                continue  # it went away
            if isinstance(response, RowsResponse):
                return response.updates, waiting
    return None, {future for future in waiting if not future.done()}


def _settled(item: Item) -> bool:
    """Whether a view has one definition, which is not about to give way to another, and is computed
    as far as its inputs are: who waits for a refresh waits for the shard."""
    definition = item.definition
    return (
        isinstance(definition, MaterializedView)
        and not definition.handing_over
        and definition.refresh is None
    )


@dataclass(frozen=True, slots=True)
class Early:
    """A timestamp at which a view is readable, and what its replicas were asked for before the rest
    of its read was worked out.

    They compute meanwhile, and have mostly answered when somebody wants to know.
    """

    as_of: Timestamp
    # None: nothing needs to be asked for.
    ahead: Ahead | None


async def look_early(
    view: Import, snapshot: Snapshot, env: Environment, as_of: Timestamp
) -> Early | None:
    """Ask for what a read at as_of, which is known to the oracle, is likely to need; None where
    the view is no longer readable there."""
    look = await env.storage.look([view])
    if look.state(view).since > as_of:
        return None
    return Early(as_of, _ask(view, snapshot, env, look, as_of))


async def look_ahead(
    view: Import, snapshot: Snapshot, env: Environment, as_of: Timestamp
) -> Ahead | None:
    """Ask the view's replicas for what its shard lacks; None where there is nothing to ask for."""
    if await env.storage.following.noted_upper(view) > as_of:
        return None
    return _ask(view, snapshot, env, await env.storage.look([view]), as_of)


def _ask(
    view: Import, snapshot: Snapshot, env: Environment, look: Look, as_of: Timestamp
) -> Ahead | None:
    """Where it was looked at before the view changed hands, it holds the old definition's contents
    up to there. Replicas of the new one tell no changes from below where that one took over
    (`TakeoverSink.ordinary`), so then the shard is waited for."""
    item = snapshot.item_of(view.global_id)
    if item is None or item.cluster_id is None or not _settled(item) or look.upper(view) > as_of:
        return None
    durable = step_back(look.state(view).upper)
    asked = env.compute.ask_changes(snapshot, item.cluster_id, item.global_id, durable, as_of)
    return Ahead(view, durable, item, asked) if asked else None
