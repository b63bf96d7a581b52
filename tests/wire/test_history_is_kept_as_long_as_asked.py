"""Goal: AS OF reads what was there at that time, as far back as RETAIN HISTORY promises and no
longer; a time that is no longer readable is refused, one that is yet to come is waited for.

Method: a real server with its usual maintenance; the sinces of shards are read from its store.
"""

import asyncio
import json
from pathlib import Path

import psycopg
import pytest

from evertide.persist.state import DEFAULT_SINCE_LAG, ShardState, decode_state
from evertide.persist.store.protocol import Head
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from tests.support.server import Server, eventually

Connection = psycopg.Connection[tuple]
HOUR_MS = 3_600_000
TOO_OLD = "could not find a valid timestamp for the query"


def one(connection: Connection, text: str) -> str:
    row = connection.execute(text).fetchone()
    assert row is not None
    return str(row[0])


def now(connection: Connection, table: str) -> int:
    """The time that a read of the table has now."""
    return int(one(connection, f"SELECT mz_now()::text FROM (SELECT count(*) FROM {table}) c"))


def state(server: Server, connection: Connection, name: str) -> ShardState:
    """Of the shard behind an object."""
    shard_id = one(
        connection,
        f"""SELECT s.shard_id FROM mz_internal.mz_storage_shards s
        JOIN mz_catalog.mz_objects o ON o.id = s.object_id WHERE o.name = '{name}'""",
    )
    return asyncio.run(_state(server.data, ShardId(shard_id)))


async def _state(data: Path, shard_id: ShardId) -> ShardState:
    store = SqliteStore(data / "consensus.db")
    try:
        head = await store.consensus(await store.current_epoch()).head(shard_id)
    finally:
        await store.close()
    assert isinstance(head, Head)
    return decode_state(head.value)


def strategies(connection: Connection) -> set[tuple[str, str, int]]:
    """(name, strategy, milliseconds) of every object that was given a history."""
    rows = connection.execute(
        """SELECT o.name, s.strategy, s.value::text
        FROM mz_internal.mz_history_retention_strategies s
        JOIN mz_catalog.mz_objects o ON o.id = s.id WHERE o.name LIKE 'kept%'"""
    ).fetchall()
    return {(name, strategy, int(json.loads(value))) for name, strategy, value in rows}


def test_as_of_reads_what_was_there_then(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE then_and_now (a int)")
        times = []
        for value in range(4):
            connection.execute(f"INSERT INTO then_and_now VALUES ({value})")
            times.append(now(connection, "then_and_now"))
        for value, at in enumerate(times):
            counted = f"SELECT count(*), max(a), min(mz_now())::text FROM then_and_now AS OF {at}"
            assert connection.execute(counted).fetchone() == (value + 1, value, str(at))
        assert (
            one(connection, f"SELECT count(*) FROM then_and_now AS OF AT LEAST {times[0]}") == "4"
        )
        later = times[-1] + 1_500
        read = f"SELECT mz_now()::text FROM then_and_now LIMIT 1 AS OF AT LEAST {later}"
        assert int(one(connection, read)) == later
        assert int(one(connection, "SELECT mz_now()::text FROM then_and_now LIMIT 1")) >= later
        assert one(connection, "SELECT 7 AS OF 1") == "7"
        connection.execute("DROP TABLE then_and_now")


def test_a_transaction_does_not_move_on_for_at_least(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE fixed (a int)")
        connection.execute("BEGIN")
        at = now(connection, "fixed")
        assert one(connection, f"SELECT count(*) FROM fixed AS OF AT LEAST {at}") == "0"
        with pytest.raises(psycopg.errors.DataException, match=TOO_OLD):
            connection.execute(f"SELECT count(*) FROM fixed AS OF AT LEAST {at + 1}")
        connection.execute("ROLLBACK")
        connection.execute("DROP TABLE fixed")


def test_history_is_given_changed_and_taken_back(server: Server) -> None:
    with server.connect() as connection:
        connection.execute("CREATE TABLE kept_itself (a int) WITH (RETAIN HISTORY FOR '1h')")
        connection.execute("CREATE TABLE kept_as_usual (a int)")
        connection.execute(
            "CREATE MATERIALIZED VIEW kept_view WITH (RETAIN HISTORY FOR '2 hours') AS"
            " SELECT a FROM kept_as_usual"
        )
        connection.execute(
            "CREATE INDEX kept_index ON kept_itself (a) WITH (RETAIN HISTORY FOR '3h')"
        )
        assert strategies(connection) == {
            ("kept_itself", "FOR", HOUR_MS),
            ("kept_view", "FOR", 2 * HOUR_MS),
            ("kept_index", "FOR", 3 * HOUR_MS),
        }
        assert state(server, connection, "kept_itself").since_lag == HOUR_MS
        assert state(server, connection, "kept_as_usual").since_lag == DEFAULT_SINCE_LAG
        assert state(server, connection, "kept_view").since_lag == 2 * HOUR_MS
        assert "RETAIN HISTORY FOR '1h'" in str(
            connection.execute("SHOW CREATE TABLE kept_itself").fetchone()
        )
        connection.execute("ALTER TABLE kept_itself SET (RETAIN HISTORY FOR '5 minutes')")
        connection.execute("ALTER MATERIALIZED VIEW kept_view RESET (RETAIN HISTORY)")
        connection.execute("ALTER INDEX kept_index RESET (RETAIN HISTORY)")
        assert strategies(connection) == {("kept_itself", "FOR", 300_000)}
        assert state(server, connection, "kept_itself").since_lag == 300_000
        assert state(server, connection, "kept_view").since_lag == DEFAULT_SINCE_LAG
        assert "RETAIN" not in str(
            connection.execute("SHOW CREATE MATERIALIZED VIEW kept_view").fetchone()
        )
        connection.execute("DROP TABLE kept_itself CASCADE")
        assert strategies(connection) == set()
        connection.execute("DROP TABLE kept_as_usual CASCADE")


def test_a_short_history_is_let_go_and_a_long_one_is_not(server: Server) -> None:
    """Of three tables one is made shorter later on."""
    given = {"kept_short": "1s", "kept_long": "1h", "kept_no_longer": "1h"}
    with server.connect() as connection:
        for table, history in given.items():
            option = f"RETAIN HISTORY FOR '{history}'"
            connection.execute(f"CREATE TABLE {table} (a int) WITH ({option})")
            connection.execute(f"INSERT INTO {table} VALUES (1)")
        at = now(connection, "kept_long")
        for table in given:
            assert one(connection, f"SELECT a FROM {table} AS OF {at}") == "1"
            connection.execute(f"UPDATE {table} SET a = 2")
        connection.execute("ALTER TABLE kept_no_longer SET (RETAIN HISTORY FOR '1s')")

        def forgotten() -> bool:
            for table in given:
                connection.execute(f"UPDATE {table} SET a = a + 1")
            gone = ("kept_short", "kept_no_longer")
            return all(state(server, connection, table).since > at for table in gone)

        eventually(forgotten, seconds=120, pause=0.5)
        for table in ("kept_short", "kept_no_longer"):
            with pytest.raises(psycopg.errors.DataException, match=TOO_OLD):
                connection.execute(f"SELECT a FROM {table} AS OF {at}")
        assert one(connection, f"SELECT a FROM kept_long AS OF {at}") == "1"
        for table in given:
            connection.execute(f"DROP TABLE {table}")
