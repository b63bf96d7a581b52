"""The catalog's log in one shard of rows (kind, key, value)."""

import hashlib
from collections.abc import Sequence

from evertide.catalog.durable.codec import ROW_DESC
from evertide.catalog.durable.log import SINCE_LAG, RowChange, RowUpdate, claiming, single
from evertide.catalog.durable.protocol import AppendOutcome
from evertide.catalog.durable.rows import StoredRow
from evertide.persist.append import Append, Appended
from evertide.persist.faults import ShardMissing
from evertide.persist.handle import PersistClient
from evertide.persist.machine import Refused
from evertide.persist.state import ShardChange, UpperMismatch, initial_state
from evertide.persist.store.protocol import ClaimedWrite, ClaimLost, StashMismatch
from evertide.vocab.datum import Row
from evertide.vocab.ids import EnvironmentId, ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_forward
from evertide.vocab.update import Update


def catalog_shard(environment_id: EnvironmentId) -> ShardId:
    """The environment's catalog; the name says what it is wherever shards are listed."""
    digest = hashlib.sha256(environment_id.encode()).hexdigest()
    return ShardId(f"catalog-{digest[:16]}")


class PersistLog:
    """Appends under the epoch that its client carries."""

    name = "persist"

    def __init__(self, client: PersistClient, shard_id: ShardId) -> None:
        self._client = client
        self._shard_id = shard_id

    async def prepare(self) -> None:
        """The first append makes the shard."""

    async def upper(self) -> Timestamp:
        try:
            return (await self._client.state(self._shard_id)).upper
        except ShardMissing:
            return MIN_TS

    async def rows(self, as_of: Timestamp, kind: str | None = None) -> list[StoredRow]:
        contents = await self._client.contents(self._shard_id, ROW_DESC, as_of)
        counted = ((_stored(row), n) for row, n in contents.rows if kind in (None, row[0]))
        return single(counted)

    async def wait_beyond(self, beyond: Timestamp) -> Timestamp:
        return await self._client.wait_for_upper(self._shard_id, beyond)

    async def updates(self, lower: Timestamp, upper: Timestamp) -> list[RowUpdate]:
        found = await self._client.reader.updates(self._shard_id, ROW_DESC, lower, upper)
        return [RowUpdate(_stored(u.row), u.ts, u.diff) for u in found]

    async def append(
        self,
        changes: Sequence[RowChange],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
        raises_epoch: bool = False,
        at: Timestamp | None = None,
    ) -> AppendOutcome:
        also = (self._made(), *shard_changes) if expected_upper == MIN_TS else tuple(shard_changes)
        appender = self._client.appender

        async def attempt(claimed: ClaimedWrite) -> AppendOutcome | ClaimLost:
            append = self._append(changes, expected_upper, claimed.write_ts)
            outcome = await appender.append_claiming(
                [append], claimed, also=also, raises_epoch=raises_epoch
            )
            return outcome if isinstance(outcome, ClaimLost) else self._told(outcome)

        if at is not None:
            append = self._append(changes, expected_upper, at)
            return self._told(await appender.append_all([append], also=also))
        outcome = await claiming(expected_upper, attempt)
        if raises_epoch and isinstance(outcome, Appended):
            # This client has just fenced itself: its upkeep could only fail.
            await self._client.maintenance.close()
        return outcome

    def _append(
        self, changes: Sequence[RowChange], expected_upper: Timestamp, write_ts: Timestamp
    ) -> Append:
        assert write_ts >= expected_upper, "the catalog's write timestamps only grow"
        rows = [Update(tuple(change.row), write_ts, change.diff) for change in changes]
        return Append(self._shard_id, ROW_DESC, rows, expected_upper, step_forward(write_ts))

    def _made(self) -> ShardChange:
        """The shard, made unless it is there."""
        first = initial_state(since_lag=SINCE_LAG)
        return ShardChange(self._shard_id, lambda state: first if state is None else state)

    def _told(self, outcome: Appended | Refused | StashMismatch) -> AppendOutcome:
        assert not isinstance(outcome, StashMismatch), "nothing went to the stash"
        if isinstance(outcome, Refused) and outcome.shard_id == self._shard_id:
            assert isinstance(outcome.refusal, UpperMismatch), f"catalog shard: {outcome.refusal}"
            return outcome.refusal
        return outcome


def _stored(row: Row) -> StoredRow:
    kind, key, value = row
    return StoredRow(str(kind), str(key), str(value))
