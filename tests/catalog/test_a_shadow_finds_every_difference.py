"""Goal: two catalogs at once, and no difference between them goes unnoticed.

Method: the secondary is changed, left behind or failing behind the shadow's back.
"""

import asyncio
from collections.abc import AsyncIterator

import pytest

from evertide.catalog.durable.log import RowChange, follow, read_all
from evertide.catalog.durable.place import CatalogKind
from evertide.catalog.durable.protocol import ShadowDifference
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.durable.stash import StashLog
from evertide.catalog.objects import AuditEvent
from evertide.catalog.ops import SetSystemConfigurationOp
from evertide.catalog.service import CatalogService
from evertide.catalog.transact import transact
from evertide.persist.append import Appended
from evertide.persist.faults import StoreFull, StoreUnreachable
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp, step_back
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create_table, item

PLANTED = StoredRow("system_configuration", '{"name":"planted"}', '{"value":"1"}')


@pytest.fixture
async def shadow() -> AsyncIterator[Environment]:
    made = Environment(CatalogKind.SHADOW)
    yield made
    await made.close()


def part(shadow: Environment, kind: CatalogKind) -> Environment:
    """One of its two catalogs alone."""
    return Environment(kind, shadow.store, shadow.blob)


async def upper_of(shadow: Environment, kind: CatalogKind) -> Timestamp:
    return await part(shadow, kind).log(Epoch(1)).upper()


async def alone(shadow: Environment, kind: CatalogKind, *changes: RowChange) -> None:
    """One commit that the other catalog does not get."""
    log = part(shadow, kind).log(await shadow.store.current_epoch())
    outcome = await log.append(changes, expected_upper=await log.upper())
    assert isinstance(outcome, Appended)


