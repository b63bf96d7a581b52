"""A view that looks at the time itself, or through one that does, is not taken for still."""

import pytest

from evertide.controller.storage import collection_of
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int); CREATE VIEW plain AS SELECT a FROM t;"
        "CREATE VIEW timely AS SELECT a FROM plain WHERE MZ_NOW() < a;"
        "CREATE VIEW above AS SELECT a + 1 AS a FROM timely;"
        "CREATE MATERIALIZED VIEW own AS SELECT a FROM t WHERE a > mz_now();"
        "CREATE MATERIALIZED VIEW through AS SELECT a FROM above;"
        "CREATE MATERIALIZED VIEW over_own AS SELECT a FROM own;"
        "CREATE MATERIALIZED VIEW never AS SELECT a FROM plain"
    )
    return database


@pytest.mark.parametrize(
    ("name", "by_time"), [("own", True), ("through", True), ("over_own", False), ("never", False)]
)
def test_by_the_text_of_what_it_looks_through(name: str, by_time: bool, database: Database) -> None:
    (item,) = [item for item in database.snapshot.items.values() if item.name == name]
    collection = collection_of(item, database.snapshot)
    assert collection is not None
    assert collection.derived is not None
    assert collection.derived.by_time is by_time
