"""Goal: whatever was killed and when, a sink's file is the beginning of one sequence of lines.

Method: a collection with random changes is followed by writers that are stopped at any moment; the
file is then cut anywhere behind what was made safe, as a crash would leave it. In the end each
change is in the file, once.
"""

import asyncio
import errno
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from evertide.dataflow.description import Import, hold_owner
from evertide.dataflow.external import SinkDescription
from evertide.external.lines import LineEncoder
from evertide.external.sink_file import SinkFile
from evertide.external.status import Status
from evertide.external.write_out import FilePlace, SinkWriter
from evertide.persist.contents import Contents
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.push.watch import Signal
from evertide.persist.state import ShardChange, existing, set_hold
from evertide.vocab.errors import DivisionByZero, encode_error
from evertide.vocab.ids import ClusterId, GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.external.written import AS_OF, Site

DESC = relation_desc(("id", INT8), ("word", TEXT))
COLLECTION = Import(GlobalId("u3"), ShardId("item-u3"), DESC, is_table=False)
SINK = SinkDescription(GlobalId("u4"), ClusterId("u1"), COLLECTION, AS_OF, "out.json", True)


class Shards:
    """Reads of one collection, as controller/storage.py offers them."""

    def __init__(self, client: PersistClient) -> None:
        self._client = client
        self.following = self

    @contextmanager
    def watching(self, *collections: Import) -> Iterator[Signal]:
        with self._client.watch.on([c.shard_id for c in collections]) as signal:
            yield signal

    async def stretch(
        self, collection: Import, lower: Timestamp, upper: Timestamp, rows: int
    ) -> Timestamp:
        """Small ones: every batch by itself."""
        assert rows > 0
        batches = (await self._client.state(collection.shard_id)).batches
        return min([upper, *(b.upper for b in batches if b.upper > lower)])

    async def upper(self, collection: Import) -> Timestamp:
        return (await self._client.state(collection.shard_id)).upper

    async def contents(self, collection: Import, as_of: Timestamp) -> Contents:
        return await self._client.contents(collection.shard_id, collection.desc, as_of)

    async def updates(
        self, collection: Import, lower: Timestamp, upper: Timestamp
    ) -> Sequence[Update]:
        return await self._client.read_updates(collection.shard_id, collection.desc, lower, upper)


class History:
    """A collection that somebody changes, and all that was ever written."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.upper = AS_OF
        self.changes: Counter[tuple[int, object]] = Counter()

    async def create(self) -> None:
        client = self.site.client()
        await client.create_shard(COLLECTION.shard_id, since=AS_OF, writer=COLLECTION.global_id)
        hold = partial(set_hold, owner=hold_owner(SINK.global_id), hold_ts=AS_OF)
        await client.machine.apply_all([ShardChange(COLLECTION.shard_id, existing(hold))])

    async def change(self) -> None:
        rng, lower = self.site.rng, self.upper
        self.upper = Timestamp(lower + rng.randint(1, 5))
        updates = []
        for _ in range(rng.randrange(6)):
            ts, diff = Timestamp(rng.randrange(lower, self.upper)), rng.choice([1, 1, -1])
            if rng.random() < 0.1:
                error = encode_error(DivisionByZero("division by zero"))
                updates.append(Update((), ts, diff, error))
            else:
                word = rng.choice(["a", None, 'line\nbreak "quoted"', "ü"])
                updates.append(Update((rng.randrange(3), word), ts, diff))
        outcome = await self.site.client().compare_and_append(
            COLLECTION.shard_id, DESC, updates, lower, self.upper, COLLECTION.global_id
        )
        assert isinstance(outcome, Appended)
        for update in updates:
            what = update.row if update.error is None else "division by zero"
            self.changes[update.ts, what] += update.diff

    def wanted(self) -> dict[tuple[int, object], int]:
        return {key: diff for key, diff in self.changes.items() if diff}


def read_lines(path: Path) -> list[tuple[int, object, int]]:
    found = []
    for line in path.read_text("utf-8").splitlines():
        said = json.loads(line)
        what = said["error"] if "error" in said else (said["row"]["id"], said["row"]["word"])
        found.append((said["timestamp"], what, said["diff"]))
    return found


def writer(client: PersistClient, directory: Path) -> SinkWriter:
    status = Status(SINK.global_id, SINK.cluster_id)
    return SinkWriter(SINK, client, Shards(client), FilePlace(str(directory), "here"), status)


async def run_for(site: Site, directory: Path, steps: int) -> None:
    """One process: it is stopped in the middle of whatever it does."""
    async with site.client(jittery=True) as client:
        task = asyncio.create_task(writer(client, directory).run())
        for _ in range(steps):
            await asyncio.sleep(0.0005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def held(site: Site) -> Timestamp:
    state = await site.client().state(COLLECTION.shard_id)
    (hold,) = [h for h in state.holds if h.owner == hold_owner(SINK.global_id)]
    return hold.hold_ts


def crash(path: Path, rng: random.Random, safe_ts: Timestamp) -> None:
    """Cut the file anywhere behind the lines that the hold says are safe."""
    if not path.exists():
        return
    content, safe = path.read_bytes(), 0
    for line in content.splitlines(keepends=True):
        torn = not line.endswith(b"\n")
        if safe_ts <= AS_OF or torn or json.loads(line)["timestamp"] > safe_ts:
            break
        safe += len(line)
    left = rng.randint(safe, len(content))
    with path.open("rb+") as file:
        file.truncate(left)


async def caught_up(history: History, directory: Path) -> None:
    async with history.site.client() as client:
        one = writer(client, directory)
        task = asyncio.create_task(one.run())
        path = directory / SINK.path
        for _ in range(2_000):
            if path.exists() and path.read_bytes().count(b"\n") == len(history.wanted()):
                break
            await asyncio.sleep(0.005)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize("seed", range(12))
async def test_each_change_is_one_line_through_any_crash(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evertide.external.write_out.HOLD_SECONDS", seed % 3 * 0.004)
    site = Site(seed)
    await site.open()
    history = History(site)
    await history.create()
    path = tmp_path / SINK.path
    for _ in range(12):
        for _ in range(site.rng.randrange(4)):
            await history.change()
        await run_for(site, tmp_path, site.rng.randrange(25))
        crash(path, site.rng, await held(site))
    await history.change()
    await caught_up(history, tmp_path)
    lines = read_lines(path)
    assert {(ts, what): diff for ts, what, diff in lines} == history.wanted()
    assert len(lines) == len(history.wanted()), "no line comes twice"
    assert [ts for ts, _, _ in lines] == sorted(ts for ts, _, _ in lines)


async def test_the_hold_never_passes_what_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the hold lets go of is in the file when the hold is moved."""
    monkeypatch.setattr("evertide.external.write_out.HOLD_SECONDS", 0.0)
    site = Site(99)
    await site.open()
    history = History(site)
    await history.create()
    for _ in range(20):
        await history.change()
    while (safe := await held(site)) == AS_OF:
        await run_for(site, tmp_path, 20)
    lines = read_lines(tmp_path / SINK.path)
    before = {(ts, what): diff for (ts, what), diff in history.wanted().items() if ts <= safe}
    assert before.items() <= {(ts, what): diff for ts, what, diff in lines}.items()


