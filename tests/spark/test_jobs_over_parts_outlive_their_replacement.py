"""Goal: a job over stored parts gives what the shard holds, or a fault that names the part.

Method: real Spark jobs over real stores, whose parts are replaced, lost or damaged at the worst
moment: after the job was told of them.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import TypeVar, cast

import pytest

from evertide.controller.storage import Storage
from evertide.dataflow.delta import delta_plan
from evertide.dataflow.description import Import
from evertide.expr.relation import Distinct, Get, Project, Relation
from evertide.persist.faults import BlobMissing, Corrupt
from evertide.persist.handle import PersistClient
from evertide.persist.spark_input import PartFiles
from evertide.persist.store.file import FileBlob
from evertide.persist.store.local_cache import CachedBlob
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import BlobStore
from evertide.persist.txn import Txns
from evertide.spark.building.hydrate import recompute
from evertide.spark.building.part_jobs import MAX_ATTEMPTS, over_parts
from evertide.spark.engine import Peeked
from evertide.spark.jobs import SparkJobs
from evertide.spark.watch import JobFailed
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT8, TEXT
from evertide.vocab.timestamp import Timestamp
from tests.spark.built import Built, build
from tests.support.owned import OURS
from tests.support.parts import append_part, blob_parts, flip_a_byte, replace_parts
from tests.support.s3 import s3_blob

T = TypeVar("T")

ROWS, PARTS = 9_000, 3
DESC = relation_desc(("name", TEXT), ("number", INT8))
BIDS = Import(GlobalId("u1"), ShardId("bids"), DESC, is_table=False)
OTHER = Import(GlobalId("u2"), ShardId("other"), DESC, is_table=False)
AS_OF = Timestamp(PARTS - 1)

Files = Mapping[GlobalId, PartFiles]


def on_thread(job: Callable[[Files, threading.Event], T]) -> Callable[[Files], Awaitable[T]]:
    """A job of Spark's, which blocks."""

    async def run(files: Files) -> T:
        return await asyncio.to_thread(job, files, threading.Event())

    return run


class Fixture:
    """Two collections of several parts each, and what was done to them."""

    def __init__(self, client: PersistClient, jobs: SparkJobs) -> None:
        self.client = client
        self.jobs = jobs
        self.storage = Storage(client, Txns(client, ShardId("txns")))
        self.attempts = 0

    async def query(
        self,
        collection: Import = BIDS,
        meanwhile: Callable[[int], None] = lambda _: None,
        relation: Relation | None = None,
    ) -> Peeked:
        """All rows, by a Spark job; `meanwhile` happens after a job was told of its files."""
        wanted = relation or Get(collection.global_id, DESC.types)

        def job(files: Files, cancelled: threading.Event) -> Peeked:
            self.attempts += 1
            meanwhile(self.attempts)
            return recompute(self.jobs, wanted, files, AS_OF, cancelled)

        return await over_parts(self.storage, [collection], AS_OF, on_thread(job))

    def replace(self, loop: asyncio.AbstractEventLoop) -> None:
        """From a job's thread: parts are replaced, and collected at once."""
        done = asyncio.run_coroutine_threadsafe(replace_parts(self.client, BIDS.shard_id), loop)
        done.result(timeout=60)


def numbers(peeked: Peeked) -> list[int]:
    assert not peeked.errors
    return sorted(cast(int, row[1]) for row, count in peeked.rows for _ in range(count))


EVERYTHING = list(range(ROWS * PARTS))


@pytest.fixture(params=["file", "s3"])
def blob(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStore]:
    if request.param == "file":
        yield FileBlob(tmp_path / "blob")
        return
    inner = s3_blob(request.getfixturevalue("s3_endpoint"))
    with closing(CachedBlob(inner, tmp_path / "cache", 10**9)) as cached:
        yield cached


@pytest.fixture
async def fixture(blob: BlobStore, spark_jobs: SparkJobs) -> Fixture:
    return await stored(blob, spark_jobs)


async def stored(blob: BlobStore, jobs: SparkJobs) -> Fixture:
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), blob, owner=OURS)
    made = Fixture(client, jobs)
    await made.storage._txns.ensure()
    for collection in (BIDS, OTHER):
        await client.create_shard(collection.shard_id)
        for part in range(PARTS):
            numbers = range(part * ROWS, (part + 1) * ROWS)
            await append_part(client, collection.shard_id, DESC, [(f"n{n}", n) for n in numbers])
    await client.maintenance.idle()
    return made


async def test_spark_reads_what_the_store_holds(fixture: Fixture) -> None:
    assert numbers(await fixture.query()) == EVERYTHING
    assert fixture.attempts == 1


