"""The open catalog over any log: objects out of rows, and rows out of objects."""

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from evertide.catalog.durable.codec import decode_object
from evertide.catalog.durable.hiding import HIDDEN, hidden_verifiers
from evertide.catalog.durable.log import CatalogLog, RowChange, by_transaction, follow, read_all
from evertide.catalog.durable.protocol import AppendOutcome, ObjectT, Progress
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.today import check_version, row_changes, snapshot_of
from evertide.catalog.durable.transaction import Transaction, begin
from evertide.catalog.objects import CatalogUpdate, object_key
from evertide.catalog.snapshot import Snapshot
from evertide.persist.append import Appended
from evertide.persist.faults import BelowSince, Fenced
from evertide.persist.state import ShardChange
from evertide.vocab.clock import Clock
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp, step_back

_PASSWORD: Final = re.compile(r"(\w://[^\s:/@]*):[^\s/@]*@")


class LogCatalog:
    """The catalog as it is read, with the newest snapshot kept between reads."""

    def __init__(self, log: CatalogLog, snapshot: Snapshot | None = None) -> None:
        self._log = log
        self._snapshot = snapshot

    async def load(self) -> Snapshot:
        if self._snapshot is None:
            self._snapshot = await self._load_all()
        else:
            self._snapshot = await self._brought_forward(self._snapshot)
        return self._snapshot

    async def get(
        self, object_type: type[ObjectT], as_of: Timestamp | None = None
    ) -> list[ObjectT]:
        if as_of is None:
            as_of = step_back(await self._log.upper())
        rows = await self._log.rows(as_of, object_type.KIND.value)
        found = [decode_object(row) for row in rows]
        objects = [one for one in found if isinstance(one, object_type)]
        return sorted(
            objects, key=lambda one: [(part is not None, part) for part in object_key(one)]
        )

    async def follow(self, from_upper: Timestamp) -> AsyncIterator[Progress]:
        async for step in follow(self._log, from_upper):
            yield Progress(_updates(step.changes), step.upper)

    async def dump(self) -> str:
        stored = await read_all(self._log)
        check_version(stored.rows)
        return dumped(stored.rows)

    async def _load_all(self) -> Snapshot:
        stored = await read_all(self._log)
        check_version(stored.rows)
        return snapshot_of(stored.rows, stored.upper)

    async def _brought_forward(self, snapshot: Snapshot) -> Snapshot:
        """What came since the last look; everything, if that was too long ago."""
        upper = await self._log.upper()
        if upper == snapshot.upper:
            return snapshot
        try:
            updates = await self._log.updates(snapshot.upper, upper)
        except BelowSince:
            return await self._load_all()
        for step in by_transaction(updates, upper):
            snapshot = snapshot.apply(_updates(step.changes), step.upper)
        return snapshot


@dataclass(frozen=True, slots=True)
class WritableLogCatalog:
    """The catalog under one epoch."""

    log: CatalogLog
    readable: LogCatalog
    epoch: Epoch
    clock: Clock
    # Asks the store; a savepoint's is its own.
    current_epoch: Callable[[], Awaitable[Epoch]]

    async def load(self) -> Snapshot:
        return await self.readable.load()

    async def get(
        self, object_type: type[ObjectT], as_of: Timestamp | None = None
    ) -> list[ObjectT]:
        return await self.readable.get(object_type, as_of)

    def follow(self, from_upper: Timestamp) -> AsyncIterator[Progress]:
        return self.readable.follow(from_upper)

    async def dump(self) -> str:
        return await self.readable.dump()

    async def transaction(self, *, user: str | None = None) -> Transaction:
        return begin(await self.load(), now_ms=self.clock.now_ms(), user=user)

    async def commit_transaction(
        self, transaction: Transaction, shard_changes: Sequence[ShardChange] = ()
    ) -> AppendOutcome:
        if not transaction.updates and not shard_changes:
            return Appended(transaction.expected_upper)
        return await self.compare_and_append(
            transaction.updates,
            expected_upper=transaction.expected_upper,
            shard_changes=shard_changes,
        )

    async def compare_and_append(
        self,
        updates: Sequence[CatalogUpdate],
        *,
        expected_upper: Timestamp,
        shard_changes: Sequence[ShardChange] = (),
    ) -> AppendOutcome:
        outcome = await self.log.append(
            row_changes(updates), expected_upper=expected_upper, shard_changes=shard_changes
        )
        if not isinstance(outcome, Appended):
            # Whoever was first may have been the next generation, whose opening moved the upper.
            await self.confirm_leadership()
        return outcome

    async def confirm_leadership(self) -> None:
        await check_current(self.current_epoch, self.epoch)


async def check_current(current_epoch: Callable[[], Awaitable[Epoch]], epoch: Epoch) -> None:
    """Raises Fenced unless this epoch is the store's own still."""
    current = await current_epoch()
    if current != epoch:
        raise Fenced(epoch, current)


def dumped(rows: Sequence[StoredRow]) -> str:
    """One JSON object per line, whose key and value can be given to an edit as they are."""
    return "\n".join(
        json.dumps(
            {
                "kind": row.kind,
                "key": json.loads(row.key),
                "value": _without_passwords(json.loads(row.value)),
            },
            ensure_ascii=False,
        )
        for row in sorted(rows)
    )


def _without_passwords(value: object) -> object:
    """A definition may name a place together with a password."""
    match value:
        case str():
            return hidden_verifiers(_PASSWORD.sub(rf"\1:{HIDDEN}@", value))
        case list():
            return [_without_passwords(one) for one in value]
        case dict():
            return {name: _without_passwords(one) for name, one in value.items()}
        case _:
            return value


def _updates(changes: Sequence[RowChange]) -> tuple[CatalogUpdate, ...]:
    return tuple(CatalogUpdate(decode_object(row), diff) for row, diff in changes)
