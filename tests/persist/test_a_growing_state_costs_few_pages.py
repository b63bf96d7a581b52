"""Goal: what a small append writes does not grow with the state that it is added to.

Method: count the pages in SQLite's log, which begins anew with the file and is not cut meanwhile.
"""

from itertools import pairwise
from pathlib import Path

import pytest

from evertide.persist.store.protocol import AllSet, CompareAndSet, Head
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId

SHARD = ShardId("s1")
COMMITS = 100
APPENDED = b"forty bytes that an append adds to them."
FRAME_BYTES = 24 + 4096
# The page where the row begins, the one where it ends, and that of the writer's own number.
PAGES = 3
# A row that outgrows its room is moved, all of it.
MOVES = 1 + COMMITS * len(APPENDED) // 1_000


@pytest.mark.parametrize("size", [0, 2_000, 20_000, 60_000])
async def test_a_commit_writes_few_pages(tmp_path: Path, size: int) -> None:
    path = tmp_path / "consensus.db"
    store = SqliteStore(path)
    consensus = store.consensus(await store.raise_epoch())
    value = b"\x01" * size
    await consensus.compare_and_set_each([CompareAndSet(SHARD, None, value)])
    log = path.with_name(f"{path.name}-wal")
    sizes = [log.stat().st_size]
    for seqno in range(1, COMMITS + 1):
        value += APPENDED
        change = CompareAndSet(SHARD, seqno, value)
        assert await consensus.compare_and_set_each([change]) == AllSet()
        sizes.append(log.stat().st_size)
    assert await consensus.head(SHARD) == Head(COMMITS + 1, value)
    await store.close()
    pages = [(after - before) // FRAME_BYTES for before, after in pairwise(sizes)]
    assert min(pages) > 0, "every commit was logged"
    assert sum(count > PAGES for count in pages) <= MOVES, pages
