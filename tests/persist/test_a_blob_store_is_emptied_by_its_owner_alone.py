"""Goal: over one blob store nobody ever deletes what another environment's consensus refers to, not
even if that one is a copy; and who follows in the same environment does delete.

Method: consensus is copied at the worst moment, all times that something is left alone are zero,
and each side deletes whatever it takes for garbage: what its sweep finds, what its merges replace.
The time that a new generation waits passes by hand.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from evertide.persist import owner
from evertide.persist.faults import Fenced, StoreUnreachable
from evertide.persist.handle import PersistClient
from evertide.persist.owner import OwnerRecord, Ownership, read_note, read_owner
from evertide.persist.prepare import discard
from evertide.persist.store.file import FileBlob
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.protocol import BlobStore
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.upkeep.compaction import compact_shard
from evertide.persist.upkeep.sweep import Sweeper, SweepTimes
from evertide.vocab.clock import SystemClock
from evertide.vocab.ids import EnvironmentId, Epoch
from tests.persist.racing import DESC, SHARD
from tests.support.parts import append_part
from tests.support.s3 import s3_blob

ENVIRONMENT = EnvironmentId("11111111-2222-3333-4444-555555555555")
AT_ONCE = SweepTimes(unreferenced_ms=0, old_ms=0)
# So many that an append is a part of its own.
ROWS = 10_000


class Time:
    """Seconds, which pass by hand."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def pass_by(self) -> None:
        """As long as a new generation waits."""
        self.now_s += owner.STOOD_S


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(owner, "_now_s", lambda: made.now_s)
    return made


class Server:
    """A generation: what of it opens a blob store and deletes from it."""

    def __init__(self, consensus: Path, blob: BlobStore) -> None:
        self.path = consensus
        self.store = SqliteStore(consensus)
        self.blob = blob
        self.ownership = Ownership(self.store, blob)

    async def open(self) -> "Server":
        self.epoch = await self.store.raise_epoch()
        await self.ownership.open(ENVIRONMENT, self.epoch)
        return self._working()

    async def join(self) -> "Server":
        """As a child of the generation that is open."""
        self.epoch = await self.store.current_epoch()
        await self.ownership.join(self.epoch)
        return self._working()

    def _working(self) -> "Server":
        consensus = self.store.consensus(self.epoch)
        self.client = PersistClient(consensus, self.blob, owner=self.ownership)
        self.sweeper = Sweeper(self.client, consensus, SystemClock(), AT_ONCE)
        return self

    async def stop(self) -> None:
        """SIGTERM."""
        await self.ownership.end()
        await self.kill()

    async def kill(self) -> None:
        await self.client.__aexit__()
        await self.store.close()

    async def restart(self) -> "Server":
        return await Server(self.path, self.blob).open()

    async def append(self, name: str) -> None:
        await append_part(self.client, SHARD, DESC, [(f"{name} {i}", i) for i in range(ROWS)])
        await self.client.maintenance.close()  # no merges but those of this test

    async def rows(self) -> dict[str, int]:
        """How many of each append there are, as a process reads them that has just begun."""
        fresh = PersistClient(self.store.consensus(self.epoch), self.blob)
        upper = (await fresh.state(SHARD)).upper
        counts: dict[str, int] = {}
        for update in await fresh.snapshot(SHARD, DESC, type(upper)(upper - 1)):
            name = str(update.row[0]).split()[0]
            counts[name] = counts.get(name, 0) + update.diff
        return counts

    async def delete_garbage(self) -> list[str]:
        """All that it takes for garbage, by either way; which keys are gone."""
        before = set(await self.blob.keys(f"{SHARD}/"))
        merged = await compact_shard(
            self.client.machine, self.client.blob, SHARD, DESC, 0, choose=tuple
        )
        if merged is not None:
            await discard(self.client.blob, merged.garbage)
        swept = await self.sweeper.sweep_once()
        gone = before - set(await self.blob.keys(f"{SHARD}/"))
        assert set(swept.deleted) <= gone
        return sorted(gone)


