"""Goal: conversations on the wire end here as they end in PostgreSQL.

Method: each is held with both servers, through libpq, and what was told is compared.
"""

from collections.abc import Callable, Iterator
from typing import TypeAlias

import psycopg
import pytest
from psycopg import pq

from tests.support.server import Server

Connection: TypeAlias = "psycopg.Connection[tuple]"
Talk: TypeAlias = Callable[[Connection], object]
Both: TypeAlias = Callable[[Talk], object]


@pytest.fixture
def both(server: Server, postgres_dsn: str) -> Iterator[Both]:
    """Hold a conversation with each; they must agree, and what they said is returned."""

    def hold(talk: Talk) -> object:
        with psycopg.connect(postgres_dsn, autocommit=True) as theirs:
            theirs.execute("CREATE TEMP TABLE told (a int, b text)")
            expected = talk(theirs)
        with server.connect() as ours:
            ours.execute("DROP TABLE IF EXISTS told")
            ours.execute("CREATE TABLE told (a int, b text)")
            found = talk(ours)
        assert found == expected
        return found

    yield hold
    with server.connect() as connection:
        connection.execute("DROP TABLE IF EXISTS told")


def rows(result: pq.abc.PGresult) -> object:
    """Rows, or the command's tag, or the error's code."""
    if result.status == pq.ExecStatus.TUPLES_OK:
        return [
            [result.get_value(row, column) for column in range(result.nfields)]
            for row in range(result.ntuples)
        ]
    if result.status == pq.ExecStatus.COMMAND_OK:
        return result.command_status
    return result.error_field(pq.DiagnosticField.SQLSTATE)


def test_sql_and_the_protocol_name_the_same_statements(both: Both) -> None:
    def talk(connection: Connection) -> object:
        wire = connection.pgconn
        told = [rows(wire.prepare(b"by_parse", b"SELECT $1::int + 1"))]
        told.append(rows(wire.exec_(b"EXECUTE by_parse (41)")))
        told.append(rows(wire.exec_(b"PREPARE by_sql AS SELECT 7")))
        told.append(rows(wire.exec_prepared(b"by_sql", [])))
        told.append(rows(wire.prepare(b"by_sql", b"SELECT 8")))
        told.append(rows(wire.exec_(b"DEALLOCATE by_parse")))
        told.append(rows(wire.exec_prepared(b"by_parse", [b"1"])))
        return told

    found = both(talk)
    assert found == [b"", [[b"42"]], b"PREPARE", [[b"7"]], b"42P05", b"DEALLOCATE", b"26000"]


def test_a_statement_whose_rows_have_changed_is_refused(both: Both) -> None:
    def talk(connection: Connection) -> object:
        wire = connection.pgconn
        wire.prepare(b"stars", b"SELECT * FROM told")
        wire.prepare(b"column", b"SELECT b FROM told")
        connection.execute("DROP TABLE told")
        connection.execute("CREATE TABLE told (b text, c int)")
        told = [rows(wire.describe_prepared(b"stars")), rows(wire.exec_prepared(b"stars", []))]
        told += [rows(wire.exec_(b"EXECUTE stars")), rows(wire.exec_prepared(b"column", []))]
        connection.execute("DROP TABLE told")
        return [*told, rows(wire.exec_prepared(b"column", []))]

    assert both(talk) == [b"0A000", b"0A000", b"0A000", [], b"42P01"]


def test_cursors_are_portals(both: Both) -> None:
    def talk(connection: Connection) -> object:
        wire = connection.pgconn
        told = [rows(wire.exec_(b"DECLARE lone CURSOR FOR SELECT 1"))]
        both_in_one = b"DECLARE early CURSOR FOR VALUES (1), (2); FETCH 1 FROM early"
        told.append(rows(wire.exec_(both_in_one)))
        wire.exec_(b"BEGIN")
        wire.exec_(b"DECLARE c CURSOR FOR VALUES (1), (2), (3)")
        shape = wire.describe_portal(b"c")
        told.append((shape.nfields, shape.fname(0)))
        told.append(rows(wire.exec_(b"FETCH 2 FROM c")))
        told.append(rows(wire.exec_(b"DECLARE c CURSOR FOR SELECT 1")))
        told.append(rows(wire.exec_(b"ROLLBACK")))
        told.append(rows(wire.exec_(b"FETCH 1 FROM c")))
        return told

    assert both(talk) == [
        b"25P01", [[b"1"]], (1, b"column1"), [[b"1"], [b"2"]], b"42P03", b"ROLLBACK", b"34000",
    ]  # fmt: skip


