"""Goal: the shortest way of an append means what the longer one means, and is the one taken.

Method: one or two clients of a SQLite file, so that what a client set last is the newest state, or
is not; a commit that counts statements, or waits until it is told to go on.
"""

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from evertide.persist.faults import Fenced, PersistFault
from evertide.persist.handle import Append, Appended, AppendOutcome, PersistClient
from evertide.persist.state import (
    Forgotten,
    Missing,
    PendingWrite,
    SchemaMismatch,
    ShardChange,
    ShardState,
    UpperMismatch,
    WriterMismatch,
    existing,
    forget,
    set_writer,
)
from evertide.persist.store.memory import MemoryBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.store.sqlite_writer import commit_transaction
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.persist.racing import DESC, SHARD

OTHER = GlobalId("u7")


def ts(value: int) -> Timestamp:
    return Timestamp(value)


class Gate:
    """Commits: how many, and a way to hold one back."""

    def __init__(self) -> None:
        self.statements: list[str] = []
        self.open = threading.Event()
        self.open.set()
        self.error: Exception | None = None

    def __call__(
        self, connection: sqlite3.Connection, statement: str, arguments: tuple[object, ...]
    ) -> int:
        self.statements.append(statement.split()[0])
        assert self.open.wait(60)
        if self.error is not None:
            raise self.error
        return commit_transaction(connection, statement, arguments)


@asynccontextmanager
async def clients(path: Path, gate: Gate) -> AsyncIterator[tuple[PersistClient, PersistClient]]:
    """Two processes' worth of them, the first with a gate."""
    ours, theirs = SqliteStore(path / "c.db", commit=gate), SqliteStore(path / "c.db")
    epoch = await ours.raise_epoch()
    async with (
        PersistClient(ours.consensus(epoch), MemoryBlob()) as first,
        PersistClient(theirs.consensus(epoch), MemoryBlob()) as second,
    ):
        await first.create_shard(SHARD)
        yield first, second
    await ours.close()
    await theirs.close()


async def put(
    client: PersistClient,
    lower: int,
    *,
    rows: int = 1,
    desc: RelationDesc = DESC,
    shard_id: ShardId = SHARD,
) -> AppendOutcome:
    updates = [Update(("w", number), ts(lower), 1) for number in range(rows)]
    return await client.compare_and_append(shard_id, desc, updates, ts(lower), ts(lower + 1))


async def numbers(client: PersistClient, as_of: int) -> list[int]:
    found = await client.snapshot(SHARD, DESC, ts(as_of))
    return sorted(cast(int, update.row[1]) for update in found for _ in range(update.diff))


async def test_one_append_is_one_statement(tmp_path: Path) -> None:
    gate = Gate()
    async with clients(tmp_path, gate) as (client, _):
        gate.statements.clear()
        for lower in range(5):
            assert await put(client, lower, rows=lower % 3) == Appended(ts(lower + 1))
        assert gate.statements == ["UPDATE"] * 5
        assert await numbers(client, 4) == [0, 0, 0, 1]


async def test_what_another_process_appended_is_seen(tmp_path: Path) -> None:
    """The state that this one set last is not the newest: neither its yes nor its no counts."""
    async with clients(tmp_path, Gate()) as (ours, theirs):
        assert await put(ours, 0) == Appended(ts(1))
        assert await put(theirs, 1, rows=2) == Appended(ts(2))
        assert await put(ours, 1) == UpperMismatch(ts(2))
        assert await put(theirs, 2) == Appended(ts(3))
        assert await put(ours, 3, rows=3) == Appended(ts(4))
        assert await put(theirs, 3) == UpperMismatch(ts(4))
        assert await numbers(theirs, 3) == [0, 0, 0, 0, 1, 1, 2]


async def change_forgotten(client: PersistClient) -> None:
    await client.machine.apply_all([ShardChange(SHARD, existing(forget))])


async def change_writer(client: PersistClient, *, pending: bool) -> None:
    taken = partial(set_writer, writer=OTHER, expected_upper=ts(1), pending=pending)
    await client.machine.apply_all([ShardChange(SHARD, existing(taken))])


