"""Chains of statements that alternate over two adapters, and the anomalies they could show.

Each statement begins once the one before was acknowledged, on the other adapter. The anomalies are
those that a system with one loop for everything excludes, and that several processes must exclude
by other means.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

import psycopg


class Anomaly(Enum):
    """What must never be seen."""

    INSERT_FINDS_NO_TABLE = "INSERT says that the table does not exist"
    SELECT_FINDS_NO_TABLE = "SELECT says that the table does not exist"
    SELECT_MISSES_ROWS = "SELECT does not show what was inserted before"
    INDEX_IS_NOT_KNOWN = "an index that exists is not there for whoever reads"


@dataclass(frozen=True, slots=True)
class Seen:
    """One anomaly, and where."""

    anomaly: Anomaly
    statement: str
    answer: str


class Adapter(Protocol):
    """A connection to one adapter."""

    async def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        """The rows of the answer; raises psycopg.Error."""
        ...


@dataclass(frozen=True, slots=True)
class SqlAdapter:
    """A real one."""

    connection: "psycopg.AsyncConnection[tuple[Any, ...]]"

    async def ask(self, statement: str) -> Sequence[tuple[Any, ...]]:
        cursor = await self.connection.execute(statement)
        return await cursor.fetchall() if cursor.description is not None else []


@dataclass(slots=True)
class Chain:
    """One table from its creation to its end. `creator` and `user` are on different adapters."""

    table: str
    creator: Adapter
    user: Adapter
    seen: list[Seen] = field(default_factory=list)

    async def run(self) -> list[Seen]:
        """The anomalies that it showed."""
        table, index = self.table, f"{self.table}_ix"
        await self.creator.ask(f"CREATE TABLE {table} (a int, b int)")
        await self._insert(self.user, 1)
        await self._select(self.creator, f"SELECT b FROM {table}", [1])
        await self.user.ask(f"CREATE INDEX {index} ON {table} (a)")
        await self._explain(self.creator, index)
        await self._select(self.creator, f"SELECT b FROM {table} WHERE a = 1", [1], indexed=True)
        await self._insert(self.user, 2)
        await self._select(self.creator, f"SELECT b FROM {table} WHERE a = 1", [1, 2], indexed=True)
        await self.user.ask(f"DROP TABLE {table}")
        return self.seen

    async def _insert(self, adapter: Adapter, number: int) -> None:
        statement = f"INSERT INTO {self.table} VALUES (1, {number})"
        try:
            await adapter.ask(statement)
        except psycopg.errors.UndefinedTable as error:
            self._note(Anomaly.INSERT_FINDS_NO_TABLE, statement, error)

    async def _select(
        self, adapter: Adapter, statement: str, wanted: list[int], *, indexed: bool = False
    ) -> None:
        try:
            rows = await adapter.ask(statement)
        except psycopg.errors.UndefinedTable as error:
            self._note(Anomaly.SELECT_FINDS_NO_TABLE, statement, error)
        except psycopg.Error as error:
            if not indexed:
                raise
            self._note(Anomaly.INDEX_IS_NOT_KNOWN, statement, error)
        else:
            if sorted(rows) != [(number,) for number in wanted]:
                self._note(Anomaly.SELECT_MISSES_ROWS, statement, rows)

    async def _explain(self, adapter: Adapter, index: str) -> None:
        """The other adapter would ask a replica for the index."""
        statement = f"EXPLAIN SELECT b FROM {self.table} WHERE a = 1"
        rows = await adapter.ask(statement)
        if f"index lookup in {index} " not in str(rows):
            self._note(Anomaly.INDEX_IS_NOT_KNOWN, statement, rows)

    def _note(self, anomaly: Anomaly, statement: str, answer: object) -> None:
        self.seen.append(Seen(anomaly, statement, str(answer)))


async def run_chains(
    pairs: Sequence[tuple[Adapter, Adapter]], count: int, prefix: str = "chain"
) -> list[Seen]:
    """So many chains, several at once: one on each pair of adapters, which take turns."""
    numbers, seen = iter(range(count)), list[Seen]()

    async def work(pair: tuple[Adapter, Adapter], coming: Iterator[int]) -> None:
        for number in coming:
            first, second = pair if number % 2 else pair[::-1]
            seen.extend(await Chain(f"{prefix}_{number}", first, second).run())

    async with asyncio.TaskGroup() as group:
        for pair in pairs:
            group.create_task(work(pair, numbers))
    return seen
