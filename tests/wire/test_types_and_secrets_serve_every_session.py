"""Goal: over a real connection, a named type is a type for tables and maintained views, also after
its schema got another name; a secret's value is kept, goes with it, and is shown to nobody.

Every test uses a schema of its own: the server is shared.
"""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.support.server import Server

Connection = psycopg.Connection[tuple]


@pytest.fixture
def schema(server: Server) -> Iterator[str]:
    name = f"s{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        yield name
        for last in (name, f"{name}_renamed"):
            connection.execute(f"DROP SCHEMA IF EXISTS {last} CASCADE".encode())


def run(connection: Connection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement.encode())


def rows(connection: Connection, query: str) -> list[tuple]:
    return connection.execute(query.encode()).fetchall()


def test_views_over_a_named_type_outlive_its_names(server: Server, schema: str) -> None:
    with server.connect() as connection, server.connect() as other:
        run(
            connection,
            f"CREATE TYPE {schema}.numbers AS LIST (ELEMENT TYPE = int4)",
            f"CREATE TABLE {schema}.t (a {schema}.numbers)",
            f"INSERT INTO {schema}.t VALUES ('{{1,2}}')",
            f"CREATE MATERIALIZED VIEW {schema}.m AS"
            f" SELECT a[1] AS first FROM {schema}.t WHERE a <> '{{}}'::{schema}.numbers",
        )
        assert rows(other, f"SELECT * FROM {schema}.m") == [(1,)]
        later = f"{schema}_renamed"
        run(
            connection,
            f"ALTER SCHEMA {schema} RENAME TO {later}",
            f"ALTER TYPE {later}.numbers RENAME TO counts",
            f"ALTER TABLE {later}.t RENAME TO u",
            f"INSERT INTO {later}.u VALUES ('{{3}}'::{later}.counts)",
        )
        assert sorted(rows(other, f"SELECT * FROM {later}.m")) == [(1,), (3,)]
        ((text,),) = rows(
            other, f"SELECT create_sql FROM (SHOW CREATE MATERIALIZED VIEW {later}.m)"
        )
        assert f"materialize.{later}.u" in text
        assert f"::materialize.{later}.counts" in text


def kept(server: Server, value: bytes) -> list[Path]:
    """Files that hold the value; those of the catalog among them."""
    files = (path for path in server.data.rglob("*") if path.is_file())
    return [path for path in files if value in _bytes(path)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""  # what goes while one looks


def test_a_secret_is_kept_and_goes_with_its_object(server: Server, schema: str) -> None:
    first, second = uuid.uuid4().hex, uuid.uuid4().hex
    with server.connect() as connection:
        run(connection, f"CREATE SECRET {schema}.k AS '{first}'")
        (path,) = kept(server, first.encode())
        assert path.read_bytes() == first.encode()
        assert path.parent.name == "secrets"
        run(connection, f"ALTER SECRET {schema}.k AS decode('{second}', 'hex')")
        assert kept(server, first.encode()) == []
        (path,) = kept(server, bytes.fromhex(second))
        run(connection, f"CREATE SECRET IF NOT EXISTS {schema}.k AS '{first}'")
        assert kept(server, first.encode()) == []
        with pytest.raises(psycopg.errors.DuplicateTable):
            run(connection, f"CREATE SECRET {schema}.k AS '{first}'")
        assert kept(server, first.encode()) == []
        run(connection, f"DROP SCHEMA {schema} CASCADE")
        assert not path.exists()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("NULL", "secret value can not be null"),
        ("repeat('x', 600000)", "secrets can not be bigger than 512KiB"),
        ("now()::text", "the value of a secret must be a constant"),
    ],
)
def test_what_is_no_secret_is_refused(
    value: str, message: str, server: Server, schema: str
) -> None:
    with server.connect() as connection, pytest.raises(psycopg.Error, match=message):
        run(connection, f"CREATE SECRET {schema}.k AS {value}")


def test_types_and_secrets_are_their_owners(server: Server, schema: str) -> None:
    user = f"u{uuid.uuid4().hex[:8]}"
    with server.connect() as owner:
        run(
            owner,
            f"CREATE ROLE {user}",
            f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {user}",
            f"CREATE TYPE {schema}.numbers AS LIST (ELEMENT TYPE = int4)",
            f"CREATE SECRET {schema}.k AS 'x'",
        )
        with server.connect(user=user) as connection:
            assert rows(connection, f"SELECT '{{1}}'::{schema}.numbers::text") == [("{1}",)]
            run(owner, f"REVOKE USAGE ON TYPE {schema}.numbers FROM PUBLIC")
            for statement in (
                f"SELECT '{{1}}'::{schema}.numbers::text",
                f"CREATE TABLE {schema}.t (a {schema}.numbers)",
                f"CREATE TYPE {schema}.more AS LIST (ELEMENT TYPE = {schema}.numbers)",
                f"ALTER TYPE {schema}.numbers RENAME TO x",
                f"DROP TYPE {schema}.numbers",
                f"ALTER SECRET {schema}.k AS 'y'",
                f"DROP SECRET {schema}.k",
            ):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    run(connection, statement)
            run(owner, f"GRANT USAGE ON TYPE {schema}.numbers TO {user}")
            run(connection, f"CREATE TABLE {schema}.t (a {schema}.numbers)")
            asked = f"SELECT has_type_privilege('{user}', '{schema}.numbers', 'USAGE')"
            assert rows(owner, asked) == [(True,)]
        run(owner, f"DROP SCHEMA {schema} CASCADE", f"DROP OWNED BY {user}", f"DROP ROLE {user}")
