"""Goal: states that are read together are those that each would be by itself, however many.

Method: shards that are there, known, older than known or missing, in numbers on both sides of what
one statement asks for; and a writer between two reads of them.
"""

from pathlib import Path

import pytest

from evertide.persist.store.protocol import CompareAndSet, Head, Unchanged
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId


@pytest.mark.parametrize("count", [0, 1, 2, 3, 15, 16, 17, 40])
async def test_together_as_one_by_one(tmp_path: Path, count: int) -> None:
    store = SqliteStore(tmp_path / "c.db")
    consensus = store.consensus(await store.raise_epoch())
    names = [ShardId(f"s{n}") for n in range(count)]
    there = [name for n, name in enumerate(names) if n % 3 != 2]
    await consensus.compare_and_set_all([CompareAndSet(s, None, s.encode()) for s in there])
    again = there[::2]
    await consensus.compare_and_set_all([CompareAndSet(s, 1, b"newer") for s in again])
    for known in (None, 1, 2):
        alone = {name: await consensus.head(name, known) for name in names}
        assert await consensus.heads(dict.fromkeys(names, known)) == alone
    if count > 3:
        mixed = {names[0]: 2, names[1]: 1, names[2]: 1, names[3]: None}
        assert await consensus.heads(mixed) == {
            names[0]: Unchanged(),
            names[1]: Unchanged(),
            names[2]: None,
            names[3]: await consensus.head(names[3]),
        }
        assert isinstance(await consensus.head(names[3]), Head)
    await store.close()
