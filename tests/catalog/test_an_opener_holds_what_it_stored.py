"""Whoever opens the catalog does not read it again: it must hold what others then find."""

from evertide.catalog.durable.codec import encode_object
from evertide.catalog.durable.protocol import WritableCatalog
from evertide.catalog.durable.rows import StoredRow
from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot, all_objects
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create_table


def rows(snapshot: Snapshot) -> list[StoredRow]:
    return sorted(encode_object(found) for found in all_objects(snapshot))


async def opener_and_joiner(environment: Environment, generation: int) -> tuple[Snapshot, Snapshot]:
    """What each holds; the generation is something that every opening here changes."""
    opener: WritableCatalog = await environment.openable().open(generation)
    joiner = await environment.openable().join(opener.epoch)
    return await opener.load(), await joiner.load()


async def test_a_new_environment_looks_the_same_to_its_opener_and_to_others() -> None:
    environment = Environment()
    opened, joined = await opener_and_joiner(environment, 1)
    assert opened.upper == joined.upper
    assert rows(opened) == rows(joined)
    await environment.close()


async def test_a_reopened_environment_looks_the_same_to_its_opener_and_to_others() -> None:
    environment = Environment()
    await commit(await environment.serve(), create_table("t"))
    for generation in (1, 2):
        opened, joined = await opener_and_joiner(environment, generation)
        assert opened.configs["deployment_generation"] == generation
        assert [found.name for found in opened.of_type(Item)] == ["t"]
        assert opened.upper == joined.upper
        assert rows(opened) == rows(joined)
    await environment.close()


async def test_a_look_at_what_opening_would_make_shows_the_same_objects() -> None:
    environment = Environment()
    opened, _ = await opener_and_joiner(environment, 1)
    checked = await environment.openable().check_open()
    assert checked.upper == opened.upper
    assert {row.key for row in rows(checked)} == {row.key for row in rows(opened)}
    await environment.close()
