"""Names, sizes and moments that nobody hoped for: a clear error, and nothing half done."""

import threading
import uuid

import psycopg
import pytest

from tests.support.server import Server

LONG = "n" * 10_000
BAD = [
    ("CREATE CLUSTER {c} SIZE 'unheard of'", "22023", "unknown cluster replica size"),
    ("CREATE CLUSTER {c} SIZE 'a''b'", "22023", "unknown cluster replica size \"a'b\""),
    ('CREATE CLUSTER {c} SIZE \'a\nb"c\'', "22023", "unknown cluster replica size 'a\\nb\"c'"),
    ("CREATE CLUSTER {c} SIZE ''", "22023", "unknown cluster replica size ''"),
    (f"CREATE CLUSTER {{c}} SIZE '{LONG}'", "22023", "unknown cluster replica size nnn"),
    (f"CREATE CLUSTER {LONG} SIZE '1'", "42622", "identifier length exceeds 255 bytes"),
    (f"CREATE CLUSTER {{c}} REPLICAS ({LONG} (SIZE '1'))", "42622", "exceeds 255 bytes"),
    (f"ALTER CLUSTER {{there}} RENAME TO {LONG}", "42622", "exceeds 255 bytes"),
    ("CREATE CLUSTER {c} REPLICAS (a (SIZE '1'), b (SIZE 'x'))", "22023", "size x"),
    ("CREATE CLUSTER {c} SIZE '1', REPLICATION FACTOR 99999999999999999999", "22023", "FACTOR"),
    ("CREATE CLUSTER {c} SIZE '1', REPLICATION FACTOR 1.5", "22023", "REPLICATION FACTOR"),
    ("ALTER CLUSTER {there} SET (SIZE 'x', REPLICATION FACTOR 3)", "22023", "size x"),
    ("ALTER CLUSTER {there} SET (SIZE '2') WITH (WAIT UNTIL READY)", "42601", "Expected"),
    (
        "ALTER CLUSTER {there} SET (SIZE '2') WITH (WAIT UNTIL READY (ON TIMEOUT COMMIT))",
        "42601",
        "WAIT UNTIL READY needs a TIMEOUT",
    ),
    ("ALTER CLUSTER {there} SET (SIZE '2') WITH (WAIT FOR 'a while')", "22023", "invalid DURATION"),
    ("CREATE CLUSTER REPLICA {there}.r SIZE '1'", "0A000", "cannot modify managed cluster"),
    ("DROP CLUSTER REPLICA {there}.r1", "42704", "has no CLUSTER REPLICA"),
]  # fmt: skip


@pytest.fixture(scope="module")
def there(server: Server) -> str:
    """A cluster that costs no process."""
    name = f"c_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(f"CREATE CLUSTER {name} SIZE '1', REPLICATION FACTOR 0".encode())
    return name


def clusters(connection: "psycopg.Connection[tuple]") -> list[tuple]:
    query = (
        "SELECT c.id, c.name, c.size, c.replication_factor, r.id, r.name FROM mz_clusters c"
        " LEFT JOIN mz_cluster_replicas r ON r.cluster_id = c.id ORDER BY 1, 5"
    )
    return connection.execute(query).fetchall()


@pytest.mark.parametrize(("sql", "code", "message"), BAD, ids=[sql[:50] for sql, _, _ in BAD])
def test_nothing_is_left_of_a_refused_statement(
    server: Server, there: str, sql: str, code: str, message: str
) -> None:
    with server.connect() as connection:
        before = clusters(connection)
        name = f"c_{uuid.uuid4().hex[:8]}"
        with pytest.raises(psycopg.Error) as error:
            connection.execute(sql.replace("{c}", name).replace("{there}", there).encode())
        assert error.value.sqlstate == code
        assert message in (error.value.diag.message_primary or "")
        assert len(error.value.diag.message_primary or "") < 300
        assert clusters(connection) == before


def test_names_with_quotes_and_lines_stay_what_they_are(server: Server) -> None:
    name = f'a"b\nc {uuid.uuid4().hex[:8]}'
    quoted = '"' + name.replace('"', '""') + '"'
    with server.connect() as connection:
        connection.execute(f"CREATE CLUSTER {quoted} SIZE '1', REPLICATION FACTOR 0".encode())
        ((shown, sql),) = connection.execute(f"SHOW CREATE CLUSTER {quoted}".encode()).fetchall()
        assert shown == name
        connection.execute(f"DROP CLUSTER {quoted}".encode())
        connection.execute(str(sql).encode())
        ((again, same),) = connection.execute(f"SHOW CREATE CLUSTER {quoted}".encode()).fetchall()
        assert (again, same) == (name, sql)
        connection.execute(f"DROP CLUSTER {quoted}".encode())


