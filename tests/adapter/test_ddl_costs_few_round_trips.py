"""Goal: a statement asks the store no more often than it must, wherever the catalog is kept.

Method: every call of every handle is counted, from the moment that the statement comes until it is
answered. What this process's own follower asks meanwhile, about a change it knows already, is not
part of the statement: nobody waits for it.
"""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.service import CatalogService
from evertide.controller.storage import Storage
from evertide.persist.handle import PersistClient
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.txn import Txns
from evertide.vocab.ids import EnvironmentId, ShardId
from tests.catalog.environment import Environment
from tests.support.counting import counted
from tests.support.postgres import own_schema


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    opened: Store
    if request.param == "sqlite":
        opened = SqliteStore(tmp_path / "consensus.db")
    else:
        opened = PostgresStore(own_schema(request.getfixturevalue("postgres_dsn")))
    yield opened
    await opened.close()


class StillService(CatalogService):
    """Does not follow: what it asks in the background would be counted at random."""

    async def _follow(self) -> None:
        pass


async def adapter(environment: Environment, store: Store) -> Connection:
    missing: Any = None
    environment.store = store
    catalog = await environment.openable().open()
    service = StillService(catalog, environment.oracle(catalog.epoch))
    await service.start()
    client: PersistClient = environment.client_for(catalog.epoch)
    txns = Txns(client, ShardId("txns"))
    env = AdapterEnvironment(
        environment_id=EnvironmentId(str(uuid.uuid4())),
        catalog=service,
        oracle=environment.oracle(catalog.epoch),
        storage=Storage(client, txns),
        txns=txns,
        writes=missing,
        compute=missing,
        clock=environment.clock,
    )
    return await Connections(env, lambda _: None).open_session({"user": "m"}, internal=False)


async def asked_by(connection: Connection, asked: list[str], text: str) -> list[str]:
    asked.clear()
    (prepared,) = connection.split(text)
    await connection.execute(prepared, ())
    await connection.end_implicit(failed=False)
    return list(asked)


@pytest.mark.parametrize("kind", list(CatalogKind))
async def test_create_table_costs_three_at_most(store: Store, kind: CatalogKind) -> None:
    environment = Environment(kind)
    watched, asked = counted(store)
    connection = await adapter(environment, watched)
    for number in range(3):
        found = await asked_by(connection, asked, f"CREATE TABLE t{number} (a int)")
        assert found[0] == "read", "the oracle says which snapshot is new enough"
        second_commit = 1 if kind is CatalogKind.SHADOW else 0
        assert len(found) <= 3 + second_commit, found
    await environment.close()


@pytest.mark.parametrize("kind", list(CatalogKind))
async def test_a_catalog_that_did_not_change_is_not_read(store: Store, kind: CatalogKind) -> None:
    environment = Environment(kind)
    watched, asked = counted(store)
    connection = await adapter(environment, watched)
    await asked_by(connection, asked, "CREATE TABLE t (a int)")
    for text in ("SHOW TABLES", "SELECT name FROM mz_tables", "SELECT 1", "SHOW CLUSTERS"):
        assert set(await asked_by(connection, asked, text)) == {"read"}, text
    await environment.close()
