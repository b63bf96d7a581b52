"""The catalog in one shard of rows (kind, key, value)."""

import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from evertide.catalog.durable.bootstrap import bootstrap_updates
from evertide.catalog.durable.codec import (
    CATALOG_VERSION,
    ROW_DESC,
    CorruptCatalog,
    decode_object,
    decode_update,
    encode_object,
    encode_update,
)
from evertide.catalog.durable.protocol import (
    AppendOutcome,
    IncompatibleVersion,
    Progress,
    ReadableCatalog,
    Uninitialized,
    WritableCatalog,
)
from evertide.catalog.durable.upgrade.steps import StoredRow, stored_version, upgraded
from evertide.catalog.objects import AuditEvent, CatalogUpdate, ObjectKind
from evertide.catalog.snapshot import Snapshot
from evertide.persist.faults import Fenced, ShardMissing
from evertide.persist.handle import Append, PersistClient, Refused
from evertide.persist.state import ShardChange, UpperMismatch
from evertide.persist.store.protocol import AppliedWrite, Store
from evertide.vocab.clock import Clock
from evertide.vocab.ids import EnvironmentId, Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back, step_forward
from evertide.vocab.update import Update

# Transactions that a follower may still read one by one.
SINCE_LAG: Final = 1_000


def catalog_shard(environment_id: EnvironmentId) -> ShardId:
    """The environment's catalog; the name says what it is wherever shards are listed."""
    digest = hashlib.sha256(environment_id.encode()).hexdigest()
    return ShardId(f"catalog-{digest[:16]}")


class PersistCatalog:
    """An open catalog. Appends under the epoch that its client carries."""

    def __init__(
        self, store: Store, client: PersistClient, shard_id: ShardId, epoch: Epoch
    ) -> None:
        self._store = store
        self._client = client
        self._shard_id = shard_id
        self._epoch = epoch

    @property
    def epoch(self) -> Epoch:
        return self._epoch

    async def load(self) -> Snapshot:
        rows, upper = await _stored_rows(self._client, self._shard_id)
        _check_version(rows)
        kept = (row for row in rows if row.kind != ObjectKind.AUDIT_EVENT)
        return Snapshot().apply([CatalogUpdate(decode_object(row), 1) for row in kept], upper)

    async def follow(self, from_upper: Timestamp) -> AsyncIterator[Progress]:
        async for updates, upper in self._client.listen(self._shard_id, ROW_DESC, from_upper):
            for progress in _by_transaction(updates, upper):
                yield progress

    async def audit_events(self, as_of: Timestamp) -> list[AuditEvent]:
        contents = await self._client.contents(self._shard_id, ROW_DESC, as_of)
        kept = (row for row, _ in contents.rows if row[0] == ObjectKind.AUDIT_EVENT)
        decoded = (decode_object(row) for row in kept)
        events = [event for event in decoded if isinstance(event, AuditEvent)]
        return sorted(events, key=lambda event: event.event_id)

    async def dump(self) -> str:
        rows, _ = await _stored_rows(self._client, self._shard_id)
        return "\n".join(
            json.dumps({"kind": r.kind, "key": json.loads(r.key), "value": json.loads(r.value)})
            for r in sorted(rows)
        )

    async def compare_and_append(
        self,
        updates: Sequence[CatalogUpdate],
        *,
        expected_upper: Timestamp,
        write_ts: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
    ) -> AppendOutcome:
        rows = [encode_update(update, write_ts) for update in updates]
        return await append_rows(
            self._client,
            self._shard_id,
            rows,
            expected_upper=expected_upper,
            write_ts=write_ts,
            shard_changes=shard_changes,
        )

    async def confirm_leadership(self) -> None:
        current = await self._store.current_epoch()
        if current != self._epoch:
            raise Fenced(self._epoch, current)


