"""Goal: a shard that two versions of a view have written reads the same everywhere.

Method: parts of fewer and of more columns, in files and in the state, are read by Spark, by rows
and in columns, with the columns of the older and of the newer version.
"""

from collections import Counter
from pathlib import Path

import pytest

from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import Get
from evertide.persist import prepare
from evertide.persist.handle import Appended, PersistClient
from evertide.persist.snapshot import snapshot_table
from evertide.persist.spark_input import part_files
from evertide.persist.store.file import FileBlob
from evertide.persist.store.memory import MemoryStore
from evertide.spark.building.hydrate import decode_contents, recompute_table
from evertide.spark.jobs import SparkJobs
from evertide.spark.tables import table_to_updates, updates_to_table
from evertide.vocab.datum import Interval, Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import INT8, INTERVAL, TEXT, array_of
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update
from tests.spark.built import build

SHARD, VIEW = ShardId("v"), GlobalId("v")
WIDE = relation_desc(("a", INT8), ("b", TEXT), ("c", INTERVAL), ("d", array_of(INT8)))
NARROW = RelationDesc(WIDE.columns[:2])
ERROR = '["22012","division by zero"]'
OLD_ROWS: list[Row] = [(1, "x"), (2, None), (2, None)]
NEW_ROWS: list[Row] = [(1, "x", Interval(1, 2, 3), (4, None)), (3, "", None, ())]


async def written(
    directory: Path, in_files: bool, monkeypatch: pytest.MonkeyPatch
) -> PersistClient:
    """The older version's rows at 0, the newer one's at 1, which also takes one of the former."""
    if in_files:
        monkeypatch.setattr(prepare, "INLINE_BYTES", 0)
    store = MemoryStore()
    client = PersistClient(store.consensus(await store.raise_epoch()), FileBlob(directory))
    await client.create_shard(SHARD, since_lag=100)
    first = [Update(row, Timestamp(0), 1) for row in OLD_ROWS]
    second = [Update(row, Timestamp(1), 1) for row in NEW_ROWS]
    second.append(Update((2, None, None, None), Timestamp(1), -1))
    second.append(Update((), Timestamp(1), 1, ERROR))
    for desc, updates, lower in ((NARROW, first, 0), (WIDE, second, 1)):
        outcome = await client.compare_and_append(
            SHARD, desc, updates, Timestamp(lower), Timestamp(lower + 1)
        )
        assert isinstance(outcome, Appended)
    state = await client.state(SHARD)
    assert [len(schema.columns) for schema in state.schemas] == [2, 4]
    return client


def expected(desc: RelationDesc) -> Counter[str]:
    rows: list[Row] = [(1, "x", None, None), (2, None, None, None), *NEW_ROWS]
    return Counter([*(repr(row[: desc.arity]) for row in rows), ERROR])


@pytest.mark.parametrize("in_files", [False, True], ids=["state", "files"])
@pytest.mark.parametrize("desc", [NARROW, WIDE], ids=["older", "newer"])
async def test_all_readers_see_the_same(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark_jobs: SparkJobs,
    desc: RelationDesc,
    in_files: bool,
) -> None:
    client = await written(tmp_path, in_files, monkeypatch)
    as_of, plan = Timestamp(1), delta_plan(Get(VIEW, desc.types))
    async with part_files(client, SHARD, desc, as_of) as files:
        assert bool(files.paths) is in_files
        table = recompute_table(spark_jobs, plan, {VIEW: files}, as_of)
        built = build(spark_jobs, plan, {VIEW: files}, as_of, tmp_path / "built", None)
    for peeked in (
        decode_contents(desc.types, table),
        decode_contents(desc.types, updates_to_table(desc.types, built.output)),
    ):
        found = Counter({repr(row): count for row, count in peeked.rows})
        found.update(dict(peeked.errors))
        assert found == expected(desc)
    by_rows = await client.snapshot(SHARD, desc, as_of)
    in_columns = table_to_updates(desc.types, await snapshot_table(client, SHARD, desc, as_of))
    for updates in (by_rows, in_columns):
        sums: Counter[str] = Counter()
        for update in updates:
            sums[update.error or repr(update.row)] += update.diff
        assert sums == expected(desc)
