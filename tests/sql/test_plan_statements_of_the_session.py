"""Statements that steer the session become plans that say the same."""

import pytest

from evertide.catalog.objects import ManagedCluster, UnmanagedCluster, VirtualCluster
from evertide.catalog.ops import NewReplica
from evertide.expr.relation import Finishing, OrderKey
from evertide.sql.plan.clusters.plans import CreateClusterPlan
from evertide.sql.plan.plans import (
    AlterSystemPlan,
    BeginPlan,
    ClosePlan,
    CommitPlan,
    CopyToPlan,
    CreateDatabasePlan,
    CreateSchemaPlan,
    DeallocatePlan,
    DeclarePlan,
    DiscardTemporaryPlan,
    ExplainPlan,
    ExplainTimestampPlan,
    FetchPlan,
    NoticePlan,
    Plan,
    ResetAllPlan,
    RollbackPlan,
    SelectPlan,
    SetTransactionPlan,
    SetVariablePlan,
    ShowVariablePlan,
)
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import DatabaseId
from tests.sql.database import Database, new_database


@pytest.fixture(scope="module")
def database() -> Database:
    database = new_database()
    database.run("CREATE TABLE t (a int, b text); CREATE MATERIALIZED VIEW m AS SELECT a FROM t")
    return database


PLANS: list[tuple[str, Plan]] = [
    ("SHOW search_path", ShowVariablePlan("search_path")),
    ("SHOW ALL", ShowVariablePlan(None)),
    ("SET search_path TO a, 'b'", SetVariablePlan("search_path", ("a", "b"), local=False)),
    ("SET LOCAL x = 5", SetVariablePlan("x", ("5",), local=True)),
    ("SET x TO DEFAULT", SetVariablePlan("x", None, local=False)),
    ("RESET x", SetVariablePlan("x", None, local=False, tag="RESET")),
    ("RESET ALL", ResetAllPlan("RESET")),
    ("SET ROLE NONE", NoticePlan("SET")),
    ("SET SESSION AUTHORIZATION DEFAULT", NoticePlan("SET")),
    ("RESET ROLE", NoticePlan("RESET")),
    ("RESET SESSION AUTHORIZATION", NoticePlan("RESET")),
    ("DISCARD ALL", ResetAllPlan("DISCARD ALL")),
    ("DISCARD TEMP", DiscardTemporaryPlan()),
    ("DISCARD PLANS", NoticePlan("DISCARD PLANS")),
    ("BEGIN", BeginPlan(None, None)),
    ("BEGIN READ ONLY", BeginPlan(True, None)),
    ("BEGIN ISOLATION LEVEL SERIALIZABLE", BeginPlan(None, "serializable")),
    ("START TRANSACTION READ WRITE", BeginPlan(False, None)),
    ("SET TRANSACTION READ ONLY", SetTransactionPlan(True, None)),
    (
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL STRICT SERIALIZABLE",
        SetTransactionPlan(None, "strict serializable", session=True),
    ),
    ("COMMIT", CommitPlan()),
    ("ROLLBACK", RollbackPlan()),
    ("FETCH 5 FROM c", FetchPlan("c", 5)),
    ("FETCH ALL FROM c", FetchPlan("c", None)),
    ("CLOSE c", ClosePlan("c")),
    ("CLOSE ALL", ClosePlan(None)),
    ("DEALLOCATE p", DeallocatePlan("p")),
    ("DEALLOCATE ALL", DeallocatePlan(None)),
    ("ALTER SYSTEM SET x = 'on'", AlterSystemPlan("x", ("on",))),
    ("ALTER SYSTEM RESET x", AlterSystemPlan("x", None)),
    ("CREATE DATABASE d", CreateDatabasePlan("d", if_not_exists=False)),
    ("CREATE SCHEMA IF NOT EXISTS s", CreateSchemaPlan(DatabaseId("u1"), "s", if_not_exists=True)),
    (
        "CREATE CLUSTER c SIZE '2'",
        CreateClusterPlan(name="c", variant=ManagedCluster(size="2", replication_factor=1)),
    ),
    (
        "CREATE CLUSTER IF NOT EXISTS c (SIZE = 'big', REPLICATION FACTOR = 3)",
        CreateClusterPlan(
            name="c",
            variant=ManagedCluster(size="big", replication_factor=3),
            if_not_exists=True,
        ),
    ),
    (
        "CREATE CLUSTER c REPLICAS (a (SIZE '1'), b (SIZE '2'))",
        CreateClusterPlan(
            name="c",
            variant=UnmanagedCluster(),
            replicas=(NewReplica(name="a", size="1"), NewReplica(name="b", size="2")),
        ),
    ),
    (
        "CREATE CLUSTER c REPLICAS ()",
        CreateClusterPlan(name="c", variant=UnmanagedCluster()),
    ),
    (
        "CREATE CLUSTER c",
        CreateClusterPlan(name="c", variant=UnmanagedCluster()),
    ),
    (
        "CREATE CLUSTER c MANAGED = false",
        CreateClusterPlan(name="c", variant=UnmanagedCluster()),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "plan"), PLANS)
