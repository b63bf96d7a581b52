"""Goal: an adapter that joins refuses and accepts the same sizes as those of the server it joins.

Method: a real store of a generation with a size table of its own; then the next generation.
"""

from decimal import Decimal
from pathlib import Path

from evertide.cli.runtime import announce_sizes, find_sizes
from evertide.controller.sizes import Size
from evertide.persist.store.sqlite import SqliteStore


async def test_the_table_of_the_newest_generation_is_found(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "consensus.db")
    try:
        assert await find_sizes(store) == {}
        epoch = await store.raise_epoch()
        far = Size(master="spark://a:1", cores=8, memory_mb=700, credits_per_hour=Decimal("1.5"))
        await announce_sizes(store, epoch, {"far": far, "mine": Size()})
        assert await find_sizes(store) == {"far": far, "mine": Size()}
        await announce_sizes(store, await store.raise_epoch(), {})
        assert await find_sizes(store) == {}
    finally:
        await store.close()
