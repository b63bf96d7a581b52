"""Goal: a tick that changes much is recomputed; what is shown is the same at every timestamp.

Method: random views over shards with random histories, told bit by bit; the worker recomputes every
tick, or those that its rule says, and its output is compared with the interpreter's.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.description import (
    DataflowDescription,
    Export,
    Import,
    IndexExport,
    ShardExport,
)
from evertide.expr.interpret import Collection
from evertide.expr.relation import Get, Relation
from evertide.expr.transform.passes import optimize
from evertide.expr.traverse import gets
from evertide.persist.append import Append
from evertide.persist.coding.batch import to_batch
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.store.memory import MemoryBlob, MemoryStore
from evertide.persist.txn import Txns
from evertide.spark import worker as worker_module
from evertide.spark.building import recompute
from evertide.spark.building.recompute import Changes, is_worth_it
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.tables import desc_of
from evertide.spark.tick_records import RECOMPUTE
from evertide.spark.worker import Worker
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.expr.trees import TABLES, Trees
from tests.spark.histories import (
    History,
    borders,
    contents,
    expected_at,
    inputs_between,
    output_at,
    random_history,
)

FIRST, LAST = 10, 18
VIEW = GlobalId("view")
TABLE = GlobalId("t")


@dataclass
class Site:
    """One view, kept by a worker whose rounds the test asks for."""

    client: PersistClient
    worker: Worker
    relation: Relation
    inputs: dict[GlobalId, Import]

    async def tell(self, history: History, lower: Timestamp, upper: Timestamp) -> None:
        """The inputs' changes of an interval."""
        given = inputs_between(history, lower, upper)
        for global_id, one in self.inputs.items():
            batch = to_batch(one.desc, list(given.get(global_id, ())))
            append = Append(one.shard_id, one.desc, batch, lower, upper, global_id)
            (outcome,) = await self.client.append_each([append])
            assert isinstance(outcome, Appended), outcome

    async def catch_up(self, upper: Timestamp) -> None:
        """Rounds until the view is known so far."""
        (dataflow,) = self.worker.dataflows()
        for _ in range(100):
            await self.worker.round()
            assert dataflow.stopped is None
            if dataflow.building is not None:
                await asyncio.wait([dataflow.building.task])
            elif dataflow.frontier >= upper and not dataflow.owes:
                return
        raise AssertionError(f"the view stands at {dataflow.frontier}, not at {upper}")

    async def shown(self) -> list[Update]:
        """All that the view's shard holds, with its times."""
        upper = (await self.client.state(ShardId(VIEW))).upper
        desc = desc_of(self.relation.types)
        shard, start = ShardId(VIEW), Timestamp(FIRST)
        at_first = await self.client.snapshot(shard, desc, start)
        later = await self.client.read_updates(shard, desc, Timestamp(FIRST + 1), upper)
        return [*at_first, *later]

    @property
    def executors(self) -> list[str]:
        return [record.executor for record in self.worker.tick_records]


@asynccontextmanager
async def site(
    directory: Path, relation: Relation, *, index_key: tuple[int, ...] | None = None
) -> AsyncIterator[Site]:
    store = MemoryStore()
    consensus = store.consensus(await store.raise_epoch())
    async with PersistClient(consensus, MemoryBlob()) as client:
        txns = Txns(client, ShardId("txns"))
        await txns.ensure()
        shapes = {n: TABLES.get(n, (INT8, INT8)) for n in gets(relation)}
        inputs = {n: Import(n, ShardId(n), desc_of(t), is_table=False) for n, t in shapes.items()}
        for one in inputs.values():
            await client.create_shard(one.shard_id, since=Timestamp(FIRST), writer=one.global_id)
        desc = desc_of(relation.types)
        export: Export = ShardExport(ShardId(VIEW), desc)
        if index_key is not None:
            export = IndexExport(VIEW, index_key, desc)
        else:
            await client.create_shard(ShardId(VIEW), since=Timestamp(FIRST), writer=VIEW)
        evaluator = Evaluator(directory)
        worker = Worker(client, Storage(client, txns), DriverEngine(evaluator))
        description = DataflowDescription(
            VIEW, ClusterId("u1"), tuple(inputs.values()), relation, export, Timestamp(FIRST)
        )
        await worker.set_dataflows({VIEW: description})
        try:
            yield Site(client, worker, relation, inputs)
        finally:
            await worker.set_dataflows({})
            evaluator.close()


