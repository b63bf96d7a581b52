"""A program: one small Spark job of each kind that the engine relies on; prints what it saw."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession


def double(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        doubled = [2 * value for value in batch.column("id").to_pylist()]
        yield pa.RecordBatch.from_pydict({"id": pa.array(doubled, pa.int64())})


def main(directory: Path) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.warehouse.dir", str(directory / "warehouse"))
        .getOrCreate()
    )
    parquet = str(directory / "numbers")
    spark.range(1000).write.parquet(parquet)
    numbers = spark.read.parquet(parquet)
    groups = numbers.selectExpr("id % 10 as k").repartition(2).groupBy("k").count().toArrow()
    jvm = spark._jvm
    assert jvm is not None, "a classic session has a JVM of its own"
    seen = {
        "java_home": jvm.System.getProperty("java.home"),
        "java_version": jvm.System.getProperty("java.version"),
        "rows": numbers.count(),
        "groups": groups.num_rows,
        "doubled": numbers.mapInArrow(double, "id long").toArrow()["id"].to_numpy().sum().item(),
    }
    spark.stop()
    print(json.dumps(seen))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
