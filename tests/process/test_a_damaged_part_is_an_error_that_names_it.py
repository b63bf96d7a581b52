"""Goal: a part that is damaged or lost is a clear error, never a wrong answer, and nothing worse.

Method: a byte of a part is changed, or the part is taken away, between two lives of a server.
"""

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.support.ledger import LARGE, Ledger
from tests.support.server import eventually
from tests.support.site import running_site

DATA_CORRUPTED = "XX001"


def _change_a_byte(part: Path) -> None:
    value = bytearray(part.read_bytes())
    value[len(value) // 2] ^= 1
    part.write_bytes(value)


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
        assert ledger.insert(connection, LARGE) == "acknowledged"
        assert connection.execute("SELECT n FROM v").fetchone() == (1,)
    (part,) = (tmp_path / "data").rglob("*.parquet")
    sound_bytes = part.read_bytes()
    damage(part)
    with running_site(tmp_path / "data") as site, site.connect() as connection:
        processes = site.processes()
        for statement in ("SELECT * FROM t", "DELETE FROM t", "INSERT INTO t SELECT * FROM t"):
            with pytest.raises(psycopg.Error) as error:
                connection.execute(statement)
            assert error.value.sqlstate == DATA_CORRUPTED
            assert f"part {part.parent.name}/{part.name}" in str(error.value)
            assert f"shard {part.parent.name}" in str(error.value)
        connection.execute("INSERT INTO sound VALUES (1)")
        assert connection.execute("SELECT n FROM w").fetchone() == (1,)
        assert ledger.insert(connection) == "acknowledged"
        eventually(lambda: "up to date failed" in site.server.log_text())
        part.write_bytes(sound_bytes)
        ledger.check(connection)
        assert connection.execute("SELECT n FROM v").fetchone() == (2,)
        assert site.processes() == processes