def test_a_session_whose_cluster_was_dropped_is_told_and_goes_on(server: Server) -> None:
    name = f"c_{uuid.uuid4().hex[:8]}"
    notices: list[tuple[str | None, str | None]] = []
    with server.connect() as connection:
        connection.add_notice_handler(lambda d: notices.append((d.sqlstate, d.message_primary)))
        connection.execute(f"CREATE CLUSTER {name} SIZE '1', REPLICATION FACTOR 0".encode())
        connection.execute(f"CREATE TABLE t_{name} (a int)".encode())
        connection.execute(f"SET cluster = {name}".encode())
        assert notices == []
        connection.execute(f"DROP CLUSTER {name}".encode())
        assert notices == [("MZ003", f'active cluster "{name}" has been dropped')]
        with pytest.raises(psycopg.Error, match=f"unknown cluster '{name}'"):
            connection.execute(f"SELECT * FROM t_{name}".encode())
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        assert connection.execute("SELECT count(*) > 0 FROM mz_clusters").fetchall() == [(True,)]
        connection.execute(f"SET cluster = {name}".encode())
        assert notices[-1] == ("MZ007", f'cluster "{name}" does not exist')
        connection.execute("RESET cluster")
        assert connection.execute(f"SELECT * FROM t_{name}".encode()).fetchall() == []
        connection.execute(f"DROP TABLE t_{name}".encode())


def test_a_session_whose_database_was_dropped_is_told_and_goes_on(server: Server) -> None:
    name = f"d_{uuid.uuid4().hex[:8]}"
    notices: list[tuple[str | None, str | None]] = []
    with server.connect() as connection:
        connection.add_notice_handler(lambda d: notices.append((d.sqlstate, d.message_primary)))
        connection.execute(f"CREATE DATABASE {name}".encode())
        connection.execute(f"SET database = {name}".encode())
        connection.execute(f"DROP SCHEMA {name}.public".encode())
        assert notices == []
        connection.execute("SET search_path = public")
        assert notices.pop() == ("MZ008", "no schema of the search path exists: public")
        connection.execute(f"DROP DATABASE {name}".encode())
        assert notices == [("MZ002", f'active database "{name}" has been dropped')]
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        connection.execute(f"SET database = {name}".encode())
        assert notices[1:] == [("MZ006", f'database "{name}" does not exist')]
        connection.execute("SET current_object_missing_warnings = off")
        connection.execute(f"SET database = {name}".encode())
        connection.execute("RESET database")
        assert len(notices) == 2


def test_an_index_never_outlives_the_cluster_that_it_was_put_into(server: Server) -> None:
    """Goal: of DROP CLUSTER and CREATE INDEX IN CLUSTER one is refused. Method: both at once."""
    mark = uuid.uuid4().hex[:8]
    with server.connect() as connection:
        connection.execute(f"CREATE TABLE t_{mark} (a int)".encode())
    outcomes = set()
    for number in range(12):
        name = f"c_{mark}_{number}"
        with server.connect() as connection:
            connection.execute(f"CREATE CLUSTER {name} SIZE '1', REPLICATION FACTOR 0".encode())
        outcomes.add(
            race(
                server,
                f"DROP CLUSTER {name}",
                f"CREATE INDEX i_{mark}_{number} IN CLUSTER {name} ON t_{mark} (a)",
            )
        )
    assert outcomes <= {(None, "42704"), ("2BP01", None)}
    with server.connect() as connection:
        lost = connection.execute(
            "SELECT i.name FROM mz_indexes i LEFT JOIN mz_clusters c ON c.id = i.cluster_id"
            " WHERE c.id IS NULL"
        ).fetchall()
        assert lost == []
        connection.execute(f"DROP TABLE t_{mark} CASCADE".encode())


def race(server: Server, *statements: str) -> tuple[str | None, ...]:
    """The SQLSTATE that each of the statements failed with, begun together; None: it worked."""
    barrier = threading.Barrier(len(statements))
    codes: dict[str, str | None] = {}

    def run(sql: str) -> None:
        with server.connect() as connection:
            connection.execute("SELECT 1")
            barrier.wait()
            try:
                connection.execute(sql.encode())
                codes[sql] = None
            except psycopg.Error as error:
                codes[sql] = error.sqlstate

    threads = [threading.Thread(target=run, args=(sql,)) for sql in statements]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return tuple(codes[sql] for sql in statements)