@pytest.mark.parametrize("seed", range(60))
async def test_output_is_exact_whoever_computes_it(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ticks of several timestamps too, errors among the data, always or now and then."""
    monkeypatch.setattr(recompute, "LEAST_CHANGES", 0)
    monkeypatch.setattr(recompute, "CROSSOVER", (0, 0, 0.3)[seed % 3])
    rng = Random(seed)
    relation = optimize(Trees(rng).relation(1 + seed % 3))
    history = random_history(rng, FIRST, LAST)
    async with site(tmp_path, relation) as one:
        if not one.inputs:
            return  # a constant never changes
        for lower, upper in borders(rng, FIRST, LAST):
            await one.tell(history, lower, upper)
            await one.catch_up(upper)
        output = await one.shown()
    for ts in range(FIRST, LAST + 1):
        assert output_at(output, relation.types, ts) == expected_at(relation, history, ts)


@pytest.mark.parametrize(("most", "third"), [(1_000, RECOMPUTE), (5, "driver")])
async def test_a_large_tick_is_recomputed_and_small_ones_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, third: str
) -> None:
    """Unless so much is shown that to compare it would take too much memory."""
    monkeypatch.setattr(recompute, "LEAST_CHANGES", 20)
    monkeypatch.setattr(recompute, "MOST_RECORDS", most)
    rows = [(i, i % 3) for i in range(50)]
    history = {
        TABLE: [
            *(Update(row, Timestamp(FIRST), 1) for row in rows),
            Update((1_000, 0), Timestamp(11), 1),
            *(Update(row, Timestamp(12), -1) for row in rows[:40]),
            Update((1_001, 0), Timestamp(13), 1),
        ]
    }
    relation = Get(TABLE, (INT8, INT8))
    async with site(tmp_path, relation) as one:
        for ts in (10, 11, 12, 13):
            await one.tell(history, Timestamp(ts), Timestamp(ts + 1))
            await one.catch_up(Timestamp(ts + 1))
        assert one.executors == ["driver", "driver", third, "driver"]
        output = await one.shown()
    for ts in (10, 11, 12, 13):
        assert output_at(output, relation.types, ts) == expected_at(relation, history, ts)


async def test_an_index_is_followed_whatever_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recompute, "LEAST_CHANGES", 20)
    rows = [(i, i % 3) for i in range(50)]
    history = {
        TABLE: [
            *(Update(row, Timestamp(FIRST), 1) for row in rows),
            *(Update(row, Timestamp(11), -1) for row in rows[5:]),
        ]
    }
    relation = Get(TABLE, (INT8, INT8))
    async with site(tmp_path, relation, index_key=(0,)) as one:
        (dataflow,) = one.worker.dataflows()
        await one.tell(history, Timestamp(10), Timestamp(11))
        await one.catch_up(Timestamp(11))
        await one.tell(history, Timestamp(11), Timestamp(12))
        await one.worker.round()
        assert dataflow.placement is not None, "it can be asked all the while"
        await one.catch_up(Timestamp(12))
        assert RECOMPUTE not in one.executors
        assert dataflow.engine is not None
        found = await dataflow.engine.peek(VIEW, None, Timestamp(11))
    shown = contents(Collection(list(found.rows), list(found.errors)), relation.types)
    assert shown == expected_at(relation, history, 11)


async def test_a_recompute_that_fails_is_made_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is gone by then: it is built where the view stands, and the tick comes again."""
    monkeypatch.setattr(recompute, "LEAST_CHANGES", 20)
    failures = iter([OSError("no space left")])
    whole = recompute.differences

    async def failing(*given: object) -> list[Update]:
        for failure in failures:
            raise failure
        return await whole(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(worker_module, "differences", failing)
    monkeypatch.setattr("evertide.spark.setbacks.Setbacks.waits", lambda *_: False)
    rows = [(i, i % 3) for i in range(50)]
    history = {
        TABLE: [
            *(Update(row, Timestamp(FIRST), 1) for row in rows),
            *(Update(row, Timestamp(11), -1) for row in rows[5:]),
        ]
    }
    relation = Get(TABLE, (INT8, INT8))
    async with site(tmp_path, relation) as one:
        for ts in (10, 11):
            await one.tell(history, Timestamp(ts), Timestamp(ts + 1))
            await one.catch_up(Timestamp(ts + 1))
        assert one.executors == ["driver", "driver", RECOMPUTE]
        output = await one.shown()
    assert output_at(output, relation.types, 11) == expected_at(relation, history, 11)


def test_what_is_compared_is_the_changes_with_the_rows_that_are_left() -> None:
    one = (Timestamp(5),)
    few, many = 10_000, 100_000
    assert not is_worth_it(Changes(few, -few, one), records=2 * few)  # little, if all of it
    assert is_worth_it(Changes(many, -many, one), records=2 * many)  # nothing is left
    assert is_worth_it(Changes(2 * many, 0, one), records=3 * many)  # every row is another now
    assert not is_worth_it(Changes(many, many, one), records=2 * many)  # as many as there were
    assert not is_worth_it(Changes(2 * many, 0, (*one, Timestamp(6))), records=3 * many)
