"""Goal: an environment's catalog moves between its places and loses nothing on the way."""

import asyncio
from itertools import permutations
from typing import Any

import pytest

from evertide.catalog.durable.log import CatalogLog, read_all
from evertide.catalog.durable.move import move_catalog
from evertide.catalog.durable.place import CatalogKind, CatalogMoving, CatalogPlace, WrongCatalog
from evertide.catalog.durable.protocol import Uninitialized, WritableCatalog
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.objects import Item
from evertide.persist.append import Appended
from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.store.memory import MemoryStore
from tests.catalog.environment import Environment
from tests.catalog.samples import create_table

PERSIST, STASH, SHADOW = CatalogKind


async def opened(environment: Environment) -> WritableCatalog:
    """What `serve` does, whichever catalog the environment says it has."""
    place = environment.place()
    catalog = await place.openable(environment.clock).open()
    await place.settle(catalog.epoch)
    return catalog


async def joined(environment: Environment) -> WritableCatalog:
    place = environment.place()
    openable = place.openable(environment.clock)
    catalog = await openable.join(await openable.current_epoch())
    await place.check_joined()
    return catalog


async def create(catalog: WritableCatalog, name: str) -> None:
    transaction = await catalog.transaction()
    transaction.apply(create_table(name))
    assert isinstance(await catalog.commit_transaction(transaction), Appended)


async def names(catalog: WritableCatalog) -> list[str]:
    return [item.name for item in await catalog.get(Item)]


async def rows(place: CatalogPlace) -> set[StoredRow]:
    log = await place.log_for(await place.store.current_epoch())
    return set((await read_all(log)).rows)


@pytest.mark.parametrize(("source", "target"), list(permutations(CatalogKind, 2)))
async def test_a_move_and_the_way_back_keep_everything(
    environment: Environment, source: CatalogKind, target: CatalogKind
) -> None:
    place = environment.place()
    await place.choose(source)
    first = await opened(environment)
    await create(first, "t")
    for to, name in ((target, "u"), (source, "v"), (target, "w")):
        before = await rows(place)
        await move_catalog(place, to)
        assert (await place.kind(), await rows(place)) == (to, before)
        await create(await opened(environment), name)
    assert await names(await opened(environment)) == ["t", "u", "v", "w"]
    with pytest.raises(Fenced):
        await create(first, "never")


@pytest.mark.parametrize(("source", "target"), list(permutations(CatalogKind, 2)))
@pytest.mark.parametrize("steps", range(12))
async def test_a_move_that_stops_on_its_way_has_changed_nothing(
    environment: Environment,
    monkeypatch: pytest.MonkeyPatch,
    source: CatalogKind,
    target: CatalogKind,
    steps: int,
) -> None:
    """Method: the store is gone after so many changes; the last one is the note of the move."""
    place = environment.place()
    await place.choose(source)
    await create(await opened(environment), "t")
    before, left = await rows(place), steps

    def counted(step: object) -> object:
        async def change(*arguments: object, **options: object) -> object:
            nonlocal left
            if left == 0:
                raise StoreUnreachable("gone")
            left -= 1
            return await step(*arguments, **options)  # type: ignore[operator]

        return change

    with monkeypatch.context() as failing:
        consensus = type(environment.store.consensus(await environment.store.current_epoch()))
        for owner, name in (
            (MemoryStore, "raise_epoch"),
            (MemoryStore, "set_note"),
            (consensus, "compare_and_set_all"),
        ):
            failing.setattr(owner, name, counted(getattr(owner, name)))
        try:
            await move_catalog(environment.place(), target)
        except StoreUnreachable:
            assert await environment.place().kind() == source
        else:
            assert await environment.place().kind() == target
    assert await rows(environment.place()) == before
    await create(await opened(environment), "u")
    assert await names(await joined(environment)) == ["t", "u"]
    await move_catalog(environment.place(), target)
    assert await names(await opened(environment)) == ["t", "u"]


async def test_nobody_joins_a_catalog_that_is_being_left(
    environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else what they write to the old place, after it was copied, would be lost."""
    await create(await opened(environment), "t")
    outcomes: list[str] = []
    set_note = MemoryStore.set_note

    async def join_now() -> None:
        try:
            await create(await joined(environment), f"u{len(outcomes)}")
            outcomes.append("wrote")
        except (CatalogMoving, Fenced) as fault:
            outcomes.append(type(fault).__name__)

    async def with_company(*arguments: Any, **named: Any) -> None:
        await join_now()
        await set_note(*arguments, **named)
        await join_now()

    monkeypatch.setattr(MemoryStore, "set_note", with_company)
    await move_catalog(environment.place(), STASH)
    monkeypatch.undo()
    assert outcomes == ["wrote", "CatalogMoving", "CatalogMoving", "wrote"]
    assert await names(await opened(environment)) == ["t", "u0", "u3"]


@pytest.mark.parametrize(("source", "to"), [(PERSIST, STASH), (STASH, SHADOW), (SHADOW, PERSIST)])
async def test_whoever_chose_the_old_place_can_change_nothing(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, source: CatalogKind, to: CatalogKind
) -> None:
    """An opener, or an edit by hand, that looked before the last step and goes on after it."""
    await environment.place().choose(source)
    await create(await opened(environment), "t")
    chosen: list[CatalogLog] = []
    set_note = MemoryStore.set_note

    async def after_a_look(*arguments: Any, **named: Any) -> None:
        epoch = await environment.store.current_epoch()
        chosen.append(await environment.place().log_for(epoch))
        await set_note(*arguments, **named)

    monkeypatch.setattr(MemoryStore, "set_note", after_a_look)
    await move_catalog(environment.place(), to)
    monkeypatch.undo()
    assert len(chosen) == 2
    for log in chosen:
        with pytest.raises(Fenced):
            await log.append([], expected_upper=await log.upper(), raises_epoch=True)
    assert await names(await opened(environment)) == ["t"]


async def test_an_environment_that_was_never_opened_cannot_be_moved(
    environment: Environment,
) -> None:
    with pytest.raises(Uninitialized):
        await move_catalog(environment.place(), STASH)
    assert await environment.store.current_epoch() == 0
    assert await environment.place().kind() is None


async def test_the_first_to_begin_an_environment_chooses(environment: Environment) -> None:
    await environment.place().choose(STASH)
    await opened(environment)
    await environment.place().choose(None)
    await environment.place().choose(STASH)
    with pytest.raises(WrongCatalog, match="kept as stash, not as shadow"):
        await environment.place().choose(SHADOW)


async def test_an_environment_without_a_note_is_in_persist(environment: Environment) -> None:
    """Those that were begun before there was a choice say nothing."""
    await environment.serve()
    assert await environment.place().kind() is None
    with pytest.raises(WrongCatalog):
        await environment.place().choose(STASH)
    await environment.place().choose(None)
    assert await environment.place().kind() == PERSIST


async def test_of_two_who_begin_at_once_one_chooses(environment: Environment) -> None:
    outcomes = await asyncio.gather(
        environment.place().choose(STASH),
        environment.place().choose(SHADOW),
        return_exceptions=True,
    )
    assert sum(isinstance(outcome, WrongCatalog) for outcome in outcomes) == 1