async def test_spark_builds_state_from_what_the_store_holds(
    fixture: Fixture, tmp_path: Path
) -> None:
    plan = delta_plan(Distinct(Project(Get(BIDS.global_id, DESC.types), (1,))))

    def job(files: Files, _: threading.Event) -> Built:
        return build(fixture.jobs, plan, files, AS_OF, tmp_path / "built", None)

    built = await over_parts(fixture.storage, [BIDS], AS_OF, on_thread(job))
    assert sorted(cast(int, u.row[0]) for u in built.output) == EVERYTHING


async def test_parts_replaced_under_a_job_do_not_fail_it(fixture: Fixture) -> None:
    loop = asyncio.get_running_loop()

    def meanwhile(attempt: int) -> None:
        if attempt < MAX_ATTEMPTS:
            fixture.replace(loop)

    assert numbers(await fixture.query(meanwhile=meanwhile)) == EVERYTHING
    # Copies of an object store's parts stay; files of the store itself do not.
    is_file = isinstance(fixture.client.blob._store, FileBlob)
    assert fixture.attempts == (MAX_ATTEMPTS if is_file else 1)


async def test_parts_replaced_once_spark_knows_them_do_not_fail_a_job(
    tmp_path: Path, spark_jobs: SparkJobs
) -> None:
    """Spark has planned the job; its tasks find the files gone."""
    fixture = await stored(FileBlob(tmp_path / "blob"), spark_jobs)
    loop = asyncio.get_running_loop()
    failures: list[str] = []

    def job(files: Files, cancelled: threading.Event) -> int:
        fixture.attempts += 1
        with fixture.jobs.job() as job:
            view = job.offer(DESC.types, files[BIDS.global_id].paths, ())
            if fixture.attempts == 1:
                fixture.replace(loop)
            try:
                table = job.run(f"SELECT CAST(sum(d) AS bigint) AS n FROM {view.name}", cancelled)
            except JobFailed as failure:
                failures.append(str(failure))
                raise
            return int(table["n"][0].as_py())

    assert await over_parts(fixture.storage, [BIDS], AS_OF, on_thread(job)) == len(EVERYTHING)
    assert fixture.attempts == 2
    assert len(failures) == 1


async def test_parts_replaced_under_every_attempt_are_told(
    tmp_path: Path, spark_jobs: SparkJobs
) -> None:
    fixture = await stored(FileBlob(tmp_path / "blob"), spark_jobs)
    loop = asyncio.get_running_loop()
    with pytest.raises(BlobMissing) as fault:
        await fixture.query(meanwhile=lambda _: fixture.replace(loop))
    assert fault.value.shard_id == BIDS.shard_id
    assert fixture.attempts == MAX_ATTEMPTS


async def test_a_part_lost_under_a_job_is_told(tmp_path: Path, spark_jobs: SparkJobs) -> None:
    """Nothing replaced it, so trying again finds out, once."""
    fixture = await stored(FileBlob(tmp_path / "blob"), spark_jobs)
    lost = (await blob_parts(fixture.client, BIDS.shard_id))[-1]

    def meanwhile(_: int) -> None:
        (tmp_path / "blob" / lost.key).unlink()

    with pytest.raises(BlobMissing, match=f"shard {BIDS.shard_id}, part {lost.key}"):
        await fixture.query(meanwhile=meanwhile)
    assert fixture.attempts == 1


async def test_a_job_that_fails_by_itself_is_not_tried_again(
    tmp_path: Path, spark_jobs: SparkJobs
) -> None:
    fixture = await stored(FileBlob(tmp_path / "blob"), spark_jobs)

    def job(_: Files, cancelled: threading.Event) -> object:
        fixture.attempts += 1
        with fixture.jobs.job() as job:
            return job.run("SELECT raise_error('always') AS c0", cancelled)

    with pytest.raises(JobFailed):
        await over_parts(fixture.storage, [BIDS], AS_OF, on_thread(job))
    assert fixture.attempts == 1


async def test_a_damaged_part_is_a_fault_for_its_readers_only(
    tmp_path: Path, spark_jobs: SparkJobs
) -> None:
    fixture = await stored(FileBlob(tmp_path / "blob"), spark_jobs)
    for damaged in await blob_parts(fixture.client, BIDS.shard_id):
        path = tmp_path / "blob" / damaged.key
        sound = path.read_bytes()
        flip_a_byte(path)
        with pytest.raises(Corrupt, match=f"shard {BIDS.shard_id}, part {damaged.key}"):
            await fixture.query()
        assert numbers(await fixture.query(OTHER)) == EVERYTHING
        path.write_bytes(sound)
    fixture.attempts = 0
    assert numbers(await fixture.query()) == EVERYTHING
