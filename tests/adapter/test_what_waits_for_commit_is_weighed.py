"""Rows that wait for COMMIT are counted meanwhile, and columns before they are made rows."""

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from evertide.adapter.session import Login, open_session
from evertide.adapter.temporary.bounds import weigh
from evertide.adapter.temporary.tables import SESSION_BYTES, weight_of
from evertide.adapter.transaction import Writing
from evertide.adapter.writing.write import write_change
from evertide.persist.txn import TableWrite
from evertide.vocab.datum import Row
from evertide.vocab.errors import InsufficientResources
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import INT4

DESC = RelationDesc((ColumnDesc("a", INT4, True),))
ROWS: list[tuple[Row, int]] = [((i,), 1) for i in range(5)]


def columns(rows: int) -> TableWrite:
    table = pa.table({"c0": pa.array(range(rows), pa.int32()), "d": pa.repeat(1, rows)})
    return TableWrite(DESC, (), (table,))


async def test_rows_that_come_are_weighed() -> None:
    assert await weigh(TableWrite(DESC, ROWS)) == weight_of(ROWS)
    assert await weigh(TableWrite(DESC, [(row, -1) for row, _ in ROWS])) == 0
    assert await weigh(columns(5)) > 5 * 72


def test_what_is_taken_back_is_not_counted() -> None:
    first, second = ShardId("first"), ShardId("second")
    writing, write = Writing(), TableWrite(DESC, ROWS)
    writing.add(first, "first", write, 10)
    writing.add(first, "first", write, 100)
    writing.add(second, "second", write, 1000)
    assert writing.collected == 1110
    writing.go_back({first: 1})
    assert writing.collected == 10
    assert writing.changes == {first: [write]}


async def test_columns_are_refused_before_they_are_rows() -> None:
    many = columns(SESSION_BYTES // 72)
    with pytest.raises(InsufficientResources, match="limited to"):
        await weigh(many)
    # Nothing else is asked for: neither the table's rows nor the environment.
    table: Any = SimpleNamespace(shard_id=None)
    env: Any = None
    with pytest.raises(InsufficientResources, match="limited to"):
        await write_change(table, many, open_session({}, {}, Login()), env)