def test_going_back_to_a_savepoint(both: Both) -> None:
    def talk(connection: Connection) -> object:
        wire = connection.pgconn
        told = [rows(wire.exec_(text)) for text in (
            b"SAVEPOINT outside",
            b"BEGIN",
            b"INSERT INTO told VALUES (1, 'kept')",
            b"SAVEPOINT one",
            b"INSERT INTO told VALUES (2, 'gone')",
            b"SET LOCAL application_name = 'gone'",
            b"SAVEPOINT two",
            b"INSERT INTO told VALUES (3, 'gone')",
            b"ROLLBACK TO SAVEPOINT one",
            b"ROLLBACK TO two",
            b"INSERT INTO told VALUES (9, 'not run')",
            b"ROLLBACK TO one",
            b"INSERT INTO told VALUES (4, 'kept')",
            b"SAVEPOINT three",
            b"INSERT INTO told VALUES (5, 'kept')",
            b"RELEASE SAVEPOINT three",
            b"RELEASE three",
            b"ROLLBACK TO one",
            b"INSERT INTO told VALUES (6, 'kept')",
            b"COMMIT",
            b"SELECT a FROM told ORDER BY a",
            b"SHOW application_name",
        )]  # fmt: skip
        return told

    found = both(talk)
    assert isinstance(found, list)
    assert found[-2:] == [[[b"1"], [b"6"]], [[b""]]]


def _writes_and_fails(connection: Connection) -> None:
    with connection.pipeline():
        connection.execute("INSERT INTO told VALUES (%s, 'lost')", (1,))
        connection.execute("INSERT INTO told VALUES (%s, 'lost')", (2,))
        connection.execute("SELECT 1 / 0")


def test_statements_before_one_sync_are_one_transaction(both: Both) -> None:
    def talk(connection: Connection) -> object:
        with pytest.raises(psycopg.errors.DivisionByZero):
            _writes_and_fails(connection)
        first = connection.execute("SELECT count(*) FROM told").fetchall()
        with connection.pipeline():
            connection.execute("INSERT INTO told VALUES (%s, 'kept')", (3,))
            connection.execute("INSERT INTO told VALUES (%s, 'kept')", (4,))
        second = connection.execute("SELECT a FROM told ORDER BY a").fetchall()
        with pytest.raises(psycopg.errors.DivisionByZero):
            connection.execute("INSERT INTO told VALUES (5, 'lost'); SELECT 1 / 0")
        return first, second, connection.execute("SELECT a FROM told ORDER BY a").fetchall()

    assert both(talk) == ([(0,)], [(3,), (4,)], [(3,), (4,)])


def test_a_pipeline_may_read_what_it_has_written(both: Both) -> None:
    def talk(connection: Connection) -> object:
        with connection.pipeline():
            connection.execute("INSERT INTO told VALUES (%s, 'x')", (1,))
            read = connection.execute("SELECT a FROM told WHERE a = %s", (1,))
            connection.execute("INSERT INTO told VALUES (%s, 'y')", (2,))
        return read.fetchall(), connection.execute("SELECT count(*) FROM told").fetchall()

    assert both(talk) == ([(1,)], [(2,)])


def test_many_rows_by_executemany(both: Both) -> None:
    def talk(connection: Connection) -> object:
        with connection.cursor() as cursor:
            cursor.executemany("INSERT INTO told VALUES (%s, %s)", [(n, "n") for n in range(50)])
            values = [("1",), ("2",), ("x",)]
            with pytest.raises(psycopg.errors.InvalidTextRepresentation):
                cursor.executemany("INSERT INTO told VALUES (%s::text::int, 'm')", values)
        return connection.execute("SELECT count(*) FROM told").fetchall()

    assert both(talk) == [(50,)]


