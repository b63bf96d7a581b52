"""Goal: the history that an open transaction may still read is kept for it, of all collections it
is likely to read, and is let go when it ends.

Method: a real server; the shards' states are read from its store while a transaction is open.
"""

import asyncio
from pathlib import Path

import psycopg

from evertide.persist.state import ShardState, decode_state
from evertide.persist.store.protocol import Head
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import ShardId
from tests.support.server import eventually, running_server


def lease_ts(data: Path, shard_id: str) -> int | None:
    """What the adapters' leases hold the shard at; None without a lease."""
    holds = asyncio.run(_state(data, ShardId(shard_id))).holds
    return min((h.hold_ts for h in holds if h.expires_ms is not None), default=None)


async def _state(data: Path, shard_id: ShardId) -> ShardState:
    store = SqliteStore(data / "consensus.db")
    try:
        head = await store.consensus(await store.current_epoch()).head(shard_id)
    finally:
        await store.close()
    assert isinstance(head, Head)
    return decode_state(head.value)


def shard_of(connection: "psycopg.Connection[tuple]", name: str) -> str:
    row = connection.execute(
        """SELECT s.shard_id FROM mz_internal.mz_storage_shards s
        JOIN mz_catalog.mz_objects o ON o.id = s.object_id WHERE o.name = %s""",
        (name,),
    ).fetchone()
    assert row is not None
    return str(row[0])


def test_an_open_transaction_keeps_what_it_may_read(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with running_server(data) as server, server.connect() as reader, server.connect() as writer:
        writer.execute("CREATE SCHEMA kept")
        for table in ("kept.near", "kept.far", "public.elsewhere"):
            writer.execute(f"CREATE TABLE {table} (a int)")
            writer.execute(f"INSERT INTO {table} VALUES (0)")
        near, far, elsewhere = (shard_of(writer, name) for name in ("near", "far", "elsewhere"))
        assert writer.execute("SELECT a FROM public.elsewhere").fetchall() == [(0,)]
        reader.execute("BEGIN")
        assert reader.execute("SELECT a FROM kept.near").fetchall() == [(0,)]
        row = reader.execute("SELECT mz_now()::text").fetchone()
        assert row is not None
        as_of = int(row[0])

        def others_moved_on() -> bool:
            for table in ("kept.near", "kept.far", "public.elsewhere"):
                writer.execute(f"UPDATE {table} SET a = a + 1")
            (writer.execute("SELECT a FROM public.elsewhere")).fetchall()
            held = lease_ts(data, elsewhere)
            return held is not None and held > as_of

        eventually(others_moved_on, seconds=60, pause=0.3)
        for shard in (near, far):
            held = lease_ts(data, shard)
            assert held is not None
            assert held <= as_of
        assert reader.execute("SELECT a FROM kept.far").fetchall() == [(0,)]
        assert reader.execute("SELECT a FROM kept.near").fetchall() == [(0,)]
        reader.execute("COMMIT")

        def let_go() -> bool:
            writer.execute("UPDATE kept.far SET a = a + 1")
            held = lease_ts(data, far)
            return held is None or held > as_of

        eventually(let_go, seconds=60, pause=0.3)


def test_an_index_holds_its_inputs_while_it_exists(tmp_path: Path) -> None:
    """So that a replica can build it again; its history follows, and goes with it."""
    data = tmp_path / "data"
    with running_server(data) as server, server.connect() as connection:
        connection.execute("CREATE TABLE t (a int)")
        connection.execute("INSERT INTO t VALUES (1)")
        shard = shard_of(connection, "t")
        assert lease_ts(data, shard) is None
        connection.execute("CREATE INDEX by_a ON t (a)")
        eventually(lambda: lease_ts(data, shard) is not None, seconds=60, pause=0.1)
        first = lease_ts(data, shard)
        assert first is not None

        def moved() -> bool:
            connection.execute("INSERT INTO t VALUES (2)")
            held = lease_ts(data, shard)
            return held is not None and held > first

        eventually(moved, seconds=60, pause=0.3)
        connection.execute("DROP INDEX by_a")
        assert connection.execute("SELECT count(*) FROM t WHERE a = 1").fetchone() == (1,)
