"""An adapter over a store in memory, whose replicas are played by the test.

Views are never computed: the test says how far their shards are, what replicas report, and when a
new version takes a shard.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.ddl.append import append_with_shards
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.objects import AuditEvent, Item
from evertide.catalog.service import CatalogService
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient
from evertide.controller.orchestrator import process_name
from evertide.controller.readiness import Readiness
from evertide.controller.reconfiguration import FRONTIERS, HYDRATION, Told
from evertide.controller.replacements import ReplacementKeeper
from evertide.controller.statuses import Facts
from evertide.controller.storage import Storage
from evertide.oracle.durable import DurableOracle
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import ShardChange, existing, set_writer
from evertide.persist.txn import Committed, TableWrite, Txns
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT

PATIENCE_S = 30


class Replicas:
    """What replicas report, by the name of the view; `asked` counts how often."""

    def __init__(self) -> None:
        self.told: dict[str, tuple[bool, int | None]] = {}
        self.asked = 0

    async def introspect(self, snapshot: Snapshot, relation: str, /) -> Told:
        self.asked += 1
        rows: dict[str, list[Facts]] = {}
        for item in snapshot.items.values():
            if item.name in self.told and item.cluster_id is not None:
                hydrated, upper = self.told[item.name]
                row: Facts = (item.global_id, item.cluster_id)
                row += (hydrated,) if relation == HYDRATION else (upper, 0)
                assert relation in (HYDRATION, FRONTIERS)
                for replica in snapshot.replicas_of(item.cluster_id):
                    rows.setdefault(process_name(replica), []).append(row)
        return rows


class World:
    """One adapter, its stores, and the supervisor's keeper."""

    def __init__(
        self,
        environment: Environment,
        catalog: CatalogService,
        epoch: Epoch,
        compute: ComputeClient | None = None,
    ) -> None:
        self.catalog = catalog
        self.persist: PersistClient = environment.client_for(epoch)
        self.oracle: DurableOracle = environment.oracle(epoch)
        self.txns = Txns(self.persist, ShardId("txns"))
        self.replicas = Replicas()
        self.storage = storage = Storage(self.persist, self.txns)
        missing: Any = None
        replicas: Any = self.replicas
        self._env = AdapterEnvironment(
            environment_id=ENVIRONMENT,
            catalog=catalog,
            oracle=self.oracle,
            storage=storage,
            txns=self.txns,
            writes=missing,
            compute=compute or replicas,
            clock=environment.clock,
        )
        append = partial(append_with_shards, catalog, environment.clock)
        readiness = Readiness(storage, self.replicas, self.oracle)
        self.keeper = ReplacementKeeper(catalog, readiness, append)

    def connections(self) -> Connections:
        return Connections(self._env, lambda _: None)

    async def connect(self) -> Connection:
        return await self.connections().open_session({"user": "materialize"}, internal=False)

    async def run(self, text: str) -> Connection:
        """Statements of a session of their own."""
        connection = await self.connect()
        for prepared in connection.split(text):
            await connection.execute(prepared, ())
            await connection.end_implicit(failed=False)
        return connection

    def start(self, text: str) -> "asyncio.Task[Connection]":
        return asyncio.create_task(self.run(text))

    def item(self, name: str) -> Item:
        (found,) = [one for one in self.catalog.newest.items.values() if one.name == name]
        return found

    def names(self) -> set[str]:
        return {one.name for one in self.catalog.newest.items.values()}

    async def time_is(self, upper: int) -> None:
        """Tables are complete below this, and reads are at most there."""
        outcome = await self.txns.commit({}, at=Timestamp(upper - 1))
        assert isinstance(outcome, Committed), outcome
        await self.oracle.apply_write(Timeline.EPOCH_MS, Timestamp(upper - 1))

    async def change(self, name: str, upper: int) -> None:
        """A table gets a row just below this, and that is where reads are from then on."""
        item, at = self.item(name), Timestamp(upper - 1)
        assert item.shard_id is not None
        written = {item.shard_id: TableWrite(item.desc, [((1,), 1)])}
        outcome = await self.txns.commit(written, at=at)
        assert isinstance(outcome, Committed), outcome
        await self.oracle.apply_write(Timeline.EPOCH_MS, at)

    async def write(self, name: str, upper: int) -> None:
        """The current version of a view brings its shard so far."""
        item = self.item(name)
        version = item.outgoing or item
        assert item.shard_id is not None
        state = await self.persist.state(item.shard_id)
        outcome = await self.persist.compare_and_append(
            item.shard_id, version.desc, [], state.upper, Timestamp(upper), version.global_id
        )
        assert isinstance(outcome, Appended), outcome

    async def take(self, name: str) -> None:
        """The new version of a view takes its shard."""
        item = self.item(name)
        assert item.shard_id is not None
        upper = (await self.persist.state(item.shard_id)).upper
        taking = partial(set_writer, writer=item.global_id, expected_upper=upper, pending=False)
        await self.persist.machine.apply_all([ShardChange(item.shard_id, existing(taking))])

    async def audited(self) -> Sequence[AuditEvent]:
        return await self.catalog.audit_events(self.catalog.newest.catalog_ts)


async def new_world(environment: Environment, compute: ComputeClient | None = None) -> World:
    """A table t, and a view mv over it that is complete below 100, as all tables are.

    `compute`: who asks replicas, where the test has some of its own.
    """
    catalog = await environment.serve()
    world = World(environment, catalog, await environment.openable().current_epoch(), compute)
    await world.txns.ensure()
    await world.run("CREATE TABLE t (a int)")
    await world.time_is(100)
    await world.run("CREATE MATERIALIZED VIEW mv AS SELECT a FROM t")
    await world.write("mv", 100)
    return world


async def until(world: World, done: "asyncio.Task[Connection]") -> None:
    """Until the statement has looked at its replicas once more, or has ended."""
    before = world.replicas.asked
    while world.replicas.asked < before + 2 and not done.done():
        await asyncio.sleep(0)
