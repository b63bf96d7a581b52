"""Rows of temporary tables are what was written, weighed by what changed, off the event loop.

Method: random writes to one table beside a plain count of its rows; values that tell on which
thread they were looked at.
"""

import random
import threading
from collections import Counter
from typing import NamedTuple

import pytest

from evertide.adapter.session import Login, open_session
from evertide.adapter.temporary.objects import Held, Temporary
from evertide.adapter.temporary.tables import HeldTable, weight_of
from evertide.persist.prepare import THREAD_ROWS
from evertide.persist.txn import TableWrite
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import ColumnDesc, RelationDesc
from evertide.vocab.sql_type import FLOAT8, INT4, TEXT

SHARD = ShardId("temporary")
NUMBERS = RelationDesc((ColumnDesc("a", INT4, True), ColumnDesc("b", FLOAT8, True)))
TEXTS = RelationDesc((ColumnDesc("a", TEXT, True),))
VALUES = (None, 0.0, -0.0, 1.5, float("nan"))


def shown(row: Row) -> str:
    return repr(row)


@pytest.mark.parametrize("seed", range(30))
def test_a_table_has_what_was_written_and_weighs_what_it_has(seed: int) -> None:
    chosen = random.Random(seed)
    table, model = HeldTable(NUMBERS), Counter[str]()
    for _ in range(60):
        rows: list[tuple[Row, int]] = []
        for _ in range(chosen.choice((1, 2, 20))):
            new: Row = (chosen.randrange(3), chosen.choice(VALUES))
            diff = chosen.choice((1, 1, 2, -model[shown(new)])) or 1
            model[shown(new)] += diff
            rows.append((new, diff))
        table = table.after(TableWrite(NUMBERS, rows))
        found = Counter[str]()
        for row, count in table.rows:
            assert count > 0
            found[shown(row)] += count
        assert found == +model
        assert table.weight == weight_of(table.rows)
        assert table.count == len(table.rows)


class Watched(NamedTuple):
    """A session's tables with one that has rows, and where those were hashed."""

    temporary: Temporary
    rows: list[Row]
    threads: set[int]


def watched(count: int) -> Watched:
    threads: set[int] = set()

    class Text(str):
        __slots__ = ()

        def __hash__(self) -> int:
            threads.add(threading.get_ident())
            return str.__hash__(self)

    rows: list[Row] = [(Text(i),) for i in range(count)]
    session = open_session({}, {}, Login())
    table = HeldTable(TEXTS).after(TableWrite(TEXTS, [(row, 1) for row in rows]))
    session.temporary.take(Held(tables={SHARD: table}))
    return Watched(session.temporary, rows, threads)


@pytest.mark.parametrize(("count", "on_the_loop"), [(10, True), (THREAD_ROWS + 1, False)])
async def test_rows_are_looked_for_on_a_thread_where_they_are_many(
    count: int, on_the_loop: bool
) -> None:
    temporary, rows, threads = watched(count)
    held = await temporary.written({SHARD: TableWrite(TEXTS, [(rows[3], -1)])})
    assert held.tables[SHARD].count == count - 1
    assert threads
    assert (threading.get_ident() in threads) is on_the_loop