def test_lines_that_could_not_be_made_safe_are_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel gives up changes that it failed to write, and shows them as if they were there."""
    encoder = LineEncoder(DESC)
    first, second, third = (
        encoder.encode([Update((n, "x"), Timestamp(AS_OF + n), 1)]) for n in range(3)
    )
    written = bytearray()
    pwrite = os.pwrite

    def kept(file: int, some: bytes, at: int) -> int:
        if os.readlink(f"/proc/self/fd/{file}").endswith("out.json"):
            written[at : at + len(some)] = some
        return pwrite(file, some, at)

    def failing(_file: int) -> None:
        raise OSError(errno.EIO, "input/output error")

    file = SinkFile(str(tmp_path), "out.json", "me")
    file.open()
    file.go_on_at(AS_OF)
    file.write(first + second)
    with monkeypatch.context() as broken:
        broken.setattr("evertide.external.sink_file.os.fsync", failing)
        with pytest.raises(OSError, match="input/output"):
            file.make_safe()
    file.close()
    monkeypatch.setattr("evertide.external.sink_file.os.pwrite", kept)
    again = SinkFile(str(tmp_path), "out.json", "me")
    again.open()
    again.go_on_at(AS_OF)
    again.write(first)
    again.write(second + third)
    again.make_safe()
    again.close()
    assert bytes(written) == first + second + third
    assert (tmp_path / "out.json").read_bytes() == first + second + third


def test_lines_that_are_there_stay_and_torn_ones_are_made_whole(tmp_path: Path) -> None:
    encoder = LineEncoder(DESC)
    parts = [
        encoder.encode([Update((n, "x"), Timestamp(ts), 1) for n in range(ts % 4)])
        for ts in range(AS_OF, AS_OF + 30)
    ]
    whole, border = b"".join(parts), len(b"".join(parts[:10]))
    for size in range(border, len(whole), 7):
        directory = tmp_path / str(size)
        directory.mkdir()
        (directory / ".out.json.sink").write_text("me")
        (directory / "out.json").write_bytes(whole[:size])
        inode = (directory / "out.json").stat().st_ino
        file = SinkFile(str(directory), "out.json", "me")
        file.open()
        file.go_on_at(Timestamp(AS_OF + 10))
        for part in parts[10:]:
            file.write(part)
        file.end_here()
        file.close()
        assert (directory / "out.json").read_bytes() == whole
        assert (directory / "out.json").stat().st_ino == inode
