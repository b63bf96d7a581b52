"""Goal: no change of a name makes a text mean something else, or nothing: where the new name would
be taken for another relation of the text, or another's name for it, the change is refused.

Method: views over a catalog in memory in which names nearly meet; what a change says, and what the
views give after it. Where a text can be kept, by an alias or by full names, it has its rows.
"""

import pytest

from evertide.sql.plan.undrop.plans import UndropPlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database
from tests.sql.test_plan_replacements_fit_their_targets import finish_handover

# m1.t and d.m2.t; the first is moved to be m2.t, or its schema is renamed so.
OUTER = "SELECT m1.t.a FROM m1.t WHERE EXISTS (SELECT 1 FROM d.m2.t WHERE m1.t.a < 20)"
INNER = "SELECT m2.t.a FROM d.m2.t WHERE EXISTS (SELECT 1 FROM m1.t WHERE m2.t.a > 20)"
STAR = "SELECT x.a FROM d.m2.t AS y, LATERAL (SELECT m1.t.* FROM m1.t, d.m2.t) AS x"
# What can be told apart whatever the schemas are called.
CLEAR = (
    "SELECT t.a FROM m1.t WHERE EXISTS (SELECT 1 FROM d.m2.t AS u WHERE u.a > m1.t.a)",
    "SELECT materialize.m1.t.a FROM m1.t, d.m2.t WHERE d.m2.t.a > 20",
    "SELECT m1.t.a FROM m1.t, d.m2.other",
)


@pytest.fixture
def database() -> Database:
    database = new_database()
    database.run(
        "CREATE SCHEMA m1; CREATE DATABASE d; CREATE SCHEMA d.m2; CREATE SCHEMA free;"
        "CREATE TABLE m1.t (a int); CREATE TABLE d.m2.t (a int); CREATE TABLE d.m2.other (b int);"
        "INSERT INTO m1.t VALUES (10); INSERT INTO d.m2.t VALUES (30);"
        "INSERT INTO d.m2.other VALUES (1)"
    )
    return database


def refused(database: Database, change: str) -> str:
    with pytest.raises(SqlError) as raised:
        database.run(change)
    assert raised.value.code == "2BP01", raised.value.message
    return raised.value.message


@pytest.mark.parametrize(
    ("prepare", "change", "used"),
    [
        ("CREATE SCHEMA m2", "ALTER TABLE m1.t SET SCHEMA m2", "materialize.m1.t"),
        ("", "ALTER SCHEMA m1 RENAME TO m2", "materialize.m1"),
        ("CREATE SCHEMA m2", "ALTER SCHEMA m2 SWAP WITH m1", "materialize.m1"),
    ],
)
def test_a_place_whose_name_another_database_has_in_the_text(
    prepare: str, change: str, used: str, database: Database
) -> None:
    database.run(prepare)
    what = "item named t" if used.endswith(".t") else "schema named m1"
    for kind in ("VIEW", "MATERIALIZED VIEW"):
        for query in (OUTER, INNER, STAR):
            database.run(f"CREATE {kind} w AS {query}")
            assert refused(database, change) == (
                f"renaming conflict: in materialize.public.w, which uses {used}, ambiguous"
                f" reference to {what}"
            )
            database.run(f"DROP {kind} w")
    for number, query in enumerate(CLEAR):
        database.run(f"CREATE VIEW w{number} AS {query}")
    before = [database.query(f"TABLE w{number}") for number in range(len(CLEAR))]
    assert before == [[(10,)]] * len(CLEAR)
    database.run(change)
    assert [database.query(f"TABLE w{number}") for number in range(len(CLEAR))] == before


def test_the_other_database_s_relation_may_not_come_near_either(database: Database) -> None:
    database.run(f"CREATE SCHEMA d.m1; CREATE VIEW w AS {OUTER}")
    assert "which uses d.m2.t, ambiguous" in refused(database, "ALTER TABLE d.m2.t SET SCHEMA m1")
    database.run("DROP SCHEMA d.m1")
    assert "which uses d.m2, ambiguous" in refused(database, "ALTER SCHEMA d.m2 RENAME TO m1")
    database.run("ALTER TABLE d.m2.t SET SCHEMA public")
    assert database.query("TABLE w") == [(10,)]


