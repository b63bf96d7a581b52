"""ALTER CLUSTER and its relatives: what may become what, and what the catalog is asked for."""

import pytest

from evertide.catalog.objects import Cluster, Introspection, ManagedCluster, UnmanagedCluster
from evertide.sql.plan.clusters.plans import ChangePlan, ReconfigureClusterPlan
from evertide.sql.plan.plans import NoticePlan
from evertide.vocab.errors import SqlError
from tests.sql.database import Database, new_database

SETUP = """
    CREATE CLUSTER m (SIZE '1', REPLICATION FACTOR 2);
    CREATE CLUSTER empty REPLICAS ();
    CREATE CLUSTER like_managed REPLICAS (r1 (SIZE '1'), r2 (SIZE '1'));
    CREATE CLUSTER mixed REPLICAS (r1 (SIZE '1'), r2 (SIZE '2'));
    CREATE CLUSTER named REPLICAS (a (SIZE '1'));
    CREATE TABLE t (a int);
    CREATE INDEX i IN CLUSTER m ON t (a);
    CREATE MATERIALIZED VIEW v IN CLUSTER m AS SELECT a FROM t;
"""


@pytest.fixture
def database() -> Database:
    made = new_database()
    made.run(SETUP)
    return made


def cluster(database: Database, name: str) -> Cluster:
    found = database.snapshot.cluster_named(name)
    assert found is not None
    return found


def replicas(database: Database, name: str) -> list[tuple[str, str | None]]:
    found = database.snapshot.replicas_of(cluster(database, name).cluster_id)
    return [(replica.name, replica.size) for replica in found]


CHANGES = [
    ("m", "SET (SIZE '2')", ManagedCluster(size="2", replication_factor=2)),
    ("m", "SIZE '2', REPLICATION FACTOR 0", ManagedCluster(size="2", replication_factor=0)),
    ("m", "RESET (REPLICATION FACTOR)", ManagedCluster(size="1", replication_factor=1)),
    ("m", "SET (MANAGED = false)", UnmanagedCluster()),
    ("m", "", ManagedCluster(size="1", replication_factor=2)),
    ("like_managed", "SET (MANAGED)", ManagedCluster(size="1", replication_factor=2)),
    ("like_managed", "SET (MANAGED, SIZE '1')", ManagedCluster(size="1", replication_factor=2)),
    ("empty", "SET (MANAGED, SIZE '4')", ManagedCluster(size="4", replication_factor=1)),
    ("default", "SET (SIZE '4')", ManagedCluster(size="4", replication_factor=1)),
    ("default", "SET (MANAGED = false)", UnmanagedCluster()),
    (
        "m",
        "SET (INTROSPECTION INTERVAL 0, INTROSPECTION DEBUGGING)",
        ManagedCluster(
            size="1",
            replication_factor=2,
            introspection=Introspection(interval_ms=None, debugging=True),
        ),
    ),
]


@pytest.mark.parametrize(("name", "change", "wanted"), CHANGES)
def test_changes(
    database: Database, name: str, change: str, wanted: ManagedCluster | UnmanagedCluster
) -> None:
    database.run(f'ALTER CLUSTER "{name}" {change}')
    assert cluster(database, name).variant == wanted
    if isinstance(wanted, ManagedCluster):
        expected = [(f"r{n}", wanted.size) for n in range(1, wanted.replication_factor + 1)]
        assert replicas(database, name) == expected


REFUSED = [
    ("m", "SET (SCHEDULE = ON REFRESH)", "SCHEDULE = ON REFRESH is not supported"),
    ("empty", "SET (MANAGED)", "Missing SIZE for empty cluster"),
    ("empty", "SET (SIZE '1')", "SIZE not supported for unmanaged clusters"),
    ("empty", "RESET (REPLICATION FACTOR)", "REPLICATION FACTOR not supported for unmanaged"),
    ("mixed", "SET (MANAGED)", "Cluster replicas have different sizes: r2 has 2, not 1"),
    ("named", "SET (MANAGED)", "named.a does not follow the names of a managed cluster"),
    (
        "like_managed",
        "SET (MANAGED, REPLICATION FACTOR 4)",
        r"REPLICATION FACTOR 4 does not match number of replicas \(2\)",
    ),
    ("like_managed", "SET (MANAGED, SIZE '2')", "have different sizes"),
    ("m", "SET (MANAGED = false, SIZE '2')", "SIZE not supported for unmanaged clusters"),
    ("m", "SET (REPLICAS (x (SIZE '1')))", "REPLICAS not supported for ALTER CLUSTER"),
    ("m", "SET (VIRTUAL)", "virtual clusters are available in experimental mode only"),
    ("m", "RESET (SIZE)", "SIZE has no default value"),
    ("m", "SET (WORKLOAD CLASS 'x')", "WORKLOAD CLASS not supported for non-system users"),
    ("default", "SET (MANAGED)", "cannot modify virtual cluster default"),
]


