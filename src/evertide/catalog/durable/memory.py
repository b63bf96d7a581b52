"""A log in memory: a savepoint, in which everything works and nothing is kept."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from evertide.catalog.durable.log import RowChange, RowUpdate, added_up
from evertide.catalog.durable.protocol import AppendOutcome
from evertide.catalog.durable.rows import StoredRow
from evertide.persist.append import Appended
from evertide.persist.machine import Refused
from evertide.persist.state import ShardChange, ShardState, UpperMismatch
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back, step_forward


async def no_shard(_: ShardId) -> ShardState | None:
    """For logs whose appends change no data shard."""
    return None


class MemoryLog:
    """For one process. `shard_state` is asked for data shards that nothing here has changed yet."""

    name = "memory"

    def __init__(
        self,
        rows: Iterable[StoredRow] = (),
        upper: Timestamp = MIN_TS,
        shard_state: Callable[[ShardId], Awaitable[ShardState | None]] = no_shard,
    ) -> None:
        self._updates = [RowUpdate(row, step_back(upper), 1) for row in rows]
        self._upper = upper
        self._shard_state = shard_state
        self._shards: dict[ShardId, ShardState] = {}
        self._moved = asyncio.Event()

    async def prepare(self) -> None:
        """Memory is always ready."""

    async def upper(self) -> Timestamp:
        return self._upper

    async def rows(self, as_of: Timestamp, kind: str | None = None) -> list[StoredRow]:
        kept = (u for u in self._updates if u.ts <= as_of and kind in (None, u.row.kind))
        return added_up(kept)

    async def wait_beyond(self, beyond: Timestamp) -> Timestamp:
        while self._upper <= beyond:
            await self._moved.wait()
        return self._upper

    async def updates(self, lower: Timestamp, upper: Timestamp) -> list[RowUpdate]:
        return [update for update in self._updates if lower <= update.ts < upper]

    async def append(
        self,
        changes: Sequence[RowChange],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
        raises_epoch: bool = False,  # noqa: ARG002  nobody else could be fenced
        at: Timestamp | None = None,
    ) -> AppendOutcome:
        states = await self._states(shard_changes)
        for change in shard_changes:
            after = change.transition(states[change.shard_id])
            if not isinstance(after, ShardState):
                return Refused(change.shard_id, after)
            states[change.shard_id] = after
        if expected_upper != self._upper:
            return UpperMismatch(self._upper)
        self._shards.update({shard: state for shard, state in states.items() if state is not None})
        write_ts = max(expected_upper, Timestamp(1)) if at is None else at
        self._updates.extend(RowUpdate(c.row, write_ts, c.diff) for c in changes)
        self._upper = step_forward(write_ts)
        self._moved.set()
        self._moved = asyncio.Event()
        return Appended(self._upper)

    async def _states(
        self, shard_changes: Sequence[ShardChange]
    ) -> dict[ShardId, ShardState | None]:
        found = {c.shard_id: await self._shard_state(c.shard_id) for c in shard_changes}
        return {shard_id: self._shards.get(shard_id, state) for shard_id, state in found.items()}
