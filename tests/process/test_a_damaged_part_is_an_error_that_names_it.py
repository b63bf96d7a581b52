"""Goal: a part that is damaged or lost is a clear error, never a wrong answer, and nothing worse;
neither is the record of a collection.

Method: a byte of a part is changed, or the part is taken away, between two lives of a server, and a
byte of another table's record.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from tests.support.ledger import LARGE, Ledger
from tests.support.server import eventually
from tests.support.site import Site, running_site

DATA_CORRUPTED = "XX001"


def _change_a_byte(part: Path) -> None:
    value = bytearray(part.read_bytes())
    value[len(value) // 2] ^= 1
    part.write_bytes(value)


def _change_a_byte_of_its_record(data: Path, shard_id: str) -> None:
    with closing(sqlite3.connect(data / "consensus.db")) as store, store:
        asked = "SELECT value FROM shards WHERE shard_id = ?"
        value = bytearray(store.execute(asked, (shard_id,)).fetchone()[0])
        value[len(value) // 2] ^= 1
        store.execute("UPDATE shards SET value = ? WHERE shard_id = ?", (bytes(value), shard_id))


def _use_the_table_with_the_damaged_record(site: Site) -> None:
    """Whoever does so meets an error each time, and nobody else notices."""
    with site.connect() as connection:
        for statement in ("INSERT INTO poor VALUES (2)", "SELECT a FROM poor") * 3:
            with pytest.raises(psycopg.Error, match='table "poor" is damaged') as error:
                connection.execute(statement)
            assert error.value.sqlstate == DATA_CORRUPTED
        connection.execute("DROP TABLE poor CASCADE")
        with pytest.raises(psycopg.errors.UndefinedTable):
            connection.execute("SELECT n FROM poor_too")


@pytest.mark.parametrize("damage", [_change_a_byte, Path.unlink])
def test_statements_that_need_the_part_fail_and_all_else_goes_on(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    ledger = Ledger("t")
    with running_site(tmp_path / "data") as site, site.connect() as connection:
        ledger.create(connection)
        connection.execute("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t")
        connection.execute("CREATE TABLE sound (a int)")
        connection.execute("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS n FROM sound")
        connection.execute("CREATE TABLE poor (a int)")
        connection.execute("CREATE MATERIALIZED VIEW poor_too AS SELECT count(*) AS n FROM poor")
        connection.execute("INSERT INTO poor VALUES (1)")
        asked = "SELECT 'item-' || id FROM mz_tables WHERE name = 'poor'"
        (record,) = connection.execute(asked).fetchone() or ()
        assert ledger.insert(connection, LARGE) == "acknowledged"
        assert connection.execute("SELECT n FROM v").fetchone() == (1,)
    (part,) = (tmp_path / "data").rglob("*.parquet")
    sound_bytes = part.read_bytes()
    damage(part)
    _change_a_byte_of_its_record(tmp_path / "data", record)
    with running_site(tmp_path / "data") as site, site.connect() as connection:
        processes = site.processes()
        for statement in ("SELECT * FROM t", "DELETE FROM t", "INSERT INTO t SELECT * FROM t"):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(statement)
            assert error.value.sqlstate == DATA_CORRUPTED
            assert f"part {part.parent.name}/{part.name}" in str(error.value)
            assert f"shard {part.parent.name}" in str(error.value)
        _use_the_table_with_the_damaged_record(site)
        connection.execute("INSERT INTO sound VALUES (1)")
        assert connection.execute("SELECT n FROM w").fetchone() == (1,)
        assert ledger.insert(connection) == "acknowledged"
        eventually(lambda: "up to date failed" in site.server.log_text())
        part.write_bytes(sound_bytes)
        ledger.check(connection)
        assert connection.execute("SELECT n FROM v").fetchone() == (2,)
        assert site.processes() == processes
