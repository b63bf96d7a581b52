"""REFRESH says when a materialized view is brought up to date; what cannot be such a time is
refused. ASSERT NOT NULL names columns of the view."""

import pytest

from evertide.adapter.ddl.refreshes import with_refreshes
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import CreateMaterializedViewPlan
from evertide.sql.plan.refresh import RefreshPlan
from evertide.sql.views import plan_item
from evertide.vocab.errors import SqlError, decode_error
from evertide.vocab.ids import GlobalId
from evertide.vocab.refresh import Every, RefreshSchedule
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database

NOW = Timestamp(1_700_000_000_000)
SECOND, DAY = 1_000, 86_400_000
GOOD = ((1, "x"), (2, "y"))


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text)")
    return database


def planned(options: str, database: Database) -> CreateMaterializedViewPlan:
    plan = database.plan(f"CREATE MATERIALIZED VIEW x WITH ({options}) AS SELECT a, b FROM t")
    assert isinstance(plan, CreateMaterializedViewPlan)
    return plan


def ats(*times: int) -> RefreshSchedule:
    return RefreshSchedule(at=tuple(Timestamp(ts) for ts in times))


def every(interval_ms: int, aligned_to: int) -> RefreshSchedule:
    return RefreshSchedule(every=(Every(interval_ms, Timestamp(aligned_to)),))


TIMES = [
    ("REFRESH AT CREATION", ats(NOW), NOW),
    ("REFRESH = AT CREATION", ats(NOW), NOW),
    ("REFRESH AT mz_now()", ats(NOW), NOW),
    ("REFRESH AT (mz_now())", ats(NOW), NOW),
    ("REFRESH AT mz_now()::text::int8 + 5000", ats(NOW + 5_000), NOW + 5_000),
    ("REFRESH AT greatest('1990-01-04 11:00', mz_now())", ats(NOW), NOW),
    ("REFRESH AT '2300-01-01'", ats(10_413_792_000_000), 10_413_792_000_000),
    ("REFRESH AT timestamp '2300-01-01'", ats(10_413_792_000_000), 10_413_792_000_000),
    ("REFRESH EVERY '8 seconds'", every(8 * SECOND, NOW), NOW),
    ("REFRESH EVERY '1 day' ALIGNED TO mz_now()", every(DAY, NOW), NOW),
    ("REFRESH EVERY '10 s' ALIGNED TO 1700000000003", every(10 * SECOND, NOW + 3), NOW + 3),
    ("REFRESH EVERY '10 s' ALIGNED TO 3", every(10 * SECOND, 3), NOW + 3),
    (
        "REFRESH AT CREATION, REFRESH EVERY '1 day' ALIGNED TO 1700000100000",
        RefreshSchedule((NOW,), (Every(DAY, Timestamp(NOW + 100_000)),)),
        NOW,
    ),
]


@pytest.mark.parametrize(("options", "schedule", "first"), TIMES)
def test_times(options: str, schedule: RefreshSchedule, first: int, database: Database) -> None:
    plan, as_of = with_refreshes(planned(options, database), created_at=NOW, reads=True)
    assert plan.refresh == schedule
    assert as_of == first


def test_a_view_that_is_always_kept_has_no_times(database: Database) -> None:
    assert planned("REFRESH ON COMMIT", database).asked_refresh is None
    assert planned("RETAIN HISTORY FOR '1 day'", database).asked_refresh is None


def test_the_stored_text_tells_times_and_not_how_they_came_about(database: Database) -> None:
    """Planned again at any other time it means the same."""
    asked = (
        "REFRESH AT CREATION, REFRESH AT mz_now()::text::int8 + 2000, REFRESH EVERY '1 day',"
        " REFRESH EVERY '1 s' ALIGNED TO mz_catalog.mz_now()"
    )
    plan, _ = with_refreshes(planned(asked, database), created_at=NOW, reads=True)
    assert "mz_now" not in plan.create_sql
    assert "CREATION" not in plan.create_sql
    again = database.plan(plan.create_sql)
    assert isinstance(again, CreateMaterializedViewPlan)
    later, _ = with_refreshes(again, created_at=Timestamp(NOW + 999), reads=False)
    assert (later.refresh, later.create_sql) == (plan.refresh, plan.create_sql)


def test_a_time_must_be_one_at_which_the_inputs_are_readable(database: Database) -> None:
    for options in ("REFRESH AT '2000-01-01'", "REFRESH AT CREATION, REFRESH AT '2000-01-01'"):
        with pytest.raises(SqlError, match="not all the inputs are readable") as refused:
            with_refreshes(planned(options, database), created_at=NOW, reads=True)
        assert refused.value.sqlstate == "22000"
    plan = planned("REFRESH AT '2000-01-01'", database)
    assert with_refreshes(plan, created_at=NOW, reads=False)[1] == 946_684_800_000


