"""Spark reads the files of a shard as this program does: all versions, and also where it skips."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from evertide.expr.relation import Types
from evertide.persist.coding.parts import columns_to_table, encode_part
from evertide.persist.coding.updates import to_columns
from evertide.spark.jobs import Job, SparkJobs
from evertide.spark.tables import desc_of, updates_to_table, write_parquet
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import (
    FLOAT4,
    FLOAT8,
    INT8,
    INTERVAL,
    NUMERIC,
    TEXT,
    SqlType,
    array_of,
)
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

ERROR = '["22012","division by zero"]'
NARROW: Types = (INT8,)
WIDE: Types = (INT8, TEXT, array_of(NUMERIC), INTERVAL)


def updates_of(rows: Sequence[Row]) -> list[Update]:
    return [Update(row, Timestamp(number // 10), 1) for number, row in enumerate(rows)]


def stored_part(path: Path, types: Types, rows: Sequence[Row]) -> Path:
    path.write_bytes(encode_part(columns_to_table(desc_of(types), to_columns(updates_of(rows)))))
    return path


def job_file(path: Path, types: Types, rows: Sequence[Row]) -> Path:
    write_parquet(updates_to_table(types, updates_of(rows)), path)
    return path


def offered(job: Job, jobs: SparkJobs, types: Types, paths: Sequence[Path]) -> DataFrame:
    view = job.offer(types, paths, [Update((), Timestamp(3), 1, ERROR)])
    return jobs.session.table(view.name)


def test_parts_of_all_versions_are_one_input(spark_jobs: SparkJobs, tmp_path: Path) -> None:
    """What a part does not have is NULL, what its reader does not know is left out."""
    old = stored_part(tmp_path / "old.parquet", NARROW, [(1,), (2,)])
    new = stored_part(tmp_path / "new.parquet", WIDE, [(3, "x", (None,), None), (4,) + (None,) * 3])
    with spark_jobs.job() as job:
        rows = offered(job, spark_jobs, WIDE, [old, new]).orderBy("c0").collect()
        assert [(r.c0, r.c1, r.c2, r.c3) for r in rows] == [
            (None, None, None, None), (1, None, None, None), (2, None, None, None),
            (3, "x", [None], None), (4, None, None, None),
        ]  # fmt: skip
        assert [(r.e, r.t, r.d) for r in rows] == [(ERROR, 3, 1), *[(None, 0, 1)] * 4]
    with spark_jobs.job() as job:
        rows = offered(job, spark_jobs, NARROW, [new, old]).where("e IS NULL").collect()
        assert sorted(r.c0 for r in rows) == [1, 2, 3, 4]


FLOATS: dict[str, list[float]] = {
    "a NaN among others": [1.0] * 5 + [math.nan] * 5,
    "only NaN": [math.nan] * 5,
    "only -0.0": [-0.0] * 5,
    "only 0.0": [0.0] * 5,
    "ordinary ones": [1.0, 2.0, math.inf] * 3,
}
# By filter: what SQL finds, in which NaN is the greatest and zeros are equal.
FILTERS: dict[str, Callable[[float], bool]] = {
    "c0 > 5": lambda x: x > 5 or x != x,
    "c0 <> 1": lambda x: x != 1,
    "c0 = double('NaN')": lambda x: x != x,
    "c0 = 0": lambda x: x == 0,
    "c0 >= 0": lambda x: x >= 0 or x != x,
    "c0 <= -0.0D": lambda x: x <= 0,
    "c0 IN (0.0D, 7.0D)": lambda x: x in (0, 7),
}


@pytest.mark.parametrize("write", [stored_part, job_file])
@pytest.mark.parametrize("sql_type", [FLOAT8, FLOAT4], ids=str)
def test_filters_on_floats_lose_no_row(
    spark_jobs: SparkJobs, tmp_path: Path, sql_type: SqlType, write: Callable[..., Path]
) -> None:
    """Spark skips files by statistics that leave out NaN and dictionaries that tell zeros apart."""
    for number, (name, floats) in enumerate(FLOATS.items()):
        path = write(tmp_path / f"{number}.parquet", (sql_type,), [(x,) for x in floats])
        with spark_jobs.job() as job:
            found = offered(job, spark_jobs, (sql_type,), [path])
            for text, keeps in FILTERS.items():
                expected = sum(keeps(x) for x in floats)
                assert found.where(text).count() == expected, (name, text)


def test_row_groups_are_skipped_by_any_column(spark_jobs: SparkJobs, tmp_path: Path) -> None:
    """A part of several row groups: the scan itself puts out only what may match."""
    count = 100_000
    types: Types = (INT8, TEXT)
    updates = [Update((i, f"{i:07}"), Timestamp(i // 1_000), 1) for i in range(count)]
    path = tmp_path / "large.parquet"
    path.write_bytes(encode_part(columns_to_table(desc_of(types), to_columns(updates))))
    with spark_jobs.job() as job:
        view = job.offer(types, [path], ())
        for text in ("c0 < 10", "c1 = '0000003'", "t <= 5"):
            frame = spark_jobs.session.sql(f"SELECT * FROM {view.name} WHERE {text}")
            kept = len(frame.collect())
            assert 0 < kept <= scanned_rows(frame) < count / 2, text


def scanned_rows(frame: DataFrame) -> int:
    """How many rows the scan of the last execution put out."""
    plan = frame._jdf.queryExecution().executedPlan()
    while plan.children().size():
        plan = plan.children().head()
    return int(plan.metrics().get("numOutputRows").get().value())
