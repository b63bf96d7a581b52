"""Goal: COPY ... FROM STDIN takes what PostgreSQL takes, and refuses what it refuses, as it does.

Method: the same bytes to both over psycopg, cut in pieces; the same rows, counts or errors with
their code, message and context come back.
"""

from collections.abc import Iterator
from decimal import Decimal
from random import Random

import psycopg
import pytest

from tests.support.server import Server

COLUMNS = "(a int, b text, c numeric(10,2), d date, e bool, f float8)"
OPTIONS = {
    "text": "",
    "pipes": "WITH (FORMAT text, DELIMITER '|', NULL 'nil')",
    "csv": "WITH (FORMAT csv)",
    "header": "WITH (FORMAT csv, HEADER)",
    "match": "WITH (FORMAT csv, HEADER match)",
    "odd csv": "WITH (FORMAT csv, DELIMITER ';', QUOTE '''', ESCAPE '\\', NULL 'NULL')",
}
GOOD = {
    "text": [
        b"1\tx\t1.5\t2024-01-02\tt\t0.5\n",
        b"1\t\\N\t\\N\t\\N\t\\N\t\\N\n2\t\t0\t1999-12-31\tfalse\t-0\n",
        b"3\ta\\tb\\nc\\\\d\\x41\\101\t-7.125\tinfinity\tyes\tNaN\n",
        "4\té☃𝄞\t1e3\t2024-02-29\toff\t1e300\n".encode(),
        b"5\tend\t1\t2024-01-01\tt\t1",
        b"6\ta\\\nb\t1\t2024-01-01\tt\t1\n",
        b"7\tx\t1\t2024-01-01\tt\t1\r\n8\ty\t1\t2024-01-01\tt\t1\r\n",
        b"9\tx\t1\t2024-01-01\tt\t1\n\\.\n",
        b"",
        b" 10 \tx\t 1.50 \t 2024-01-01 \t true \t 2 \n",
    ],
    "pipes": [b"1|x|nil|nil|nil|nil\n2|a\\|b|1|nil|t|1\n"],
    "csv": [
        b'1,"a ""q"" b",1.5,2024-01-02,t,1\n2,"two\nlines",,,,\n3,"",,,,\n4,x"y"z,,,,\n5,\\N,,,,\n',
        b"",
        b'6,"a,b",1,2024-01-01,t,1\r\n7,x,1,2024-01-01,t,1\r\n',
    ],
    "header": [b"anything,at,all\n1,x,1,2024-01-01,t,1\n", b"only\n"],
    "match": [b"a,b,c,d,e,f\n1,x,1,2024-01-01,t,1\n"],
    "odd csv": [b"1;'it\\'s; ok';NULL;NULL;t;1\n2;'NULL';1;NULL;t;1\n"],
}
BAD = {
    "text": [
        b"1\tx\t1\t2024-01-01\tt\t1\nz\tx\t1\t2024-01-01\tt\t1\n",
        b"1\tx\t1\t2024-01-01\tt\n",
        b"1\tx\t1\t2024-01-01\tt\t1\t2\n",
        b"\n",
        b"99999999999\tx\t1\t2024-01-01\tt\t1\n",
        b"1\tx\t123456789012\t2024-01-01\tt\t1\n",
        b"1\tx\t1\t2024-13-01\tt\t1\n",
        b"1\tx\t1\t2024-01-01\tmaybe\t1\n",
        b"1\tx\t1\t2024-01-01\tt\t1\n2\tlong " + b"y" * 300 + b"\t1\t2024-01-01\tt\n",
        b"1\tx\t1\t2024-01-01\tt\tx\nz\tx\t1\t2024-01-01\tt\t1\n",
        b"1\ta\rb\t1\t2024-01-01\tt\t1\n2\tx\t1\t2024-01-01\tt\t1\n",
        b"\xff\tx\t1\t2024-01-01\tt\t1\n",
    ],
    "csv": [b'1,"x,1,2024-01-01,t,1\n', b"1,x\n", b'1,"two\nlines",1,2024-01-01,t,1\nz,,,,,\n'],
    "match": [b"a,b,c,d,e,g\n", b"a,b\n"],
}
COPIES = [(name, piece) for name, pieces in GOOD.items() for piece in pieces]
REFUSALS = [(name, piece) for name, pieces in BAD.items() for piece in pieces]


