"""What may make many rows of few is not computed where every session waits for it."""

import threading
from collections.abc import Iterator

import pytest

from evertide.adapter.reading.question import Read
from evertide.adapter.reading.read import THREAD_ROWS, compute_rows
from evertide.expr.functions.row import ScalarFunction, TableFunction
from evertide.expr.relation import Constant, Finishing, FlatMap, Map, Relation
from evertide.expr.scalar import Call
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import INT4, INT8
from tests.sql.database import new_database

HERE = ScalarFunction("here", (), INT8, threading.get_ident)


def _rows_here() -> Iterator[Row]:
    yield (threading.get_ident(),)


async def computed(relation: Relation) -> list[Row]:
    read = Read(relation, Finishing(), new_database().snapshot, None, {})
    return await compute_rows(read, {})


async def test_a_table_function_runs_on_a_thread() -> None:
    function = TableFunction("here", (), (("here", INT8),), _rows_here)
    (found,) = await computed(FlatMap(Constant((((), 1),), ()), function, ()))
    assert found != (threading.get_ident(),)


@pytest.mark.parametrize(("rows", "on_the_loop"), [(1, True), (THREAD_ROWS + 1, False)])
async def test_constants_count_as_rows_that_are_read(rows: int, on_the_loop: bool) -> None:
    constant = Constant(tuple(((i,), 1) for i in range(rows)), (INT4,))
    found = await computed(Map(constant, (Call(HERE, (), INT8),)))
    assert {one == threading.get_ident() for _, one in found} == {on_the_loop}