def test_a_table_s_new_name_is_not_taken_for_another(database: Database) -> None:
    database.run(
        "CREATE TABLE u (a int); INSERT INTO u VALUES (2);"
        "CREATE VIEW captured AS SELECT m1.t.a FROM m1.t"
        " WHERE EXISTS (SELECT 1 FROM u AS t WHERE m1.t.a = 10)"
    )
    assert "which uses materialize.m1.t" in refused(database, "ALTER TABLE m1.t RENAME TO n")
    assert database.query("TABLE captured") == [(10,)]
    database.run("DROP VIEW captured")
    kept = {
        "function": "SELECT t.a FROM m1.t, generate_series(1, 1)",
        "alias": "SELECT t.a FROM m1.t, u AS generate_series",
        "list": "WITH generate_series AS (TABLE u) SELECT m1.t.a FROM m1.t, generate_series",
        "row": "SELECT t.a FROM m1.t, (SELECT 1 AS generate_series) AS s WHERE t IS NOT NULL",
        "aliased": "SELECT t.a - 20 AS a FROM d.m2.t, m1.t AS x",
    }
    for name, query in kept.items():
        database.run(f"CREATE VIEW {name}_ AS {query}")
    database.run("ALTER TABLE m1.t RENAME TO generate_series")
    for name in kept:
        assert database.query(f"TABLE {name}_") == [(10,)], name


def test_a_view_s_own_name_is_not_that_of_what_it_reads(database: Database) -> None:
    database.run("CREATE VIEW t AS SELECT t.a FROM m1.t; ALTER VIEW t RENAME TO v")
    assert database.query("TABLE v") == [(10,)]


# Which of two m1.t is meant, the place in the text alone says.
EITHER = (
    "SELECT 1 AS one FROM d.m1.t, above"
    " WHERE EXISTS (SELECT FROM materialize.m1.t WHERE m1.t.a = 10)"
)


def test_what_comes_back_means_what_it_meant(database: Database) -> None:
    """Under names of today it has the full ones; what those do not tell stays dropped."""
    database.run(
        f"CREATE VIEW w AS {OUTER}; CREATE SCHEMA d.m1; CREATE TABLE d.m1.t (a int);"
        f"CREATE TABLE above (b int); CREATE VIEW alone AS {EITHER}; CREATE VIEW along AS {EITHER}"
    )
    database.run("DROP VIEW w; DROP VIEW alone; DROP TABLE above CASCADE")
    database.run("CREATE SCHEMA m2; ALTER TABLE m1.t SET SCHEMA m2; UNDROP VIEW w")
    assert database.query("TABLE w") == [(10,)]
    plan = database.plan("UNDROP TABLE above")
    assert isinstance(plan, UndropPlan)
    assert [one.message.partition(": ")[::2] for one in plan.notices] == [
        ('view "along" stays dropped', f"renaming conflict: {MEANT}")
    ]
    database.run("UNDROP TABLE above")
    message = refused(database, "UNDROP VIEW alone")
    assert message == f'cannot undrop view "alone": renaming conflict: {MEANT}'
    # An alias is one of a kind in its FROM.
    two = "CREATE VIEW two AS SELECT 1 AS one FROM m2.t, d.m2.t"
    database.run(f"DROP VIEW w; {two}; DROP VIEW two")
    database.run("ALTER TABLE m2.t RENAME TO n")
    message = refused(database, "UNDROP VIEW two")
    assert message == f'cannot undrop view "two": renaming conflict: {MEANT}'


MEANT = "what it reads has other names now, and a column in it would be ambiguous"


@pytest.mark.parametrize("query", [OUTER, EITHER])
def test_an_earlier_version_means_what_it_meant(query: str, database: Database) -> None:
    query = query.replace("1 AS one", "above.a")
    database.run(
        "CREATE SCHEMA m2; CREATE SCHEMA d.m1; CREATE TABLE d.m1.t (a int);"
        f"CREATE TABLE above (a int); CREATE MATERIALIZED VIEW w AS {query};"
        "CREATE MATERIALIZED VIEW r REPLACING w AS SELECT a FROM above"
    )
    database.run("ALTER MATERIALIZED VIEW w APPLY REPLACEMENT r")
    finish_handover(database, "w")
    database.run("ALTER TABLE m1.t SET SCHEMA m2")
    restore = "ALTER MATERIALIZED VIEW w RESTORE VERSION 1"
    if "above" in query:
        assert refused(database, restore).startswith("renaming conflict: in version 1 of ")
    else:
        database.run(restore)
        assert database.query("TABLE w_version_1") == [(10,)]
