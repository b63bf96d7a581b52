"""Stores in the memory of one process, for tests and simulations."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evertide.persist.faults import BlobMissing, Corrupt, Fenced
from evertide.persist.store.memory_stash import MemoryStash
from evertide.persist.store.protocol import (
    OWNER_BYTES,
    OWNER_KEY,
    AllSet,
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    ClaimLost,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    StashAppend,
    StashPage,
    Unchanged,
    check_distinct,
)
from evertide.persist.store.stash import check_append
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

_UNUSED_TIMELINE = OracleRow(read_ts=MIN_TS, write_ts=MIN_TS)


@dataclass(slots=True)
class _Cells:
    """What all handles of one store share."""

    epoch: Epoch
    heads: dict[ShardId, Head] = field(default_factory=dict)
    timelines: dict[Timeline, OracleRow] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)
    stash: MemoryStash = field(default_factory=MemoryStash)

    def check(self, epoch: Epoch) -> None:
        if epoch != self.epoch:
            raise Fenced(epoch, self.epoch)

    def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        row = self.timelines.get(timeline, _UNUSED_TIMELINE)
        self.timelines[timeline] = OracleRow(
            max(row.read_ts, write_ts), max(row.write_ts, write_ts)
        )

    def matches(self, change: CompareAndSet) -> bool:
        head = self.heads.get(change.shard_id)
        return (None if head is None else head.seqno) == change.expected_seqno


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreContents:
    """All that a store held at one moment."""

    epoch: Epoch
    heads: Mapping[ShardId, Head]
    timelines: Mapping[Timeline, OracleRow]
    notes: Mapping[str, str]
    stash: StashPage


class MemoryStore:
    """Each call is one step of the event loop, so each is atomic.

    Begins empty, or as a copy of another store: what is done to the copy leaves that one alone.
    """

    def __init__(self, contents: StoreContents | None = None) -> None:
        self._cells = _Cells(Epoch(0)) if contents is None else _copied(contents)

    async def raise_epoch(self) -> Epoch:
        self._cells.epoch = Epoch(self._cells.epoch + 1)
        return self._cells.epoch

    async def current_epoch(self) -> Epoch:
        return self._cells.epoch

    def consensus(self, epoch: Epoch) -> "MemoryConsensus":
        return MemoryConsensus(self._cells, epoch)

    def oracle_rows(self, epoch: Epoch) -> "MemoryOracleRows":
        return MemoryOracleRows(self._cells, epoch)

    def stash(self) -> MemoryStash:
        return self._cells.stash

    async def find_note(self, name: str) -> str | None:
        return self._cells.notes.get(name)

    async def note(self, name: str, text: str) -> str:
        return self._cells.notes.setdefault(name, text)

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        self._cells.check(epoch)
        self._cells.notes[name] = text
        if raises_epoch:
            self._cells.epoch = Epoch(epoch + 1)

    async def close(self) -> None:
        pass


def _copied(contents: StoreContents) -> _Cells:
    return _Cells(
        contents.epoch,
        dict(contents.heads),
        dict(contents.timelines),
        dict(contents.notes),
        MemoryStash(contents.stash),
    )


class MemoryConsensus:
    """Shard states under one epoch."""

    def __init__(self, cells: _Cells, epoch: Epoch) -> None:
        self._cells = cells
        self._epoch = epoch

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return self._head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return {shard_id: self._head(shard_id, known) for shard_id, known in known_seqnos.items()}

    async def shard_ids(self) -> list[ShardId]:
        return sorted(self._cells.heads)

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        check_distinct(sets)
        if stash is not None:
            check_append(stash)
        self._cells.check(self._epoch)
        in_the_way = self._in_the_way(sets, claimed, stash)
        if in_the_way is not None:
            return in_the_way
        for change in sets:
            self._cells.heads[change.shard_id] = Head(change.next_seqno, change.value)
        if stash is not None:
            self._cells.stash.append(stash)
        if claimed is not None:
            self._cells.apply(claimed.timeline, claimed.write_ts)
        for write in applied:
            self._cells.apply(write.timeline, write.write_ts)
        if raises_epoch:
            self._cells.epoch = Epoch(self._epoch + 1)
        return AllSet()

    def _in_the_way(
        self,
        sets: Sequence[CompareAndSet],
        claimed: ClaimedWrite | None,
        stash: StashAppend | None,
    ) -> ChangeOutcome | None:
        if stash is not None and (mismatch := self._cells.stash.in_the_way(stash)):
            return mismatch
        mismatched = tuple(s.shard_id for s in sets if not self._cells.matches(s))
        if mismatched:
            return SetMismatch(mismatched)
        if claimed is not None:
            last = self._cells.timelines.get(claimed.timeline, _UNUSED_TIMELINE).write_ts
            if last >= claimed.write_ts:
                return ClaimLost(last)
        return None

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        check_distinct(sets)
        self._cells.check(self._epoch)
        mismatched = tuple(s.shard_id for s in sets if not self._cells.matches(s))
        for change in sets:
            if change.shard_id not in mismatched:
                self._cells.heads[change.shard_id] = Head(change.next_seqno, change.value)
        return SetMismatch(mismatched) if mismatched else AllSet()

    def _head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        head = self._cells.heads.get(shard_id)
        return Unchanged() if head is not None and head.seqno == known_seqno else head


class MemoryOracleRows:
    """Timelines under one epoch."""

    def __init__(self, cells: _Cells, epoch: Epoch) -> None:
        self._cells = cells
        self._epoch = epoch

    async def read(self, timeline: Timeline) -> OracleRow:
        self._cells.check(self._epoch)
        return self._cells.timelines.get(timeline, _UNUSED_TIMELINE)

    async def allocate(self, timeline: Timeline, at_least: Timestamp, count: int = 1) -> Timestamp:
        self._cells.check(self._epoch)
        row = self._cells.timelines.get(timeline, _UNUSED_TIMELINE)
        first = max(Timestamp(row.write_ts + 1), at_least)
        self._cells.timelines[timeline] = OracleRow(row.read_ts, Timestamp(first + count - 1))
        return first

    async def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        self._cells.check(self._epoch)
        self._cells.apply(timeline, write_ts)


class MemoryBlob:
    """Large values in a dictionary."""

    def __init__(self) -> None:
        self._values: dict[str, bytes] = {}

    async def read_owner(self) -> bytes | None:
        value = self._values.get(OWNER_KEY)
        if value is not None and len(value) > OWNER_BYTES:
            raise Corrupt("it is too long", key=OWNER_KEY)
        return value

    async def write_owner(self, value: bytes) -> None:
        self._values[OWNER_KEY] = value

    async def put(self, key: str, value: bytes) -> None:
        self._values[key] = value

    async def get(self, key: str) -> bytes:
        try:
            return self._values[key]
        except KeyError:
            raise BlobMissing(key) from None

    async def delete(self, key: str) -> None:
        self._values.pop(key, None)

    async def keys(self, prefix: str = "") -> list[str]:
        return sorted(key for key in self._values if key.startswith(prefix))

    async def remove_unfinished(self, before_ms: int) -> int:  # noqa: ARG002 - there is nothing
        return 0

    def local_path(self, key: str) -> Path | None:  # noqa: ARG002 - nothing lies in a file
        return None

    @asynccontextmanager
    async def localize(
        self,
        keys: Sequence[str],  # noqa: ARG002 - nothing lies in a file
    ) -> AsyncIterator[Mapping[str, Path]]:
        yield {}