@pytest.mark.parametrize("changed_by", ["this process", "another"])
async def test_refusals_are_those_of_a_group(tmp_path: Path, changed_by: str) -> None:
    async with clients(tmp_path, Gate()) as (ours, theirs):
        changer = ours if changed_by == "this process" else theirs
        narrow = relation_desc(("writer", TEXT))
        nowhere = ShardId("nowhere")
        assert await put(ours, 0) == Appended(ts(1))
        assert await put(ours, 1, shard_id=nowhere) == Missing()
        assert isinstance(await put(ours, 1, desc=narrow), SchemaMismatch)
        await change_writer(changer, pending=False)
        assert await put(ours, 1) == WriterMismatch(OTHER)
        await change_writer(changer, pending=True)
        one = Append(SHARD, DESC, [Update(("w", 1), ts(1), 1)], ts(1), ts(2), OTHER)
        assert await ours.append_each([one]) == [PendingWrite(ts(1))]
        done = one._replace(completes_pending=True)
        assert await ours.append_each([done]) == [Appended(ts(2))]
        await change_forgotten(changer)
        assert await put(ours, 2) == Forgotten()
        assert await numbers(ours, 1) == [0, 1]


async def test_a_later_generation_fences_it(tmp_path: Path) -> None:
    async with clients(tmp_path, Gate()) as (client, _):
        assert await put(client, 0) == Appended(ts(1))
        store = SqliteStore(tmp_path / "c.db")
        await store.raise_epoch()
        with pytest.raises(Fenced):
            await put(client, 1)
        assert (await client.state(SHARD)).upper == ts(1)
        await store.close()


async def test_whoever_gives_up_leaves_its_turn_and_its_append(tmp_path: Path) -> None:
    """A commit that is under way goes on: the next one of the process follows it."""
    gate = Gate()
    async with clients(tmp_path, gate) as (client, _), asyncio.timeout(60):
        assert await put(client, 0) == Appended(ts(1))
        gate.open.clear()
        gate.statements.clear()
        waiting = asyncio.create_task(client.wait_for_upper(SHARD, ts(1)))
        given_up = asyncio.create_task(put(client, 1))
        while not gate.statements:
            await asyncio.sleep(0)
        given_up.cancel()
        await asyncio.gather(given_up, return_exceptions=True)
        gate.open.set()
        assert await waiting == ts(2)
        state = client.machine.known_state(SHARD)
        assert isinstance(state, ShardState)
        assert state.upper == ts(2)
        assert await put(client, 2) == Appended(ts(3))


async def test_appends_of_one_process_go_one_after_the_other(tmp_path: Path) -> None:
    async with clients(tmp_path, Gate()) as (client, _), asyncio.timeout(60):
        done = await asyncio.gather(*(put(client, lower) for lower in range(40)))
        assert done == [Appended(ts(lower + 1)) for lower in range(40)]
        assert await numbers(client, 39) == [0] * 40


async def test_large_appends_are_stored_elsewhere(tmp_path: Path) -> None:
    desc = relation_desc(("text", TEXT), ("number", INT8))
    async with clients(tmp_path, Gate()) as (client, _):
        update = Update(("x" * 100_000, 1), ts(0), 1)
        assert await client.compare_and_append(SHARD, desc, [update], ts(0), ts(1)) == Appended(
            ts(1)
        )
        state = await client.state(SHARD)
        assert [batch.inline_bytes for batch in state.batches] == [0]
        assert await client.snapshot(SHARD, desc, ts(0)) == [update]


@pytest.mark.parametrize("error", [MemoryError(), sqlite3.OperationalError("disk I/O error")])
async def test_after_a_fault_the_next_one_has_its_turn(tmp_path: Path, error: Exception) -> None:
    """Also after what SQLite does not tell as an error of its own: whoever waits is told."""
    gate = Gate()
    async with clients(tmp_path, gate) as (first, _):
        assert isinstance(await put(first, 0), Appended)
        gate.error = error
        outcomes = await asyncio.gather(put(first, 1), put(first, 1), return_exceptions=True)
        assert any(isinstance(outcome, PersistFault) for outcome in outcomes), outcomes
        gate.error = None
        upper = (await first.state(SHARD)).upper
        assert isinstance(await put(first, int(upper)), Appended)