@pytest.mark.parametrize(
    "options",
    [
        "FORMAT csv", "FORMAT csv, DELIMITER ';', NULL 'nil'", "FORMAT csv, QUOTE ''''",
        "FORMAT text", "FORMAT text, DELIMITER '|', NULL ''", "FORMAT binary",
    ],
)  # fmt: skip
def test_copies_are_byte_for_byte_the_same(both: Both, options: str) -> None:
    values = (
        (1, "plain"), (2, None), (None, ""), (3, 'a "quoted" word'), (4, "a,b;c|d\te"),
        (5, "two\nlines\r"), (6, "back\\slash"), (7, "\\."), (8, "it's"), (9, "nil"), (10, "ü"),
    )  # fmt: skip

    def talk(connection: Connection) -> object:
        with connection.cursor() as cursor:
            for value in values:
                cursor.execute("INSERT INTO told VALUES (%s, %s)", value)
            query = f"COPY (SELECT * FROM told ORDER BY a, b) TO STDOUT WITH ({options})"
            with cursor.copy(query) as out:
                copied = [bytes(block) for block in out]
            connection.execute("DELETE FROM told")
            with cursor.copy(f"COPY told FROM STDIN WITH ({options})") as into:
                for block in copied:
                    for cut in range(0, len(block), 7):
                        into.write(block[cut : cut + 7])
            return copied, cursor.execute("SELECT * FROM told ORDER BY a, b").fetchall()

    both(talk)


def test_bad_binary_copies_are_refused(both: Both) -> None:
    start = b"PGCOPY\n\xff\r\n\0" + bytes(8)
    end = b"\xff\xff"
    row = b"\0\2" + b"\0\0\0\4" + b"\0\0\0\1" + b"\0\0\0\1x"
    spoilt = (
        b"not a copy at all", b"", start[:11], start + b"\0\1" + end, start + row[:7],
        start + row + end + b"more",
        b"PGCOPY\n\xff\r\n\0" + b"\0\1\0\0" + bytes(4) + end,
    )  # fmt: skip

    def talk(connection: Connection) -> object:
        told: list[object] = []
        for sent in spoilt:
            try:
                with connection.cursor().copy("COPY told FROM STDIN (FORMAT binary)") as into:
                    into.write(sent)
                told.append("taken")
            except psycopg.Error as error:
                told.append(error.sqlstate)
        with connection.cursor().copy("COPY told FROM STDIN (FORMAT binary)") as into:
            into.write(start + row + row + end)
        return told, connection.execute("SELECT * FROM told").fetchall()

    found = both(talk)
    assert isinstance(found, tuple)
    assert found[1] == [(1, "x"), (1, "x")]


def test_floats_have_the_digits_that_were_asked_for(both: Both) -> None:
    def talk(connection: Connection) -> object:
        told = []
        for digits in (-15, -3, 0, 1, 3):
            connection.execute(f"SET extra_float_digits = {digits}")
            query = "SELECT 0.1::float8 + 0.2::float8, 1e20::float8 / 3, 'NaN'::float8, 0.1::float4"
            told.append(rows(connection.pgconn.exec_(query.encode())))
            with connection.cursor().copy(f"COPY ({query}) TO STDOUT") as out:
                told.append([bytes(line) for line in out])
        told.append(rows(connection.pgconn.exec_(b"SET extra_float_digits = 4")))
        return told

    both(talk)


def test_notices_below_the_wanted_severity_are_kept_back(both: Both) -> None:
    def talk(connection: Connection) -> object:
        told: list[str | None] = []
        connection.add_notice_handler(lambda notice: told.append(notice.severity))
        for least in ("notice", "warning", "error"):
            connection.execute(f"SET client_min_messages = {least}")
            connection.execute("DROP TABLE IF EXISTS was_never_there")
            connection.execute("COMMIT")
        return told

    assert both(talk) == ["NOTICE", "WARNING", "WARNING"]


