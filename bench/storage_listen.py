"""How long an append takes to reach another process that listens: commit, push, read."""

import asyncio
import time
from pathlib import Path

import uvloop

from bench.figure import WARM_UP, Figure, Runs, in_runs
from bench.listening import DESC, SHARD, open_link
from bench.place import Place, running_helper
from evertide.persist.handle import Appended
from evertide.persist.push.hub import HubServer
from evertide.persist.store.postgres import PostgresStore
from evertide.persist.store.protocol import Store
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.timestamp import MIN_TS, Timestamp
from evertide.vocab.update import Update

REPETITIONS = 300
TARGET_MS = 5.0


def measure(place: Place) -> list[Figure]:
    """From before the append until the other process has the row; and the append by itself."""
    return [uvloop.run(_measure(place, kind)) for kind in ("SQLite", "PostgreSQL")]


async def _measure(place: Place, kind: str) -> Figure:
    hub_path, blob = place.directory / f"hub-{kind}", place.directory / f"blob-listen-{kind}"
    where = str(place.directory / "listen.db") if kind == "SQLite" else place.postgres
    hub = HubServer(hub_path)
    await hub.start()
    store = await _open(kind, where)
    if await store.current_epoch() == 0:
        await store.raise_epoch()
    await store.close()
    arrived, appended = await _push(place, kind, where, hub_path, blob)
    await hub.close()
    return Figure(
        name=f"append heard by another process, {kind}",
        unit="ms",
        runs=Runs(in_runs(arrived)),
        target=TARGET_MS,
        baseline_name="the append alone",
        baseline=Runs(in_runs(appended)),
    )


async def _open(kind: str, where: str) -> Store:
    if kind == "SQLite":
        return SqliteStore(Path(where))
    store = PostgresStore(where)
    await store.prepare()
    return store


async def _push(
    place: Place, kind: str, where: str, hub: Path, blob: Path
) -> tuple[list[float], list[float]]:
    arrived: list[float] = []
    appended: list[float] = []
    async with open_link(kind, where, hub, blob) as link:
        await link.client.create_shard(SHARD)
        upper = MIN_TS
        with running_helper("listener", kind, where, str(hub), str(blob)) as listener:
            assert await asyncio.to_thread(listener.answer) == "ready"
            for number in range(place.scaled(REPETITIONS) + WARM_UP):
                sent = time.monotonic_ns()
                lower, upper = upper, Timestamp(upper + 1)
                update = Update((sent,), lower, 1)
                outcome = await link.client.compare_and_append(SHARD, DESC, [update], lower, upper)
                assert isinstance(outcome, Appended)
                took = (time.monotonic_ns() - sent) / 1e6
                heard = float(await asyncio.to_thread(listener.answer))
                if number >= WARM_UP:
                    appended.append(took)
                    arrived.append(heard)
    return arrived, appended
