"""The catalog's log in SQL tables of the consensus store, one for each kind of object."""

from collections.abc import Sequence

from evertide.catalog.durable.log import SINCE_LAG, RowChange, RowUpdate, added_up, claiming
from evertide.catalog.durable.protocol import AppendOutcome
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.kinds.kind import FORMER_KINDS, ObjectKind
from evertide.persist.append import Appended
from evertide.persist.faults import BelowSince
from evertide.persist.handle import PersistClient
from evertide.persist.machine import Refused
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.persist.store.protocol import (
    STASH_SHARD,
    ClaimedWrite,
    ClaimLost,
    Stash,
    StashAppend,
    StashMismatch,
    StashRow,
)
from evertide.vocab.timestamp import MIN_TS, Timestamp


class StashLog:
    """Appends under the epoch that its client carries; the tables are the store's own."""

    name = "stash"

    def __init__(self, stash: Stash, client: PersistClient) -> None:
        self._stash = stash
        self._client = client

    async def prepare(self) -> None:
        await self._stash.ensure([*(kind.value for kind in ObjectKind), *FORMER_KINDS])

    async def upper(self) -> Timestamp:
        return await self._stash.upper()

    async def rows(self, as_of: Timestamp, kind: str | None = None) -> list[StoredRow]:
        page = await self._stash.read(kinds=None if kind is None else [kind])
        if as_of < page.since:
            raise BelowSince(STASH_SHARD, as_of, page.since)
        assert as_of < page.upper, "only what is complete is asked for"
        return added_up(_update(row) for row in page.rows if row.ts <= as_of)

    async def wait_beyond(self, beyond: Timestamp) -> Timestamp:
        upper = await self._stash.upper()
        if upper > beyond:
            return upper
        return await self._client.watch.until(
            (STASH_SHARD,), self._stash.upper, lambda upper: upper > beyond
        )

    async def updates(self, lower: Timestamp, upper: Timestamp) -> list[RowUpdate]:
        page = await self._stash.read(lower)
        if lower == MIN_TS and page.since > MIN_TS:
            raise BelowSince(STASH_SHARD, lower, page.since)
        return [_update(row) for row in page.rows if row.ts < upper]

    async def append(
        self,
        changes: Sequence[RowChange],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
        raises_epoch: bool = False,
        at: Timestamp | None = None,
    ) -> AppendOutcome:
        appender = self._client.appender

        async def attempt(claimed: ClaimedWrite) -> AppendOutcome | ClaimLost:
            outcome = await appender.append_claiming(
                [],
                claimed,
                also=shard_changes,
                stash=_append(changes, expected_upper, claimed.write_ts),
                raises_epoch=raises_epoch,
            )
            return outcome if isinstance(outcome, ClaimLost) else _told(outcome)

        if at is not None:
            append = _append(changes, expected_upper, at)
            return _told(await appender.append_all([], also=shard_changes, stash=append))
        return await claiming(expected_upper, attempt)


def _append(
    changes: Sequence[RowChange], expected_upper: Timestamp, write_ts: Timestamp
) -> StashAppend:
    rows = [StashRow(*change.row, write_ts, change.diff) for change in changes]
    since = Timestamp(max(write_ts - SINCE_LAG, MIN_TS))
    return StashAppend(expected_upper, write_ts, rows, since)


def _told(outcome: Appended | Refused | StashMismatch) -> AppendOutcome:
    return UpperMismatch(outcome.upper) if isinstance(outcome, StashMismatch) else outcome


def _update(row: StashRow) -> RowUpdate:
    return RowUpdate(StoredRow(row.kind, row.key, row.value), row.ts, row.diff)
