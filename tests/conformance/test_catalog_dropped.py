"""What was dropped and can come back is stored and read alike, wherever the catalog is kept."""

from evertide.catalog.checks import faults_of
from evertide.catalog.dropped_ops import PurgeDroppedOp
from evertide.catalog.durable.codec import CATALOG_VERSION
from evertide.catalog.durable.log import RowChange
from evertide.persist.append import Appended
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import create_index, create_mv, create_table, create_view, ids, item
from tests.catalog.test_old_catalogs_become_like_new_ones import new_of
from tests.catalog.test_stored_rows_stay_readable import examples
from tests.catalog.undropping import drop, undrop


async def test_every_step_is_there_after_a_restart(environment: Environment) -> None:
    service = await environment.serve()
    snapshot = await commit(service, create_table("t"))
    t = item(snapshot, "t")
    snapshot = await commit(service, create_view("v", t), create_index("i", t))
    snapshot = await commit(service, create_mv("m", item(snapshot, "v")))
    order = ids(*(item(snapshot, name) for name in "tvim"))
    items = set(snapshot.items)
    follower = await environment.join()
    for step in ("drop", "undrop", "drop", "purge"):
        if step == "drop":
            op = drop(snapshot, item(snapshot, "t"))
            snapshot = await commit(service, op)
        elif step == "undrop":
            snapshot = await commit(service, undrop(snapshot, *order))
        else:
            snapshot = await commit(service, PurgeDroppedOp(order))
        if step != "purge":
            assert {*snapshot.items, *snapshot.dropped_items} == items, step
        followed = await follower.snapshot_at(snapshot.catalog_ts)
        assert dict(followed.dropped_items) == dict(snapshot.dropped_items)
        service = await environment.serve()
        again = await service.current()
        assert dict(again.items) == dict(snapshot.items), step
        assert dict(again.dropped_items) == dict(snapshot.dropped_items), step
        assert faults_of(again) == []
        snapshot, follower = again, await environment.join()
    assert not snapshot.items
    assert not snapshot.dropped_items


async def test_the_fourth_version_is_upgraded_and_has_nothing_to_bring_back(
    environment: Environment,
) -> None:
    more = [row for row in examples(4) if row.kind == "item" or row.key == '{"name":"user"}']
    taken = {(row.kind, row.key) for row in more}
    rows = [*(row for row in new_of(4) if (row.kind, row.key) not in taken), *more]
    log = environment.log(await environment.openable().current_epoch())
    await log.prepare()
    changes = [RowChange(row, 1) for row in rows]
    assert isinstance(await log.append(changes, expected_upper=await log.upper()), Appended)
    snapshot = await (await environment.serve()).current()
    assert snapshot.configs["catalog_version"] == CATALOG_VERSION
    assert len(snapshot.items) == len(more) - 1 > 3
    assert not snapshot.dropped_items
