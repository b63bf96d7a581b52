"""Goal: statements sent as one text share one look at the catalog, which is younger than the text.

Method: a catalog that counts looks, and lets somebody else act just before one of them.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.adapter.transaction import Span
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import Storage
from evertide.persist.txn import Txns
from evertide.vocab.errors import InsufficientPrivilege, SqlError, UndefinedTable
from evertide.vocab.ids import ShardId
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT


class Watched:
    """A catalog that counts how often it is looked at."""

    def __init__(self, service: CatalogService) -> None:
        self._service = service
        self.looks = 0
        # What happens before a look, by its number.
        self.before: dict[int, Callable[[], Awaitable[None]]] = {}

    async def current(self) -> Snapshot:
        self.looks += 1
        happens = self.before.pop(self.looks, None)
        if happens is not None:
            await happens()
        return await self._service.current()

    def __getattr__(self, name: str) -> object:
        return getattr(self._service, name)


class Site:
    """Sessions over one catalog: `one` is watched, `other` is not."""

    def __init__(self, watched: Watched, watching: Connections, others: Connections) -> None:
        self.watched = watched
        self._watching = watching
        self._others = others

    async def one(self, user: str = "materialize") -> Connection:
        opened = await self._watching.open_session({"user": user}, internal=False)
        self.watched.looks = 0
        return opened

    async def other(self, *texts: str) -> None:
        session = await self._others.open_session({"user": "materialize"}, internal=False)
        for text in texts:
            await send(session, text)


async def send(connection: Connection, text: str) -> None:
    """As a client's message does it."""
    try:
        for prepared in connection.split(text):
            await connection.execute(prepared, ())
    except SqlError:
        await connection.end_implicit(failed=True)
        raise
    await connection.end_implicit(failed=False)


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    environment = Environment()
    catalog = await environment.openable().open()
    oracle = environment.oracle(catalog.epoch)
    service = CatalogService(catalog, oracle)
    await service.start()
    client = environment.client_for(catalog.epoch)
    txns = Txns(client, ShardId("txns"))
    await txns.ensure()

    def connections(seen: Any) -> Connections:
        missing: Any = None
        env = AdapterEnvironment(
            environment_id=ENVIRONMENT,
            catalog=seen,
            oracle=oracle,
            storage=Storage(client, txns),
            txns=txns,
            writes=missing,
            compute=missing,
            clock=environment.clock,
        )
        return Connections(env, lambda _: None)

    watched = Watched(service)
    site = Site(watched, connections(watched), connections(service))
    await site.other("CREATE TABLE t (a int)", "CREATE ROLE joe", "GRANT INSERT ON t TO joe")
    yield site
    await service.close()
    await environment.close()


TEXT = "BEGIN; INSERT INTO t VALUES (1); INSERT INTO t VALUES (2); INSERT INTO t VALUES (3); "


async def test_one_look_and_one_of_the_block_s_end(site: Site) -> None:
    one = await site.one()
    await send(one, TEXT + "ROLLBACK")
    assert site.watched.looks == 2


async def test_every_text_looks_anew(site: Site) -> None:
    one = await site.one()
    await send(one, TEXT + "ROLLBACK")
    await site.other("DROP TABLE t")
    with pytest.raises(UndefinedTable):
        await send(one, TEXT + "ROLLBACK")


async def test_a_text_that_failed_leaves_nothing_behind(site: Site) -> None:
    one = await site.one()
    with pytest.raises(SqlError):
        await send(one, "INSERT INTO t VALUES (1); INSERT INTO nowhere VALUES (1); SELECT 1")
    await site.other("DROP TABLE t")
    prepared = one.split("INSERT INTO t VALUES (1), (2)")
    with pytest.raises(UndefinedTable):
        await one.execute(prepared[0], ())
    await one.end_implicit(failed=True)


async def test_a_text_sees_what_it_made_itself(site: Site) -> None:
    one = await site.one()
    await send(one, TEXT + "ROLLBACK; CREATE VIEW v AS SELECT a FROM t; CREATE VIEW w AS TABLE v")
    await send(one, "DROP VIEW w; DROP VIEW v; CREATE VIEW w AS SELECT 1 AS v; DROP VIEW w")


async def test_a_right_that_goes_before_the_commit_is_gone(site: Site) -> None:
    joe = await site.one("joe")
    site.watched.before[2] = lambda: site.other("REVOKE INSERT ON t FROM joe")
    with pytest.raises(InsufficientPrivilege):
        await send(joe, TEXT + "COMMIT")


async def test_what_is_prepared_is_no_part_of_the_text_before_it(site: Site) -> None:
    """Else it would hold all that is near what it reads, for statements that never come."""
    one = await site.one()
    prepared = await one.prepare("SELECT 1 AS a", ())
    await send(one, TEXT + "ROLLBACK")
    await one.execute(prepared, ())
    transaction = one._session.transaction
    assert transaction is not None
    assert transaction.span is Span.STATEMENT
    await one.end_implicit(failed=False)
