"""Goal: a session's temporary view reads on what other sessions move or rename; if its text could
not tell any more what it meant, it is gone.

Method: views made in a catalog in memory and taken out of it as a session's own, put over what the
catalog is after a change.
"""

import pytest

from evertide.adapter.temporary.objects import Temporary
from evertide.catalog.objects import CatalogUpdate
from evertide.sql import views
from tests.sql.database import Database, new_database

QUERIES = {
    "qualified": "SELECT a1.o.a, materialize.a1.o.a AS b, o.a AS c FROM a1.o",
    "starred": "SELECT a1.o.* FROM a1.o",
    "beside": "SELECT a1.o.a FROM a1.o WHERE EXISTS (SELECT 1 FROM d.a2.o WHERE a1.o.a < 20)",
    "either": "SELECT 1 AS a FROM d.a1.o WHERE EXISTS (SELECT FROM materialize.a1.o"
    " WHERE a1.o.a = 1)",
}


@pytest.mark.parametrize(
    "change",
    ["ALTER TABLE a1.o SET SCHEMA a2", "ALTER SCHEMA a1 RENAME TO a3"],
)
def test_views_read_what_they_read(change: str) -> None:
    database = new_database()
    database.run(
        "CREATE SCHEMA a1; CREATE SCHEMA a2; CREATE DATABASE d; CREATE SCHEMA d.a1;"
        "CREATE SCHEMA d.a2; CREATE TABLE a1.o (a int); CREATE TABLE d.a1.o (a int);"
        "CREATE TABLE d.a2.o (a int)"
    )
    temporary, meant = Temporary(), {}
    for name, query in QUERIES.items():
        database.run(f"CREATE VIEW {name} AS {query}")
        found = next(one for one in database.snapshot.items.values() if one.name == name)
        meant[name] = views.planned_definition(found, database.snapshot)
        temporary.apply([CatalogUpdate(found, 1)], database.snapshot)
    database.run(f"DROP VIEW {', '.join(QUERIES)}")
    database.run(change)
    if "TABLE" in change:
        database.run("CREATE TABLE a1.o (a int)")  # which is not the one that was meant
    assert planned(temporary, database) == {k: v for k, v in meant.items() if k != "either"}


def planned(temporary: Temporary, database: Database) -> dict[str, object]:
    over = temporary.over(database.snapshot)
    own = [one for one in over.items.values() if one.name in QUERIES]
    views._known.clear()  # what a text meant before is no answer
    return {one.name: views.planned_definition(one, over) for one in own}
