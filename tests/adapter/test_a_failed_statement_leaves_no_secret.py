"""Goal: however CREATE SECRET and ALTER SECRET end, the store holds the values that are named, and
no other.

Method: a blob store and a catalog that stop, fail or lose their answers where a test says so.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.ddl import entry
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.service import CatalogService
from evertide.controller.secret_sweep import SPARED_MS, SecretSweeper
from evertide.persist.faults import StoreFailing, StoreFull
from evertide.persist.store.memory import MemoryBlob
from evertide.vocab.errors import ProgramLimitExceeded, QueryCanceled, SqlError
from tests.adapter.test_a_right_taken_away_is_gone import run
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT
from tests.support.owned import owned

CANARY = b"canary-secret"
CREATE = "CREATE SECRET k AS 'canary-secret'"


class Stop:
    """A place where work waits until it is told to go on."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.go_on = asyncio.Event()

    async def pause(self) -> None:
        self.reached.set()
        await self.go_on.wait()


class TroubledBlob(MemoryBlob):
    """As a thread does, a put or a delete goes on when whoever waits for it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.putting: asyncio.Future[None] | None = None
        self.put_stop: Stop | None = None
        self.put_fault: Exception | None = None
        self.delete_stop: Stop | None = None
        self.delete_fault: Exception | None = None

    async def put(self, key: str, value: bytes) -> None:
        self.putting = asyncio.ensure_future(self._put(key, value))
        await asyncio.shield(self.putting)

    async def _put(self, key: str, value: bytes) -> None:
        if self.put_stop is not None:
            await self.put_stop.pause()
        await super().put(key, value)
        if self.put_fault is not None:
            raise self.put_fault

    async def delete(self, key: str) -> None:
        if self.delete_stop is not None:
            await self.delete_stop.pause()
        if self.delete_fault is not None:
            raise self.delete_fault
        await super().delete(key)

    async def values(self) -> list[bytes]:
        """Of all secrets, be they named or not."""
        return [await self.get(key) for key in await self.keys("secrets/")]


class TroubledCatalog:
    """Appends that wait, that fail, or whose answer gets lost."""

    def __init__(self, service: CatalogService) -> None:
        self._service = service
        self.before: Stop | None = None
        self.after: Stop | None = None
        self.fault: Exception | None = None
        self.lost_answer: Exception | None = None

    async def compare_and_append(self, updates: Any, **options: Any) -> object:
        if not updates:
            return await self._service.compare_and_append(updates, **options)
        if self.before is not None:
            await self.before.pause()
        if self.fault is not None:
            raise self.fault
        outcome = await self._service.compare_and_append(updates, **options)
        if self.after is not None:
            await self.after.pause()
        if self.lost_answer is not None:
            raise self.lost_answer
        return outcome

    def __getattr__(self, name: str) -> object:
        return getattr(self._service, name)


class _Storage:
    def __init__(self, blob: MemoryBlob) -> None:
        self.blob = owned(blob)


class Site:
    def __init__(self, environment: Environment, service: CatalogService) -> None:
        assert isinstance(environment.blob, TroubledBlob)
        self.environment = environment
        self.blob = environment.blob
        self.service = service
        self.catalog = TroubledCatalog(service)
        missing: Any = None
        storage: Any = _Storage(self.blob)
        catalog: Any = self.catalog
        env = AdapterEnvironment(
            environment_id=ENVIRONMENT,
            catalog=catalog,
            oracle=missing,
            storage=storage,
            txns=missing,
            writes=missing,
            compute=missing,
            clock=environment.clock,
        )
        self.connections = Connections(env, lambda _: None)

    async def connect(self) -> Connection:
        return await self.connections.open_session({"user": "materialize"}, internal=False)

    async def named(self) -> int:
        """How many secrets there are, each of which must have its value."""
        secrets = (await self.service.current()).secrets.values()
        for secret in secrets:
            assert await self.blob.get(secret.stored_at)
        return len(secrets)

    async def close(self) -> None:
        await self.environment.close()


async def opened() -> Site:
    environment = Environment(blob=TroubledBlob())
    return Site(environment, await environment.serve())


async def test_a_cancel_while_the_value_is_stored_leaves_nothing() -> None:
    site = await opened()
    connection = await site.connect()
    site.blob.put_stop = stop = Stop()
    running = asyncio.create_task(run(connection, CREATE))
    await stop.reached.wait()
    connection.cancel()
    for _ in range(20):
        await asyncio.sleep(0)  # whoever does not wait for the put has its chance to leave
    stop.go_on.set()
    with pytest.raises(QueryCanceled):
        await running
    assert site.blob.putting is not None
    await site.blob.putting
    assert (await site.blob.values(), await site.named()) == ([], 0)
    await site.close()


async def test_a_put_that_failed_after_all_leaves_nothing() -> None:
    site = await opened()
    connection = await site.connect()
    site.blob.put_fault = StoreFull("blob: no room")
    with pytest.raises(SqlError):
        await run(connection, CREATE)
    assert await site.blob.values() == []
    await site.close()


async def test_a_statement_refused_in_between_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site = await opened()
    connection = await site.connect()
    stored: list[bytes] = []

    def refuse(*_: object, **__: object) -> None:
        stored.extend(site.blob._values.values())
        raise ProgramLimitExceeded("no more")

    monkeypatch.setattr(entry, "transact", refuse)
    with pytest.raises(ProgramLimitExceeded):
        await run(connection, CREATE)
    assert CANARY in stored
    assert await site.blob.values() == []
    await site.close()


def _refused(catalog: TroubledCatalog) -> None:
    catalog.fault = StoreFailing("the disk")


def _lost(catalog: TroubledCatalog) -> None:
    catalog.lost_answer = StoreFailing("the disk")


@pytest.mark.parametrize(("trouble", "wanted"), [(_refused, []), (_lost, [CANARY])])
async def test_an_append_without_an_answer_is_settled_first(
    trouble: Callable[[TroubledCatalog], None], wanted: list[bytes]
) -> None:
    site = await opened()
    connection = await site.connect()
    trouble(site.catalog)
    with pytest.raises(SqlError):
        await run(connection, CREATE)
    assert await site.blob.values() == wanted
    assert await site.named() == len(wanted)
    await site.close()


@pytest.mark.parametrize("committed", [False, True])
async def test_who_is_cancelled_twice_while_appending_leaves_what_is_named(committed: bool) -> None:
    site = await opened()
    connection = await site.connect()
    stop = Stop()
    if committed:
        site.catalog.after = stop
    else:
        site.catalog.before = stop
    running = asyncio.create_task(run(connection, CREATE))
    await stop.reached.wait()
    connection.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    connection.cancel()
    with pytest.raises(SqlError):
        await running
    wanted = [CANARY] if committed else []
    assert await site.blob.values() == wanted
    assert await site.named() == len(wanted)
    await site.close()


@pytest.mark.parametrize("statement", ["ALTER SECRET k AS 'other'", "DROP SECRET k"])
async def test_an_old_value_goes_though_the_client_does(statement: str) -> None:
    site = await opened()
    connection = await site.connect()
    await run(connection, CREATE)
    site.blob.delete_stop = stop = Stop()
    running = asyncio.create_task(run(connection, statement))
    await stop.reached.wait()
    connection.cancel()
    stop.go_on.set()
    await running
    assert CANARY not in await site.blob.values()
    await site.close()


async def test_an_old_value_that_cannot_go_now_is_swept_later() -> None:
    site = await opened()
    connection = await site.connect()
    await run(connection, CREATE)
    site.blob.delete_fault = StoreFailing("the disk")
    await run(connection, "ALTER SECRET k AS 'other'")
    assert sorted(await site.blob.values()) == [CANARY, b"other"]
    site.blob.delete_fault = None
    sweeper = SecretSweeper(site.service, owned(site.blob), site.environment.clock, ENVIRONMENT)
    assert await sweeper.sweep_once() == 0
    site.environment.clock.advance(SPARED_MS)
    assert await sweeper.sweep_once() == 1
    assert (await site.blob.values(), await site.named()) == ([b"other"], 1)
    await site.close()


async def test_names_that_are_taken_leave_nothing() -> None:
    site = await opened()
    connection = await site.connect()
    await run(connection, "CREATE SECRET k AS 'first'")
    await run(connection, "CREATE SECRET IF NOT EXISTS k AS 'canary-secret'")
    with pytest.raises(SqlError):
        await run(connection, CREATE)
    assert await site.blob.values() == [b"first"]
    await site.close()