@pytest.mark.parametrize(("name", "change", "message"), REFUSED)
def test_refusals(database: Database, name: str, change: str, message: str) -> None:
    before = database.snapshot
    with pytest.raises(SqlError, match=message):
        database.run(f'ALTER CLUSTER "{name}" {change}')
    assert database.snapshot is before


def test_only_another_size_is_waited_for(database: Database) -> None:
    wait = "WITH (WAIT UNTIL READY (TIMEOUT '1m', ON TIMEOUT ROLLBACK))"
    plan = database.plan(f"ALTER CLUSTER m SET (SIZE '2') {wait}")
    assert isinstance(plan, ReconfigureClusterPlan)
    assert (plan.target.size, plan.target.replication_factor, plan.wait_ms) == ("2", 2, 60_000)
    for change in ("REPLICATION FACTOR 3", "SIZE '1'", "SIZE '2', REPLICATION FACTOR 0"):
        assert isinstance(database.plan(f"ALTER CLUSTER m SET ({change}) {wait}"), ChangePlan)


@pytest.mark.parametrize("wait", ["FOR '{}'", "UNTIL READY (TIMEOUT '{}')"])
def test_nothing_is_waited_for_longer_than_a_day(database: Database, wait: str) -> None:
    change = f"ALTER CLUSTER m SET (SIZE '2') WITH (WAIT {wait})"
    for span in ("24 hours 1 ms", "100000000 years"):
        with pytest.raises(SqlError, match="one day at most") as error:
            database.plan(change.format(span))
        assert (error.value.code, "shorter" in (error.value.hint or "")) == ("22023", True)
    assert isinstance(database.plan(change.format("24 hours")), ReconfigureClusterPlan)


def test_what_is_not_there_is_told_or_skipped(database: Database) -> None:
    for statement in (
        "ALTER CLUSTER {} nope SET (SIZE '1')",
        "ALTER CLUSTER {} nope RESET (REPLICATION FACTOR)",
        "ALTER CLUSTER {} nope RENAME TO x",
        "ALTER CLUSTER REPLICA {} named.nope RENAME TO x",
        "ALTER INDEX {} nope SET CLUSTER m",
    ):
        assert isinstance(database.plan(statement.format("IF EXISTS")), NoticePlan)
        with pytest.raises(SqlError) as error:
            database.plan(statement.format(""))
        assert error.value.code in ("42704", "42P01")


def test_definitions_follow_the_name_of_their_cluster(database: Database) -> None:
    def texts() -> list[str]:
        return [i.create_sql for i in database.snapshot.items.values() if i.cluster_id is not None]

    database.run("ALTER CLUSTER m RENAME TO renamed")
    assert all(" IN CLUSTER renamed " in text for text in texts())
    database.run("ALTER CLUSTER renamed SWAP WITH empty")
    assert all(" IN CLUSTER empty " in text for text in texts())
    assert replicas(database, "empty") == [("r1", "1"), ("r2", "1")]


def test_an_item_moves_to_another_cluster(database: Database) -> None:
    database.run("ALTER INDEX i SET CLUSTER named; ALTER MATERIALIZED VIEW v SET CLUSTER named")
    for item in database.snapshot.items_in_cluster(cluster(database, "named").cluster_id):
        assert " IN CLUSTER named " in item.create_sql
    assert database.snapshot.items_in_cluster(cluster(database, "m").cluster_id) == []
    with pytest.raises(SqlError, match="unknown cluster 'nope'"):
        database.run("ALTER INDEX i SET CLUSTER nope")


