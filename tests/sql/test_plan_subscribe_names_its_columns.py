"""What a subscription's rows look like, by the clauses that shape them."""

import pytest

from evertide.expr.relation import Get, TopK
from evertide.expr.relation_walk import in_order_of_use
from evertide.sql.plan.plans import (
    CopyToPlan,
    DeclarePlan,
    DiffForm,
    EnvelopeForm,
    FetchPlan,
    SubscribePlan,
)
from evertide.vocab.sql_type import Kind
from tests.sql.database import Database, new_database


@pytest.fixture
def database() -> Database:
    made = new_database()
    made.run("CREATE TABLE s (a int NOT NULL, b int, c text)")
    return made


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SUBSCRIBE s", "mz_timestamp mz_diff a b c"),
        ("TAIL s", "mz_timestamp mz_diff a b c"),
        ("SUBSCRIBE s WITH (PROGRESS)", "mz_timestamp mz_progressed mz_diff a b c"),
        ("SUBSCRIBE s WITH (PROGRESS = false)", "mz_timestamp mz_diff a b c"),
        ("SUBSCRIBE (SELECT c AS x FROM s)", "mz_timestamp mz_diff x"),
        ("SUBSCRIBE TO (SHOW TABLES LIKE 's%')", "mz_timestamp mz_diff name comment"),
        ("SUBSCRIBE s ENVELOPE UPSERT (KEY (b))", "mz_timestamp mz_state b a c"),
        (
            "SUBSCRIBE s WITH (PROGRESS) ENVELOPE UPSERT (KEY (c, a))",
            "mz_timestamp mz_progressed mz_state c a b",
        ),
        (
            "SUBSCRIBE s ENVELOPE DEBEZIUM (KEY (b))",
            "mz_timestamp mz_state b before_a before_c after_a after_c",
        ),
        ("SUBSCRIBE s WITHIN TIMESTAMP ORDER BY b, mz_diff", "mz_timestamp mz_diff a b c"),
    ],
)
def test_columns(text: str, names: str, database: Database) -> None:
    plan = database.plan(text)
    assert isinstance(plan, SubscribePlan)
    assert plan.desc.names == tuple(names.split())
    assert plan.desc.columns[0].type.kind is Kind.NUMERIC
    nullable = {column.name: column.nullable for column in plan.desc.columns}
    assert nullable.pop("mz_timestamp") is False
    assert nullable.pop("mz_progressed", False) is False
    assert all(nullable.values()), "a row that tells progress has no values"


def test_bounds_and_options(database: Database) -> None:
    plan = database.plan("SUBSCRIBE s WITH (SNAPSHOT = false) AS OF AT LEAST 7 UP TO 1 + 9")
    assert isinstance(plan, SubscribePlan)
    assert (plan.as_of, plan.at_least, plan.up_to) == (7, True, 10)
    assert not plan.snapshot
    assert not plan.progress
    bare = database.plan("SUBSCRIBE s")
    assert isinstance(bare, SubscribePlan)
    assert (bare.as_of, bare.at_least, bare.up_to, bare.snapshot) == (None, False, None, True)
    assert isinstance(bare.relation, Get)
    assert bare.form == DiffForm()


def test_a_limit_is_part_of_what_is_followed(database: Database) -> None:
    plan = database.plan("SUBSCRIBE (SELECT a FROM s ORDER BY b LIMIT 2)")
    assert isinstance(plan, SubscribePlan)
    assert any(isinstance(node, TopK) for node in in_order_of_use(plan.relation))
    assert plan.columns.names == ("a",)


def test_keys_are_positions(database: Database) -> None:
    plan = database.plan("SUBSCRIBE s ENVELOPE DEBEZIUM (KEY (c, a))")
    assert isinstance(plan, SubscribePlan)
    assert plan.form == EnvelopeForm((2, 0), before=True)


def test_copy_and_declare_hold_the_subscription(database: Database) -> None:
    inner = database.plan("SUBSCRIBE s")
    assert isinstance(inner, SubscribePlan)
    copied = database.plan("COPY (SUBSCRIBE s) TO STDOUT")
    assert isinstance(copied, CopyToPlan)
    assert copied.source == inner
    assert database.plan("DECLARE c CURSOR FOR SUBSCRIBE s") == DeclarePlan("c", inner)


@pytest.mark.parametrize(
    ("text", "timeout_ms"),
    [
        ("FETCH ALL c WITH (TIMEOUT = '1500 ms')", 1500),
        ("FETCH ALL c WITH (timeout '1 day')", 86_400_000),
        ("FETCH ALL c WITH (TIMEOUT = 2)", 2_000),
        ("FETCH ALL c WITH (TIMEOUT = INTERVAL '1 minute')", 60_000),
        ("FETCH ALL c", None),
    ],
)
def test_a_fetch_may_have_a_timeout(
    text: str, timeout_ms: float | None, database: Database
) -> None:
    assert database.plan(text) == FetchPlan("c", None, timeout_ms)