async def lose_the_secondary(
    shadow: Environment, service: CatalogService, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """A process that stops between its two commits."""

    async def stops(*_: object, **__: object) -> None:
        raise StoreUnreachable("the process stops here")

    with monkeypatch.context() as stopping:
        stopping.setattr(StashLog, "append", stops)
        with pytest.raises(StoreUnreachable):
            await commit(service, create_table(name))
    persist, stash = (CatalogKind.PERSIST, CatalogKind.STASH)
    assert await upper_of(shadow, stash) < await upper_of(shadow, persist)


async def same(shadow: Environment) -> bool:
    persist, stash = [
        await read_all(part(shadow, kind).log(Epoch(0)))
        for kind in (CatalogKind.PERSIST, CatalogKind.STASH)
    ]
    return persist.upper == stash.upper and set(persist.rows) == set(stash.rows)


async def test_both_catalogs_hold_the_same_after_every_commit(shadow: Environment) -> None:
    service = await shadow.serve()
    assert await same(shadow)
    for number in range(5):
        await commit(service, create_table(f"t{number}"))
        assert await same(shadow)
    await shadow.serve()
    assert await same(shadow)


async def test_a_secondary_one_commit_behind_is_repaired_at_open(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lose_the_secondary(shadow, await shadow.serve(), monkeypatch, "t")
    service = await shadow.serve()
    assert await same(shadow)
    assert item(await service.current(), "t").name == "t"


async def test_whoever_appends_next_repairs_first(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, other = await shadow.serve(), await shadow.join()
    await lose_the_secondary(shadow, service, monkeypatch, "t")
    snapshot = await commit(other, create_table("u"))
    assert {found.name for found in snapshot.items.values()} == {"t", "u"}
    assert await same(shadow)


async def test_a_reader_does_not_mind_one_missing_commit(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await shadow.serve()
    await lose_the_secondary(shadow, service, monkeypatch, "t")
    readable = await shadow.openable().open_read_only()
    snapshot = await readable.load()
    assert item(snapshot, "t").name == "t"
    assert await readable.get(AuditEvent)
    await shadow.openable().check_open()


async def test_a_repair_that_loses_its_race_is_no_difference(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: two processes want to go on at the same moment, and both find the gap."""
    service = await shadow.serve()
    await lose_the_secondary(shadow, service, monkeypatch, "t")
    others = [await shadow.join() for _ in range(3)]
    await asyncio.gather(*(commit(o, create_table(f"u{n}")) for n, o in enumerate(others)))
    assert await same(shadow)


async def test_a_commit_that_somebody_else_completed_is_compared(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Method: before the writer gets to its second commit, another one takes its place."""
    service = await shadow.serve()
    append = StashLog.append

    async def too_late(self: StashLog, changes: object, **options: object) -> object:
        monkeypatch.undo()
        planted = [RowChange(PLANTED, 1)]
        await append(self, planted, **options)  # type: ignore[arg-type]
        return await append(self, changes, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(StashLog, "append", too_late)
    with pytest.raises(ShadowDifference, match="persist has audit_event"):
        await commit(service, create_table("t"))
    assert isinstance(await service.wait_failed(), ShadowDifference)


async def test_two_missing_commits_are_a_difference(shadow: Environment) -> None:
    await shadow.serve()
    for number in range(2):
        row = PLANTED._replace(value=f'{{"value":"{number}"}}')
        await alone(shadow, CatalogKind.PERSIST, RowChange(row, 1))
    for attempt in (shadow.openable().open, shadow.openable().check_open, shadow.join):
        with pytest.raises(ShadowDifference, match="more than one commit behind"):
            await attempt()


async def test_a_secondary_ahead_is_a_difference(shadow: Environment) -> None:
    await shadow.serve()
    await alone(shadow, CatalogKind.STASH, RowChange(PLANTED, 1))
    with pytest.raises(ShadowDifference, match="stash is complete up to"):
        await shadow.openable().open()


async def test_rows_that_differ_are_told_with_both_values(shadow: Environment) -> None:
    service = await shadow.serve()
    snapshot = await commit(service, SetSystemConfigurationOp("planted", "2"))
    there = PLANTED._replace(value='{"value":"2"}')
    await alone(shadow, CatalogKind.STASH, RowChange(there, -1), RowChange(PLANTED, 1))
    at = step_back(await upper_of(shadow, CatalogKind.STASH))
    persist = part(shadow, CatalogKind.PERSIST).log(Epoch(1))
    assert isinstance(await persist.append([], expected_upper=snapshot.upper, at=at), Appended)
    with pytest.raises(ShadowDifference) as told:
        await shadow.openable().check_open()
    assert 'persist has system_configuration {"name":"planted"} = {"value":"2"}' in str(told.value)
    assert 'stash has system_configuration {"name":"planted"} = {"value":"1"}' in str(told.value)


async def test_two_spellings_of_one_object_are_no_difference(shadow: Environment) -> None:
    await shadow.serve()
    spelled = PLANTED._replace(value='{ "value" : "1" }')
    await alone(shadow, CatalogKind.PERSIST, RowChange(PLANTED, 1))
    primary = await upper_of(shadow, CatalogKind.PERSIST)
    stash = part(shadow, CatalogKind.STASH).log(Epoch(1))
    outcome = await stash.append(
        [RowChange(spelled, 1)], expected_upper=await stash.upper(), at=step_back(primary)
    )
    assert outcome == Appended(primary)
    await shadow.openable().check_open()


async def test_a_follower_finds_a_transaction_that_differs(shadow: Environment) -> None:
    service = await shadow.serve()
    start = (await service.current()).upper
    log = shadow.log(Epoch(1))
    await alone(shadow, CatalogKind.PERSIST, RowChange(PLANTED, 1))
    steps = follow(log, start)
    assert (await anext(steps)).changes == (RowChange(PLANTED, 1),)
    stash = part(shadow, CatalogKind.STASH).log(Epoch(1))
    primary = await upper_of(shadow, CatalogKind.PERSIST)
    await stash.append([], expected_upper=start, at=step_back(primary))
    await alone(shadow, CatalogKind.PERSIST)
    with pytest.raises(ShadowDifference, match="persist has system_configuration"):
        await anext(steps)


async def test_a_full_store_after_the_first_commit_does_not_undo_it(
    shadow: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = await shadow.serve()

    async def full(*_: object, **__: object) -> None:
        raise StoreFull("no room")

    with monkeypatch.context() as filled:
        filled.setattr(StashLog, "append", full)
        snapshot = await commit(service, create_table("t"))
    assert item(snapshot, "t").name == "t"
    assert not await same(shadow)
    await commit(service, create_table("u"))
    assert await same(shadow)


async def test_a_process_whose_catalogs_differ_is_told_to_end(shadow: Environment) -> None:
    service = await shadow.serve()
    snapshot = await service.current()
    updates = transact(snapshot, [create_table("t")], now_ms=1, user=None).updates
    await alone(shadow, CatalogKind.STASH, RowChange(PLANTED, 1))
    with pytest.raises(ShadowDifference):
        await service.compare_and_append(updates, expected_upper=snapshot.upper)
    assert isinstance(await service.wait_failed(), ShadowDifference)
