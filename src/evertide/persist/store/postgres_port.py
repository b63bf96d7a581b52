"""A PostgreSQL schema as a ChangePort: each call is one statement and one round trip."""

from collections.abc import Mapping
from typing import Final

import msgspec
import psycopg
from psycopg.pq.abc import PGresult

from evertide.persist.faults import Fenced
from evertide.persist.store.attempts import Attempt, Change
from evertide.persist.store.postgres_binary import (
    FALSE,
    TRUE,
    bigint,
    bigints,
    byteas,
    maybe_bigint,
    read_bigint,
    read_bytes,
    texts,
)
from evertide.persist.store.postgres_pool import Pool, fault_of
from evertide.persist.store.postgres_schema import INSERT_LOST
from evertide.persist.store.postgres_upkeep import Upkeep
from evertide.persist.store.protocol import (
    AllSet,
    ClaimLost,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    Unchanged,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

_decoder: Final = msgspec.json.Decoder(list[str] | int)


class PostgresPort:
    """Shard states and timelines."""

    def __init__(self, pool: Pool, upkeep: Upkeep | None = None) -> None:
        self._pool = pool
        self._upkeep = upkeep

    async def change(self, attempt: Attempt, change: Change) -> SetOutcome | ClaimLost:
        if self._upkeep is not None:
            self._upkeep.wrote(sum(len(one.value) for one in change.sets))
        sets, applied, claimed = change.sets, change.applied, change.claimed
        arguments = (
            bigint(change.epoch),
            attempt.writer.encode(),
            bigint(attempt.number),
            TRUE if change.each else FALSE,
            texts([one.shard_id for one in sets]),
            bigints([one.expected_seqno for one in sets]),
            byteas([one.value for one in sets]),
            texts([write.timeline.value for write in applied]),
            bigints([write.write_ts for write in applied]),
            None if claimed is None else claimed.timeline.value.encode(),
            None if claimed is None else bigint(claimed.write_ts),
        )
        try:
            return _outcome(read_bytes(await self._pool.ask(b"change", arguments), 0, 0))
        except psycopg.Error as error:
            if error.sqlstate == INSERT_LOST:
                return _outcome((error.diag.message_primary or "").encode())
            raise fault_of(error, change.epoch) from error

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        arguments = (attempt.writer.encode(), bigint(attempt.number))
        kept = (await self._pool.ask_again(b"settle", arguments)).get_value(0, 0)
        outcome = None if kept is None else _outcome(kept)
        assert not isinstance(outcome, ClaimLost), "a lost claim is not kept"
        return outcome

    async def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        arguments = (shard_id.encode(), maybe_bigint(known_seqno))
        result = await self._pool.ask_again(b"head", arguments)
        return None if result.ntuples == 0 else _head(result, 0, 0)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        if len(known_seqnos) <= 1:
            return {shard: await self.head(shard, known) for shard, known in known_seqnos.items()}
        shard_ids = list(known_seqnos)
        arguments = (texts(shard_ids), bigints(known_seqnos.values()))
        result = await self._pool.ask_again(b"heads", arguments)
        heads: dict[ShardId, Head | Unchanged | None] = dict.fromkeys(shard_ids, Unchanged())
        for row in range(result.ntuples):
            missing = result.get_value(row, 1) is None
            shard_id = shard_ids[read_bigint(result, row, 0) - 1]
            heads[shard_id] = None if missing else _head(result, row, 1)
        return heads

    async def shard_ids(self) -> list[ShardId]:
        result = await self._pool.ask_again(b"shard_ids")
        return [ShardId(read_bytes(result, row, 0).decode()) for row in range(result.ntuples)]

    async def read_timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        result = await self._pool.ask_again(b"read_timeline", (timeline.value.encode(),))
        current = read_bigint(result, 0, 0)
        if current != epoch:
            raise Fenced(epoch, Epoch(current))
        if result.get_value(0, 1) is None:
            return OracleRow(MIN_TS, MIN_TS)
        return OracleRow(Timestamp(read_bigint(result, 0, 1)), Timestamp(read_bigint(result, 0, 2)))

    async def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        arguments = (bigint(epoch), timeline.value.encode(), bigint(at_least), bigint(count))
        result = await self._pool.ask_again(b"allocate", arguments, epoch)
        return Timestamp(read_bigint(result, 0, 0))

    async def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        arguments = (bigint(epoch), timeline.value.encode(), bigint(write_ts))
        await self._pool.ask_again(b"apply", arguments, epoch)


def _head(result: PGresult, row: int, column: int) -> Head | Unchanged:
    value = result.get_value(row, column + 1)
    return Unchanged() if value is None else Head(read_bigint(result, row, column), value)


def _outcome(told: bytes) -> SetOutcome | ClaimLost:
    lost = _decoder.decode(told)
    if isinstance(lost, int):
        return ClaimLost(Timestamp(lost))
    return SetMismatch(tuple(map(ShardId, lost))) if lost else AllSet()
