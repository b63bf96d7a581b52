"""Goal: who asks for the newest changes of a view finds replicas connected, each of them once.

Method: a socket stands for the replica and counts who comes.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from evertide.controller.compute import ComputeClient, socket_path
from evertide.controller.orchestrator import POOL
from evertide.vocab.ids import GlobalId
from evertide.vocab.timestamp import Timestamp
from tests.sql.database import new_database

SNAPSHOT = new_database().snapshot


class Replica:
    """Takes what it is sent, and answers nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.writers: list[asyncio.StreamWriter] = []
        self.received = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, str(self._path))

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self.writers:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        while read := await reader.read(1_000):
            self.received += len(read)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.002)


def ask(client: ComputeClient) -> int:
    """How many replicas are asked."""
    (cluster_id,) = SNAPSHOT.clusters
    times = Timestamp(1), Timestamp(2)
    return len(client.ask_changes(SNAPSHOT, cluster_id, GlobalId("u1"), *times))


async def test_a_burst_connects_once_and_a_restart_is_found(tmp_path: Path) -> None:
    client, replica = ComputeClient(tmp_path), Replica(socket_path(tmp_path, POOL))
    await replica.start()
    assert [ask(client) for _ in range(30)] == [0] * 30
    await until(lambda: ask(client) == 1)
    assert len(replica.writers) == 1
    await replica.stop()
    socket_path(tmp_path, POOL).unlink(missing_ok=True)
    await until(lambda: ask(client) == 0)
    replica = Replica(socket_path(tmp_path, POOL))
    await replica.start()
    await until(lambda: ask(client) == 1)
    await until(lambda: replica.received > 0)
    assert len(replica.writers) == 1
    client.close()
    await replica.stop()


async def test_who_connects_at_the_same_time_shares_a_connection(tmp_path: Path) -> None:
    client, replica = ComputeClient(tmp_path), Replica(socket_path(tmp_path, POOL))
    await replica.start()
    assert await asyncio.gather(*(client.answers(POOL) for _ in range(20))) == [True] * 20
    await until(lambda: sum(not writer.is_closing() for writer in replica.writers) >= 1)
    assert ask(client) == 1
    client.close()
    await replica.stop()
