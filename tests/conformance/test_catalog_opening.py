"""Opening fills, upgrades or refuses what is stored, in one transaction; nothing else may."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evertide.catalog.durable import upgrade
from evertide.catalog.durable.codec import CATALOG_VERSION, CorruptCatalog
from evertide.catalog.durable.log import RowChange, read_all
from evertide.catalog.durable.openable import LogOpenableCatalog
from evertide.catalog.durable.protocol import IncompatibleVersion, Uninitialized
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.targeted import set_config
from evertide.catalog.durable.today import Opening
from evertide.catalog.durable.upgrade.steps import stored_version
from evertide.catalog.ops import SetSystemConfigurationOp
from evertide.persist.append import Appended, Appender
from evertide.persist.faults import Fenced, StoreFull
from evertide.persist.store.protocol import ChangeOutcome, CompareAndSet, Consensus
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import MIN_TS, Timeline
from tests.catalog.environment import Environment, commit
from tests.support.jitter import JitteryConsensus

VERSION_KEY = '{"name":"catalog_version"}'
TODAY = StoredRow("config", VERSION_KEY, f'{{"value":{CATALOG_VERSION}}}')
NEWER = StoredRow("config", VERSION_KEY, f'{{"value":{CATALOG_VERSION + 1}}}')


async def write_rows(
    environment: Environment, gone: Sequence[StoredRow], came: Sequence[StoredRow]
) -> None:
    """Change stored rows behind everyone's back."""
    log = environment.log(await environment.openable().current_epoch())
    await log.prepare()
    changes = [*(RowChange(row, -1) for row in gone), *(RowChange(row, 1) for row in came)]
    outcome = await log.append(changes, expected_upper=await log.upper())
    assert isinstance(outcome, Appended)


async def stored_rows(environment: Environment) -> list[StoredRow]:
    log = environment.log(await environment.openable().current_epoch())
    return (await read_all(log)).rows


def first_version() -> list[StoredRow]:
    path = Path(upgrade.__file__).parent / "version_1.json"
    return [StoredRow(*row) for row in json.loads(path.read_text())]


async def test_rows_in_another_spelling_are_written_anew_so_that_they_can_be_taken_back(
    environment: Environment,
) -> None:
    await environment.serve()
    spelled = StoredRow("system_configuration", '{"name":"a"}', '{ "value": "1" }')
    await write_rows(environment, [], [spelled])
    service = await environment.serve()
    assert (await service.current()).system_configurations == {"a": "1"}
    snapshot = await commit(service, SetSystemConfigurationOp("a", None))
    assert not snapshot.system_configurations
    assert not (await (await environment.serve()).current()).system_configurations


async def test_a_newer_version_is_refused_and_nobody_is_fenced(environment: Environment) -> None:
    await environment.serve()
    await write_rows(environment, [TODAY], [NEWER])
    before = await stored_rows(environment)
    openable = environment.openable()
    known = f"version {CATALOG_VERSION + 1}, this program knows {CATALOG_VERSION}"
    for attempt in (
        openable.check_open,
        openable.open_read_only,
        openable.open_savepoint,
        openable.open,
    ):
        with pytest.raises(IncompatibleVersion, match=known):
            await attempt()
    assert await openable.current_epoch() == 1
    assert sorted(await stored_rows(environment)) == sorted(before)
    await environment.oracle(Epoch(1)).write_ts(Timeline.EPOCH_MS)


async def test_the_first_version_is_upgraded(environment: Environment) -> None:
    await write_rows(environment, [], first_version())
    assert await environment.openable().is_initialized()
    await environment.openable().check_open()
    with pytest.raises(IncompatibleVersion):
        await environment.openable().open_read_only()
    assert stored_version(await stored_rows(environment)) == 1
    service = await environment.serve()
    assert stored_version(await stored_rows(environment)) == CATALOG_VERSION
    snapshot = await service.current()
    assert snapshot.configs["catalog_version"] == CATALOG_VERSION
    await environment.openable().open_read_only()


