"""Goal: resident tasks that share dataflows are up together, and lost together; by TCP too.

Method: real Spark tasks in local mode, which come through a TCP socket as on a cluster.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from evertide.spark.channel import BlockingChannel, Hello
from evertide.spark.engine import EngineLost
from evertide.spark.partitions.engine import PartitionedEngine
from evertide.spark.partitions.tasks import ResidentTasks
from evertide.spark.resident import Resident, ResidentEngine
from evertide.spark.tables import consolidate_updates
from evertide.vocab.timestamp import Timestamp
from tests.spark.test_resident_task_survives_its_own_death import VIEW, history, total_per_seller

LOOPBACK = "127.0.0.1"


@dataclass
class Followed:
    """Tasks and the engines that they have been."""

    tasks: ResidentTasks
    ready: "asyncio.Queue[PartitionedEngine]"
    lost: "asyncio.Queue[PartitionedEngine]"

    def pids(self) -> list[int]:
        return [task.hello.pid for task in self.tasks._up.values()]


@asynccontextmanager
async def following(session: SparkSession, directory: Path) -> AsyncIterator[Followed]:
    ready: asyncio.Queue[PartitionedEngine] = asyncio.Queue()
    lost: asyncio.Queue[PartitionedEngine] = asyncio.Queue()
    tasks = ResidentTasks(
        session,
        directory,
        2,
        address=LOOPBACK,
        on_ready=ready.put_nowait,
        on_lost=lost.put_nowait,
    )
    await tasks.start()
    try:
        yield Followed(tasks, ready, lost)
    finally:
        await tasks.stop()


async def ask_without_end(engine: PartitionedEngine) -> None:
    while True:
        await engine.peek(VIEW, None, Timestamp(29))


async def test_losing_one_loses_the_engine_and_all_come_again(
    spark_session: SparkSession, tmp_path: Path
) -> None:
    plan, as_of = total_per_seller(), Timestamp(1)
    async with following(spark_session, tmp_path) as followed:
        first = await asyncio.wait_for(followed.ready.get(), 60)
        await first.create(VIEW, plan, index_key=(0,), as_of=as_of)
        before = await first.tick(VIEW, history(1, 30), Timestamp(1), Timestamp(30))
        pids = followed.pids()
        assert len(set(pids)) == 2
        os.kill(pids[1], signal.SIGKILL)
        with pytest.raises(EngineLost) as gone:
            await ask_without_end(first)
        assert gone.value.engine is first, "the worker knows whose dataflows are lost"
        assert (await asyncio.wait_for(followed.lost.get(), 10)) is first
        second = await asyncio.wait_for(followed.ready.get(), 60)
        with pytest.raises(EngineLost):
            await first.sizes(VIEW)
        await second.create(VIEW, plan, index_key=(0,), as_of=as_of)
        again = await second.tick(VIEW, history(1, 30), Timestamp(1), Timestamp(30))
        found, expected = (
            sorted(consolidate_updates(plan.types, updates, as_of)) for updates in (again, before)
        )
        assert found == expected
        assert followed.lost.empty(), "an engine is lost once"


async def test_strangers_on_the_network_are_not_heard(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that does not know the token, and one that announces a long message: both are refused at
    once, for the time that a silent one is given is made long here."""
    monkeypatch.setattr("evertide.spark.resident.HELLO_SECONDS", 600.0)
    ready: asyncio.Queue[ResidentEngine] = asyncio.Queue()
    resident = Resident(
        spark_session,
        tmp_path,
        address=LOOPBACK,
        on_ready=ready.put_nowait,
        on_lost=lambda _: None,
    )
    await resident.start()
    try:
        engine = await asyncio.wait_for(ready.get(), 60)
        assert resident._server is not None
        address = resident._server.sockets[0].getsockname()
        assert address[0] == LOOPBACK
        with socket.create_connection(address, 30) as stranger:
            hello = Hello(b"guess" * 7, engine.hello.job + 1, 0, os.getpid())
            BlockingChannel(stranger).send(hello)
            assert await asyncio.to_thread(stranger.recv, 1) == b""
        with socket.create_connection(address, 30) as stranger:
            stranger.sendall((1 << 29).to_bytes(4, "big"))
            assert await asyncio.to_thread(stranger.recv, 1) == b""
        assert ready.empty()
        await engine.create(VIEW, total_per_seller(), index_key=None, as_of=Timestamp(1))
    finally:
        await resident.stop()