def test_plans(sql: str, plan: Plan, database: Database) -> None:
    assert database.plan(sql) == plan


def test_virtual_clusters_are_experimental(database: Database) -> None:
    with pytest.raises(SqlError) as error:
        database.plan("CREATE CLUSTER c VIRTUAL")
    assert error.value.code == "0A000"
    assert "--experimental" in (error.value.hint or "")
    database.experimental = True
    try:
        plan = database.plan("CREATE CLUSTER c VIRTUAL")
        assert plan == CreateClusterPlan(name="c", variant=VirtualCluster())
    finally:
        database.experimental = False


def select(database: Database, sql: str) -> SelectPlan:
    plan = database.plan(sql)
    assert isinstance(plan, SelectPlan)
    return plan


def test_order_and_limit_at_the_top_are_finishing(database: Database) -> None:
    plan = select(database, "SELECT b FROM t ORDER BY a DESC LIMIT 3 OFFSET 2")
    assert plan.finishing == Finishing((OrderKey(0, True, True),), 3, 2, (1,))
    assert plan.desc.names == ("b",)


def test_as_of_is_a_timestamp(database: Database) -> None:
    assert select(database, "SELECT * FROM t AS OF 42").as_of == 42
    assert select(database, "SELECT * FROM t AS OF 40 + 2").as_of == 42
    assert select(database, "SELECT * FROM t AS OF '1970-01-01 00:00:01'").as_of == 1000
    for sql in ("SELECT 1 AS OF NULL", "SELECT 1 AS OF 'x'", "SELECT 1 AS OF NULL::timestamp"):
        with pytest.raises(SqlError) as error:
            database.plan(sql)
        assert error.value.message.startswith("AS OF or UP TO should be castable")


def test_queries_inside_other_statements(database: Database) -> None:
    inner = select(database, "SELECT a FROM t ORDER BY a")
    copied = database.plan("COPY (SELECT a FROM t ORDER BY a) TO STDOUT")
    assert isinstance(copied, CopyToPlan)
    assert copied.source == inner
    assert database.plan("DECLARE c CURSOR FOR SELECT a FROM t ORDER BY a") == DeclarePlan(
        "c", inner
    )
    explained = database.plan("EXPLAIN SELECT a FROM t ORDER BY a")
    assert explained == ExplainPlan("optimized", select=inner)
    raw = database.plan("EXPLAIN RAW PLAN AS JSON FOR SELECT a FROM t ORDER BY a")
    assert raw == ExplainPlan("raw", select=inner, as_json=True)
    timestamp = database.plan("EXPLAIN TIMESTAMP FOR SELECT a FROM t ORDER BY a")
    assert timestamp == ExplainTimestampPlan(inner)


def test_copy_of_a_table_is_a_query(database: Database) -> None:
    plan = database.plan("COPY t (b, a) TO STDOUT")
    assert isinstance(plan, CopyToPlan)
    assert plan.source.desc.names == ("b", "a")


def test_stored_objects_can_be_explained(database: Database) -> None:
    plan = database.plan("EXPLAIN MATERIALIZED VIEW m")
    assert isinstance(plan, ExplainPlan)
    assert plan.item_id is not None
    plan = database.plan("EXPLAIN PHYSICAL PLAN FOR CREATE MATERIALIZED VIEW x AS SELECT b FROM t")
    assert isinstance(plan, ExplainPlan)
    assert (plan.stage, plan.relation is not None) == ("physical", True)
    plan = database.plan("EXPLAIN CREATE INDEX ON t (a)")
    assert isinstance(plan, ExplainPlan)
    assert plan.relation is not None