class PersistOpenableCatalog:
    """The catalog of one environment, before it is open.

    `client_for` gives the process's client that works under an epoch: opening is what decides
    which epoch that is.
    """

    def __init__(
        self,
        store: Store,
        client_for: Callable[[Epoch], PersistClient],
        environment_id: EnvironmentId,
        clock: Clock,
    ) -> None:
        self._store = store
        self._client_for = client_for
        self._environment_id = environment_id
        self._shard_id = catalog_shard(environment_id)
        self._clock = clock

    async def is_initialized(self) -> bool:
        client = self._client_for(await self.current_epoch())
        try:
            state = await client.state(self._shard_id)
        except ShardMissing:
            return False
        return state.upper > MIN_TS

    async def current_epoch(self) -> Epoch:
        return await self._store.current_epoch()

    async def open(self) -> WritableCatalog:
        epoch = await self._store.raise_epoch()
        client = self._client_for(epoch)
        await client.create_shard(self._shard_id, since_lag=SINCE_LAG)
        while await self._write_opening_rows(epoch, client) is None:
            pass  # another process of this very epoch appended in between: look again
        return PersistCatalog(self._store, client, self._shard_id, epoch)

    async def join(self, epoch: Epoch) -> WritableCatalog:
        catalog = PersistCatalog(self._store, self._client_for(epoch), self._shard_id, epoch)
        await catalog.confirm_leadership()
        return catalog

    async def open_read_only(self) -> ReadableCatalog:
        epoch = await self.current_epoch()
        client = self._client_for(epoch)
        rows, _ = await _stored_rows(client, self._shard_id)
        _check_version(rows)
        return PersistCatalog(self._store, client, self._shard_id, epoch)

    async def check_open(self) -> None:
        client = self._client_for(await self.current_epoch())
        rows, _ = await _stored_rows(client, self._shard_id)
        _upgrade_updates(rows, MIN_TS)

    async def _write_opening_rows(self, epoch: Epoch, client: PersistClient) -> Timestamp | None:
        """Fill or upgrade the shard; the upper it then has, or None if that lost a race."""
        upper = (await client.state(self._shard_id)).upper
        oracle_rows = self._store.oracle_rows(epoch)
        write_ts = await oracle_rows.allocate(Timeline.CATALOG, at_least=upper)
        if upper == MIN_TS:
            bootstrap = bootstrap_updates(self._environment_id, self._clock.now_ms())
            rows = [encode_update(update, write_ts) for update in bootstrap]
        else:
            stored, upper = await _stored_rows(client, self._shard_id)
            rows = _upgrade_updates(stored, write_ts)
        if not rows:
            return upper
        outcome = await append_rows(
            client, self._shard_id, rows, expected_upper=upper, write_ts=write_ts
        )
        assert not isinstance(outcome, Refused), "opening touches no other shard"
        return None if isinstance(outcome, UpperMismatch) else outcome.upper


async def append_rows(
    client: PersistClient,
    shard_id: ShardId,
    rows: Sequence[Update],
    *,
    expected_upper: Timestamp,
    write_ts: Timestamp,
    shard_changes: Sequence[ShardChange] = (),
) -> AppendOutcome:
    """Rows at `write_ts`, the oracle's write and other shards' changes in one store transaction."""
    assert write_ts >= expected_upper, "the catalog's write timestamps only grow"
    append = Append(shard_id, ROW_DESC, rows, expected_upper, step_forward(write_ts))
    applied = AppliedWrite(Timeline.CATALOG, write_ts)
    outcome = await client.append_all([append], also=shard_changes, applied=[applied])
    if isinstance(outcome, Refused) and outcome.shard_id == shard_id:
        assert isinstance(outcome.refusal, UpperMismatch), f"catalog shard: {outcome.refusal}"
        return outcome.refusal
    return outcome


async def _stored_rows(
    client: PersistClient, shard_id: ShardId
) -> tuple[list[StoredRow], Timestamp]:
    """Everything in the shard, and the upper it was read at."""
    try:
        upper = (await client.state(shard_id)).upper
    except ShardMissing:
        upper = MIN_TS
    if upper == MIN_TS:
        raise Uninitialized(f"catalog {shard_id} was never opened for writing")
    contents = await client.contents(shard_id, ROW_DESC, step_back(upper))
    for row, multiplicity in contents.rows:
        if multiplicity != 1:
            raise CorruptCatalog(f"{row[0]!r} {row[1]!r} is stored {multiplicity} times")
    rows = [StoredRow(str(kind), str(key), str(value)) for (kind, key, value), _ in contents.rows]
    return rows, upper


def _check_version(rows: Sequence[StoredRow]) -> int:
    """The version, if it is exactly the one that this program reads."""
    stored = stored_version(rows)
    if stored is None:
        raise CorruptCatalog("the catalog does not say of which version it is")
    if stored != CATALOG_VERSION:
        raise IncompatibleVersion(stored, CATALOG_VERSION)
    return stored


def _upgrade_updates(rows: Sequence[StoredRow], write_ts: Timestamp) -> list[Update]:
    """What turns the rows into those this program would write.

    Rows are also encoded anew: a retraction has to equal the stored row byte for byte.
    """
    stored = stored_version(rows)
    if stored is None:
        raise CorruptCatalog("the catalog does not say of which version it is")
    if stored > CATALOG_VERSION:
        raise IncompatibleVersion(stored, CATALOG_VERSION)
    wanted = upgraded(rows, stored=stored, wanted=CATALOG_VERSION)
    before = {tuple(row) for row in rows}
    after = {encode_object(decode_object(row)) for row in wanted}
    gone = [Update(row, write_ts, -1) for row in sorted(before - after)]
    came = [Update(row, write_ts, 1) for row in after if row not in before]
    return [*gone, *came]


def _by_transaction(updates: Sequence[Update], upper: Timestamp) -> Iterator[Progress]:
    """One Progress per timestamp, then one to `upper` if that moved on without updates."""
    reached = MIN_TS
    ordered = sorted(updates, key=lambda update: update.ts)
    for write_ts, group in groupby(ordered, key=lambda update: update.ts):
        reached = step_forward(write_ts)
        yield Progress(tuple(decode_update(update) for update in group), reached)
    if reached < upper:
        yield Progress((), upper)
