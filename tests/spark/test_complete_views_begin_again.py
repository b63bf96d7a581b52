"""Goal: a view that is complete, because all that it reads is, is there again after a restart,
though its inputs' history was merged beyond where it once began.

Method: two lives of a worker over stores in memory, one round at a time.
"""

import asyncio
from functools import partial
from pathlib import Path

import msgspec

from evertide.controller.storage import Storage
from evertide.dataflow.description import DataflowDescription, Import, ShardExport, hold_owner
from evertide.expr.relation import Get
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.state import ShardChange, ShardState, advance_since, existing, set_hold
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.holds import hold_changes, together
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp
from evertide.vocab.update import Update

DESC = relation_desc(("a", TEXT))
BELOW, VIEW = ShardId("below"), ShardId("view")
BELOW_ID, VIEW_ID = GlobalId("below"), GlobalId("view")
IMPORT = Import(BELOW_ID, BELOW, DESC, is_table=False)
AS_OF = Timestamp(5)


async def born(client: PersistClient, scratch: Path) -> Worker:
    storage = Storage(client, Txns(client, ShardId("txns")))
    worker = Worker(client, storage, DriverEngine(Evaluator(scratch)))
    export = ShardExport(VIEW, DESC)
    get = Get(BELOW_ID, DESC.types)
    described = DataflowDescription(VIEW_ID, ClusterId("c"), (IMPORT,), get, export, AS_OF)
    await worker.set_dataflows({VIEW_ID: described})
    return worker


async def rounds(worker: Worker) -> None:
    for _ in range(5):
        await worker.round()
        for dataflow in worker.dataflows():
            if dataflow.building is not None:
                await asyncio.wait([dataflow.building.task])


def merged(state: ShardState) -> ShardState:
    """As upkeep does when all leases ran out: what no view holds for good is merged."""
    critical = tuple(hold for hold in state.holds if hold.expires_ms is None)
    return advance_since(msgspec.structs.replace(state, holds=critical), to=Timestamp(40))


async def append(client: PersistClient, text: str, lower: int, upper: int) -> None:
    updates = [Update((text,), Timestamp(lower), 1)]
    done = await client.compare_and_append(
        BELOW, DESC, updates, Timestamp(lower), Timestamp(upper), writer=BELOW_ID
    )
    assert isinstance(done, Appended)


async def test_it_is_hydrated_where_its_inputs_are_known(tmp_path: Path) -> None:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), MemoryBlob(), cache_bytes=0)
    await Txns(client, ShardId("txns")).ensure()
    await client.create_shard(BELOW, writer=BELOW_ID, since=AS_OF)
    await client.create_shard(VIEW, writer=VIEW_ID, since=AS_OF)
    hold = existing(partial(set_hold, owner=hold_owner(VIEW_ID), hold_ts=AS_OF))
    await client.machine.apply_each([ShardChange(BELOW, hold)])
    await append(client, "x", AS_OF, 50)
    first = await born(client, tmp_path / "1")
    await rounds(first)
    assert (await client.state(VIEW)).upper == 50
    moves = [change for dataflow in first.dataflows() for change in hold_changes(dataflow)]
    await client.machine.apply_each(together([*moves, ShardChange(BELOW, existing(merged))]))
    await append(client, "y", 50, EMPTY_FRONTIER)
    await rounds(first)
    assert (await client.state(VIEW)).upper == EMPTY_FRONTIER
    assert (await client.state(BELOW)).since == 40
    second = await born(client, tmp_path / "2")
    await rounds(second)
    (dataflow,) = second.dataflows()
    assert dataflow.frontier == EMPTY_FRONTIER
    assert second.setbacks.reason(dataflow) is None
