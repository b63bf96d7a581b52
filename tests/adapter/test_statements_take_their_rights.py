"""Every statement takes exactly the rights it should: with all of them it may run, and with any one
of them missing it is refused, by name.

Method: statements are planned against a catalog in which `joe` was granted what the case lists.
Each right is then left out in turn.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from evertide.adapter.planning import Planner, parse
from evertide.adapter.rights.check import authorize
from evertide.adapter.session import Login, Session
from evertide.adapter.transaction import Span, Transaction
from evertide.adapter.variables import Variables
from evertide.catalog.replacement_ops import FinishHandoverOp
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import transact
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import PlanContext
from evertide.sql.plan.entry import Planned, plan_statement
from evertide.vocab.errors import InsufficientPrivilege
from evertide.vocab.ids import RoleId
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import Database, new_database

OBJECTS = """
    CREATE ROLE joe; CREATE ROLE boss; CREATE ROLE other;
    CREATE DATABASE d; CREATE SCHEMA s; CREATE SCHEMA place;
    CREATE TABLE s.t (a int); CREATE TABLE s.u (a int);
    CREATE VIEW s.v AS SELECT a FROM s.t;
    CREATE MATERIALIZED VIEW s.m AS SELECT a FROM s.t;
    CREATE MATERIALIZED VIEW s.n AS SELECT a FROM s.t;
    CREATE MATERIALIZED VIEW s.r REPLACING s.n AS SELECT a FROM s.t;
    CREATE INDEX i ON s.t (a);
    CREATE CLUSTER c REPLICAS (r (SIZE '1'));
    CREATE CLUSTER e REPLICAS (r (SIZE '1'));
    REVOKE USAGE ON CLUSTER "default" FROM PUBLIC;
    REVOKE USAGE ON SCHEMA public FROM PUBLIC;
