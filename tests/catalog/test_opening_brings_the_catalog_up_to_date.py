"""Opening fills, upgrades or refuses what is stored; nothing else may."""

from pathlib import Path

import pytest

from evertide.catalog.durable.codec import CorruptCatalog
from evertide.catalog.durable.persist import append_rows, catalog_shard
from evertide.catalog.durable.protocol import IncompatibleVersion
from evertide.catalog.ops import SetSystemConfigurationOp
from evertide.persist.handle import Appended
from evertide.persist.store.file import FileBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.datum import Row
from evertide.vocab.update import Update
from tests.catalog.environment import ENVIRONMENT, Environment, commit, create_table

VERSION_KEY = '{"name":"catalog_version"}'


async def write_rows(environment: Environment, gone: list[Row], came: list[Row]) -> None:
    """Change stored rows behind everyone's back."""
    client = environment.client_for(await environment.openable().current_epoch())
    upper = (await client.state(catalog_shard(ENVIRONMENT))).upper
    rows = [Update(row, upper, -1) for row in gone] + [Update(row, upper, 1) for row in came]
    outcome = await append_rows(
        client, catalog_shard(ENVIRONMENT), rows, expected_upper=upper, write_ts=upper
    )
    assert isinstance(outcome, Appended)


async def test_rows_in_another_spelling_are_written_anew_so_that_they_can_be_taken_back(
    environment: Environment,
) -> None:
    await environment.serve()
    await write_rows(
        environment, [], [("system_configuration", '{"name":"a"}', '{ "value": "1" }')]
    )
    service = await environment.serve()
    assert (await service.current()).system_configurations == {"a": "1"}
    snapshot = await commit(service, SetSystemConfigurationOp("a", None))
    assert not snapshot.system_configurations
    assert await (await environment.serve()).current() == snapshot


async def test_a_newer_version_is_refused_and_left_alone(environment: Environment) -> None:
    await environment.serve()
    newer: Row = ("config", VERSION_KEY, '{"value":99}')
    await write_rows(environment, [("config", VERSION_KEY, '{"value":1}')], [newer])
    for attempt in (
        environment.openable().check_open,
        environment.openable().open_read_only,
        environment.openable().open,
    ):
        with pytest.raises(IncompatibleVersion, match="version 99, this program knows 1"):
            await attempt()


async def test_a_row_stored_twice_is_noticed(environment: Environment) -> None:
    await environment.serve()
    await write_rows(environment, [], [("config", VERSION_KEY, '{"value":1}')])
    with pytest.raises(CorruptCatalog, match="stored 2 times"):
        await environment.openable().check_open()


async def test_a_catalog_on_disk_survives_its_process(tmp_path: Path) -> None:
    def process() -> Environment:
        environment = Environment()
        environment.store = SqliteStore(tmp_path / "consensus.db")
        environment.blob = FileBlob(tmp_path / "blob")
        return environment

    first = process()
    snapshot = await commit(await first.serve(), create_table("t"))
    await first.close()
    await first.store.close()
    second = process()
    assert await (await second.serve()).current() == snapshot
    await second.close()
    await second.store.close()
