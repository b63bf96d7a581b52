"""Looking at a catalog changes nothing that is stored: read-only opens, savepoints and checks."""

from evertide.catalog.durable.log import read_all
from evertide.catalog.durable.targeted import set_config
from evertide.persist.append import Appended
from evertide.persist.store.protocol import Head, OracleRow, StashPage
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.catalog.environment import Environment, commit
from tests.catalog.samples import PUBLIC, create_table

Everything = tuple[
    Epoch, dict[ShardId, Head], dict[Timeline, OracleRow], StashPage, list[str], dict[str, bytes]
]


async def everything(environment: Environment) -> Everything:
    """All that lies in the stores."""
    store = environment.store
    epoch = await store.current_epoch()
    consensus, oracle = store.consensus(epoch), store.oracle_rows(epoch)
    heads = await consensus.heads(dict.fromkeys(await consensus.shard_ids()))
    return (
        epoch,
        {shard_id: head for shard_id, head in heads.items() if isinstance(head, Head)},
        {timeline: await oracle.read(timeline) for timeline in Timeline},
        await store.stash().read(),
        [str(await store.find_note(name)) for name in ("catalog", "environment")],
        {key: await environment.blob.get(key) for key in await environment.blob.keys()},
    )


async def test_a_savepoint_is_the_catalog_as_it_would_be_and_is_never_stored(
    environment: Environment,
) -> None:
    service = await environment.serve()
    await commit(service, create_table("t"))
    before = await everything(environment)
    savepoint = await environment.openable().open_savepoint()
    transaction = await savepoint.transaction()
    transaction.apply(create_table("only_here"))
    assert isinstance(await savepoint.commit_transaction(transaction), Appended)
    await set_config(savepoint, "answer", 42)
    await savepoint.confirm_leadership()
    inside = await savepoint.load()
    assert {item.name for item in inside.items.values()} == {"t", "only_here"}
    assert "only_here" in await savepoint.dump()
    assert await everything(environment) == before
    assert (await service.current()).item_named(PUBLIC, "only_here") is None
    await commit(service, create_table("u"))


async def test_a_savepoint_of_a_new_environment_leaves_it_new(environment: Environment) -> None:
    before = await everything(environment)
    savepoint = await environment.openable().open_savepoint()
    assert (await savepoint.load()).cluster_named("default") is not None
    assert await everything(environment) == before
    assert not await environment.openable().is_initialized()


async def test_looking_changes_nothing(environment: Environment) -> None:
    service = await environment.serve()
    await commit(service, create_table("t"))
    before = await everything(environment)
    openable = environment.openable()
    readable = await openable.open_read_only()
    assert (await readable.load()).item_named(PUBLIC, "t") is not None
    assert '"name": "t"' in await readable.dump()
    await openable.check_open()
    await openable.is_initialized()
    await openable.deployment_generation()
    assert openable.boot_ts == environment.clock.now_ms()
    assert (await read_all(environment.log(Epoch(1)))).rows
    assert await everything(environment) == before
