"""Runs generated texts as Spark jobs.

Each job offers its inputs under names of its own and takes them back afterwards, so that any number
of threads may run jobs at once. Calls block: give them a thread.
"""

import itertools
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from evertide.expr.relation import Types
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.conf import shuffle_partitions
from evertide.spark.render.relation import ImportView
from evertide.spark.render.text import TextBuilder
from evertide.spark.session import tiny_job_session
from evertide.spark.tables import updates_to_table, write_parquet
from evertide.spark.udf.registry import FunctionRegistry
from evertide.spark.watch import JobCancelled, JobWatch
from evertide.vocab.update import Update

# Sessions of one application share it, and job groups by name with it.
_NUMBERS = itertools.count()


class SparkJobs:
    """One per session. `directory` is its own, for files that live as long as one job.

    `bulk_workers`: it is a bulk session's, of so many.
    """

    def __init__(
        self, session: SparkSession, directory: Path, bulk_workers: int | None = None
    ) -> None:
        self.session = session
        self._workers = bulk_workers
        self.functions = FunctionRegistry(session)
        self.watch = JobWatch(session)
        self._directory = directory
        # What an earlier process of this replica left when it was killed.
        shutil.rmtree(directory, ignore_errors=True)

    def adapt(self, input_bytes: int) -> None:
        """Cut the next job's shuffles by what it reads. Jobs that run side by side may get one
        another's number, which is a matter of speed only."""
        if self._workers is not None:
            self.session.conf.set("spark.sql.shuffle.partitions", str(self.partitions(input_bytes)))

    def partitions(self, input_bytes: int) -> int:
        """How many a shuffle of so many bytes has."""
        return 2 if self._workers is None else shuffle_partitions(self._workers, input_bytes)

    def for_tiny_jobs(self) -> "SparkJobs":
        """The same application, but tuned for jobs whose data is tiny."""
        return SparkJobs(tiny_job_session(self.session), self._directory / "tiny")

    def job(self, pool: str = "query") -> "Job":
        """A new job with nothing in it; use it in a with statement."""
        number = next(_NUMBERS)
        return Job(self, f"j{number}", pool, self._directory / f"j{number}")


class Job:
    """One text under construction, its inputs, and their end."""

    def __init__(self, jobs: SparkJobs, prefix: str, pool: str, directory: Path) -> None:
        self.builder = TextBuilder(prefix=prefix)
        self._jobs = jobs
        self._pool = pool
        self._directory = directory
        # Of all that was offered, as far as the files tell.
        self.input_bytes = 0
        self.input_rows = 0
        self._views: list[str] = []
        self._files = 0

    def __enter__(self) -> Self:
        self._directory.mkdir(mode=0o700, parents=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for view in self._views:
            self._jobs.session.catalog.dropTempView(view)
        shutil.rmtree(self._directory, ignore_errors=True)

    def offer(self, types: Types, paths: Sequence[Path], updates: Sequence[Update]) -> ImportView:
        """Stored parts and loose updates as one view of updates."""
        paths = list(paths)
        if updates or not paths:
            paths.append(self.write(updates_to_table(types, updates)))
        columns = [f"c{i} {spark_type_name(t)}" for i, t in enumerate(types)]
        schema = ", ".join([*columns, "e string", "t bigint", "d bigint"])
        facts = [_facts_of(path) for path in paths]
        self.input_bytes += sum(one.bytes for one in facts)
        self.input_rows += sum(one.rows for one in facts)
        return ImportView(
            self._offer_files(schema, paths),
            may_fail=any(one.may_fail for one in facts),
            may_retract=any(one.may_retract for one in facts),
        )

    @property
    def partitions(self) -> int:
        """Into how many ranges what is kept of its inputs should be cut."""
        return self._jobs.partitions(self.input_bytes)

    def run(self, select: str, cancelled: threading.Event | None = None) -> pa.Table:
        """The result of the text that ends in this SELECT; it is given up once `cancelled`."""
        return self.collect(select, lambda frame: frame, cancelled)

    def collect(
        self,
        select: str,
        last: Callable[[DataFrame], DataFrame],
        cancelled: threading.Event | None = None,
    ) -> pa.Table:
        """What the `last` step makes of the text's result, which need not come here itself."""
        for name, (types, table) in self.builder.constants.items():
            columns = [f"c{i} {spark_type_name(t)}" for i, t in enumerate(types)]
            schema = ", ".join([*columns, "d bigint"])
            self._offer_files(schema, [self.write(table)], name)
        self._jobs.functions.register(self.builder.functions.values())
        text = self.builder.text(select)
        given_up = cancelled or threading.Event()
        if given_up.is_set():
            raise JobCancelled  # whoever watches would see it only after a while
        with self._jobs.watch.job(self.builder.prefix, self._pool, given_up):
            self._jobs.adapt(self.input_bytes)
            frame = self._jobs.session.sql(text, args=self.builder.parameters or None)
            return last(frame).toArrow()

    def write(self, table: pa.Table) -> Path:
        """A table as a file of this job."""
        self._files += 1
        path = self._directory / f"{self._files}.parquet"
        write_parquet(table, path)
        return path

    def _offer_files(self, schema: str, paths: Sequence[Path], name: str | None = None) -> str:
        view = name or f"{self.builder.prefix}i{len(self._views)}"
        # Names are names: a directory may have brackets or stars in it.
        reader = self._jobs.session.read.option("__globPaths__", "false").schema(schema)
        frame = reader.parquet(*map(str, paths))
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        return view


@dataclass(frozen=True, slots=True)
class _PartFacts:
    """What a part's statistics say of it, without reading it."""

    may_fail: bool
    may_retract: bool
    rows: int
    bytes: int


def _facts_of(path: Path) -> _PartFacts:
    metadata = pq.read_metadata(path)
    columns = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    return _PartFacts(
        may_fail=any(_may_fail(group, columns["e"]) for group in groups),
        may_retract=any(_may_retract(group, columns["d"]) for group in groups),
        rows=metadata.num_rows,
        # A dictionary may make that far too small.
        bytes=sum(max(group.total_byte_size, 8 * group.num_rows) for group in groups),
    )


def _may_fail(group: pq.RowGroupMetaData, error: int) -> bool:
    statistics = group.column(error).statistics
    return statistics is None or statistics.null_count != group.num_rows


def _may_retract(group: pq.RowGroupMetaData, diff: int) -> bool:
    statistics = group.column(diff).statistics
    return statistics is None or not statistics.has_min_max or statistics.min < 0
