"""Replicas, readers and a catalog that they see late: views that change hands under them.

Two tables, a view `m` over them, a view `v` over all three, and `d` over `v`. `m` and `v` may get
another definition each. Every process sees the catalog as it was some changes ago, may die at any
moment and starts again with nothing.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from evertide.controller.storage import Storage
from evertide.dataflow.description import (
    DataflowDescription,
    Derived,
    Import,
    ShardExport,
    Takeover,
)
from evertide.expr.interpret import Collection, evaluate
from evertide.expr.relation import Distinct, Filter, Get, Negate, Relation, Threshold, Union
from evertide.expr.traverse import gets
from evertide.oracle.memory import MemoryOracle
from evertide.persist.append import Append, Appended, AppendOutcome
from evertide.persist.handle import PersistClient, Refused
from evertide.persist.state import ShardChange
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.protocol import AppliedWrite, Consensus
from evertide.persist.txn import Committed, TableWrite, Txns
from evertide.spark.engine import DriverEngine
from evertide.spark.evaluate import Evaluator
from evertide.spark.tables import desc_of
from evertide.spark.takeover.phases import Chosen
from evertide.spark.takeover.sink import TakeoverSink
from evertide.spark.worker import Worker
from evertide.vocab.clock import SystemClock
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import INT8
from evertide.vocab.timestamp import Timeline, Timestamp, step_forward
from evertide.vocab.update import Update
from tests.expr.sample import LESS, call, col, lit
from tests.spark.histories import Contents, contents

TYPES = (INT8, INT8)
DESC = desc_of(TYPES)
TABLES = ("t", "u")
TXNS = ShardId("txns")
# Which processes run the dataflows of each cluster.
CLUSTERS = {"below": ("e",), "old": ("a", "b"), "new": ("b", "c", "d")}
# What a view's catalog entry says, in the order of its life.
CREATED, STAGED, APPLIED, FINISHED, DISCARDED = range(5)


def random_relation(rng: Random, inputs: Sequence[str]) -> Relation:
    """Something over some of these, of the same columns."""
    first, second = (Get(GlobalId(rng.choice(inputs)), TYPES) for _ in range(2))
    match rng.randrange(5):
        case 0:
            return first
        case 1:
            return Filter(first, (call(LESS, col(1), lit(rng.randrange(1, 4))),))
        case 2:
            return Union((first, second))
        case 3:
            return Distinct(Union((first, second)))
        case _:
            return Threshold(Union((first, Negate(second))))


@dataclass
class View:
    """All its definitions, and where each of them may start."""

    name: str
    cluster: str
    relations: list[Relation]
    as_ofs: list[Timestamp]
    forward_time: bool = False
    descs: list[RelationDesc] = field(default_factory=lambda: [DESC, DESC])

    def version(self, number: int) -> GlobalId:
        return GlobalId(f"{self.name}{number}")

    @property
    def shard_id(self) -> ShardId:
        return ShardId(self.name)


Stages = Mapping[str, int]


@dataclass
class World:
    """What is durable, and what the catalog has said so far."""

    consensus: Consensus
    oracle: MemoryOracle = field(default_factory=lambda: MemoryOracle(SystemClock()))
    blob: MemoryBlob = field(default_factory=MemoryBlob)
    views: dict[str, View] = field(default_factory=dict)
    log: list[dict[str, int]] = field(default_factory=list)
    # What others do while this process takes a shard.
    meanwhile: Callable[[str], Awaitable[None]] | None = None
    # What other replicas do while this one is about to bring new contents over; whether that is
    # the last that it does.
    rivals: Callable[[str], Awaitable[bool]] | None = None
    dies: Callable[[], bool] | None = None
    written: dict[str, list[Update]] = field(default_factory=lambda: {t: [] for t in TABLES})

    def note(self, name: str, stage: int) -> None:
        """One catalog transaction."""
        self.log.append({**self.log[-1], name: stage})

    def collection(self, name: str, stages: Stages) -> Import:
        """As somebody knows it to whom the catalog says this."""
        if name in TABLES:
            return Import(GlobalId(name), ShardId(name), DESC, is_table=True)
        view = self.views[name]
        writer = 1 if stages[name] == FINISHED else 0
        return self._under(view, writer, stages)

    def _under(self, view: View, number: int, stages: Stages) -> Import:
        below = (self.collection(str(g), stages) for g in gets(view.relations[number]))
        derived = Derived(tuple(below), view.as_ofs[number], view.version(number))
        return Import(GlobalId(view.name), view.shard_id, DESC, is_table=False, derived=derived)

    def dataflows(self, process: str, stages: Stages) -> dict[GlobalId, DataflowDescription]:
        """What a process runs to which the catalog says this."""
        wanted: dict[GlobalId, DataflowDescription] = {}
        for view in self.views.values():
            stage = stages[view.name]
            if process in CLUSTERS[view.cluster] and stage != FINISHED:
                wanted[view.version(0)] = self._describe(view, 0, stages, None)
            if process in CLUSTERS["new"] and stage in (STAGED, APPLIED, FINISHED):
                old = self._under(view, 0, stages)
                takeover = Takeover(old, stage == APPLIED, view.forward_time)
                wanted[view.version(1)] = self._describe(
                    view, 1, stages, None if stage == FINISHED else takeover
                )
        return wanted

    def _describe(
        self, view: View, number: int, stages: Stages, takeover: Takeover | None
    ) -> DataflowDescription:
        relation = view.relations[number]
        return DataflowDescription(
            view.version(number),
            ClusterId("c"),
            tuple(self.collection(str(g), stages) for g in gets(relation)),
            relation,
            ShardExport(view.shard_id, view.descs[number], takeover),
            view.as_ofs[number],
        )

    def expected(self, name: str, number: int, held: "Held", ts: int) -> Contents:
        """What a version of a view makes of what is held below it at a timestamp."""
        relation = self.views[name].relations[number]
        return contents(evaluate(relation, lambda below: held.at(str(below), ts)), TYPES)


@dataclass
class Held:
    """All that collections ever held."""

    updates: dict[str, list[Update]]

    def at(self, name: str, ts: int) -> Collection:
        then = [u for u in self.updates[name] if u.ts <= ts]
        rows = [(u.row, u.diff) for u in then if u.error is None]
        return Collection(rows, [(u.error, u.diff) for u in then if u.error is not None])


class Killed(BaseException):
    """The process is no more."""


class Interrupted(PersistClient):
    """Before it takes a shard, and after, others may do something; before it brings contents over,
    other replicas may; before and after each append, the process may die."""

    meanwhile: Callable[[], Awaitable[None]] | None = None
    rivals: Callable[[], Awaitable[bool]] | None = None
    dies: Callable[[], bool] | None = None

    async def append_all(
        self,
        appends: Sequence[Append],
        *,
        also: Sequence[ShardChange] = (),
        applied: Sequence[AppliedWrite] = (),
    ) -> Appended | Refused:
        takes = not appends and [change.shard_id for change in also] in (["m"], ["v"])
        if takes and self.meanwhile is not None:
            await self.meanwhile()
        outcome = await super().append_all(appends, also=also, applied=applied)
        if takes and self.meanwhile is not None:
            await self.meanwhile()
            self._live()
        return outcome

    async def append_each(self, appends: Sequence[Append]) -> list[AppendOutcome]:
        self._live()
        brings_over = any(append.completes_pending for append in appends)
        last = brings_over and self.rivals is not None and await self.rivals()
        outcomes = await super().append_each(appends)
        if last:
            raise Killed
        self._live()
        return outcomes

    def _live(self) -> None:
        if self.dies is not None and self.dies():
            raise Killed


class Process:
    """One that may die."""

    def __init__(self, name: str, world: World, scratch: Path) -> None:
        self.name = name
        self._world = world
        self._scratch = scratch
        self._lives = 0
        # How much of the catalog's log it has seen.
        self.seen = 0
        self._begin()

    def _begin(self) -> None:
        self._lives += 1
        world = self._world
        self.client = Interrupted(world.consensus, world.blob)
        if world.meanwhile is not None:
            self.client.meanwhile = partial(world.meanwhile, self.name)
        if world.rivals is not None:
            self.client.rivals = partial(world.rivals, self.name)
        self.client.dies = world.dies
        self.txns = Txns(self.client, TXNS)
        self.storage = Storage(self.client, self.txns)
        self._evaluator = Evaluator(self._scratch / f"{self.name}{self._lives}")
        engine = DriverEngine(self._evaluator)
        self.worker = Worker(self.client, self.storage, engine, world.oracle)

    @property
    def has_chosen(self) -> bool:
        """Whether it is about to bring new contents over."""
        sinks = [dataflow.sink for dataflow in self.worker.dataflows()]
        return any(isinstance(s, TakeoverSink) and isinstance(s.phase, Chosen) for s in sinks)

    async def follow(self, seen: int) -> None:
        """Learn what the catalog said then."""
        self.seen = seen
        stages = self._world.log[seen]
        await self.worker.set_dataflows(self._world.dataflows(self.name, stages))

    async def work(self) -> None:
        """A round, with what it starts in the background brought to its end now and then."""
        try:
            await self.worker.round()
        except Killed:
            await self.die()
        for dataflow in self.worker.dataflows():
            assert dataflow.stopped in (None, "WriterMismatch"), dataflow.stopped
            if dataflow.building is not None:
                await _ended(dataflow.building.task)
            if isinstance(dataflow.sink, TakeoverSink) and dataflow.sink.comparing is not None:
                await _ended(dataflow.sink.comparing)

    async def die(self) -> None:
        """Whatever it had in memory is gone; the next life sees as much of the catalog."""
        for dataflow in self.worker.dataflows():
            dataflow.stop("dead")
        self._evaluator.close()
        self._begin()
        await self.follow(self.seen)

    async def close(self) -> None:
        await self.worker.set_dataflows({})
        self._evaluator.close()


async def _ended(task: "asyncio.Task[object]") -> None:
    await asyncio.wait([task])


async def commit(world: World, process: Process, rng: Random, *, empty: bool = False) -> None:
    """Rows that come and go in one table, or nothing but time."""
    upper = await process.txns.upper()
    at = Timestamp(upper + rng.randrange(3))
    table = rng.choice(TABLES)
    present = [u.row for u in world.written[table] if u.diff > 0]
    for gone in (u.row for u in world.written[table] if u.diff < 0):
        present.remove(gone)
    rows = []
    for _ in range(0 if empty else rng.randrange(1, 4)):
        if present and rng.random() < 0.4:
            rows.append((present.pop(rng.randrange(len(present))), -1))
        else:
            rows.append(((rng.randrange(4), rng.randrange(4)), 1))
    writes = {ShardId(table): TableWrite(DESC, rows)} if rows else {}
    assert isinstance(await process.txns.commit(writes, at=at), Committed)
    await world.oracle.apply_write(Timeline.EPOCH_MS, at)
    world.written[table] += [Update(row, at, diff) for row, diff in rows]


async def history(
    process: Process, shard_id: ShardId, first: Timestamp
) -> tuple[list[Update], Timestamp]:
    """All that a shard holds from a timestamp on, and how far that goes."""
    upper = (await process.client.state(shard_id)).upper
    start = await process.client.snapshot(shard_id, DESC, first)
    later = await process.client.read_updates(shard_id, DESC, step_forward(first), upper)
    return [*start, *later], upper