class WatchedConsensus(JitteryConsensus):
    """Calls back before and after every change, while whoever asked for it waits."""

    def __init__(self, inner: Consensus, look: Callable[[], Awaitable[None]]) -> None:
        super().__init__(inner, random.Random(0))
        self._look = look

    async def compare_and_set_all(
        self, sets: Sequence[CompareAndSet], **riders: Any
    ) -> ChangeOutcome:
        await self._look()
        outcome = await super().compare_and_set_all(sets, **riders)
        await self._look()
        return outcome


async def test_an_upgrade_and_its_epoch_come_together(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: around each change that opening makes, somebody else looks at both."""
    await write_rows(environment, [], first_version())
    other = Environment(environment.kind, environment.store, environment.blob)
    seen: list[tuple[Epoch, int | None]] = []

    async def look() -> None:
        epoch = await environment.store.current_epoch()
        seen.append((epoch, stored_version(await stored_rows(other))))

    def consensus(epoch: Epoch) -> Consensus:
        return WatchedConsensus(environment.store.consensus(epoch), look)

    monkeypatch.setattr(environment, "consensus", consensus)
    await environment.openable().open()
    assert set(seen) == {(Epoch(0), 1), (Epoch(1), CATALOG_VERSION)}
    await other.close()


async def test_an_opening_that_fails_changes_nothing(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_rows(environment, [], first_version())
    before = await stored_rows(environment)

    async def fails(*_: object, **__: object) -> None:
        raise StoreFull("no room")

    with monkeypatch.context() as full:
        full.setattr(Appender, "append_claiming", fails)
        with pytest.raises(StoreFull):
            await environment.openable().open()
    assert await environment.openable().current_epoch() == 0
    assert sorted(await stored_rows(environment)) == sorted(before)


async def test_a_row_stored_twice_is_noticed(environment: Environment) -> None:
    await environment.serve()
    await write_rows(environment, [], [TODAY])
    with pytest.raises(CorruptCatalog, match="stored 2 times"):
        await environment.openable().check_open()


async def test_two_openers_at_once_become_two_generations(environment: Environment) -> None:
    """The older one learns that it is fenced at the latest when it asks."""
    outcomes = await asyncio.gather(
        *(environment.openable().open() for _ in range(2)), return_exceptions=True
    )
    assert await environment.store.current_epoch() == 2
    fenced = 0
    for outcome in outcomes:
        try:
            if isinstance(outcome, BaseException):
                raise outcome
            await outcome.confirm_leadership()
            assert outcome.epoch == 2
            assert (await outcome.load()).cluster_named("default") is not None
        except Fenced:
            fenced += 1
    assert fenced == 1


async def test_an_opener_is_not_kept_out_by_a_busy_generation(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: the older generation changes the catalog whenever the opener has looked at it."""
    busy = await environment.openable().open()
    look, lost = LogOpenableCatalog._opening, 0

    async def look_and_lose(*arguments: Any) -> Opening:
        nonlocal lost
        found = await look(*arguments)
        try:
            await set_config(busy, "changes", lost)
            lost += 1
        except Fenced:
            pass
        return found

    monkeypatch.setattr(LogOpenableCatalog, "_opening", look_and_lose)
    opened = await environment.openable().open()
    assert lost > 1
    assert (await opened.load()).configs["changes"] == lost - 1


async def test_the_deployment_generation_is_known_before_opening(
    environment: Environment,
) -> None:
    assert await environment.openable().deployment_generation() is None
    await environment.openable().open(7)
    assert await environment.openable().deployment_generation() == 7
    await environment.openable().open()
    assert await environment.openable().deployment_generation() == 7
    await write_rows(environment, [TODAY], [NEWER])
    assert await environment.openable().deployment_generation() == 7


async def test_nothing_is_open_before_somebody_opened_it(environment: Environment) -> None:
    openable = environment.openable()
    assert await openable.current_epoch() == 0
    for attempt in (openable.check_open, openable.open_read_only):
        with pytest.raises(Uninitialized):
            await attempt()
    assert await environment.log(Epoch(0)).upper() == MIN_TS
