"""Goal: processes on one PostgreSQL database, killed, frozen or fenced at any instant, lose nothing
that was acknowledged, double nothing, and hold up nobody.

Method: real processes. A row counts as acknowledged once its writer has printed it.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evertide.persist.handle import PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.vocab.ids import Epoch
from evertide.vocab.timestamp import Timestamp
from tests.persist.racing import DESC, SHARD, check_rows, first_line

ROOT = Path(__file__).parent.parent.parent


def start(url: str, blob: Path, epoch: Epoch, name: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.persist.postgres_append_worker"]
    return subprocess.Popen(
        [*command, str(blob), str(epoch), name],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "STORE_URL": url},
    )


def acknowledged(name: str, output: str) -> set[tuple[str, int]]:
    # A line cut off by a kill was not printed whole; it may or may not have been acknowledged.
    whole = output[: output.rfind("\n") + 1]
    return {(name, int(line)) for line in whole.split() if line.isdigit()}


async def read_rows(store: PostgresStore, blob: Path, epoch: Epoch) -> list:
    client = PersistClient(store.consensus(epoch), FileBlob(blob))
    upper = (await client.state(SHARD)).upper
    return await client.snapshot(SHARD, DESC, Timestamp(upper - 1)) if upper else []


@pytest.mark.parametrize("seed", range(3))
async def test_a_frozen_writer_does_not_block_a_takeover(
    seed: int, postgres_url: str, tmp_path: Path
) -> None:
    """Wherever it stands: the takeover succeeds, and what it does after waking is refused."""
    store = PostgresStore(postgres_url)
    old = await store.raise_epoch()
    await PersistClient(store.consensus(old), FileBlob(tmp_path)).create_shard(SHARD)
    worker = start(postgres_url, tmp_path, old, "w")
    try:
        told = await first_line(worker)
        await asyncio.sleep(random.Random(seed).uniform(0, 0.05))
        worker.send_signal(signal.SIGSTOP)
        async with asyncio.timeout(30):
            new = await store.raise_epoch()
        before = await read_rows(store, tmp_path, new)
        worker.send_signal(signal.SIGCONT)
        output, _ = await asyncio.to_thread(worker.communicate, timeout=60)
    finally:
        worker.kill()
        worker.communicate()
    told += output
    assert told.endswith("fenced\n")
    after = await read_rows(store, tmp_path, new)
    assert sorted(after) == sorted(before)
    count = len(acknowledged("w", told))
    check_rows(after, acknowledged("w", told), {("w", number) for number in range(count + 1)})
    await store.close()


async def test_killed_writers_keep_what_they_acknowledged(
    postgres_url: str, tmp_path: Path
) -> None:
    rng = random.Random(11)
    store = PostgresStore(postgres_url)
    epoch = await store.raise_epoch()
    await PersistClient(store.consensus(epoch), FileBlob(tmp_path)).create_shard(SHARD)
    told: set[tuple[str, int]] = set()
    for names in (["a", "b"], ["c", "d"]):
        workers = {name: start(postgres_url, tmp_path, epoch, name) for name in names}
        first = {name: await first_line(worker) for name, worker in workers.items()}
        await asyncio.sleep(rng.uniform(0.05, 0.3))
        for name, worker in workers.items():
            worker.kill()
            told |= acknowledged(name, first[name] + worker.communicate()[0])
        tried = {(name, number) for name in "abcd" for number in range(20_000)}
        check_rows(await read_rows(store, tmp_path, epoch), told, tried)
    assert len(told) >= 4, "each was told of one at least"
    await store.close()