"""
READ = ("USAGE ON SCHEMA s", "SELECT ON s.t", 'USAGE ON CLUSTER "default"')
ROLES = ("CREATEROLE ON SYSTEM",)
BOTH = ("MATERIALIZED VIEW s.n", "MATERIALIZED VIEW s.r")
DIFFERENCE = (
    "USAGE ON SCHEMA s",
    "SELECT ON s.n",
    "SELECT ON s.r",
    'USAGE ON CLUSTER "default"',
)


@dataclass(frozen=True)
class Case:
    """A statement, and what it takes: GRANTs, and objects to own."""

    sql: str
    grants: Sequence[str] = ()
    owned: Sequence[str] = ()


CASES = [
    Case("SELECT a FROM s.t", READ),
    Case("SELECT (SELECT max(a) FROM s.t)", READ),
    Case("TABLE s.v", ("USAGE ON SCHEMA s", "SELECT ON s.v", 'USAGE ON CLUSTER "default"')),
    Case("TABLE s.m", ("USAGE ON SCHEMA s", "SELECT ON s.m", 'USAGE ON CLUSTER "default"')),
    Case("SUBSCRIBE s.t", READ),
    Case("COPY s.t TO STDOUT", READ),
    Case("COPY (SUBSCRIBE s.t) TO STDOUT", READ),
    Case("DECLARE c CURSOR FOR SELECT a FROM s.t", READ),
    Case("EXPLAIN SELECT a FROM s.t", READ),
    Case("EXPLAIN TIMESTAMP FOR SELECT a FROM s.t", READ),
    Case("EXPLAIN VIEW s.v", ("USAGE ON SCHEMA s",)),
    Case("INSERT INTO s.t VALUES (1)", ("USAGE ON SCHEMA s", "INSERT ON s.t")),
    Case(
        "INSERT INTO s.t VALUES (1) RETURNING a",
        ("USAGE ON SCHEMA s", "INSERT ON s.t", "SELECT ON s.t"),
    ),
    Case("INSERT INTO s.u SELECT a FROM s.t", (*READ, "INSERT ON s.u")),
    Case("COPY s.t FROM STDIN", ("USAGE ON SCHEMA s", "INSERT ON s.t")),
    Case("UPDATE s.t SET a = 1", (*READ, "UPDATE ON s.t")),
    Case("UPDATE s.u SET a = t.a FROM s.t", (*READ, "SELECT ON s.u", "UPDATE ON s.u")),
    Case(
        "UPDATE s.u SET a = (SELECT max(a) FROM s.t)",
        (*READ, "SELECT ON s.u", "UPDATE ON s.u"),
    ),
    Case("DELETE FROM s.t", (*READ, "DELETE ON s.t")),
    Case("DELETE FROM s.u USING s.t WHERE u.a = t.a", (*READ, "SELECT ON s.u", "DELETE ON s.u")),
    Case("CREATE TABLE place.x (a int)", ("CREATE ON SCHEMA place",)),
    Case("CREATE VIEW place.x AS SELECT a FROM s.t", ("CREATE ON SCHEMA place",)),
    Case("CREATE OR REPLACE VIEW s.v AS SELECT a FROM s.t", ("CREATE ON SCHEMA s",), ("VIEW s.v",)),
    Case(
        "CREATE MATERIALIZED VIEW place.x IN CLUSTER c AS SELECT a FROM s.t",
        ("CREATE ON SCHEMA place", "CREATE ON CLUSTER c"),
    ),
    Case(
        "CREATE INDEX x IN CLUSTER c ON s.t (a)",
        ("CREATE ON SCHEMA s", "CREATE ON CLUSTER c"),
        ("TABLE s.t",),
    ),
    Case(
        "CREATE MATERIALIZED VIEW place.x REPLACING s.m IN CLUSTER c AS SELECT a FROM s.t",
        ("CREATE ON SCHEMA place", "CREATE ON CLUSTER c"),
        ("MATERIALIZED VIEW s.m",),
    ),
    Case("ALTER MATERIALIZED VIEW s.n APPLY REPLACEMENT s.r", (), BOTH[:1]),
    Case("ALTER MATERIALIZED VIEW s.n APPLY REPLACEMENT s.r WHEN READY", (), BOTH[:1]),
    Case("DROP MATERIALIZED VIEW s.r", (), ("MATERIALIZED VIEW s.r",)),
    Case("TABLE s.r", ("USAGE ON SCHEMA s", "SELECT ON s.r", 'USAGE ON CLUSTER "default"')),
    Case("SHOW REPLACEMENT CHANGES FOR s.r", DIFFERENCE),
    Case("EXPLAIN REPLACEMENT s.r", DIFFERENCE),
    Case("COMMENT ON TABLE s.t IS 'x'", (), ("TABLE s.t",)),
    Case("COMMENT ON COLUMN s.t.a IS NULL", (), ("TABLE s.t",)),
    Case("COMMENT ON SCHEMA s IS 'x'", (), ("SCHEMA s",)),
    Case("COMMENT ON CLUSTER c IS 'x'", (), ("CLUSTER c",)),
    Case("COMMENT ON ROLE other IS 'x'", ROLES),
    Case("ALTER SCHEMA s SWAP WITH place", (), ("SCHEMA s", "SCHEMA place")),
    Case("CREATE SCHEMA x", ("CREATE ON DATABASE materialize",)),
    Case("CREATE DATABASE x", ("CREATEDB ON SYSTEM",)),
    Case("CREATE CLUSTER x REPLICAS (r (SIZE '1'))", ("CREATECLUSTER ON SYSTEM",)),
    Case("CREATE CLUSTER REPLICA c.x SIZE '1'", (), ("CLUSTER c",)),
    Case("CREATE ROLE x", ROLES),
    Case("ALTER ROLE other NOLOGIN", ROLES),
    Case("ALTER ROLE other SET cluster = 'c'", ROLES),
    Case("ALTER ROLE joe SET cluster = 'c'"),
    Case("DROP ROLE other", ROLES),
    Case("GRANT boss TO other", ROLES),
    Case("REVOKE boss FROM other", ROLES),
    Case("GRANT SELECT ON s.t TO other", (), ("TABLE s.t",)),
    Case("REVOKE SELECT ON s.t, s.u FROM other", (), ("TABLE s.t", "TABLE s.u")),
    Case("GRANT USAGE ON SCHEMA s TO other", (), ("SCHEMA s",)),
    Case("GRANT USAGE ON DATABASE d TO other", (), ("DATABASE d",)),
    Case("GRANT USAGE ON CLUSTER c TO other", (), ("CLUSTER c",)),
    Case("DROP TABLE s.u", (), ("TABLE s.u",)),
    Case("DROP TABLE s.t CASCADE", (), ("TABLE s.t",)),
    Case("DROP INDEX s.i", (), ("TABLE s.t",)),
    Case("DROP SCHEMA s CASCADE", (), ("SCHEMA s",)),
    Case("DROP DATABASE d", (), ("DATABASE d",)),
    Case("DROP CLUSTER c", (), ("CLUSTER c",)),
    Case("DROP CLUSTER REPLICA c.r", (), ("CLUSTER c",)),
    Case("ALTER TABLE s.u RENAME TO x", (), ("TABLE s.u",)),
    Case("ALTER TABLE s.u SET SCHEMA place", ("CREATE ON SCHEMA place",), ("TABLE s.u",)),
    Case("ALTER CLUSTER c RENAME TO x", (), ("CLUSTER c",)),
    Case("ALTER CLUSTER c SWAP WITH e", (), ("CLUSTER c", "CLUSTER e")),
    Case("ALTER TABLE s.u SET (RETAIN HISTORY = FOR '1 hour')", (), ("TABLE s.u",)),
    Case(
        "ALTER MATERIALIZED VIEW s.m SET CLUSTER c",
        ("CREATE ON CLUSTER c",),
        ("MATERIALIZED VIEW s.m",),
    ),
    Case("ALTER TABLE s.u OWNER TO boss", ("boss", "CREATE ON SCHEMA s"), ("TABLE s.u",)),
    Case("ALTER SCHEMA s OWNER TO boss", ("boss", "CREATE ON DATABASE materialize"), ("SCHEMA s",)),
    Case("ALTER CLUSTER c OWNER TO boss", ("boss",), ("CLUSTER c",)),
    Case("REASSIGN OWNED BY boss TO joe", ("boss",)),
    Case("DROP OWNED BY boss", ("boss",)),
    Case("ALTER DEFAULT PRIVILEGES FOR ROLE boss GRANT SELECT ON TABLES TO other", ("boss",)),
    Case("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO other"),
    Case("SELECT 1"),
    Case("SELECT name FROM mz_tables"),
    Case("SHOW TABLES"),
    Case("SHOW CREATE TABLE s.t"),
    Case("SET cluster = c"),
    Case("BEGIN"),
]
# Nothing but being one lets these through.
FOR_SUPERUSERS = [
    ("ALTER SYSTEM SET max_tables = 3", "permission denied to alter system"),
    ("GRANT CREATEDB ON SYSTEM TO joe", "permission denied to grant system privileges"),
    ("CREATE ROLE x SUPERUSER", "permission denied to create a superuser role"),
    ("ALTER ROLE joe SUPERUSER", "permission denied to alter a superuser role"),
    ("ALTER ROLE materialize NOSUPERUSER", "permission denied to alter a superuser role"),
    ("ALTER ROLE materialize SET cluster = c", "permission denied to alter a superuser role"),
    ("GRANT materialize TO joe", "permission denied to grant a superuser role"),
    (
        "ALTER DEFAULT PRIVILEGES FOR ALL ROLES GRANT SELECT ON TABLES TO joe",
        "permission denied to alter default privileges for all roles",
    ),
]


def prepared(rights: Sequence[str], owned: Sequence[str]) -> Database:
    database = new_database()
    database.experimental = True
    database.run(OBJECTS)
    for right in rights:
        database.run(f"GRANT {right} TO joe")
    for what in owned:
        database.run(f"ALTER {what} OWNER TO joe")
    return database


def role_id(snapshot: Snapshot, name: str) -> RoleId:
    role = snapshot.role_named(name)
    assert role is not None, name
    return role.role_id


def plan(sql: str, database: Database, role: str) -> Planned:
    snapshot = database.snapshot
    context = PlanContext(
        snapshot=snapshot,
        database="materialize",
        search_path=("public",),
        cluster="default",
        user=role,
        role_id=role_id(snapshot, role),
        experimental=True,
    )
    return plan_statement(parse_statement(sql), context)


def check(sql: str, database: Database, role: str = "joe") -> None:
    planned = plan(sql, database, role)
    authorize(planned, role_id(database.snapshot, role), "default", database.snapshot)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql)
def test_all_rights_are_enough_and_each_of_them_is_needed(case: Case) -> None:
    check(case.sql, prepared(case.grants, case.owned))
    for left_out in case.grants:
        others = [grant for grant in case.grants if grant != left_out]
        with pytest.raises(InsufficientPrivilege) as refused:
            check(case.sql, prepared(others, case.owned))
        assert missing(left_out) in refused.value.message
    for left_out in case.owned:
        others = [what for what in case.owned if what != left_out]
        with pytest.raises(InsufficientPrivilege, match="must be owner of"):
            check(case.sql, prepared(case.grants, others))


def missing(grant: str) -> str:
    """What the message says about a grant that is not there."""
    if " ON " not in grant:
        return f'must be a member of "{grant}"'
    privilege, target = grant.split(" ON ")
    kind = target.rpartition(" ")[0]
    if privilege in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        return f'"materialize.{target}"'
    return f"for {target}" if not kind else f'{kind} "'


@pytest.mark.parametrize(("sql", "message"), FOR_SUPERUSERS)
def test_some_things_only_superusers_do(sql: str, message: str) -> None:
    database = prepared([*ROLES, "CREATE ON DATABASE materialize"], ["SCHEMA s"])
    with pytest.raises(InsufficientPrivilege) as refused:
        check(sql, database)
    assert refused.value.message == message
    database.run("ALTER ROLE joe SUPERUSER")
    check(sql, database)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.sql)
def test_superusers_and_environments_without_checks_need_nothing(case: Case) -> None:
    database = prepared((), ())
    check(case.sql, database, "materialize")
    database.run("ALTER SYSTEM SET enable_rbac_checks = false")
    check(case.sql, database)


def test_the_error_says_who_needs_what() -> None:
    database = prepared(("USAGE ON SCHEMA s",), ())
    with pytest.raises(InsufficientPrivilege) as refused:
        check("UPDATE s.t SET a = 1", database)
    assert refused.value.sqlstate == "42501"
    assert refused.value.message == 'permission denied for TABLE "materialize.s.t"'
    assert refused.value.detail == (
        "The 'joe' role needs SELECT privileges on TABLE \"materialize.s.t\""
    )


@pytest.mark.parametrize("view", ["v", "m"])
def test_a_view_is_read_with_its_owner_s_rights(view: str) -> None:
    database = prepared(
        ("USAGE ON SCHEMA s", 'USAGE ON CLUSTER "default"', f"SELECT ON s.{view}"), ()
    )
    check(f"TABLE s.{view}", database)
    words = "VIEW" if view == "v" else "MATERIALIZED VIEW"
    database.run(f"ALTER {words} s.{view} OWNER TO boss")
    with pytest.raises(InsufficientPrivilege, match=r"materialize\.s") as refused:
        check(f"TABLE s.{view}", database)
    assert "'boss' role needs" in (refused.value.detail or "")
    database.run("GRANT USAGE ON SCHEMA s TO boss; GRANT SELECT ON s.t TO boss")
    check(f"TABLE s.{view}", database)
    database.run("REVOKE SELECT ON s.t FROM boss")
    with pytest.raises(InsufficientPrivilege, match=r'TABLE "materialize\.s\.t"'):
        check(f"TABLE s.{view}", database)


SECRET_SHOWN = [
    "SELECT a FROM place.peek AS OF 5",
    "SELECT a FROM place.peek AS OF AT LEAST 5",
    "SELECT a FROM place.above AS OF 5",
    "SUBSCRIBE place.peek AS OF 5",
    "COPY (SELECT a FROM place.peek AS OF 5) TO STDOUT",
    "DECLARE c CURSOR FOR SUBSCRIBE place.peek AS OF 5",
]


def peeked() -> Database:
    """joe may not read s.t, over which his view was; he has replaced it by one over s.u."""
    database = prepared(("USAGE ON SCHEMA s", "SELECT ON s.u", 'USAGE ON CLUSTER "default"'), ())
    database.run(
        "CREATE MATERIALIZED VIEW place.peek AS SELECT a FROM s.t;"
        "CREATE VIEW place.above AS SELECT a FROM place.peek;"
        "CREATE MATERIALIZED VIEW place.r REPLACING place.peek AS SELECT a FROM s.u;"
        "ALTER SCHEMA place OWNER TO joe; ALTER MATERIALIZED VIEW place.peek OWNER TO joe;"
        "ALTER VIEW place.above OWNER TO joe;"
    )
    with pytest.raises(InsufficientPrivilege, match=r"s\.t"):
        check("TABLE place.peek", database)
    database.run("ALTER MATERIALIZED VIEW place.peek APPLY REPLACEMENT place.r")
    return database


def finish(database: Database, name: str) -> None:
    (found,) = [one for one in database.snapshot.items.values() if one.name == name]
    op = FinishHandoverOp(item_id=found.item_id, global_id=found.global_id)
    updates = transact(database.snapshot, [op], now_ms=3_000, user=None).updates
    upper = Timestamp(database.snapshot.upper + 1)
    database.snapshot = database.snapshot.apply(updates, upper)


@pytest.mark.parametrize("sql", SECRET_SHOWN)
def test_what_an_earlier_definition_made_is_read_with_the_rights_it_took(sql: str) -> None:
    database = peeked()
    finish(database, "peek")
    check("TABLE place.peek", database)
    check("SUBSCRIBE place.above", database)
    with pytest.raises(InsufficientPrivilege, match=r'TABLE "materialize\.s\.t"'):
        check(sql, database)
    database.run("GRANT SELECT ON s.t TO joe")
    check(sql, database)


def test_while_it_changes_hands_a_view_may_show_either_definition() -> None:
    database = peeked()
    for sql in ("TABLE place.peek", "TABLE place.above"):
        with pytest.raises(InsufficientPrivilege, match=r'TABLE "materialize\.s\.t"'):
            check(sql, database)
    finish(database, "peek")
    check("TABLE place.above", database)


def test_a_time_that_was_chosen_earlier_is_looked_back_to() -> None:
    database = peeked()
    finish(database, "peek")
    planned = plan("TABLE place.peek", database, "joe")
    joe = role_id(database.snapshot, "joe")
    authorize(planned, joe, "default", database.snapshot)
    with pytest.raises(InsufficientPrivilege, match=r'TABLE "materialize\.s\.t"'):
        authorize(planned, joe, "default", database.snapshot, back=True)


def test_a_transaction_that_has_read_looks_back() -> None:
    """It goes on at its own time, though the same text was allowed outside of it."""
    database = peeked()
    finish(database, "peek")
    env: Any = SimpleNamespace(experimental=False, sink_directory=None)
    planner, (parsed,) = Planner(env), parse("SELECT a FROM place.peek")
    joe = role_id(database.snapshot, "joe")
    session = Session("joe", Variables({"cluster": "default"}), Login(joe, False, False))
    planner.request(parsed, (), (), session, database.snapshot)
    session.transaction = Transaction(Span.BLOCK)
    planner.request(parsed, (), (), session, database.snapshot)
    session.transaction.start_reading(Timestamp(5))
    with pytest.raises(InsufficientPrivilege, match=r'TABLE "materialize\.s\.t"'):
        planner.request(parsed, (), (), session, database.snapshot)
    session.transaction = None
    planner.request(parsed, (), (), session, database.snapshot)


def test_the_history_of_what_was_dropped_is_for_superusers() -> None:
    database = peeked()
    finish(database, "peek")
    database.run("GRANT SELECT ON s.t TO joe; DROP TABLE s.t CASCADE")
    check("TABLE place.peek", database)
    with pytest.raises(InsufficientPrivilege, match='history of materialized view "peek"'):
        check(SECRET_SHOWN[0], database)
    check(SECRET_SHOWN[0], database, "materialize")
    database.run("ALTER ROLE joe SUPERUSER; GRANT SELECT ON place.peek TO other")
    database.run('GRANT USAGE ON SCHEMA place TO other; GRANT USAGE ON CLUSTER "default" TO other')
    check(SECRET_SHOWN[0], database, "other")


def test_a_replacement_that_was_given_away_is_not_applied_by_the_views_owner() -> None:
    database = prepared((), BOTH)
    database.run("ALTER MATERIALIZED VIEW s.r OWNER TO other")
    for rest in ("", " WHEN READY"):
        with pytest.raises(InsufficientPrivilege, match=r"owner of MATERIALIZED VIEW .*\.r"):
            check(f"ALTER MATERIALIZED VIEW s.n APPLY REPLACEMENT s.r{rest}", database)


def test_groups_lend_their_rights_and_what_they_own() -> None:
    database = prepared(("boss",), ())
    for grant in READ:
        database.run(f"GRANT {grant} TO boss")
    check("SELECT a FROM s.t", database)
    database.run("ALTER TABLE s.u OWNER TO boss")
    check("DROP TABLE s.u", database)
    with pytest.raises(InsufficientPrivilege, match=r"owner of TABLE materialize\.s\.u"):
        check("DROP TABLE s.u", database, "other")


def test_what_drops_with_an_object_need_not_be_one_s_own() -> None:
    database = prepared((), ("TABLE s.t",))
    database.run("ALTER VIEW s.v OWNER TO other")
    check("DROP TABLE s.t CASCADE", database)
    with pytest.raises(InsufficientPrivilege, match=r"VIEW materialize\.s\.v"):
        check("DROP VIEW s.v", database)


@pytest.mark.parametrize(
    "sql", ["DROP CLUSTER REPLICA c.{}", "ALTER CLUSTER REPLICA c.{} RENAME TO y"]
)
@pytest.mark.parametrize("replica", ["lent", "internal"])
def test_what_operators_lend_is_theirs_whoever_owns_the_cluster(sql: str, replica: str) -> None:
    database = prepared((), ())
    database.user = "mz_system"
    database.run("CREATE CLUSTER PROFILE c.p REPLICAS (lent (SIZE '1'))")
    database.run("CREATE CLUSTER REPLICA c.internal SIZE '1', INTERNAL")
    database.user = "materialize"
    database.run("ALTER CLUSTER c OWNER TO joe")
    check(sql.format("r"), database)
    with pytest.raises(InsufficientPrivilege, match="must be owner of"):
        check(sql.format(replica), database)
    check(sql.format(replica), database, "mz_support")


def test_a_role_that_is_gone_may_do_nothing_but_end_its_transaction() -> None:
    database = prepared((), ())
    gone = role_id(database.snapshot, "joe")
    planned = [plan(sql, database, "joe") for sql in ("SELECT 1", "CREATE TABLE x (a int)")]
    ending = plan("ROLLBACK", database, "joe")
    database.run("DROP ROLE joe")
    for each in planned:
        with pytest.raises(InsufficientPrivilege, match="concurrently dropped"):
            authorize(each, gone, "default", database.snapshot)
    authorize(ending, gone, "default", database.snapshot)
