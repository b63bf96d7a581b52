"""Goal: over a real connection, roles may do what they were granted and nothing else.

Every test uses roles and a schema of its own: the server is shared.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]
DENIED = psycopg.errors.InsufficientPrivilege


@dataclass
class Site:
    """The owner's session, and a role that has been granted nothing."""

    server: Server
    owner: Connection
    schema: str
    user: str

    def run(self, statement: str) -> None:
        """By the owner; `s` is the schema, `u` the role."""
        self.owner.execute(self.text(statement).encode())

    def text(self, statement: str) -> str:
        return statement.replace("$s", self.schema).replace("$u", self.user)

    def connect(self) -> Connection:
        return self.server.connect(user=self.user)


@pytest.fixture
def site(server: Server) -> Iterator[Site]:
    name = uuid.uuid4().hex[:8]
    with server.connect() as owner:
        found = Site(server, owner, f"s{name}", f"u{name}")
        for statement in (
            "CREATE ROLE $u",
            "CREATE SCHEMA $s",
            "GRANT USAGE ON SCHEMA $s TO $u",
            "CREATE TABLE $s.t (a int)",
            "INSERT INTO $s.t VALUES (1)",
        ):
            found.run(statement)
        yield found
        found.run("DROP OWNED BY $u CASCADE")
        found.run("DROP SCHEMA $s CASCADE")
        found.run("DROP ROLE $u")


READS = [
    "SELECT * FROM $s.t",
    "SELECT count(*) FROM $s.t WHERE a = 1",
    "COPY $s.t TO STDOUT",
    "SUBSCRIBE $s.t",
    "EXPLAIN SELECT * FROM $s.t",
    "EXPLAIN TIMESTAMP FOR SELECT * FROM $s.t",
]


@pytest.mark.parametrize("statement", READS)
def test_no_way_of_reading_gets_around_select(site: Site, statement: str) -> None:
    with site.connect() as connection, pytest.raises(DENIED) as refused:
        connection.execute(site.text(statement).encode())
    assert refused.value.diag.message_primary == (
        f'permission denied for TABLE "materialize.{site.schema}.t"'
    )
    assert "needs SELECT privileges" in (refused.value.diag.message_detail or "")


def test_reads_work_once_granted_and_not_once_revoked(site: Site) -> None:
    query = site.text("SELECT a FROM $s.t").encode()
    with site.connect() as connection:
        for _ in range(3):
            site.run("GRANT SELECT ON $s.t TO $u")
            assert connection.execute(query, prepare=True).fetchall() == [(1,)]
            assert connection.execute(query, prepare=True).fetchall() == [(1,)]
            site.run("REVOKE SELECT ON $s.t FROM $u")
            with pytest.raises(DENIED):
                connection.execute(query, prepare=True)


def test_writes_take_their_own_privileges(site: Site) -> None:
    with site.connect() as connection:
        for privilege, statement in (
            ("INSERT", "INSERT INTO $s.t VALUES (2)"),
            ("UPDATE, SELECT", "UPDATE $s.t SET a = a + 1"),
            ("DELETE, SELECT", "DELETE FROM $s.t WHERE a > 1"),
        ):
            text = site.text(statement).encode()
            with pytest.raises(DENIED):
                connection.execute(text)
            site.run(f"GRANT {privilege} ON $s.t TO $u")
            assert connection.execute(text).rowcount > 0
            site.run("REVOKE ALL ON $s.t FROM $u")
    assert site.owner.execute(site.text("SELECT a FROM $s.t").encode()).fetchall() == []


BLOCKS = [
    ("INSERT", "INSERT", "INSERT INTO $s.t VALUES (2)"),
    ("INSERT, SELECT", "SELECT", "INSERT INTO $s.t VALUES (2) RETURNING a"),
    ("INSERT, SELECT", "INSERT", "INSERT INTO $s.t SELECT a + 1 FROM $s.t"),
    ("UPDATE, SELECT", "UPDATE", "UPDATE $s.t SET a = a + 1"),
    ("UPDATE, SELECT", "SELECT", "UPDATE $s.t SET a = a + 1"),
    ("DELETE, SELECT", "DELETE", "DELETE FROM $s.t"),
]


