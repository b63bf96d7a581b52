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
# Beside so large a value its name and mark fit on the same page.
ONE_PAGE_BYTES = 3_900
# A row that outgrows its room is moved, all of it.
MOVES = 1 + COMMITS * len(APPENDED) // 1_000


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("size", [0, 2_000, 20_000, 60_000])
async def test_a_commit_writes_few_pages(tmp_path: Path, size: int, together: bool) -> None:
    """The one where the row begins, and the one where it ends."""
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
        if together:
            assert await consensus.compare_and_set_all([change]) == AllSet()
        else:
            assert await consensus.compare_and_set_each([change]) == AllSet()
        sizes.append(log.stat().st_size)
    assert await consensus.head(SHARD) == Head(COMMITS + 1, value)
    await store.close()
    pages = [(after - before) // FRAME_BYTES for before, after in pairwise(sizes)]
    assert min(pages) > 0, "every commit was logged"
    limits = [
        1 if size + number * len(APPENDED) <= ONE_PAGE_BYTES else 2
        for number in range(1, COMMITS + 1)
    ]
    more = [count > limit for count, limit in zip(pages, limits, strict=True)]
    assert sum(more) <= MOVES, pages