_NOT_CONSTANT = "argument must be an expression that can be simplified and/or cast to a constant"
# § marks where the error points.
REFUSED = [
    ("REFRESH §5", "42601", 'Expected one of ON or AT or EVERY, found number "5"'),
    ("REFRESH EVERY §42", "42601", 'Expected literal string, found number "42"'),
    ("REFRESH EVERY §INTERVAL '1 day'", "42601", "Expected literal string, found INTERVAL"),
    ("REFRESH EVERY§)", "42601", "Expected literal string, found right parenthesis"),
    ("REFRESH ON COMMIT, §REFRESH ON COMMIT", "22023", "cannot be specified multiple times"),
    ("§REFRESH ON COMMIT, REFRESH EVERY '1 day'", "22023", "not compatible with any of the other"),
    ("REFRESH AT §row(1, 2)", "42846", "REFRESH AT does not support casting from record"),
    ("REFRESH AT §'aaaa'", "22023", f"REFRESH AT {_NOT_CONSTANT}"),
    ("REFRESH AT §a", "42703", 'column "a" does not exist'),
    ("REFRESH AT §now()", "22023", f"REFRESH AT {_NOT_CONSTANT}"),
    ("REFRESH AT §1 / 0", "22023", f"REFRESH AT {_NOT_CONSTANT}"),
    ("REFRESH AT §NULL::mz_timestamp", "22023", f"REFRESH AT {_NOT_CONSTANT}"),
    ("REFRESH AT §sum(5)", "42803", "aggregate functions are not allowed in REFRESH AT"),
    ("REFRESH AT §(SELECT 1)", "0A000", "REFRESH AT does not allow subqueries"),
    ("REFRESH AT §lag(7) OVER ()", "42P20", "window functions are not allowed in REFRESH AT"),
    ("REFRESH AT §9224318016000000", "22023", "REFRESH AT time too large: 9224318016000000"),
    ("REFRESH AT §18446744073709551615", "22023", "REFRESH AT time too large"),
    (
        "REFRESH EVERY '1 day' ALIGNED TO §now()",
        "22023",
        f"REFRESH EVERY ... ALIGNED TO {_NOT_CONSTANT}",
    ),
    ("REFRESH EVERY §'1 dayy'", "22007", "invalid input syntax for type interval"),
    ("REFRESH EVERY §'-1 minutes'", "22023", "interval must be positive; got: -00:01:00"),
    ("REFRESH EVERY §'0 s'", "22023", "REFRESH interval must be positive; got: 00:00:00"),
    ("REFRESH EVERY §'1 month'", "22023", "must not involve units larger than days"),
    ("REFRESH EVERY §'150000000 days'", "22023", "REFRESH interval too large"),
    ("REFRESH EVERY §'999 us'", "22023", "REFRESH interval must be at least 1 ms"),
    ("§ASSERT NOT NULL c", "42703", 'column "c" in ASSERT NOT NULL option not found'),
    ("ASSERT NOT NULL a, §ASSERT NOT NULL a", "42701", "in non-null assertions"),
    ("§ASSERT NOT NULL 5", "22023", "the name of a column is needed"),
    ("§PARTITION BY (a)", "0A000", "PARTITION BY is not supported"),
]


@pytest.mark.parametrize(("options", "code", "message"), REFUSED)
def test_what_cannot_be_is_refused(
    options: str, code: str, message: str, database: Database
) -> None:
    head = "CREATE MATERIALIZED VIEW x WITH ("
    with pytest.raises(SqlError) as refused:
        database.plan(f"{head}{options.replace('§', '')}) AS SELECT a, b FROM t")
    assert refused.value.sqlstate == code
    assert message in refused.value.message
    assert refused.value.position == len(head) + options.index("§") + 1


def test_times_that_are_wrong_only_at_creation_are_refused_then(database: Database) -> None:
    plan = planned("REFRESH AT mz_now()::text::int8 - 9000000000000", database)
    assert isinstance(plan.asked_refresh, RefreshPlan)
    with pytest.raises(SqlError, match="argument must be an expression"):
        with_refreshes(plan, created_at=NOW, reads=True)


def test_refreshes_may_be_switched_off() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text)")
    database.run("ALTER SYSTEM SET enable_refresh_every_mvs = off")
    with pytest.raises(SqlError, match="is not available") as refused:
        planned("REFRESH EVERY '1 day'", database)
    assert refused.value.sqlstate == "0A000"
    planned("REFRESH ON COMMIT", database)


def test_replacements_are_always_kept() -> None:
    database = new_database()
    database.run("CREATE TABLE t (a int); CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    with pytest.raises(SqlError, match="REFRESH is not supported for replacements"):
        database.plan(
            "CREATE MATERIALIZED VIEW r REPLACING m WITH (REFRESH AT CREATION) AS SELECT a FROM t"
        )


def test_asserted_columns_are_not_null_and_the_stored_text_says_so() -> None:
    database = new_database()
    database.run(
        "CREATE TABLE t (a int, b text);"
        "CREATE MATERIALIZED VIEW m (x, y) WITH (ASSERT NOT NULL y) AS SELECT a, b FROM t"
    )
    item = next(item for item in database.snapshot.items.values() if item.name == "m")
    assert [column.nullable for column in item.desc.columns] == [True, False]
    relation, _ = plan_item(item, database.snapshot)
    for rows, message in ((GOOD, None), ((*GOOD, (3, None)), 'column "y" must not be null')):
        held = Collection([(row, 1) for row in rows])
        found = evaluate(optimize(relation), {GlobalId("u1"): held}.__getitem__)
        assert sorted(found.rows) == [(row, 1) for row in GOOD]
        assert [decode_error(text).message for text, _ in found.errors] == (
            [message] if message else []
        )


def test_a_stored_view_names_all_of_its_columns_or_none(database: Database) -> None:
    view = 'materialized view "materialize.public.x"'
    for names, message in (
        ("(p, q, r)", f"{view} definition names 3 columns, but {view} has 2 columns"),
        ("(p)", f"{view} definition names 1 column, but {view} has 2 columns"),
    ):
        with pytest.raises(SqlError) as refused:
            database.plan(f"CREATE MATERIALIZED VIEW x {names} AS SELECT a, b FROM t")
        assert (refused.value.sqlstate, refused.value.message) == ("42P16", message)
    database.plan("CREATE MATERIALIZED VIEW x (p, q) AS SELECT a, b FROM t")
    database.plan("CREATE VIEW x (p) AS SELECT a, b FROM t")
