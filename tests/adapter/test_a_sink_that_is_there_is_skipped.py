"""CREATE SINK IF NOT EXISTS of a sink that has written its file changes nothing and says so.

Method: a session over a real catalog; the file is put where the sink would have written it.
"""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.service import CatalogService
from evertide.vocab.errors import SqlError
from evertide.vocab.timestamp import Timestamp
from tests.adapter.test_ddl_that_lost_a_race_is_planned_again import run
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT


async def connect(environment: Environment, service: CatalogService, directory: Path) -> Connection:
    """A session of an adapter that has a catalog, and tables at one timestamp."""

    async def read_ts(_timeline: object) -> Timestamp:
        return Timestamp(1)

    async def sinces(imports: Any) -> list[Timestamp]:
        return [Timestamp(0) for _ in imports]

    missing: Any = None
    oracle: Any = SimpleNamespace(read_ts=read_ts)
    storage: Any = SimpleNamespace(sinces=sinces)
    env = AdapterEnvironment(
        environment_id=ENVIRONMENT,
        catalog=service,
        oracle=oracle,
        storage=storage,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=environment.clock,
        experimental=True,
        sink_directory=str(directory),
    )
    connections = Connections(env, lambda _: None)
    return await connections.open_session({"user": "materialize"}, internal=False)


async def test_a_sink_that_has_its_file_is_skipped(tmp_path: Path) -> None:
    environment = Environment()
    service = await environment.serve()
    connection = await connect(environment, service, tmp_path)
    await run(connection, "CREATE TABLE t (a int)")
    text = "CREATE SINK IF NOT EXISTS s FROM t INTO FILE 't.json' FORMAT JSON"
    assert await run(connection, text) == ("CREATE SINK", [])
    (tmp_path / "t.json").touch()
    tag, notices = await run(connection, text)
    assert tag == "CREATE SINK"
    assert notices == ["catalog item 's' already exists, skipping"]
    (tmp_path / "u.json").touch()
    with pytest.raises(SqlError, match="exists already") as refused:
        await run(connection, text.replace(" s ", " another ").replace("t.json", "u.json"))
    assert refused.value.code == "58P02"
    await environment.close()