@pytest.fixture(scope="module")
def pair(server: Server, postgres_dsn: str) -> Iterator[tuple[psycopg.Connection, ...]]:
    with server.connect() as ours, psycopg.connect(postgres_dsn, autocommit=True) as theirs:
        theirs.execute("CREATE SCHEMA copied")
        theirs.execute("SET search_path = copied")
        for connection in (ours, theirs):
            connection.execute(f"CREATE TABLE copied {COLUMNS}")
            connection.execute("CREATE TABLE strict (a int NOT NULL, b text DEFAULT 'x', c int)")
        yield ours, theirs
        theirs.execute("DROP SCHEMA copied CASCADE")


def copied(
    connection: psycopg.Connection, text: str, data: bytes, table: str = "copied"
) -> tuple[object, ...]:
    """What came of it: the tag and the rows, or the error."""
    connection.execute(f"DELETE FROM {table}")
    rng = Random(len(data))
    try:
        with connection.cursor() as cursor:
            with cursor.copy(text) as copy:
                at = 0
                while at < len(data):
                    step = rng.randrange(1, 40)
                    copy.write(data[at : at + step])
                    at += step
            tag = cursor.statusmessage
    except psycopg.Error as error:
        return (error.sqlstate, error.diag.message_primary, error.diag.context)
    shown = "a, b, c, d::text, e, f::text" if table == "copied" else "*"
    rows = connection.execute(f"SELECT {shown} FROM {table}").fetchall()
    return (tag, sorted(repr([*map(plain, row)]) for row in rows))


def plain(value: object) -> object:
    """Trailing zeros are shown by PostgreSQL alone."""
    return value.normalize() if isinstance(value, Decimal) else value


@pytest.mark.parametrize(("name", "data"), COPIES)
def test_rows(name: str, data: bytes, pair: tuple[psycopg.Connection, ...]) -> None:
    ours, theirs = (copied(c, f"COPY copied FROM STDIN {OPTIONS[name]}", data) for c in pair)
    assert ours == theirs
    assert str(ours[0]).startswith("COPY ")


@pytest.mark.parametrize(("name", "data"), REFUSALS)
def test_refusals(name: str, data: bytes, pair: tuple[psycopg.Connection, ...]) -> None:
    ours, theirs = (copied(c, f"COPY copied FROM STDIN {OPTIONS[name]}", data) for c in pair)
    assert ours == theirs
    assert pair[0].execute("SELECT count(*) FROM copied").fetchone() == (0,)


@pytest.mark.parametrize("data", [b"1\t2\n3\t4\n", b"1\t2\n\\N\t4\n", b"\\N\tx\n", b""])
def test_some_columns_and_constraints(data: bytes, pair: tuple[psycopg.Connection, ...]) -> None:
    ours, theirs = (copied(c, "COPY strict (a, c) FROM STDIN", data, "strict") for c in pair)
    assert ours[:2] == theirs[:2]
    if ours[0] != "23502":
        assert ours == theirs


@pytest.mark.parametrize("data", [b"2\n", b"x\n", b"2\t3\n", b""])
@pytest.mark.parametrize("options", ["", "WITH (FORMAT csv)"])
def test_a_column_left_out_is_missed_with_the_first_row(
    data: bytes, options: str, pair: tuple[psycopg.Connection, ...]
) -> None:
    text = f"COPY strict (c) FROM STDIN {options}"
    ours, theirs = (copied(connection, text, data, "strict") for connection in pair)
    assert ours == theirs


def test_a_column_left_out_is_missed_in_binary_too(pair: tuple[psycopg.Connection, ...]) -> None:
    found = []
    for connection in pair:
        with (  # noqa: PT012 - the error comes when the block ends
            pytest.raises(psycopg.errors.NotNullViolation) as raised,
            connection.cursor() as cursor,
            cursor.copy("COPY strict (c) FROM STDIN WITH (FORMAT binary)") as copy,
        ):
            copy.set_types(["int4"])
            copy.write_row((2,))
        found.append(raised.value.diag.message_primary)
    assert found[0] == found[1]


