"""Spark's classes as a file that a JVM maps instead of loading, checking and linking each again.

Measured on two cores: a session is up in 3.9 s instead of 7 to 9, for half the processor time. The
file belongs to one Java and one set of jars, and Java looks at both: where anything differs it
starts as it would without. `make setup` makes it, and nothing depends on its being there.
"""

import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.conf import SessionSettings
from evertide.spark.jobs import SparkJobs
from evertide.spark.session import start_session, stop_session
from evertide.vocab.sql_type import INT8, SqlType
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# Beside the jars that it was made of: an environment that is thrown away takes it along.
ARCHIVE = Path(sys.prefix) / "share" / "evertide" / "spark-classes.jsa"
# Writing 180 MB of classes takes half a minute on a busy machine.
WRITE_SECONDS = 600

# What a replica's jobs are made of: parts, joins, groups, windows, sets, Python functions.
SAMPLES = (
    "SELECT a.c0, count(*) AS c1, sum(b.c1) AS c2, max(b.d) AS c3 FROM {a} a"
    " JOIN {b} b ON a.c0 = b.c0 LEFT JOIN {a} o ON o.c1 = b.c1 WHERE a.e IS NULL GROUP BY a.c0",
    "SELECT c0, row_number() OVER (PARTITION BY c1 ORDER BY c0) AS c1 FROM {a}"
    " UNION ALL SELECT DISTINCT c0, c1 FROM {b} ORDER BY c0 LIMIT 10",
    "SELECT {f}(c0) AS c0, xxhash64(c0, c1) AS c1, CAST(c1 AS decimal(38, 2)) AS c2 FROM {a}"
    " WHERE c0 IN (SELECT c0 FROM {b}) AND NOT EXISTS (SELECT 1 FROM {b} b WHERE b.c0 = c1)",
)


def reading_options(archive: Path = ARCHIVE) -> tuple[str, ...]:
    """For a JVM that is to use it; none where there is none."""
    if not archive.is_file():
        return ()
    # That it does not fit is nothing to tell: the JVM goes on without.
    return ("-Xshare:auto", f"-XX:SharedArchiveFile={archive}", "-Xlog:cds*=off")


def make(archive: Path = ARCHIVE) -> bool:
    """Write it anew, from what a session loads while it does what replicas do; whether it could."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=archive.parent) as name:
        directory = Path(name)
        written = directory / "classes"
        options = (f"-XX:ArchiveClassesAtExit={written}", "-Xlog:cds*=off")
        session = start_session(SessionSettings(directory / "spark", jvm_options=options))
        _work(session, directory / "jobs")
        # The archive is written when the JVM ends.
        stop_session(session, WRITE_SECONDS)
        # A Java that came without an archive of its own classes cannot add to it.
        with suppress(FileNotFoundError):
            written.replace(archive)
            return True
    return False


class _Same:
    """A Python function that gives back what it gets."""

    name = "ev_same"
    returns = spark_type_name(INT8)
    deterministic = True

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        return arrays[0]


def _work(session: SparkSession, directory: Path) -> None:
    jobs = SparkJobs(session, directory)
    same = _Same()
    jobs.functions.register([same])
    types: tuple[SqlType, ...] = (INT8, INT8)
    updates = [Update((n, n % 3), Timestamp(1), 1) for n in range(100)]
    for text in SAMPLES:
        with jobs.job() as job:
            a, b = (job.offer(types, (), updates).name for _ in range(2))
            job.run(text.format(a=a, b=b, f=same.name))
    session.sparkContext.parallelize([0], 1).mapPartitions(_nothing).collect()


def _nothing(rows: Iterable[int]) -> Iterable[int]:
    return rows


if __name__ == "__main__":
    if not make():
        print("no archive of Spark's classes: this Java has none of its own", file=sys.stderr)