def test_a_relation_may_be_a_parameter(both: Both) -> None:
    def talk(connection: Connection) -> object:
        query = "SELECT CAST(%s AS regclass)::oid = 1259, %s::regclass::text"
        told = [connection.execute(query, ("pg_catalog.pg_class", "pg_type")).fetchall()]
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT CAST(%s AS regclass)::oid", ("nowhere",))
        return told

    assert both(talk) == [[(True, "pg_type")]]


def test_variables_that_cannot_be_changed(both: Both) -> None:
    def talk(connection: Connection) -> object:
        texts = (b"SET server_version = 'x'", b"SET client_min_messages = 'bad'", b"DISCARD ALL")
        told = [rows(connection.pgconn.exec_(text)) for text in texts]
        connection.execute("BEGIN")
        told.append(rows(connection.pgconn.exec_(b"DISCARD ALL")))
        told.append(rows(connection.pgconn.prepare(b"", b"SELECT 1")))
        return told

    assert both(talk) == [b"55P02", b"22023", b"DISCARD ALL", b"25001", b"25P02"]


def test_what_dbt_and_drivers_are_told_first(server: Server) -> None:
    options = "--welcome_message=off -c search_path=pg_catalog,\\ public"
    with server.connect(options=options, application_name="told") as connection:
        status = connection.info.parameter_status
        version = status("mz_version")
        assert version is not None
        assert version.startswith("v0.130.0 (")
        assert status("application_name") == "told"
        assert status("search_path") == "pg_catalog, public"
        connection.execute("SET search_path = public")
        assert status("search_path") == "public"


def test_who_is_named_twice_is_dropped_once(both: Both) -> None:
    def talk(connection: Connection) -> object:
        texts = (b"CREATE SCHEMA twice", b"DROP SCHEMA twice, twice", b"DROP SCHEMA twice")
        return [rows(connection.pgconn.exec_(text)) for text in texts]

    assert both(talk) == [b"CREATE SCHEMA", b"DROP SCHEMA", b"3F000"]


def test_so_are_roles(both: Both) -> None:
    def talk(connection: Connection) -> object:
        texts = (b"CREATE ROLE twice", b"DROP ROLE twice, twice", b"DROP ROLE twice")
        return [rows(connection.pgconn.exec_(text)) for text in texts]

    assert both(talk) == [b"CREATE ROLE", b"DROP ROLE", b"42704"]


def test_a_search_path_keeps_the_names_that_it_was_given(both: Both) -> None:
    names = ('"a,b"', '"say ""hi"""', "'c, d'", '" e"', "Mixed", '"Mixed"', "x, 'y'", "''")

    def talk(connection: Connection) -> object:
        wire = connection.pgconn
        told = []
        for name in names:
            wire.exec_(f"SET search_path = {name}, public".encode())
            told.append(rows(wire.exec_(b"SHOW search_path")))
        wire.exec_(b'CREATE SCHEMA "q,""x"')
        wire.exec_(b'SET search_path = nowhere, "q,""x", public')
        told.append(rows(wire.exec_(b"SELECT current_schema()")))
        wire.exec_(b'DROP SCHEMA "q,""x"')
        return told

    assert both(talk) == [
        [[b'"a,b", public']], [[b'"say ""hi""", public']], [[b'"c, d", public']],
        [[b'" e", public']], [[b"mixed, public"]], [[b'"Mixed", public']], [[b"x, y, public"]],
        [[b'"", public']], [[b'q,"x']],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    [
        "COPY told FROM STDIN WITH (DELIMITER 'ab')",
        "COPY told TO STDOUT WITH (FORMAT csv, HEADER)",
        "COPY told TO STDOUT WITH (FORMAT csv, ESCAPE '|')",
    ],
)
def test_options_of_copy_that_are_not_there_are_told(server: Server, statement: str) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS told (a int, b text)")
        with (
            pytest.raises(psycopg.errors.InternalError_, match=r"one-byte|option yet"),
            connection.cursor().copy(statement),
        ):
            pass
        connection.execute("DROP TABLE told")
