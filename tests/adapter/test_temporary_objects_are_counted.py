"""A session has so many temporary tables and views, and no more."""

import pytest

from evertide.adapter.temporary import bounds
from evertide.vocab.errors import SqlError
from tests.adapter.test_ddl_that_lost_a_race_is_planned_again import connect, run
from tests.catalog.environment import Environment

REFUSED = ("CREATE TEMP TABLE more (a int)", "CREATE TEMP VIEW more AS SELECT 1")


async def test_objects_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    assert bounds.SESSION_OBJECTS == 1_000
    monkeypatch.setattr(bounds, "SESSION_OBJECTS", 4)
    environment = Environment()
    service = await environment.serve()
    session, other = await connect(environment, service), await connect(environment, service)
    await run(session, "CREATE TEMP TABLE first (a int)")
    for number in range(3):
        await run(session, f"CREATE TEMP VIEW view_{number} AS SELECT {number} AS a")
    for statement in REFUSED:
        with pytest.raises(SqlError, match="limited to 4 temporary tables and views") as refused:
            await run(session, statement)
        assert refused.value.code == "53000"
        assert refused.value.hint == "Drop some that are no longer needed."
    # What adds nothing goes on, and so does everybody else.
    await run(session, "ALTER TABLE first RENAME TO renamed")
    await run(session, "CREATE OR REPLACE TEMP VIEW view_1 AS SELECT 'another' AS a")
    await run(session, "CREATE TABLE stored (a int)")
    await run(other, "CREATE TEMP TABLE more (a int)")
    await run(session, "DROP VIEW view_2")
    await run(session, "CREATE TEMP TABLE more (a int)")
    await environment.close()