@pytest.mark.parametrize(("granted", "revoked", "statement"), BLOCKS)
def test_a_block_commits_only_what_is_still_allowed(
    site: Site, granted: str, revoked: str, statement: str
) -> None:
    text = site.text(statement).encode()
    rows = site.text("SELECT a FROM $s.t ORDER BY a").encode()
    with site.connect() as connection:
        site.run(f"GRANT {granted} ON $s.t TO $u")
        connection.execute("BEGIN")
        connection.execute(text)
        site.run(f"REVOKE {revoked} ON $s.t FROM $u")
        with pytest.raises(DENIED, match=rf"{site.schema}\.t"):
            connection.execute("COMMIT")
        assert site.owner.execute(rows).fetchall() == [(1,)]
        site.run(f"GRANT {granted} ON $s.t TO $u")
        connection.execute("BEGIN")
        connection.execute(text)
        site.run("CREATE TABLE $s.beside (a int)")
        connection.execute("COMMIT")
    assert site.owner.execute(rows).fetchall() != [(1,)]


def test_copied_rows_of_a_block_are_not_committed_without_the_right(site: Site) -> None:
    with site.connect() as connection, connection.cursor() as cursor:
        site.run("GRANT INSERT ON $s.t TO $u")
        cursor.execute("BEGIN")
        with cursor.copy(site.text("COPY $s.t FROM STDIN").encode()) as copy:
            copy.write_row((5,))
        site.run("REVOKE USAGE ON SCHEMA $s FROM $u")
        with pytest.raises(DENIED, match=site.schema):
            cursor.execute("COMMIT")
        site.run("GRANT USAGE ON SCHEMA $s TO $u")
    assert site.owner.execute(site.text("SELECT a FROM $s.t").encode()).fetchall() == [(1,)]


def test_a_block_is_told_that_its_table_is_gone(site: Site) -> None:
    with site.connect() as connection:
        site.run("GRANT INSERT ON $s.t TO $u")
        connection.execute("BEGIN")
        connection.execute(site.text("INSERT INTO $s.t VALUES (2)").encode())
        site.run("DROP TABLE $s.t")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("COMMIT")


def test_copy_in_is_refused_before_any_row_is_taken(site: Site) -> None:
    with site.connect() as connection, connection.cursor() as cursor:
        text = site.text("COPY $s.t FROM STDIN").encode()
        with pytest.raises(DENIED), cursor.copy(text) as copy:
            copy.write_row((5,))
        site.run("GRANT INSERT ON $s.t TO $u")
        with cursor.copy(text) as copy:
            copy.write_row((5,))
    assert (5,) in site.owner.execute(site.text("SELECT a FROM $s.t").encode()).fetchall()


def test_a_cursor_is_refused_when_it_is_declared(site: Site) -> None:
    declare = site.text("DECLARE c CURSOR FOR SELECT a FROM $s.t").encode()
    with site.connect() as connection:
        connection.execute("BEGIN")
        with pytest.raises(DENIED):
            connection.execute(declare)
        connection.execute("ROLLBACK")
        site.run("GRANT SELECT ON $s.t TO $u")
        connection.execute("BEGIN")
        connection.execute(declare)
        assert connection.execute("FETCH ALL FROM c").fetchall() == [(1,)]
        connection.execute("ROLLBACK")


def test_a_view_lends_its_owner_s_rights_and_only_those(site: Site) -> None:
    site.run("CREATE VIEW $s.v AS SELECT a FROM $s.t")
    site.run("GRANT SELECT ON $s.v TO $u")
    with site.connect() as connection:
        rows = connection.execute(site.text("SELECT a FROM $s.v").encode()).fetchall()
        assert rows == [(1,)]
        with pytest.raises(DENIED, match="TABLE"):
            connection.execute(site.text("SELECT a FROM $s.t").encode())
        site.run("GRANT CREATE ON SCHEMA $s TO $u")
        connection.execute(site.text("CREATE VIEW $s.mine AS SELECT a FROM $s.t").encode())
        with pytest.raises(DENIED, match="TABLE"):
            connection.execute(site.text("SELECT a FROM $s.mine").encode())
        connection.execute(site.text("DROP VIEW $s.mine").encode())


