"""Goal: what columns find is what the condition says of each row.

Method: plans are made and images searched without a server, and what a search finds is compared
with the condition asked about each row.
"""

import pytest

from evertide.adapter.reading.leaves import ShardLeaf
from evertide.adapter.reading.selection import search, to_rows
from evertide.expr.compile import compile_predicates
from evertide.expr.relation import Filter
from evertide.expr.traverse import walk
from evertide.persist.coding.parts import columns_to_table
from evertide.persist.coding.updates import UpdateColumns
from evertide.persist.image import make_image
from evertide.vocab.datum import Row
from evertide.vocab.errors import DivisionByZero
from evertide.vocab.timestamp import Timestamp
from tests.adapter.test_a_read_costs_the_same_in_a_large_catalog import read
from tests.sql.database import Database, new_database

ROWS: list[Row] = [
    (number if number % 5 else None, number % 4, f"name {number % 3}") for number in range(50)
]


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE plain (a bigint, b int, c text)")
    return database


LIST = ", ".join(map(str, range(0, 80, 2)))
CONDITIONS = [
    f"a IN ({LIST})",
    f"a NOT IN ({LIST})",
    f"a IN ({LIST}) AND b = 2",
    f"a IN ({LIST}) AND c IN ('name 1', 'name 7')",
    f"b IN ({LIST}) AND c = 'name 0'",
    "a BETWEEN 10 AND 20 OR c = 'name 2' AND b > 1",
    "a IS NULL",
    f"a IN ({LIST}) AND b * 2 > 3",
    "c LIKE '%2'",
    "a = 7 AND c <> 'name 0'",
    "a = 7 OR a = 9 OR a = NULL",
    "a IN (7, 9, 11, NULL) AND (b = 1 OR b = 3)",
]


@pytest.mark.parametrize("where", CONDITIONS)
def test_columns_find_what_rows_tell(where: str, database: Database) -> None:
    (leaf,) = read(database, f"SELECT * FROM plain WHERE {where}").leaves.values()
    if not isinstance(leaf, ShardLeaf):
        pytest.fail("a table without an index is read from its shard")
    desc = leaf.collection.desc
    count = len(ROWS)
    table = columns_to_table(desc, UpdateColumns(ROWS, [Timestamp(1)] * count, [1] * count))
    image = make_image(table, Timestamp(1), None)
    assert image is not None
    found = search(image, leaf.predicates, desc.types)
    assert found is not None
    assert found.exact
    rows, counts = found.table()
    holds = compile_predicates(leaf.predicates)
    assert set(to_rows(rows, desc.types)) == {row for row in ROWS if holds(row)}
    assert set(counts.tolist()) <= {1}
    assert found.rows(desc.types) == to_rows(rows, desc.types)
    assert found.counts == counts.tolist()


def test_a_row_with_null_in_the_key_is_not_passed_over_where_it_would_fail(
    database: Database,
) -> None:
    """NULL AND an error is an error, so such a row must come before the rows' own judge."""
    where = f"a IN ({LIST}) AND 1 / b > 0"
    planned = read(database, f"SELECT * FROM plain WHERE {where}")
    (leaf,) = planned.leaves.values()
    assert isinstance(leaf, ShardLeaf)
    desc = leaf.collection.desc
    filters = [node for node in walk(planned.relation) if isinstance(node, Filter)]
    predicates = [predicate for node in filters for predicate in node.predicates]
    rows: list[Row] = [(None, 0, "x"), (2, 1, "y"), (3, 1, "z")]
    table = columns_to_table(desc, UpdateColumns(rows, [Timestamp(1)] * 3, [1] * 3))
    image = make_image(table, Timestamp(1), None)
    assert image is not None
    with pytest.raises(DivisionByZero):
        compile_predicates(predicates)(rows[0])
    assert search(image, predicates, desc.types) is None, "rows are asked one by one"
    without = make_image(table.slice(1), Timestamp(1), None)
    assert without is not None
    found = search(without, predicates, desc.types)
    assert found is not None
    assert to_rows(found.table()[0], desc.types) == [(2, 1, "y")]