def copied(server: Server, path: Path) -> Path:
    """Its consensus as it is at this moment."""
    with closing(sqlite3.connect(server.path)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)
    return path


@pytest.fixture(params=["file", "s3 with files"])
async def blob_as_seen(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncIterator[Callable[[], BlobStore]]:
    """One place; each call gives it as another process has it."""
    if request.param == "file":
        yield lambda: FileBlob(tmp_path / "blob")
        return
    inner, caches = s3_blob(request.getfixturevalue("s3_endpoint")), list[CachedBlob]()

    def seen() -> BlobStore:
        caches.append(CachedBlob(inner, tmp_path / f"cache-{len(caches)}", 10**8))
        return caches[-1]

    yield seen
    for cache in caches:
        cache.close()


@pytest.fixture
def blob(tmp_path: Path) -> BlobStore:
    return FileBlob(tmp_path / "blob")


async def filled(path: Path, blob: BlobStore) -> Server:
    server = await Server(path, blob).open()
    await server.client.create_shard(SHARD, since_lag=0)
    await server.append("common")
    return server


@pytest.mark.parametrize("copy_first", [True, False], ids=["copy first", "original first"])
@pytest.mark.parametrize("running", [True, False], ids=["beside it", "after its end"])
async def test_a_copy_of_consensus_and_its_original_leave_each_others_parts_alone(
    tmp_path: Path,
    blob_as_seen: Callable[[], BlobStore],
    time: Time,
    running: bool,
    copy_first: bool,
) -> None:
    original = await filled(tmp_path / "consensus.db", blob_as_seen())
    path = copied(original, tmp_path / "copy.db")
    await original.append("original")
    if not running:
        await original.stop()
    copy = await Server(path, blob_as_seen()).open()
    await copy.append("copy")
    if not running:
        time.pass_by()
        assert await copy.delete_garbage() == []
        original = await original.restart()
    await original.append("later")
    sides = [copy, original] if copy_first else [original, copy]
    for _ in range(3):
        for side in sides:
            assert await side.delete_garbage() == []
            assert not await side.client.blob.delete("anything")
        for side in sides:
            await side.ownership.look()
        time.pass_by()
    # Whoever is started again does not know better.
    await copy.kill()
    copy = await copy.restart()
    time.pass_by()
    assert await copy.delete_garbage() == []
    assert await copy.rows() == {"common": ROWS, "copy": ROWS}
    assert await original.rows() == {"common": ROWS, "original": ROWS, "later": ROWS}
    await copy.kill()
    await original.kill()


async def test_each_side_says_once_what_is_to_be_done(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    original = await filled(tmp_path / "consensus.db", blob)
    copy = await Server(copied(original, tmp_path / "copy.db"), blob).open()
    time.pass_by()
    for side in (original, copy):
        with capture_logs() as logs:
            for _ in range(3):
                await side.ownership.look()
                await side.delete_garbage()
        (told,) = [line for line in logs if line["log_level"] == "error"]
        assert "nothing is deleted" in told["event"]
        assert "stop the server" in told["hint"]
    with capture_logs() as logs:
        await copy.kill()
        copy = await copy.restart()
    assert ["nothing is deleted" in line["event"] for line in logs] == [True]
    await original.kill()
    await copy.kill()


async def test_a_contested_store_is_settled_by_naming_the_environment(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    """As the guide says: while nobody runs, its id is all that the record says."""
    original = await filled(tmp_path / "consensus.db", blob)
    copy = await Server(copied(original, tmp_path / "copy.db"), blob).open()
    await original.ownership.look()
    await copy.stop()
    await original.append("original")
    await original.stop()
    original = await original.restart()
    time.pass_by()
    assert await original.delete_garbage() == []
    await original.stop()
    await blob.write_owner(f"{ENVIRONMENT}\n".encode())
    original = await original.restart()
    assert await original.delete_garbage() != []
    assert await original.rows() == {"common": ROWS, "original": ROWS}
    await original.kill()


async def test_who_follows_deletes_and_who_was_followed_does_not(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    older = await filled(tmp_path / "consensus.db", blob)
    await older.append("older")
    await blob.put(f"{SHARD}/1-orphan.parquet", b"")
    newer = await Server(older.path, blob).open()
    time.pass_by()
    assert not await older.client.blob.delete(f"{SHARD}/1-orphan.parquet")
    assert await older.client.blob.remove_unfinished(1 << 60) == 0
    with pytest.raises(Fenced):
        await older.delete_garbage()
    await older.ownership.look()
    await older.ownership.end()
    # The orphan, two that were merged, and what a merge of the older one left, which was refused.
    assert len(await newer.delete_garbage()) == 4
    assert await newer.rows() == {"common": ROWS, "older": ROWS}
    await older.kill()
    await newer.kill()


@pytest.mark.parametrize("orderly", [True, False])
async def test_a_restart_deletes_once_nobody_else_can_be_there(
    tmp_path: Path, blob: BlobStore, time: Time, orderly: bool
) -> None:
    server = await filled(tmp_path / "consensus.db", blob)
    await server.append("more")
    for _ in range(12):
        await (server.stop if orderly else server.kill)()
        server = await server.restart()
    assert await server.delete_garbage() == [], "a server that still runs would have said nothing"
    time.pass_by()
    assert len(await server.delete_garbage()) >= 2
    assert await server.rows() == {"common": ROWS, "more": ROWS}
    await server.kill()


class CutOff(FileBlob):
    """Records do not arrive, or after others."""

    cut = True

    async def write_owner(self, value: bytes) -> None:
        if self.cut:
            raise StoreUnreachable("cut off")
        await super().write_owner(value)


async def test_an_opening_cut_off_halfway_deletes_nothing_and_the_next_one_is_whole(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    older = await filled(tmp_path / "consensus.db", blob)
    await older.append("older")
    # As often as somebody tries who does not see that the disk is full.
    for _ in range(12):
        halfway = Server(older.path, CutOff(tmp_path / "blob"))
        with pytest.raises(StoreUnreachable):
            await halfway.open()
        time.pass_by()
        assert not await halfway.ownership.may_delete()
        # The blob store still names the older one, which has been followed.
        assert not await older.client.blob.delete("anything")
        await older.ownership.look()
        await halfway.store.close()
    newer = await Server(older.path, blob).open()
    time.pass_by()
    assert len(await newer.delete_garbage()) == 2
    await older.kill()
    await newer.kill()


async def test_a_new_environment_cut_off_halfway_is_opened_by_the_next(
    tmp_path: Path, blob: BlobStore
) -> None:
    halfway = Server(tmp_path / "consensus.db", CutOff(tmp_path / "blob"))
    with pytest.raises(StoreUnreachable):
        await halfway.open()
    await halfway.store.close()
    assert await read_owner(blob) is None
    server = await filled(tmp_path / "consensus.db", blob)
    await server.append("more")
    assert len(await server.delete_garbage()) == 2
    await server.kill()


async def test_a_record_of_an_earlier_opening_that_comes_late_is_written_over(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    first = await filled(tmp_path / "consensus.db", blob)
    late = await blob.read_owner()
    assert late is not None
    second = await Server(first.path, blob).open()
    await blob.write_owner(late)
    time.pass_by()
    assert not await second.ownership.may_delete()
    await second.ownership.look()
    assert await second.ownership.may_delete()
    assert not await first.ownership.may_delete()
    await first.kill()
    await second.kill()


async def test_who_joins_deletes_as_its_generation_may(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    first = await filled(tmp_path / "consensus.db", blob)
    child = await Server(first.path, blob).join()
    assert await child.ownership.may_delete()
    await child.kill()
    second = await Server(first.path, blob).open()
    child = await Server(first.path, blob).join()
    assert not await child.ownership.may_delete(), "not sooner than the one that opened"
    time.pass_by()
    assert await child.ownership.may_delete()
    # By hand, as catalog-debug does: this epoch has no owner.
    await second.store.raise_epoch()
    stray = await Server(first.path, blob).join()
    time.pass_by()
    assert not await stray.ownership.may_delete()
    for server in (first, second, child, stray):
        await server.kill()


async def test_consensus_put_back_under_a_running_server_deletes_nothing(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    first = await filled(tmp_path / "consensus.db", blob)
    path = copied(first, tmp_path / "copy.db")
    second = await Server(first.path, blob).open()
    time.pass_by()
    assert await second.ownership.may_delete()
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(first.path)) as target:
        source.backup(target)
    assert not await second.ownership.may_delete()
    await first.kill()
    await second.kill()


@pytest.mark.parametrize(
    "value",
    [
        b"{" + b" " * 4096 + b"}",
        b'{"environment": "e"}',
        b'{"environment": "e", "incarnation": "../x", "counter": 1}',
        b'{"environment": "e", "incarnation": "%s", "counter": 0}' % (b"0" * 32),
        b"\xff",
        b"",
    ],
)
async def test_with_a_damaged_record_nothing_is_deleted(
    tmp_path: Path, blob: BlobStore, value: bytes
) -> None:
    server = await filled(tmp_path / "consensus.db", blob)
    assert await server.ownership.may_delete()
    await blob.write_owner(value)
    with capture_logs() as logs:
        assert not await server.ownership.may_delete()
        await server.ownership.look()
    assert [line["log_level"] for line in logs] == ["error"]
    assert (tmp_path / "blob" / "environment").read_bytes() == value
    await server.kill()


async def test_with_a_damaged_note_nothing_is_deleted_and_the_environment_opens(
    tmp_path: Path, blob: BlobStore, time: Time
) -> None:
    server = await filled(tmp_path / "consensus.db", blob)
    for text in ("{", "{}", "x" * 5_000):
        await server.store.set_note(server.epoch, "owner", text)
        assert not await server.ownership.may_delete()
    await server.kill()
    server = await server.restart()
    time.pass_by()
    assert not await server.ownership.may_delete()
    assert await server.rows() == {"common": ROWS}
    await server.kill()


async def test_looking_goes_on_while_the_store_does_not_answer(
    tmp_path: Path, blob: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "LOOK_EVERY_S", 0.001)
    original = await filled(tmp_path / "consensus.db", blob)
    copy = await Server(copied(original, tmp_path / "copy.db"), blob).open()
    cut = CutOff(tmp_path / "blob")
    original.ownership._blob = cut
    looking = asyncio.create_task(original.ownership.run())
    with capture_logs() as logs:
        while not any("trying again" in line["event"] for line in logs):
            await asyncio.sleep(0.001)
    cut.cut = False
    while isinstance(found := await read_owner(blob), OwnerRecord) and not found.contested:
        await asyncio.sleep(0.001)
    looking.cancel()
    await original.kill()
    await copy.kill()


async def test_a_record_may_grow(tmp_path: Path, blob: BlobStore) -> None:
    """Later versions write more into it; what is there keeps its meaning."""
    server = await filled(tmp_path / "consensus.db", blob)
    found = await blob.read_owner()
    assert found is not None
    await blob.write_owner(found[:-1] + b',"more":[1]}')
    assert await server.ownership.may_delete()
    await server.kill()


async def test_both_stores_hold_the_same_record(tmp_path: Path, blob: BlobStore) -> None:
    """Consensus has it under the epoch. The counter starts at 1, an orderly end moves it."""
    server = await filled(tmp_path / "consensus.db", blob)
    note, found = await read_note(server.store), await read_owner(blob)
    assert note is not None
    assert isinstance(found, OwnerRecord)
    assert (note.record, note.epoch, note.earlier) == (found, server.epoch, {})
    assert (found.environment, found.counter, found.contested) == (ENVIRONMENT, 1, False)
    await server.ownership.end()
    ended = msgspec.structs.replace(found, counter=2)
    note = await read_note(server.store)
    assert note is not None
    assert note.record == await read_owner(blob) == ended
    await server.kill()
    again = await server.restart()
    note = await read_note(again.store)
    assert note is not None
    assert note.earlier == {found.incarnation: 2}
    assert note.record.incarnation != found.incarnation
    assert note.epoch == Epoch(server.epoch + 1)
    await again.kill()
