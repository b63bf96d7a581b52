"""Goal: what a replica reports is true, and names the replica as the catalog does."""

import uuid
from collections.abc import Iterator

import psycopg
import pytest

from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    schema = f"told_{uuid.uuid4().hex[:8]}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(f"SET search_path = {schema}".encode())
        connection.execute("CREATE TABLE t (a int, b text)")
        connection.execute("CREATE TABLE u (a int)")
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT t.b, t.a FROM t JOIN u USING (a)")
        connection.execute("CREATE INDEX u_idx ON u (a)")
        yield connection


def id_of(connection: Connection, name: str) -> str:
    """The id of the object of this name that was made last: each test has its own."""
    row = connection.execute(
        "SELECT o.id FROM mz_objects o JOIN mz_schemas s ON s.id = o.schema_id"
        " WHERE o.name = %s AND s.name = current_schema()",
        (name,),
    ).fetchone()
    assert row is not None
    return str(row[0])


def rows_of(connection: Connection, relation: str, columns: str, name: str) -> list[tuple]:
    query = f"SELECT {columns} FROM {relation} WHERE object_id = %s"
    return connection.execute(query.encode(), (id_of(connection, name),)).fetchall()


def test_views_and_indexes_become_hydrated(connection: Connection) -> None:
    columns = "hydrated, nodes_done = nodes, nodes > 0, reason"

    def hydrated(name: str) -> bool:
        found = rows_of(connection, "mz_internal.mz_hydration_statuses", columns, name)
        return found == [(True, True, True, None)]

    eventually(lambda: hydrated("v") and hydrated("u_idx"))
    assert rows_of(connection, "mz_internal.mz_hydration_statuses", "hydrated", "t") == []


@pytest.mark.parametrize(
    "relation",
    [
        "mz_internal.mz_hydration_statuses",
        "mz_internal.mz_arrangement_sizes",
        "mz_internal.mz_tick_records",
        "mz_catalog.mz_cluster_replica_frontiers",
    ],
)
def test_the_replica_is_the_catalog_s(connection: Connection, relation: str) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    mine = (
        f"SELECT DISTINCT r.name, c.name FROM {relation} h"
        " JOIN mz_cluster_replicas r ON r.id = h.replica_id"
        " JOIN mz_clusters c ON c.id = r.cluster_id WHERE h.object_id = %s"
    )
    object_id = id_of(connection, "v")

    def named() -> list[tuple]:
        return connection.execute(mine.encode(), (object_id,)).fetchall()

    assert eventually(named) == [("r1", "default")]


@pytest.mark.parametrize("name", ["t", "v", "u_idx"])
def test_frontiers_pass_an_insert(connection: Connection, name: str) -> None:
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    connection.execute("INSERT INTO u VALUES (1)")
    inserted = connection.execute("SELECT mz_now() FROM t, u").fetchone()
    assert inserted is not None
    columns = "read_frontier::text::bigint, write_frontier::text::bigint"

    def passed() -> bool:
        found = rows_of(connection, "mz_internal.mz_frontiers", columns, name)
        known = [row for row in found if None not in row]  # all but what was only just made
        return any(since <= upper and upper > int(inserted[0]) for since, upper in known)

    eventually(passed)


def test_sizes_grow_with_what_is_kept(connection: Connection) -> None:
    """The view's join arranges both tables; the index keeps one, into which the view looks as well
    once both have come equally far. What is shared is told with the index."""

    def size(name: str) -> tuple[int, int, int]:
        connection.execute("SELECT count(*) FROM v, u")  # up to every write before it
        columns = "records, bytes, arrangements"
        relation = "mz_internal.mz_arrangement_sizes"
        (found,) = eventually(lambda: rows_of(connection, relation, columns, name))
        return found[0], found[1], found[2]

    view, index = size("v"), size("u_idx")
    assert view[2] in (1, 2)
    assert index[2] == 1
    connection.execute("INSERT INTO t SELECT g, 'x' FROM generate_series(1, 500) AS g")
    connection.execute("INSERT INTO u SELECT g FROM generate_series(1, 300) AS g")
    eventually(lambda: size("v")[2] == 1)
    eventually(lambda: size("v")[0] >= 500)
    eventually(lambda: size("u_idx")[0] >= index[0] + 300)
    assert size("v")[1] > view[1]
    assert size("u_idx")[1] > index[1]


def test_ticks_tell_rows_in_and_out(connection: Connection) -> None:
    connection.execute("INSERT INTO u VALUES (1), (2), (3)")
    assert connection.execute("SELECT count(*) FROM v").fetchone() == (0,)
    connection.execute("INSERT INTO t VALUES (1, 'x'), (2, 'y'), (9, 'z')")
    assert connection.execute("SELECT count(*) FROM v").fetchone() == (2,)
    columns = "rows_in, rows_out, executor, duration_ms > 0"
    found = rows_of(connection, "mz_internal.mz_tick_records", columns, "v")
    ticks = [(rows_in, rows_out, positive) for rows_in, rows_out, _, positive in found]
    assert (3, 2, True) in ticks
    assert {executor for _, _, executor, _ in found} <= {"driver", "resident", "job", "spark"}