def test_replicas_are_made_renamed_and_dropped_by_name(database: Database) -> None:
    database.run(
        "CREATE CLUSTER REPLICA named.b SIZE '2';"
        "CREATE CLUSTER REPLICA IF NOT EXISTS named.c SIZE '2';"
        "ALTER CLUSTER REPLICA named.b RENAME TO d; DROP CLUSTER REPLICA named.a"
    )
    assert replicas(database, "named") == [("c", "2"), ("d", "2")]
    for statement, message in (
        ("CREATE CLUSTER REPLICA named.c SIZE '1'", "cannot create multiple replicas named 'c'"),
        ("ALTER CLUSTER REPLICA named.c RENAME TO d", "uniqueness violation"),
        ("CREATE CLUSTER REPLICA m.x SIZE '1'", "cannot modify managed cluster m"),
        ("ALTER CLUSTER REPLICA m.r1 RENAME TO x", "cannot rename replica of managed cluster"),
        ("DROP CLUSTER REPLICA m.r1", "cannot drop replica of managed cluster"),
        ("CREATE CLUSTER REPLICA \"default\".x SIZE '1'", "cannot modify virtual cluster default"),
        ("CREATE CLUSTER REPLICA named.x", "SIZE must be specified for replica 'x'"),
        ("CREATE CLUSTER REPLICA nope.x SIZE '1'", "unknown cluster 'nope'"),
    ):
        with pytest.raises(SqlError, match=message):
            database.run(statement)


def test_lent_replicas_are_for_system_users(database: Database) -> None:
    statement = "CREATE CLUSTER REPLICA m.{} SIZE '8', INTERNAL, BILLED AS 'free'"
    with pytest.raises(SqlError, match="as non-internal user") as error:
        database.run(statement.format("lent"))
    assert error.value.code == "42501"
    database.user = "mz_system"
    with pytest.raises(SqlError, match="r7 is reserved for replicas of managed clusters"):
        database.run(statement.format("r7"))
    with pytest.raises(SqlError, match="must specify INTERNAL when specifying BILLED AS"):
        database.run("CREATE CLUSTER REPLICA named.x SIZE '8', BILLED AS 'free'")
    database.run(statement.format("lent"))
    lent = database.snapshot.replica_named(cluster(database, "m").cluster_id, "lent")
    assert lent is not None
    assert (lent.internal, lent.billed_as, lent.owner) == (True, "free", "u1")
    database.user = "materialize"
    database.run("ALTER CLUSTER m SET (REPLICATION FACTOR 0); DROP CLUSTER REPLICA m.lent")
    assert replicas(database, "m") == []


def test_reads_need_a_cluster_that_is_there_and_has_replicas(database: Database) -> None:
    database.cluster = "empty"
    message = 'CLUSTER "empty" has no replicas available to service request'
    for statement in ("SELECT * FROM t", "SUBSCRIBE t", "COPY t TO STDOUT", "SELECT * FROM v"):
        with pytest.raises(SqlError, match=message) as error:
            database.plan(statement)
        assert error.value.hint == (
            "Use CREATE CLUSTER REPLICA to attach cluster replicas to the cluster"
        )
    database.plan("SELECT 1")
    database.plan("SELECT name FROM mz_clusters")
    database.plan("SHOW CLUSTERS")
    database.plan("INSERT INTO t VALUES (1)")
    database.run("ALTER CLUSTER m SET (REPLICATION FACTOR 0)")
    database.cluster = "m"
    with pytest.raises(SqlError, match="has no replicas available") as error:
        database.plan("SELECT * FROM t")
    assert "SET (REPLICATION FACTOR 1)" in (error.value.hint or "")
    writes = ("UPDATE t SET a = 1", "DELETE FROM t", "INSERT INTO t SELECT * FROM t")
    for statement in writes:
        database.plan(statement)
    database.cluster = "nope"
    for statement in ("SELECT * FROM t", *writes):
        with pytest.raises(SqlError, match="unknown cluster 'nope'"):
            database.plan(statement)
    database.plan("INSERT INTO t VALUES (1)")
    database.plan("INSERT INTO t SELECT 1")
