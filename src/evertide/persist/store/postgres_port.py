"""A PostgreSQL schema as a ChangePort: each call is one statement and one round trip."""

from collections.abc import Mapping
from typing import Final

import msgspec
import psycopg
import structlog
from psycopg.pq.abc import PGresult

from evertide.persist.faults import Corrupt, Fenced
from evertide.persist.store.attempts import Attempt, Change, NotReached
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
from evertide.persist.store.postgres_stash_sql import NO_TABLE
from evertide.persist.store.postgres_upkeep import Upkeep
from evertide.persist.store.protocol import (
    AllSet,
    ChangeOutcome,
    ClaimLost,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    StashAppend,
    StashMismatch,
    Unchanged,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

_decoder: Final = msgspec.json.Decoder(list[str] | dict[str, int] | int)

_log = structlog.get_logger()


class PostgresPort:
    """Shard states and timelines."""

    def __init__(self, pool: Pool, upkeep: Upkeep | None = None) -> None:
        self._pool = pool
        self._upkeep = upkeep

    async def change(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        if self._upkeep is not None:
            self._upkeep.wrote(sum(len(one.value) for one in change.sets))
        statement, arguments = _question(attempt, change)
        try:
            told = (await self._pool.ask(statement, arguments)).get_value(0, 0)
        except psycopg.Error as error:
            if error.sqlstate == INSERT_LOST:
                return _outcome((error.diag.message_primary or "").encode())
            if error.sqlstate == NO_TABLE:
                raise Corrupt(f"the stash has no table for {error.diag.message_primary}") from error
            raise fault_of(error, change.epoch) from error
        if told is None:
            _log.warning("transactions that do not end hold up the takeover", epoch=change.epoch)
            raise NotReached("transactions under way hold up the epoch")
        return _outcome(told)

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        arguments = (attempt.writer.encode(), bigint(attempt.number))
        kept = (await self._pool.ask_again(b"settle", arguments)).get_value(0, 0)
        outcome = None if kept is None else _outcome(kept)
        assert not isinstance(outcome, ClaimLost | StashMismatch), "only what was done is kept"
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


def _question(attempt: Attempt, change: Change) -> tuple[bytes, tuple[bytes | None, ...]]:
    """The statement that makes the change, and its arguments."""
    sets, applied, claimed = change.sets, change.applied, change.claimed
    tried = (bigint(change.epoch), attempt.writer.encode(), bigint(attempt.number))
    one = _only_set(change)
    if one is not None and one.expected_seqno is not None:
        return b"change_one", (
            *tried,
            one.shard_id.encode(),
            bigint(one.expected_seqno),
            one.value,
        )
    shards = (
        texts([one.shard_id for one in sets]),
        bigints([one.expected_seqno for one in sets]),
        byteas([one.value for one in sets]),
        texts([write.timeline.value for write in applied]),
        bigints([write.write_ts for write in applied]),
        None if claimed is None else claimed.timeline.value.encode(),
        None if claimed is None else bigint(claimed.write_ts),
    )
    if change.stash is None and not change.raises_epoch:
        return b"change", (*tried, TRUE if change.each else FALSE, *shards)
    assert not change.each, "the stash and the epoch go with all or nothing"
    raises = TRUE if change.raises_epoch else FALSE
    return b"change_with_stash", (*tried, *shards, *_stash_arguments(change.stash), raises)


def _only_set(change: Change) -> CompareAndSet | None:
    """The set, where a change is nothing else."""
    if len(change.sets) != 1 or change.applied or change.claimed is not None:
        return None
    return None if change.stash is not None or change.raises_epoch else change.sets[0]


def _stash_arguments(stash: StashAppend | None) -> tuple[bytes | None, ...]:
    rows = () if stash is None else stash.rows
    return (
        None if stash is None else bigint(stash.expected_upper),
        None if stash is None else bigint(stash.write_ts),
        None if stash is None else bigint(stash.since),
        texts([row.kind for row in rows]),
        texts([row.key for row in rows]),
        texts([row.value for row in rows]),
        bigints([row.diff for row in rows]),
    )


def _outcome(told: bytes) -> ChangeOutcome:
    if told == b"[]":
        return AllSet()
    lost = _decoder.decode(told)
    if isinstance(lost, dict):
        return StashMismatch(Timestamp(lost["upper"]))
    if isinstance(lost, int):
        return ClaimLost(Timestamp(lost))
    return SetMismatch(tuple(map(ShardId, lost)))
