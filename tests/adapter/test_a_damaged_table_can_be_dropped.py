"""Goal: a table whose state is damaged is called by its name, and can be dropped; nothing else can
be done with it, and all else goes on.

Method: sessions over stores in memory, where the table's record is overwritten.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from evertide.adapter.connection import Connections
from evertide.adapter.ddl.append import append_with_shards
from evertide.adapter.writing.committer import ClaimingCommitter
from evertide.adapter.writing.group_commit import GroupCommit
from evertide.catalog.dropped_ops import PurgeDroppedOp
from evertide.persist.faults import DamagedState
from evertide.persist.purge import is_purged
from evertide.persist.store.protocol import CompareAndSet, Head
from evertide.vocab.clock import ManualClock
from evertide.vocab.errors import SqlError
from evertide.vocab.ids import ShardId
from tests.adapter.staged import World, new_world
from tests.catalog.environment import Environment


class Site:
    """A table t that is damaged, with a view mv, and a table u that is sound."""

    def __init__(self, environment: Environment, world: World) -> None:
        self._environment = environment
        self.world = world
        clock = environment.clock
        writes = GroupCommit(world.txns, ClaimingCommitter(world.txns, clock), clock)
        self.committing = asyncio.create_task(writes.run())
        env = replace(world._env, writes=writes)
        self._connections = Connections(env, lambda _: None)

    async def run(self, *texts: str) -> None:
        session = await self._connections.open_session({"user": "materialize"}, internal=False)
        for text in texts:
            (prepared,) = session.split(text)
            await session.execute(prepared, ())
            await session.end_implicit(failed=False)

    async def refusal(self, *texts: str) -> SqlError:
        with pytest.raises(SqlError) as refused:
            await self.run(*texts)
        assert not self.committing.done()
        return refused.value

    def shard(self, name: str) -> ShardId:
        found = self.world.item(name).shard_id
        assert found is not None
        return found

    async def damage(self, shard_id: ShardId) -> None:
        consensus = self._environment.consensus(await self._environment.store.current_epoch())
        head = await consensus.head(shard_id)
        assert isinstance(head, Head)
        value = head.value[:-1] + bytes([head.value[-1] ^ 1])
        await consensus.compare_and_set_all([CompareAndSet(shard_id, head.seqno, value)])


@asynccontextmanager
async def damaged_site() -> AsyncIterator[Site]:
    environment = Environment()
    world = await new_world(environment)
    await world.run("CREATE TABLE u (a int)")
    await world.run("CREATE INDEX ON t (a)")
    site = Site(environment, world)
    await site.run("INSERT INTO t VALUES (1)")
    await site.damage(site.shard("t"))
    yield site
    site.committing.cancel()
    await environment.close()


@pytest.mark.parametrize(
    "texts",
    [
        ("INSERT INTO t VALUES (2)",),
        ("DELETE FROM t",),
        ("INSERT INTO u SELECT a FROM t",),
        ("SELECT a FROM t",),
        ("BEGIN", "INSERT INTO u VALUES (5)", "INSERT INTO t VALUES (5)", "COMMIT"),
        ("ALTER TABLE t SET (RETAIN HISTORY FOR '1 day')",),
        ("CREATE MATERIALIZED VIEW w AS SELECT a FROM t",),
    ],
    ids=lambda texts: texts[-2] if texts[-1] == "COMMIT" else texts[0],
)
async def test_what_needs_it_names_it(texts: tuple[str, ...]) -> None:
    async with damaged_site() as site:
        before = await site.world.txns.upper()
        error = await site.refusal(*texts)
        assert (error.code, error.message) == ("XX001", 'table "t" is damaged')
        assert (
            error.detail == f"the state of shard {site.shard('t')} is damaged: its checksum differs"
        )
        await site.run("INSERT INTO u VALUES (1)")
        assert await site.world.txns.upper() > before


async def test_it_is_dropped_with_what_reads_it() -> None:
    async with damaged_site() as site:
        shard_id = site.shard("t")
        with pytest.raises(DamagedState):
            await site.world.persist.state(shard_id)
        await site.run("DROP TABLE t CASCADE")
        assert "mv" not in site.world.names()
        assert "u" in site.world.names()
        state = await site.world.persist.state(shard_id)
        assert is_purged(state), "its parts may be swept up"
        assert state.forgotten
        error = await site.refusal("INSERT INTO t VALUES (3)")
        assert error.code == "42P01"
        await site.run("CREATE TABLE t (a int)", "INSERT INTO t VALUES (4)")


async def test_a_damaged_view_is_dropped() -> None:
    async with damaged_site() as site:
        await site.run("CREATE MATERIALIZED VIEW over_u AS SELECT a FROM u")
        await site.damage(site.shard("over_u"))
        await site.run("DROP MATERIALIZED VIEW over_u")
        assert "over_u" not in site.world.names()


async def test_it_does_not_come_back_empty() -> None:
    async with damaged_site() as site:
        await site.run("DROP TABLE t CASCADE")
        error = await site.refusal("UNDROP TABLE t")
        assert (error.code, error.message) == (
            "55000",
            'cannot undrop "t": its contents are gone',
        )
        assert "t" not in site.world.names()


async def test_what_was_damaged_on_the_shelf_is_given_up() -> None:
    async with damaged_site() as site:
        shard_id = site.shard("u")
        await site.run("DROP TABLE u")
        await site.damage(shard_id)
        (dropped,) = site.world.catalog.newest.dropped_items
        done = await append_with_shards(
            site.world.catalog, ManualClock(), lambda _: [PurgeDroppedOp((dropped,))]
        )
        assert done
        assert site.world.catalog.newest.dropped_items == {}
        assert is_purged(await site.world.persist.state(shard_id))
