"""Who works in which process."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from evertide.persist.upkeep.sweep import SweepTimes
from evertide.vocab.ids import ShardId
from tests.sim.ddl import change_catalog
from tests.sim.feed import FEED, feed
from tests.sim.history import History
from tests.sim.node import CATALOG, MAX_SKEW_MS, Node, Role
from tests.sim.shape import Shape
from tests.sim.stored import Collection, View
from tests.sim.upkeep import compact_some, sweep
from tests.sim.views import listen_to_view, replace_view, run_replicas
from tests.sim.work import (
    Client,
    drop_and_restore,
    follow,
    increment,
    over_and_over,
    read_history,
    read_newest,
    write_tables,
)

Statement: TypeAlias = Callable[[Client], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class Part:
    """One who works. `finite`: it ends when clients go home, else with its process."""

    name: str
    role: Role
    finite: bool


@dataclass(slots=True)
class Cast:
    """All who may work, and what they work on."""

    shape: Shape
    history: History
    tables: Sequence[ShardId]
    readable: Sequence[Collection]
    views: Sequence[View]
    closing: asyncio.Event
    clients: int = 0

    def client(self, node: Node, pauses: float = 1.0) -> Client:
        """A client whose pauses are so many times as long as usual."""
        self.clients += 1
        return Client(
            node=node,
            history=self.history,
            rng=random.Random(f"{self.shape.seed} client {self.clients}"),
            tables=self.tables,
            readable=self.readable,
            pause_s=self.shape.pause_s * pauses,
            closing=self.closing,
        )

    def parts(self, slot: int, node: Node) -> list[Part]:
        """Those in the process in this place."""
        work = self.shape.work
        return [
            *self._sessions(node, work.writers, write_tables),
            *self._sessions(node, work.counters, increment),
            *self._sessions(node, work.readers, read_newest),
            *self._sessions(node, slot < work.historians, read_history, 2),
            *self._sessions(node, slot < work.droppers, drop_and_restore, 8),
            *self._sessions(node, work.ddls, change_catalog, 2),
            *self._sessions(node, slot < work.feeders, feed),
            *self._sessions(node, slot < work.compactors, self._compact()),
            *self._sessions(
                node, slot < work.replacers, partial(replace_view, views=self.views), 10
            ),
            *self._servants(slot, node),
        ]

    def _compact(self) -> Statement:
        shards = [CATALOG, *(one.shard_id for one in [*self.readable, *self.views])]
        if self.shape.work.feeders:
            shards.append(FEED)
        part_bytes = self.shape.limits.part_bytes
        return partial(compact_some, shard_ids=shards, part_bytes=part_bytes)

    def _sessions(
        self, node: Node, count: int, statement: Statement, pauses: float = 1.0
    ) -> list[Part]:
        name = getattr(statement, "__name__", "other")
        return [
            Part(name, partial(over_and_over, statement, self.client(node, pauses)), finite=True)
            for _ in range(count)
        ]

    def _servants(self, slot: int, node: Node) -> list[Part]:
        parts: list[Part] = []

        def add(name: str, wanted: bool, role: Statement) -> None:
            if wanted:
                parts.append(Part(name, partial(role, self.client(node)), finite=False))

        add("follow", slot < self.shape.work.followers, partial(over_and_over, follow))
        add("sweep", slot < self.shape.work.sweepers, partial(sweep, times=self._times()))
        if self.views:
            add("replica", slot < 2, partial(run_replicas, views=self.views))
            add("listen", slot < 2, partial(listen_to_view, views=self.views))
        return parts

    def _times(self) -> SweepTimes:
        """What is safe: parts are given up only when their writers have given them up."""
        limits = self.shape.limits
        off_ms = 0 if self.shape.troubles.clock_s is None else 2 * MAX_SKEW_MS
        return SweepTimes(
            pause_s=min(1.0, limits.part_age_ms * 2.5 / 1_000),
            unreferenced_ms=limits.part_age_ms * 5 // 4 + off_ms,
            old_ms=limits.part_age_ms * 4 + off_ms,
            dropped_ms=limits.dropped_ms,
        )
