"""Goal: a secret's value that no catalog names goes in time; one that is named, or may be, stays.

Method: values are put beside a real catalog of each kind; time moves by hand.
"""

from typing import Any

import pytest

from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.ops import CreateSecretOp
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.catalog.transact import TransactResult, transact
from evertide.controller.secret_sweep import SPARED_MS, SecretSweeper, secrets_prefix
from evertide.persist.handle import Appended
from evertide.vocab.ids import EnvironmentId
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import ENVIRONMENT
from tests.support.owned import owned

PREFIX = secrets_prefix(ENVIRONMENT)


class Site:
    """A catalog, a blob store, and the sweep over both."""

    def __init__(self, environment: Environment, service: CatalogService) -> None:
        self.environment = environment
        self.service = service
        blob, clock = owned(environment.blob), environment.clock
        self.sweeper = SecretSweeper(service, blob, clock, ENVIRONMENT)

    async def keys(self) -> list[str]:
        return await self.environment.blob.keys()

    def wait(self, passed_ms: int) -> None:
        self.environment.clock.advance(passed_ms)


@pytest.fixture(params=list(CatalogKind))
def environment(request: pytest.FixtureRequest) -> Environment:
    return Environment(request.param)


async def opened(environment: Environment, *keys: str) -> Site:
    site = Site(environment, await environment.serve())
    for key in keys:
        await environment.blob.put(key, b"canary")
    return site


def make(name: str, key: str, snapshot: Snapshot) -> CreateSecretOp:
    owner = snapshot.role_named("materialize")
    assert owner is not None
    schema = next(found for found in snapshot.schemas.values() if found.name == "public")
    return CreateSecretOp(schema_id=schema.schema_id, name=name, owner=owner.role_id, stored_at=key)


def decided(name: str, key: str, snapshot: Snapshot) -> TransactResult:
    return transact(snapshot, [make(name, key, snapshot)], now_ms=3_000, user="materialize")


async def test_what_nothing_names_goes_once_it_is_old(environment: Environment) -> None:
    named, left = f"{PREFIX}named", f"{PREFIX}left"
    others = [f"{secrets_prefix(EnvironmentId('other'))}left", "shard/1-part.parquet"]
    site = await opened(environment, named, left, *others)
    await commit(site.service, make("k", named, await site.service.current()))
    assert await site.sweeper.sweep_once() == 0
    site.wait(SPARED_MS - 1)
    late = f"{PREFIX}late"
    await environment.blob.put(late, b"canary")
    assert await site.sweeper.sweep_once() == 0, "it is young"
    site.wait(1)
    assert await site.sweeper.sweep_once() == 1
    assert not {left} & set(await site.keys())
    assert {named, late, *others} <= set(await site.keys())
    site.wait(SPARED_MS)
    assert await site.sweeper.sweep_once() == 1
    assert late not in await site.keys()
    assert await site.sweeper.sweep_once() == 0
    await environment.close()


async def test_a_value_that_is_named_at_last_stays(environment: Environment) -> None:
    key = f"{PREFIX}slow"
    site = await opened(environment, key)
    assert await site.sweeper.sweep_once() == 0
    site.wait(SPARED_MS)
    await commit(site.service, make("k", key, await site.service.current()))
    assert await site.sweeper.sweep_once() == 0
    assert key in await site.keys()
    await environment.close()


async def test_no_append_that_is_under_way_names_what_was_swept(environment: Environment) -> None:
    key = f"{PREFIX}slow"
    site = await opened(environment, key)
    snapshot = await site.service.current()
    result = decided("k", key, snapshot)
    assert await site.sweeper.sweep_once() == 0
    site.wait(SPARED_MS)
    assert await site.sweeper.sweep_once() == 1
    outcome = await site.service.compare_and_append(result.updates, expected_upper=snapshot.upper)
    assert not isinstance(outcome, Appended)
    assert not (await site.service.current()).secrets
    await environment.close()


async def test_an_append_that_comes_first_keeps_its_value(environment: Environment) -> None:
    """It lands between the look at the catalog and the deletion."""
    key = f"{PREFIX}quick"
    site = await opened(environment, key)
    assert await site.sweeper.sweep_once() == 0
    site.wait(SPARED_MS)
    racing = Racing(site.service, key)
    site.sweeper._catalog = racing  # type: ignore[assignment]
    assert await site.sweeper.sweep_once() == 0
    assert racing.raced
    assert key in await site.keys()
    assert len((await site.service.current()).secrets) == 1
    await environment.close()


class Racing:
    """A catalog in which somebody else is quicker."""

    def __init__(self, service: CatalogService, key: str) -> None:
        self._service = service
        self._key = key
        self.raced = False

    async def compare_and_append(self, *arguments: Any, **options: Any) -> object:
        await commit(self._service, make("k", self._key, await self._service.current()))
        self.raced = True
        return await self._service.compare_and_append(*arguments, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self._service, name)