def test_the_cluster_must_be_granted_too(site: Site) -> None:
    site.run("GRANT SELECT ON $s.t TO $u")
    site.run("GRANT CREATE ON SCHEMA $s TO $u")
    query = site.text("SELECT a FROM $s.t").encode()
    with site.connect() as connection:
        site.run('REVOKE USAGE ON CLUSTER "default" FROM PUBLIC')
        try:
            with pytest.raises(DENIED, match='CLUSTER "default"'):
                connection.execute(query)
            assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            site.run('GRANT USAGE ON CLUSTER "default" TO PUBLIC')
        assert connection.execute(query).fetchall() == [(1,)]
        create = site.text("CREATE MATERIALIZED VIEW $s.m AS SELECT a FROM $s.t").encode()
        with pytest.raises(DENIED, match='CLUSTER "default"'):
            connection.execute(create)


def test_what_is_not_one_s_own_cannot_be_changed(site: Site) -> None:
    with site.connect() as connection:
        for statement in (
            "DROP TABLE $s.t",
            "DROP SCHEMA $s CASCADE",
            "ALTER TABLE $s.t RENAME TO x",
            "ALTER TABLE $s.t OWNER TO $u",
            "GRANT SELECT ON $s.t TO $u",
            "CREATE INDEX ON $s.t (a)",
        ):
            with pytest.raises(DENIED, match="must be owner of"):
                connection.execute(site.text(statement).encode())
        site.run("ALTER TABLE $s.t OWNER TO $u")
        connection.execute(site.text("DROP TABLE $s.t").encode())


def test_who_one_is_is_told(site: Site) -> None:
    with site.connect() as connection:
        assert connection.info.parameter_status("is_superuser") == "off"
        told = connection.execute(
            "SELECT current_user, session_user, mz_is_superuser(), rolsuper, rolcreatedb"
            " FROM pg_roles WHERE rolname = current_user"
        )
        assert told.fetchone() == (site.user, site.user, False, False, False)
        table = f"{site.schema}.t"
        asked = "SELECT has_table_privilege(%s, 'SELECT'), has_schema_privilege(%s, 'USAGE')"
        assert connection.execute(asked, (table, site.schema)).fetchone() == (False, True)
        site.run("GRANT SELECT ON $s.t TO $u")
        assert connection.execute(asked, (table, site.schema)).fetchone() == (True, True)
        mine = connection.execute(
            "SELECT name, privilege_type FROM mz_internal.mz_show_my_object_privileges"
            " WHERE schema = %s",
            (site.schema,),
        )
        assert mine.fetchall() == [("t", "SELECT")]


def test_a_session_hears_that_its_role_is_no_superuser_any_more(site: Site) -> None:
    site.run("ALTER ROLE $u SUPERUSER")
    asked = site.text("INSERT INTO $s.t VALUES (3) RETURNING mz_is_superuser()").encode()
    with site.connect() as connection:
        assert connection.execute("SELECT mz_is_superuser()").fetchone() == (True,)
        assert connection.execute(asked).fetchone() == (True,)
        site.run("ALTER ROLE $u NOSUPERUSER")
        site.run("GRANT INSERT, SELECT ON $s.t TO $u")
        assert connection.execute("SELECT mz_is_superuser()").fetchone() == (False,)
        assert connection.execute(asked).fetchone() == (False,)


def test_system_users_read_what_they_should(site: Site) -> None:
    host, port = site.server.internal[0].rsplit(":", 1)
    with psycopg.connect(
        host=host, port=int(port), user="mz_support", dbname="materialize", autocommit=True
    ) as support:
        found = support.execute("SELECT count(*) FROM mz_tables WHERE id LIKE 'u%'").fetchone()
        assert found is not None
        assert found[0] > 0
        with pytest.raises(DENIED):
            support.execute(site.text("SELECT * FROM $s.t").encode())
        with pytest.raises(DENIED):
            support.execute("ALTER SYSTEM SET max_tables = 1")
    with psycopg.connect(
        host=host, port=int(port), user="mz_system", dbname="materialize", autocommit=True
    ) as system:
        assert system.execute(site.text("SELECT a FROM $s.t").encode()).fetchall() == [(1,)]
