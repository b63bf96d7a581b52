"""The baseline of bulk work: PySpark as it comes, over the same rows in Parquet files.

Its results are written as files by tasks, as ours are, and nothing is collected but names.
"""

import json
import os
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from bench.figure import milliseconds
from evertide.spark.java import find_java_home

HEAP_MB = 700


def main(directory: Path) -> None:
    """A query and a count in, as many timings out; a line each."""
    os.environ["JAVA_HOME"] = str(find_java_home(directory))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master(f"local[{os.cpu_count() or 1}]")
        .config("spark.driver.memory", f"{HEAP_MB}m")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={directory}")
        .config("spark.sql.shuffle.partitions", "32")
        .config("spark.sql.join.preferSortMergeJoin", "true")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "50000")
        .config("spark.local.dir", str(directory / "local"))
        .config("spark.ui.enabled", "false").getOrCreate()
    )  # fmt: skip
    session.read.parquet(str(directory / "rows")).createOrReplaceTempView("bulk")
    results = directory / "results"
    results.mkdir()

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        assert task is not None
        rows, path = 0, results / f"{task.taskAttemptId()}"
        writer: pa.RecordBatchFileWriter | None = None
        for batch in batches:
            if writer is None:
                writer = pa.ipc.new_file(str(path), batch.schema)
            writer.write_batch(batch)
            rows += batch.num_rows
        if writer is not None:
            writer.close()
        yield pa.record_batch({"rows": pa.array([rows], pa.int64())})

    def run(query: str) -> int:
        written = session.sql(query).mapInArrow(write, "rows bigint").collect()
        for file in results.iterdir():
            file.unlink()
        return sum(row.rows for row in written)

    print("ready", flush=True)
    for line in sys.stdin:
        query, count = json.loads(line)
        again = partial(run, query)
        rows = again()  # warm
        timings = [milliseconds(again) for _ in range(count)]
        print(json.dumps([rows, timings]), flush=True)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
