"""Views that change hands are stored and read back alike, wherever the catalog is kept."""

from evertide.catalog.checks import faults_of
from evertide.catalog.durable.codec import CATALOG_VERSION
from evertide.catalog.durable.log import RowChange
from evertide.catalog.objects import Item
from evertide.persist.append import Appended
from tests.catalog.environment import Environment, commit
from tests.catalog.replacing import apply, finish, stage
from tests.catalog.samples import create_mv, create_table, item
from tests.catalog.test_old_catalogs_become_like_new_ones import new_of
from tests.catalog.test_stored_rows_stay_readable import examples


async def test_every_step_is_there_after_a_restart(environment: Environment) -> None:
    service = await environment.serve()
    snapshot = await commit(service, create_table("t"), create_table("u"))
    snapshot = await commit(service, create_mv("m", item(snapshot, "t")))
    seen: list[Item] = []
    for step in ("stage", "apply", "finish", "stage"):
        if step == "stage":
            op = stage("r", item(snapshot, "m"), item(snapshot, "u"))
            snapshot = await commit(service, op)
        else:
            wanted = apply(snapshot, "m", "r") if step == "apply" else finish(snapshot, "m")
            snapshot = await commit(service, wanted)
        service = await environment.serve()
        again = await service.current()
        assert dict(again.items) == dict(snapshot.items), step
        assert faults_of(again) == []
        snapshot = again
        seen.append(item(snapshot, "m"))
    assert [len(m.versions) for m in seen] == [1, 2, 2, 2]
    assert [m.outgoing is None for m in seen] == [True, False, True, True]


async def test_the_third_version_is_upgraded_and_every_item_has_its_first_version(
    environment: Environment,
) -> None:
    rows = new_of(3)
    more = [row for row in examples(3) if row.kind == "item" or row.key == '{"name":"user"}']
    taken = {(row.kind, row.key) for row in more}
    rows = [*(row for row in rows if (row.kind, row.key) not in taken), *more]
    log = environment.log(await environment.openable().current_epoch())
    await log.prepare()
    changes = [RowChange(row, 1) for row in rows]
    assert isinstance(await log.append(changes, expected_upper=await log.upper()), Appended)
    service = await environment.serve()
    snapshot = await service.current()
    assert snapshot.configs["catalog_version"] == CATALOG_VERSION
    assert len(snapshot.items) == len(more) - 1 > 3
    assert {i.planned_against for i in snapshot.items.values()} == {()}
    assert {len(i.versions) for i in snapshot.items.values()} == {1}
    reopened = await (await environment.serve()).current()
    assert dict(reopened.items) == dict(snapshot.items)
