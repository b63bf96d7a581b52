"""A large shard as one Arrow table: what lies in parts and in its state, added up."""

import itertools
import random
import string
from collections.abc import Sequence

import pyarrow.parquet as pq
import uvloop

from bench.figure import Figure, Runs, alternating_async
from bench.place import Place
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.store.file import FileBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, INT8, TEXT, TIMESTAMP
from evertide.vocab.timestamp import Timestamp, step_back
from evertide.vocab.update import Update

SHARD = ShardId("large")
DESC = relation_desc(
    ("id", INT8), ("amount", INT4), ("price", FLOAT8), ("name", TEXT), ("at", TIMESTAMP)
)
ROWS = 1_000_000
# Rows of one bulk insert; then as many small changes as would lie in a state at any time.
BULK_ROWS = 50_000
TAIL_APPENDS = 40
TAIL_ROWS = 10
REPETITIONS = 5
TARGET_ROWS_PER_S = 5_000_000.0
_LETTERS = string.ascii_lowercase + string.digits


def measure(place: Place) -> list[Figure]:
    """After inserts alone, and again after some rows were deleted."""
    return uvloop.run(_measure(place))


async def _measure(place: Place) -> list[Figure]:
    store = SqliteStore(place.directory / "snapshot-consensus.db")
    consensus, blob = (
        store.consensus(await store.raise_epoch()),
        FileBlob(place.directory / "large"),
    )
    async with PersistClient(consensus, blob) as client:
        await client.create_shard(SHARD)
        rows = _rows(place.scaled(ROWS))
        for start in range(0, len(rows), BULK_ROWS):
            await _append(client, [(row, 1) for row in rows[start : start + BULK_ROWS]])
        await client.maintenance.idle()
        fresh = iter(_rows(2 * TAIL_APPENDS * TAIL_ROWS, first=len(rows)))
        for _ in range(TAIL_APPENDS):
            await _append(client, [(row, 1) for row in itertools.islice(fresh, TAIL_ROWS)])
        figures = [await _figure(place, client, "snapshot into Arrow")]
        taken = iter(random.Random(7).sample(rows, TAIL_APPENDS * TAIL_ROWS))
        for _ in range(TAIL_APPENDS):
            inserted = [(row, 1) for row in itertools.islice(fresh, TAIL_ROWS)]
            deleted = [(row, -1) for row in itertools.islice(taken, TAIL_ROWS)]
            await _append(client, inserted + deleted)
        figures.append(await _figure(place, client, "  after deletions"))
    await store.close()
    return figures


async def _figure(place: Place, client: PersistClient, name: str) -> Figure:
    """Rows per second, beside Arrow's own reading of the same rows from one file."""
    as_of = step_back((await client.state(SHARD)).upper)
    table = await snapshot_table(client, SHARD, DESC, as_of)
    path = place.directory / "one.parquet"
    pq.write_table(table, path, compression="zstd", store_schema=False)

    async def taken() -> None:
        found = await snapshot_table(client, SHARD, DESC, as_of)
        assert found.num_rows == table.num_rows

    async def read() -> None:
        assert pq.read_table(path).num_rows == table.num_rows

    ours, theirs = await alternating_async(REPETITIONS, taken, read)
    return Figure(
        name=f"{name}, {table.num_rows:,} rows",
        unit="rows/s",
        runs=_rates(ours, table.num_rows),
        target=TARGET_ROWS_PER_S,
        baseline_name="Arrow reads one file",
        baseline=_rates(theirs, table.num_rows),
    )


def _rates(runs: Runs, rows: int) -> Runs:
    return Runs(tuple([rows * 1_000 / ms for ms in run] for run in runs.observed), higher=True)


def _rows(count: int, first: int = 0) -> list[Row]:
    rng = random.Random(first)
    return [
        (
            number,
            rng.randrange(1_000),
            rng.random() * 1_000,
            "".join(rng.choices(_LETTERS, k=rng.randint(8, 12))),
            1_700_000_000_000_000 + rng.randrange(10**13),
        )
        for number in range(first, first + count)
    ]


async def _append(client: PersistClient, changes: Sequence[tuple[Row, int]]) -> None:
    lower = (await client.state(SHARD)).upper
    updates = [Update(row, lower, diff) for row, diff in changes]
    upper = Timestamp(lower + 1)
    outcome = await client.compare_and_append(SHARD, DESC, updates, lower, upper)
    assert isinstance(outcome, Appended)
