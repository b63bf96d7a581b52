"""The resident task gives what the evaluator gives, and a killed one is replaced."""

import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from evertide.dataflow.delta import delta_plan
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.lookup import Lookup, Span
from evertide.expr.functions.row import AggregateFunction
from evertide.expr.functions.table import by_signature
from evertide.expr.relation import AggregateCall, Get, Join, Reduce
from evertide.expr.scalar import ColumnRef
from evertide.persist.coding.keys import encode_key
from evertide.spark.arrangements.arrangement import BelowSince
from evertide.spark.arrangements.key_order import LookupRefused
from evertide.spark.channel import BlockingChannel, Hello, socket_address
from evertide.spark.engine import EngineLost
from evertide.spark.evaluate import Evaluator
from evertide.spark.resident import Resident, ResidentEngine, ResidentFault
from evertide.spark.tables import consolidate_updates
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import INT4, NUMERIC, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

AMOUNTS = (Decimal("1.5"), Decimal("-2"), Decimal("1E+10"), Decimal("0.001"))
BIDS, AUCTIONS, VIEW = GlobalId("u1"), GlobalId("u2"), GlobalId("u3")


def total_per_seller() -> DeltaPlan:
    """sum(bid), count(*) per seller, over bids joined with auctions."""
    bids, auctions = Get(BIDS, (INT4, NUMERIC)), Get(AUCTIONS, (INT4, TEXT))
    joined = Join((bids, auctions), ((0, 2),))
    total, count = by_signature("sum(numeric)"), by_signature("count(*)")
    assert isinstance(total, AggregateFunction)
    assert isinstance(count, AggregateFunction)
    calls = (AggregateCall(total, ColumnRef(1, NUMERIC)), AggregateCall(count, None))
    return delta_plan(Reduce(joined, (ColumnRef(3, TEXT),), calls))


def history(lower: int, upper: int) -> dict[GlobalId, list[Update]]:
    """Some changes at each timestamp: auctions open, bids come, every third bid is withdrawn."""
    inputs: dict[GlobalId, list[Update]] = {BIDS: [], AUCTIONS: []}
    for ts in range(lower, upper):
        inputs[AUCTIONS].append(Update((ts % 7, f"seller {ts % 3}"), Timestamp(ts), 1))
        bid = (ts % 7, AMOUNTS[ts % 4])
        inputs[BIDS].append(Update(bid, Timestamp(ts), 1))
        if ts % 3 == 0 and ts > lower:
            inputs[BIDS].append(Update(bid, Timestamp(ts), -1))
    return inputs


@dataclass
class Followed:
    """A resident task and its incarnations so far."""

    resident: Resident
    ready: "asyncio.Queue[ResidentEngine]"
    lost: "asyncio.Queue[ResidentEngine]"


@asynccontextmanager
async def following(session: SparkSession, directory: Path) -> AsyncIterator[Followed]:
    ready: asyncio.Queue[ResidentEngine] = asyncio.Queue()
    lost: asyncio.Queue[ResidentEngine] = asyncio.Queue()
    resident = Resident(session, directory, on_ready=ready.put_nowait, on_lost=lost.put_nowait)
    await resident.start()
    try:
        yield Followed(resident, ready, lost)
    finally:
        await resident.stop()


async def test_ticks_and_peeks_are_those_of_the_evaluator(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    plan, as_of = total_per_seller(), Timestamp(1)
    evaluator = Evaluator(tmp_path / "own")
    evaluator.create(VIEW, plan, index_key=(0,), as_of=as_of)
    async with following(spark_session, tmp_path / "resident") as followed:
        engine = await asyncio.wait_for(followed.ready.get(), 30)
        await engine.create(VIEW, plan, index_key=(0,), as_of=as_of)
        for lower, upper in ((1, 2), (2, 3), (3, 20), (20, 21)):
            inputs = history(lower, upper)
            span = Timestamp(lower), Timestamp(upper)
            found = await engine.tick(VIEW, inputs, *span)
            assert sorted(found) == sorted(evaluator.tick(VIEW, inputs, *span))
        from_key = Lookup((Span(encode_key(TEXT, "seller 1"), b"\x02"),), exact=False)
        for keys in (None, [("seller 1",), ("nobody",)], from_key):
            peeked = await engine.peek(VIEW, keys, Timestamp(20))
            rows, errors = evaluator.peek(VIEW, keys, Timestamp(20))
            assert sorted(peeked.rows) == sorted(rows)
            assert list(peeked.errors) == errors
            assert rows
        assert (await engine.sizes(VIEW))["groups"] == 3
        with pytest.raises(LookupRefused):
            await engine.peek(VIEW, Lookup(from_key.spans, False, 1), Timestamp(20))
        await engine.allow_compaction(VIEW, Timestamp(15))
        with pytest.raises(BelowSince):
            await engine.peek(VIEW, None, Timestamp(10))
        with pytest.raises(ResidentFault, match="AssertionError"):
            await engine.tick(VIEW, history(99, 100), Timestamp(21), Timestamp(22))
        await engine.drop(VIEW)
    assert (await asyncio.wait_for(followed.lost.get(), 5)) is engine
    evaluator.close()


async def test_a_killed_task_is_replaced_and_can_be_rebuilt(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    """Method: kill -9 while a call waits; the next incarnation replays and must agree."""
    plan, as_of = total_per_seller(), Timestamp(1)
    async with following(spark_session, tmp_path) as followed:
        first = await asyncio.wait_for(followed.ready.get(), 30)
        await first.create(VIEW, plan, index_key=None, as_of=as_of)
        before = await first.tick(VIEW, history(1, 30), Timestamp(1), Timestamp(30))
        os.kill(first.hello.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        with pytest.raises(EngineLost):
            await first.tick(VIEW, history(30, 31), Timestamp(30), Timestamp(31))
        assert (await asyncio.wait_for(followed.lost.get(), 5)) is first
        second = await asyncio.wait_for(followed.ready.get(), 30)
        assert second.hello.pid != first.hello.pid
        assert time.monotonic() - killed_at < 15
        await second.create(VIEW, plan, index_key=None, as_of=as_of)
        again = await second.tick(VIEW, history(1, 30), Timestamp(1), Timestamp(30))
        found, expected = (
            sorted(consolidate_updates(plan.types, updates, as_of)) for updates in (again, before)
        )
        assert found == expected


async def test_who_does_not_know_the_token_is_not_heard(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    async with following(spark_session, tmp_path) as followed:
        engine = await asyncio.wait_for(followed.ready.get(), 30)
        stranger = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with stranger, socket_address(tmp_path / "socket") as address:
            stranger.connect(address)
            hello = Hello(b"guess" * 7, engine.hello.job + 1, 0, os.getpid())
            BlockingChannel(stranger).send(hello)
            assert await asyncio.to_thread(stranger.recv, 1) == b""
        assert followed.ready.empty()
        await engine.create(VIEW, total_per_seller(), index_key=None, as_of=Timestamp(1))


async def test_the_directory_of_the_socket_is_closed_to_others(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    async with following(spark_session, tmp_path) as followed:
        await asyncio.wait_for(followed.ready.get(), 30)
        assert (tmp_path / "socket").stat().st_mode & 0o077 == 0
