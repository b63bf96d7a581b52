"""Sources and sinks over shards in memory, by clocks that tests turn."""

import random
from dataclasses import dataclass, field

from evertide.catalog.load_tables import AUCTION, COUNTER
from evertide.catalog.objects import AuctionLoad, CounterLoad, Load
from evertide.dataflow.external import GeneratedTable, SourceDescription
from evertide.external.auction import auction_changes, opening_changes
from evertide.external.counter import counter_changes
from evertide.external.generate import SourceWriter
from evertide.external.schedule import Schedule
from evertide.external.status import Status
from evertide.persist.handle import PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns
from evertide.vocab.clock import ManualClock
from evertide.vocab.datum import Row
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.timestamp import Timestamp
from tests.support.jitter import JitteryConsensus
from tests.support.owned import OURS

AS_OF = Timestamp(5_000)
CLUSTER = ClusterId("u1")


def described(load: Load) -> SourceDescription:
    """A source of its own, with all of its tables."""
    shapes = {"counter": COUNTER} if isinstance(load, CounterLoad) else AUCTION
    tables = tuple(
        GeneratedTable(GlobalId(f"u{number}"), ShardId(f"item-u{number}"), desc, name)
        for number, (name, desc) in enumerate(shapes.items(), start=10)
    )
    return SourceDescription(GlobalId("u9"), CLUSTER, load, AS_OF, tables)


def contents_by_rule(load: Load, upper: Timestamp) -> dict[str, list[tuple[Row, int, int]]]:
    """Every update (row, timestamp, diff) below the upper, by table."""
    schedule, tick = Schedule(load, AS_OF), 0
    found: dict[str, list[tuple[Row, int, int]]] = {}
    if isinstance(load, AuctionLoad) and upper > AS_OF:
        for table, row, diff in opening_changes(load):
            found.setdefault(table, []).append((row, AS_OF, diff))
    while (at := schedule.at(tick)) < upper:
        if load.up_to_tick is not None and tick >= load.up_to_tick:
            break
        if isinstance(load, CounterLoad):
            for row, diff in counter_changes(load, tick):
                found.setdefault("counter", []).append((row, at, diff))
        else:
            for table, row, diff in auction_changes(load, tick, at):
                found.setdefault(table, []).append((row, at, diff))
        tick += 1
    return {table: sorted(updates) for table, updates in found.items()}


@dataclass
class Site:
    """One store, and processes that come and go."""

    seed: int = 0
    clock: ManualClock = field(default_factory=lambda: ManualClock(AS_OF))
    store: MemoryStore = field(default_factory=MemoryStore)
    blob: MemoryBlob = field(default_factory=MemoryBlob)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    async def open(self) -> None:
        self.epoch = await self.store.raise_epoch()
        await Txns(self.client(), ShardId("txns")).ensure()

    def client(self, *, jittery: bool = False) -> PersistClient:
        consensus = self.store.consensus(self.epoch)
        return PersistClient(
            JitteryConsensus(consensus, self.rng) if jittery else consensus,
            self.blob,
            clock=self.clock,
            owner=OURS,
        )

    async def create(self, source: SourceDescription) -> None:
        client = self.client()
        for table in source.tables:
            await client.create_shard(table.shard_id, since=source.as_of, writer=table.global_id)

    def writer(
        self, source: SourceDescription, client: PersistClient
    ) -> tuple[SourceWriter, Status]:
        status = Status(source.global_id, source.cluster_id)
        txns = Txns(client, ShardId("txns"))
        return SourceWriter(source, client, txns, self.clock, status), status

    async def upper(self, source: SourceDescription) -> Timestamp:
        states = [await self.client().state(table.shard_id) for table in source.tables]
        uppers = {state.upper for state in states}
        assert len(uppers) == 1, "tables of one source move together"
        return uppers.pop()

    async def updates(self, source: SourceDescription) -> dict[str, list[tuple[Row, int, int]]]:
        upper = await self.upper(source)
        found: dict[str, list[tuple[Row, int, int]]] = {}
        for table in source.tables:
            client = self.client()
            snapshot = await client.snapshot(table.shard_id, table.desc, AS_OF)
            later = await client.read_updates(
                table.shard_id, table.desc, Timestamp(AS_OF + 1), upper
            )
            if snapshot or later:
                found[table.table] = sorted((u.row, int(u.ts), u.diff) for u in [*snapshot, *later])
        return found
