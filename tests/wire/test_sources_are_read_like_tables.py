"""Goal: reads, views, indexes and subscriptions over a source work as over any relation, and a
source that is dropped leaves nothing behind.

Method: a live server; sources that end at a known tick, so that every answer is known.
"""

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.server import Server, eventually

# So many ticks of the sources below.
TICKS = 40


@pytest.fixture
def schema(server: Server, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"sources_{abs(hash(request.node.name)) % 10**8}"
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        yield name
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def run(server: Server, schema: str, *statements: str) -> list[tuple]:
    """The rows of the last statement."""
    with server.connect() as connection:
        connection.execute(f"SET search_path = {schema}".encode())
        for statement in statements:
            cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def test_a_source_joins_a_table_at_one_time(server: Server, schema: str) -> None:
    found = run(
        server,
        schema,
        f"CREATE SOURCE n FROM LOAD GENERATOR COUNTER (AS OF {TICKS}, UP TO {TICKS})",
        "CREATE TABLE t (a bigint)",
        "INSERT INTO t VALUES (3), (4), (99)",
        "SELECT n.counter, t.a FROM n JOIN t ON t.a = n.counter ORDER BY 1",
    )
    assert found == [(3, 3), (4, 4)]


def test_views_and_indexes_follow_a_source(server: Server, schema: str) -> None:
    run(
        server,
        schema,
        f"""CREATE MATERIALIZED SOURCE n
            FROM LOAD GENERATOR COUNTER (TICK INTERVAL '10ms', UP TO {TICKS}, MAX CARDINALITY 7)""",
        "CREATE MATERIALIZED VIEW m AS SELECT count(*) AS c, sum(counter) AS s FROM n",
        "CREATE VIEW v AS SELECT counter * 2 AS twice FROM n",
        "CREATE INDEX v_idx ON v (twice)",
    )
    last = list(range(TICKS - 6, TICKS + 1))
    eventually(lambda: run(server, schema, "SELECT max(counter) FROM n") == [(TICKS,)])
    assert run(server, schema, "SELECT c, s FROM m") == [(7, sum(last))]
    assert run(server, schema, "SELECT counter FROM n ORDER BY 1") == [(n,) for n in last]
    assert run(server, schema, f"SELECT twice FROM v WHERE twice = {2 * TICKS}") == [(2 * TICKS,)]


def test_a_subscription_tells_each_tick_at_its_time(server: Server, schema: str) -> None:
    run(
        server,
        schema,
        f"CREATE SOURCE n FROM LOAD GENERATOR COUNTER (TICK INTERVAL '25ms', UP TO {TICKS})",
    )
    told: list[tuple] = []
    with server.connect(autocommit=False) as connection:
        connection.execute(f"SET search_path = {schema}".encode())
        connection.execute("DECLARE c CURSOR FOR SUBSCRIBE n")
        while len(told) < TICKS:
            told += connection.execute("FETCH ALL c WITH (TIMEOUT = '1s')").fetchall()
        connection.rollback()
    assert [(diff, counter) for _, diff, counter in told] == [(1, n) for n in range(1, TICKS + 1)]
    times = [int(ts) for ts, _, _ in told]
    later = [ts for ts in times if ts != times[0]]
    # What was there when it began is told at that time; everything after it 25 ms apart.
    assert {after - before for before, after in pairwise(later)} <= {25}


def test_tables_of_an_auction_agree_at_every_read(server: Server, schema: str) -> None:
    run(
        server,
        schema,
        "CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '3ms') FOR ALL TABLES",
    )
    for _ in range(30):
        (row,) = run(
            server,
            schema,
            """SELECT (SELECT count(*) FROM bids), (SELECT count(*) FROM auctions),
                 (SELECT count(*) FROM bids WHERE auction_id NOT IN (SELECT id FROM auctions)),
                 (SELECT count(*) FROM users WHERE org_id NOT IN (SELECT id FROM organizations))
            """,
        )
        bids, auctions, orphans, strangers = row
        assert (orphans, strangers) == (0, 0)
        assert 9 * (auctions - 1) <= bids <= 9 * auctions


def test_a_dropped_source_is_gone_everywhere(server: Server, schema: str) -> None:
    run(
        server,
        schema,
        "CREATE SOURCE house FROM LOAD GENERATOR AUCTION (TICK INTERVAL '10ms') FOR ALL TABLES",
        "CREATE SINK bids_out FROM bids INTO FILE 'gone/bids.json' FORMAT JSON",
    )
    statuses = """SELECT s.status FROM mz_internal.{}_statuses s JOIN mz_objects o ON o.id = s.id
                  JOIN mz_schemas n ON n.id = o.schema_id WHERE n.name = '{}'"""
    sources, sinks = statuses.format("mz_source", schema), statuses.format("mz_sink", schema)
    eventually(lambda: run(server, schema, sources) == [("running",)] * 6)
    eventually(lambda: run(server, schema, sinks) == [("running",)])
    path = server.data / "sinks" / "gone" / "bids.json"
    eventually(lambda: path.exists() and path.stat().st_size > 0)
    run(server, schema, "DROP SOURCE house CASCADE")
    assert run(server, schema, sources) == []
    assert run(server, schema, sinks) == []
    assert run(server, schema, "SHOW SOURCES") == []
    eventually(lambda: _let_go(path))
    lines = path.read_bytes().splitlines(keepends=True)
    assert [json.loads(line)["row"]["id"] for line in lines] == list(range(1, len(lines) + 1))


def _let_go(path: Path) -> bool:
    """Whether no process has the file open any more."""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if any(file.resolve() == path for file in (process / "fd").iterdir()):
                    return False
            except OSError:
                continue
    return True


def test_a_stalled_sink_says_why_and_goes_on(server: Server, schema: str) -> None:
    run(server, schema, "CREATE TABLE t (a int)")
    directory = server.data / "sinks" / "stalled"
    directory.mkdir(parents=True, exist_ok=True)
    away = directory / "away"
    away.symlink_to("/tmp")
    run(server, schema, "CREATE SINK s FROM t INTO FILE 'stalled/away/t.json' FORMAT JSON")
    status = f"""SELECT s.status, s.error FROM mz_internal.mz_sink_statuses s
                JOIN mz_sinks k ON k.id = s.id JOIN mz_schemas n ON n.id = k.schema_id
                WHERE n.name = '{schema}'"""
    eventually(lambda: run(server, schema, status)[0][0] == "stalled")
    assert "away" in str(run(server, schema, status)[0][1])
    away.unlink()
    eventually(lambda: run(server, schema, status) == [("running", None)])
    run(server, schema, "INSERT INTO t VALUES (5)")
    eventually(lambda: b'"row":{"a":5}' in (away / "t.json").read_bytes())
