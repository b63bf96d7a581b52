"""Goal: a view that is still being built is waited for before it is decided how to read it: nothing
of it is there yet, and by then it may be too large for the interpreter.

Method: a storage that holds nothing until somebody waits for it, and cannot be read as a whole.
"""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from evertide.adapter.reading import read as reading
from evertide.persist.coding.parts import columns_to_table
from evertide.persist.coding.updates import UpdateColumns
from evertide.persist.image import TableImage, make_image
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp
from tests.adapter.test_a_read_costs_the_same_in_a_large_catalog import read
from tests.sql.database import new_database

AS_OF = Timestamp(7)
ROWS = 600


class Building:
    """A collection whose rows come while it is waited for; offered as a table, which no replica is
    asked for."""

    def __init__(self, desc: RelationDesc) -> None:
        self._desc = desc
        self.filled = False
        self.following = self.columns = self.near = self

    async def is_unfilled(self, collection: object) -> bool:
        del collection
        return not self.filled

    async def wait_for_upper(self, collection: object, beyond: Timestamp) -> Timestamp:
        del collection
        self.filled = True
        return Timestamp(beyond + 1)

    async def has_records(self, collection: object, least: int) -> bool:
        del collection
        return self.filled and least <= ROWS

    async def image(self, collection: object, as_of: Timestamp) -> TableImage | None:
        del collection
        rows = [(number, f"name {number}") for number in range(ROWS)]
        columns = UpdateColumns(rows, [as_of] * ROWS, [1] * ROWS)
        return make_image(columns_to_table(self._desc, columns), as_of, None)

    async def records(self, collection: object) -> int:
        del collection
        return ROWS if self.filled else 0

    async def decoded_bytes(self, collection: object) -> int:
        return 40 * await self.records(collection)


async def answered() -> reading.Found:
    database = new_database()
    database.run("CREATE TABLE plain (a bigint, b text)")
    made = read(database, "SELECT * FROM plain WHERE a = 5")
    (leaf,) = made.shard_leaves
    env = cast(Any, SimpleNamespace(storage=Building(leaf.collection.desc)))
    return await reading._finish(made, env, cast(Any, None), AS_OF)


async def test_its_rows_are_found_by_columns() -> None:
    assert await answered() == [(5, "name 5")]


async def test_not_waiting_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def hurry(*_: object) -> None:
        pass

    monkeypatch.setattr(reading, "_wait_for_views", hurry)
    with pytest.raises(AttributeError):  # it would be read as a whole
        await answered()
