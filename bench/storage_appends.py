"""What a shard costs after many small appends: `python -m bench.storage_appends --appends 1000000`.

Time moves by itself, 10 ms with each append, so that since follows at its usual distance. What is
asked: how large the state gets, which every append writes anew, how many batches and parts there
are, and how many bytes are written for each that was appended.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

from evertide.persist.coding.inline import encode_inline
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import (
    BlobPart,
    ShardChange,
    ShardState,
    encode_state,
    existing,
    set_hold,
)
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.store.protocol import (
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    CompareAndSet,
    Consensus,
    Head,
    SetOutcome,
    StashAppend,
    Store,
    Unchanged,
)
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.clock import ManualClock
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update
from tests.support.owned import OURS

SHARD = ShardId("appends")
DESC = relation_desc(("id", INT8), ("amount", INT8), ("note", TEXT))
STEP_MS = 10
HOT_ROWS = 100
KEPT_ROWS = 1_000
LARGE_TEXT = "a row of two kilobytes " * 90


@dataclass(frozen=True, slots=True)
class Case:
    """A history: the changes of each append, by its number; whether a hold stays at the start."""

    changes: Callable[[int], Sequence[tuple[tuple[int, int, str], int]]]
    held: bool = False


def _insert(number: int) -> list[tuple[tuple[int, int, str], int]]:
    return [((number, number % 7, f"note {number % 1_000}"), 1)]


def _update(number: int) -> list[tuple[tuple[int, int, str], int]]:
    row = number % HOT_ROWS
    fresh = ((row, number, "hot"), 1)
    before = number - HOT_ROWS
    return [fresh] if before < 0 else [((row, before, "hot"), -1), fresh]


def _insert_and_delete(number: int) -> list[tuple[tuple[int, int, str], int]]:
    changes = _insert(number)
    if number >= KEPT_ROWS:
        changes.append((_insert(number - KEPT_ROWS)[0][0], -1))
    return changes


def _insert_large(number: int) -> list[tuple[tuple[int, int, str], int]]:
    return [((number, number % 7, f"{number} {LARGE_TEXT}"), 1)]


CASES: Mapping[str, Case] = {
    "inserts": Case(_insert),
    "updates of 100 rows": Case(_update),
    "inserts and deletes": Case(_insert_and_delete),
    "rows of 2 KB": Case(_insert_large),
    "updates of 100 rows, held": Case(_update, held=True),
}


@dataclass(frozen=True, slots=True)
class AppendFigures:
    """What came of it."""

    appends: int
    appends_per_second: float
    state_bytes_max: int
    state_bytes_mean: int
    state_bytes_end: int
    batches_max: int
    batches_end: int
    parts_max: int
    parts_end: int
    stored_bytes_end: int
    appended_bytes: int
    merged_bytes: int

    @property
    def amplification(self) -> float:
        """Bytes that merges put into parts for each byte that was appended."""
        return self.merged_bytes / self.appended_bytes


class CountingBlob(MemoryBlob):
    """Knows how much was ever put."""

    def __init__(self) -> None:
        super().__init__()
        self.put_bytes = 0

    async def put(self, key: str, value: bytes) -> None:
        self.put_bytes += len(value)
        await super().put(key, value)


class CountingConsensus:
    """Knows how large the states were that went through it."""

    def __init__(self, inner: Consensus) -> None:
        self._inner = inner
        self.largest = self.total = self.count = 0

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return await self._inner.head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return await self._inner.heads(known_seqnos)

    async def shard_ids(self) -> list[ShardId]:
        return await self._inner.shard_ids()

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        self._count(sets)
        return await self._inner.compare_and_set_all(
            sets, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        self._count(sets)
        return await self._inner.compare_and_set_each(sets)

    def _count(self, sets: Sequence[CompareAndSet]) -> None:
        sizes = [len(change.value) for change in sets]
        self.largest = max(self.largest, *sizes)
        self.total += sum(sizes)
        self.count += len(sizes)


async def run_case(case: Case, appends: int, store: Store) -> AppendFigures:
    """Append, one after the other, while this process's own maintenance goes on."""
    clock, blob = ManualClock(), CountingBlob()
    consensus = CountingConsensus(store.consensus(await store.raise_epoch()))
    batches_max = parts_max = appended_bytes = 0
    async with PersistClient(consensus, blob, clock=clock, grace_s=0.0, owner=OURS) as client:
        await _create(client, held=case.held)
        upper = MIN_TS
        started = time.perf_counter()
        for number in range(appends):
            at = Timestamp(upper + STEP_MS - 1)
            updates = [Update(row, at, diff) for row, diff in case.changes(number)]
            appended_bytes += len(encode_inline(updates))
            done = await client.compare_and_append(SHARD, DESC, updates, upper, Timestamp(at + 1))
            assert isinstance(done, Appended), done
            upper = done.upper
            clock.advance(STEP_MS)
            state = await client.state(SHARD)
            batches_max = max(batches_max, len(state.batches))
            parts_max = max(parts_max, _parts(state))
        seconds = time.perf_counter() - started
        await client.maintenance.idle()
        state = await client.state(SHARD)
    return AppendFigures(
        appends=appends,
        appends_per_second=appends / seconds,
        state_bytes_max=consensus.largest,
        state_bytes_mean=consensus.total // consensus.count,
        state_bytes_end=len(encode_state(state)),
        batches_max=batches_max,
        batches_end=len(state.batches),
        parts_max=parts_max,
        parts_end=_parts(state),
        stored_bytes_end=sum(batch.size_bytes for batch in state.batches),
        appended_bytes=appended_bytes,
        merged_bytes=blob.put_bytes,
    )


async def _create(client: PersistClient, *, held: bool) -> None:
    await client.create_shard(SHARD)
    if held:
        hold = partial(set_hold, owner="far behind", hold_ts=MIN_TS)
        await client.machine.apply_all([ShardChange(SHARD, existing(hold))])


def _parts(state: ShardState) -> int:
    parts = (part for batch in state.batches for part in batch.parts)
    return sum(isinstance(part, BlobPart) for part in parts)


async def _main(options: argparse.Namespace) -> None:
    for name in options.case or CASES:
        with tempfile.TemporaryDirectory(dir=options.dir) as directory:
            store: Store = MemoryStore()
            if options.store == "sqlite":
                store = SqliteStore(Path(directory) / "consensus.db")
            figures = await run_case(CASES[name], options.appends, store)
            await store.close()
        print(f"{name}: amplification {figures.amplification:.2f}")
        for key, value in asdict(figures).items():
            print(f"    {key:<20}{value:>16,.0f}", flush=True)


def main(arguments: Sequence[str]) -> None:
    """Print the figures of each case."""
    parser = argparse.ArgumentParser(prog="python -m bench.storage_appends", description=__doc__)
    parser.add_argument("--appends", type=int, default=20_000)
    parser.add_argument("--case", action="append", choices=list(CASES))
    parser.add_argument("--store", choices=("memory", "sqlite"), default="memory")
    parser.add_argument("--dir", help="where SQLite's file lies")
    asyncio.run(_main(parser.parse_args(arguments)))


if __name__ == "__main__":
    main(sys.argv[1:])