@pytest.mark.parametrize("option", ["QUOTE '|'", "ESCAPE '|'", "HEADER true"])
def test_options_of_csv_are_for_csv_alone(
    option: str, pair: tuple[psycopg.Connection, ...]
) -> None:
    word = option.split()[0]
    refused = (
        "XX000",
        f"COPY {word if word == 'HEADER' else word.lower()} available only in CSV mode",
        None,
    )
    assert copied(pair[0], f"COPY copied FROM STDIN WITH ({option})", b"") == refused
    assert (
        copied(pair[0], f"COPY copied FROM STDIN WITH ({option}, FORMAT csv)", b"")[0] == "COPY 0"
    )
    assert copied(pair[0], "COPY copied FROM STDIN WITH (HEADER false)", b"")[0] == "COPY 0"


@pytest.mark.parametrize(
    "text",
    [
        "COPY copied (nope) FROM STDIN",
        "COPY copied (a, a) FROM STDIN",
        "COPY missing FROM STDIN",
        "COPY copied FROM STDIN WITH (DELIMITER 'n')",
        "COPY copied FROM STDIN WITH (FORMAT xml)",
        "COPY copied FROM STDIN WITH (FORMAT csv, FORMAT csv)",
    ],
)
def test_statements_are_refused_before_any_row(
    text: str, pair: tuple[psycopg.Connection, ...]
) -> None:
    ours, theirs = (copied(connection, text, b"") for connection in pair)
    assert ours[0] == theirs[0]
    assert not str(ours[0]).startswith("COPY ")


def test_many_rows_are_one_write(pair: tuple[psycopg.Connection, ...]) -> None:
    ours = pair[0]
    ours.execute("DELETE FROM copied")
    with ours.cursor() as cursor, cursor.copy("COPY copied FROM STDIN") as copy:
        for number in range(60_000):
            copy.write_row((number, f"name {number}", "1.25", "2024-01-01", True, 0.5))
    found = ours.execute(
        "SELECT count(*), sum(a), sum(c), count(DISTINCT b) FROM copied"
    ).fetchone()
    assert found == (60_000, 60_000 * 59_999 // 2, 75_000, 60_000)


def test_a_client_may_give_up(pair: tuple[psycopg.Connection, ...]) -> None:
    for connection in pair:
        connection.execute("DELETE FROM copied")
        with (  # noqa: PT012 - the block is what fails
            pytest.raises(RuntimeError, match="enough"),
            connection.cursor() as cursor,
            cursor.copy("COPY copied (a) FROM STDIN") as copy,
        ):
            copy.write("1\n2\n")
            raise RuntimeError("enough")
        assert connection.execute("SELECT count(*) FROM copied").fetchone() == (0,)


def test_a_waiting_copy_can_be_cancelled(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE waiting (a int)")
        with (  # noqa: PT012 - the error comes when the block ends
            pytest.raises(psycopg.errors.QueryCanceled),
            connection.cursor() as cursor,
            cursor.copy("COPY waiting FROM STDIN") as copy,
        ):
            copy.write("1\n")
            connection.cancel_safe()
        assert connection.execute("SELECT count(*) FROM waiting").fetchone() == (0,)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_copy_belongs_to_its_block(end: str, pair: tuple[psycopg.Connection, ...]) -> None:
    found = []
    for connection in pair:
        connection.execute("DELETE FROM copied")
        connection.execute("BEGIN")
        with connection.cursor() as cursor, cursor.copy("COPY copied (a) FROM STDIN") as copy:
            copy.write("1\n2\n")
        changed = connection.execute("UPDATE copied SET a = a + 10 WHERE a = 2").rowcount
        connection.execute(end)
        rows = connection.execute("SELECT a FROM copied ORDER BY a").fetchall()
        found.append((changed, rows))
    assert found[0] == found[1]


def test_a_copy_that_fails_ends_its_block(pair: tuple[psycopg.Connection, ...]) -> None:
    for connection in pair:
        connection.execute("BEGIN")
        with (
            pytest.raises(psycopg.errors.InvalidTextRepresentation),
            connection.cursor() as cursor,
            cursor.copy("COPY copied (a) FROM STDIN") as copy,
        ):
            copy.write("x\n")
        with pytest.raises(psycopg.errors.InFailedSqlTransaction):
            connection.execute("SELECT 1")
        connection.execute("ROLLBACK")
