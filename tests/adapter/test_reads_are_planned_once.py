"""What of a read is worked out once is used again only while it is true."""

from evertide.adapter.reading import plans as read_plans
from evertide.adapter.reading.plans import ReadPlans
from evertide.expr.relation import Relation
from evertide.sql.plan.plans import SelectPlan
from tests.sql.database import Database, new_database


def relation_of(database: Database, sql: str) -> Relation:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    return plan.relation


def test_the_same_relation_is_planned_once() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text)")
    relation = relation_of(database, "SELECT b FROM t WHERE a = 1")
    plans = ReadPlans()
    first = plans.plan(relation, database.snapshot, None)
    assert plans.plan(relation, database.snapshot, None) is first
    assert plans.plan(relation_of(database, "SELECT b FROM t WHERE a = 1"),
                      database.snapshot, None) is not first  # fmt: skip


def test_a_view_that_changed_its_meaning_is_put_in_anew() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int)")
    relation = relation_of(database, "SELECT a FROM t")
    plans = ReadPlans()
    first = plans.plan(relation, database.snapshot, None)
    database.run("CREATE TABLE u (a int)")
    assert plans.plan(relation, database.snapshot, None) is not first


def test_what_is_the_same_at_every_time_needs_none() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int)")
    plans = ReadPlans()

    def timeless(sql: str) -> bool:
        return plans.plan(relation_of(database, sql), database.snapshot, None).is_timeless

    assert timeless("SELECT 1 + 1")
    assert timeless("VALUES (1), (2)")
    assert not timeless("SELECT a FROM t")
    assert not timeless("SELECT now()")
    assert not timeless("SELECT mz_now()")
    assert not timeless("SELECT name FROM mz_tables")
    assert not timeless("SELECT pg_table_is_visible(1)")


def test_values_that_are_only_compared_with_leave_nothing_to_fold() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text, c bool)")
    plans = ReadPlans()

    def compares(sql: str) -> bool:
        return plans.plan(relation_of(database, sql), database.snapshot, None).only_compares

    assert compares("SELECT b FROM t WHERE a = $1")
    assert compares("SELECT b FROM t WHERE $1 > a AND b = $2")
    assert not compares("SELECT b FROM t WHERE a = $1 + 1")
    assert not compares("SELECT b FROM t WHERE a = 1 OR b = $1")
    assert not compares("SELECT b FROM t WHERE $1")
    assert not compares("SELECT b FROM t WHERE c = ($1 = a)")
    assert not compares("SELECT a + $1 FROM t")


def test_one_view_that_is_all_a_read_looks_at_is_known() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int)")
    database.run("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
    plans = ReadPlans()

    def view(sql: str) -> str | None:
        found = plans.plan(relation_of(database, sql), database.snapshot, None).view
        return None if found is None else found.global_id

    made = view("SELECT * FROM mv")
    assert made is not None
    assert view("SELECT count(*) FROM mv WHERE a = $1") == made
    assert view("SELECT * FROM t") is None
    assert view("SELECT * FROM mv, t") is None
    assert view("SELECT 1") is None


def test_long_constants_are_not_kept() -> None:
    database = new_database()
    plans = ReadPlans()
    few = relation_of(database, "SELECT * FROM generate_series(1, 10)")
    many = relation_of(database, "SELECT * FROM generate_series(1, 1000)")
    assert plans.plan(few, database.snapshot, None) is plans.plan(few, database.snapshot, None)
    assert plans.plan(many, database.snapshot, None) is not plans.plan(
        many, database.snapshot, None
    )


def test_what_was_used_least_recently_goes() -> None:
    database = new_database()
    plans = ReadPlans()
    relations = [
        relation_of(database, f"SELECT {number}") for number in range(read_plans.KEPT_PLANS + 1)
    ]
    first, *rest = [plans.plan(relation, database.snapshot, None) for relation in relations[:-1]]
    assert plans.plan(relations[0], database.snapshot, None) is first
    plans.plan(relations[-1], database.snapshot, None)
    assert plans.plan(relations[0], database.snapshot, None) is first
    assert plans.plan(relations[1], database.snapshot, None) is not rest[0]
