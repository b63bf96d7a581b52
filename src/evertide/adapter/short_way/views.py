"""Rows of materialized views by key, their newest changes told by replicas (reading/asking.py).

Whoever has just written and looks for it in a view waits for the view's replica. What the shard has
is looked at meanwhile; once the replica tells what changed, nothing is left but to add it.
"""

import asyncio
import traceback
from collections.abc import Hashable, Sequence
from contextlib import nullcontext
from operator import itemgetter
from typing import Final, TypeAlias

import structlog

from evertide.adapter.reading.asking import Ahead, ask
from evertide.adapter.reading.metrics import count_read_ahead
from evertide.adapter.short_way.asked import Asked, give_up
from evertide.adapter.short_way.recipe import CopyKey, Recipe
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient
from evertide.controller.near import Near
from evertide.controller.stillness import Look
from evertide.controller.storage import Storage
from evertide.expr.group_rows import consolidated
from evertide.persist.faults import PersistFault
from evertide.vocab.datum import Row
from evertide.vocab.timestamp import Timestamp

# Whoever got no answer by then goes the ordinary way, on which cancels and timeouts are watched.
# A replica that has not answered by the latter may be dead or far behind: there the shard is
# watched as well.
PATIENCE_S: Final = 0.25
_REPLICA_PATIENCE_S: Final = 0.05
# Of one key.
_MOST_ROWS: Final = 1_000
# So many views are remembered whose rows cannot be found so.
_MOST_UNFIT: Final = 1_000

_Counted: TypeAlias = tuple[Row, int]

log = structlog.get_logger()


class ViewLookups:
    """Those of one adapter."""

    def __init__(self, storage: Storage, compute: ComputeClient) -> None:
        self._storage = storage
        self._compute = compute
        # Large ones that are asked for by columns which are not searched.
        self._unfit: set[CopyKey] = set()
        # The event loop itself refers to tasks only weakly.
        self._under_way: set[asyncio.Task[None]] = set()

    def is_fit(self, recipe: Recipe) -> bool:
        """Whether rows may be found so, going by what was seen by now."""
        return recipe.copy_key not in self._unfit

    def begin(
        self, asked: Sequence[Asked], snapshot: Snapshot, look: Look, as_of: Timestamp
    ) -> None:
        """Answer these, all of one recipe's view and columns.

        The snapshot was taken after as_of could be read: so the definition that it has is the one
        in force then. The look was taken after that.
        """
        recipe = asked[0].recipe
        view = recipe.collection
        ahead = None
        if look.upper(view) <= as_of:
            ahead = ask(view, snapshot, self._compute, look, as_of)
            if ahead is None:
                give_up(asked)  # there is nobody to ask, but the shard may be waited for
                return
        task = asyncio.get_running_loop().create_task(self._answer(asked, ahead, as_of))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _answer(self, asked: Sequence[Asked], ahead: Ahead | None, as_of: Timestamp) -> None:
        timer = asyncio.get_running_loop().call_later(PATIENCE_S, give_up, asked)
        try:
            with ahead or nullcontext():
                await self._tell(asked, ahead, as_of)
        except PersistFault:
            pass  # the ordinary way meets it as well, and knows what to do
        except Exception:  # noqa: BLE001 - a bug here costs time, not an answer
            log.error("a lookup in a view failed", traceback=traceback.format_exc())
        finally:
            timer.cancel()
            give_up(asked)

    async def _tell(self, asked: Sequence[Asked], ahead: Ahead | None, as_of: Timestamp) -> None:
        recipe = asked[0].recipe
        durable = as_of if ahead is None else ahead.durable
        with await self._storage.hold([recipe.collection], as_of):
            near = await self._storage.columns.near.at(recipe.collection, durable)
            if near is None:
                return
            found = [(one, self._stored(one, near, durable)) for one in asked]
            told = () if ahead is None else await _told(ahead)
        if told is None:
            return
        for one, stored in found:
            rows = None if stored is None else with_changes(one, stored, told)
            one.answer(rows, as_of)

    def _stored(self, one: Asked, near: Near, durable: Timestamp) -> list[_Counted] | None:
        """What the shard has of a key; None: that is not found here."""
        recipe = one.recipe
        columns, types = recipe.copy_key[2], recipe.collection.desc.types
        values = values_of(one)
        if values is None:
            return []
        rows = near.having(columns, values, types)
        if rows is None:
            if len(self._unfit) >= _MOST_UNFIT:
                self._unfit.clear()
            self._unfit.add(recipe.copy_key)
            return None
        return rows + of_key(near.later(columns[0], values[:1], durable), columns, values)


async def _told(ahead: Ahead) -> Sequence[_Counted] | None:
    """What a replica told; None: nobody did in time, or it told of errors."""
    payload, _ = await ahead.first_told(_REPLICA_PATIENCE_S)
    rows = None if payload is None else ahead.rows(payload)
    if rows is not None:
        count_read_ahead(by_replica=True)  # else the ordinary way counts it
    return rows


def values_of(one: Asked) -> Row | None:
    """What the columns of the key have to equal; None where nothing does."""
    key: Hashable | None = one.recipe.key(one.parameters)
    if key is None:
        return None
    return key if isinstance(key, tuple) and len(one.recipe.copy_key[2]) > 1 else (key,)


def of_key(changes: Sequence[_Counted], columns: tuple[int, ...], values: Row) -> list[_Counted]:
    """Changes of rows that have these values in these columns."""
    if len(columns) == 1:
        column, value = columns[0], values[0]
        return [change for change in changes if change[0][column] == value]
    key = itemgetter(*columns)
    return [change for change in changes if key(change[0]) == values]


def with_changes(
    one: Asked, stored: Sequence[_Counted], told: Sequence[_Counted]
) -> Sequence[Row] | None:
    """What a client sees after the changes; None if a row went that was not there, or if there are
    many: others are not to wait for them."""
    recipe, values = one.recipe, values_of(one)
    if values is None:
        return ()
    counted = [*stored, *of_key(told, recipe.copy_key[2], values)]
    if len(counted) > 1:
        counted = consolidated(counted, recipe.collection.desc.types)
    if any(count < 0 for _, count in counted) or sum(n for _, n in counted) > _MOST_ROWS:
        return None
    return recipe.rows([row for row, count in counted for _ in range(count)])
