"""Runs generated texts as Spark jobs.

Each job offers its inputs under names of its own and takes them back afterwards, so that any number
of threads may run jobs at once. Calls block: give them a thread.
"""

import itertools
import shutil
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from evertide.expr.relation import Types
from evertide.persist.encoding import spark_type_name
from evertide.spark.render.relation import ImportView
from evertide.spark.render.text import TextBuilder
from evertide.spark.session import tiny_job_session
from evertide.spark.tables import updates_to_table, write_parquet
from evertide.spark.udf import FunctionRegistry
from evertide.vocab.update import Update

# A task that failed this often fails for a reason that trying again does not remove.
MAX_FAILED_TASKS = 3
WATCH_SECONDS = 0.5


class JobFailed(Exception):
    """Spark could not run a job; the reason is in its log."""


class JobCancelled(Exception):
    """Whoever asked for the job no longer wants its result."""


class SparkJobs:
    """One per session. `directory` is its own, for files that live as long as one job."""

    def __init__(self, session: SparkSession, directory: Path) -> None:
        self.session = session
        self.functions = FunctionRegistry(session)
        self._directory = directory
        self._numbers = itertools.count()
        # What an earlier process of this replica left when it was killed.
        shutil.rmtree(directory, ignore_errors=True)

    def for_tiny_jobs(self) -> "SparkJobs":
        """The same application, but tuned for jobs whose data is tiny."""
        return SparkJobs(tiny_job_session(self.session), self._directory / "tiny")

    def job(self) -> "Job":
        """A new job with nothing in it; use it in a with statement."""
        number = next(self._numbers)
        return Job(self, f"j{number}", self._directory / f"j{number}")


class Job:
    """One text under construction, its inputs, and their end."""

    def __init__(self, jobs: SparkJobs, prefix: str, directory: Path) -> None:
        self.builder = TextBuilder(prefix=prefix)
        self._jobs = jobs
        self._directory = directory
        self._views: list[str] = []

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
        return ImportView(self._offer_files(schema, paths), any(map(_has_errors, paths)))

    def run(self, select: str, cancelled: threading.Event | None = None) -> pa.Table:
        """The result of the text that ends in this SELECT; it is given up once `cancelled`."""
        for name, (types, table) in self.builder.constants.items():
            columns = [f"c{i} {spark_type_name(t)}" for i, t in enumerate(types)]
            schema = ", ".join([*columns, "d bigint"])
            self._offer_files(schema, [self.write(table)], name)
        self._jobs.functions.register(self.builder.functions.values())
        text = self.builder.text(select)
        with _watched(self._jobs.session, self.builder.prefix, cancelled):
            frame = self._jobs.session.sql(text, args=self.builder.parameters or None)
            return frame.toArrow()

    def write(self, table: pa.Table) -> Path:
        """A table as a file of this job."""
        path = self._directory / f"{len(list(self._directory.iterdir()))}.parquet"
        write_parquet(table, path)
        return path

    def _offer_files(self, schema: str, paths: Sequence[Path], name: str | None = None) -> str:
        view = name or f"{self.builder.prefix}i{len(self._views)}"
        frame = self._jobs.session.read.schema(schema).parquet(*map(str, paths))
        frame.createOrReplaceTempView(view)
        self._views.append(view)
        return view


@contextmanager
def _watched(
    session: SparkSession, group: str, cancelled: threading.Event | None
) -> Iterator[None]:
    """Cancel the jobs started here if their tasks keep failing or nobody wants them any more.

    The session allows a task a thousand failures for the sake of the resident one, which may be
    killed that often. A query whose task fails for a reason would fail a thousand times.
    """
    session.sparkContext.setJobGroup(group, "query", interruptOnCancel=True)
    watch = _Watch(session, group, cancelled or threading.Event())
    watch.start()
    try:
        yield
    except PySparkException as error:
        if watch.cancelled.is_set():
            raise JobCancelled from None
        raise JobFailed(f"{group}: {error}") from error
    except Py4JError as error:
        if watch.cancelled.is_set():
            raise JobCancelled from None
        raise JobFailed(f"{group}: {type(error).__name__}") from error
    finally:
        watch.done.set()


class _Watch(threading.Thread):
    """Looks at one job group now and then, until it is done."""

    def __init__(self, session: SparkSession, group: str, cancelled: threading.Event) -> None:
        super().__init__(name=f"watch-{group}", daemon=True)
        self._context = session.sparkContext
        self._group = group
        self.cancelled = cancelled
        self.done = threading.Event()

    def run(self) -> None:
        while not self.done.wait(WATCH_SECONDS):
            if self.cancelled.is_set() or self._failed_tasks() > MAX_FAILED_TASKS:
                self._context.cancelJobGroup(self._group)

    def _failed_tasks(self) -> int:
        tracker = self._context.statusTracker()
        failed = 0
        for job_id in tracker.getJobIdsForGroup(self._group):
            job = tracker.getJobInfo(job_id)
            for stage_id in [] if job is None else job.stageIds:
                stage = tracker.getStageInfo(stage_id)
                failed += 0 if stage is None else stage.numFailedTasks
        return failed


def _has_errors(path: Path) -> bool:
    """Whether a part may hold error rows, from its statistics alone."""
    metadata = pq.read_metadata(path)
    columns = range(metadata.num_columns)
    error = next(i for i in columns if metadata.schema.column(i).path == "e")
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        statistics = group.column(error).statistics
        if statistics is None or statistics.null_count != group.num_rows:
            return True
    return False
