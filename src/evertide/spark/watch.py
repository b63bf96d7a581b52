"""Ends Spark jobs that nobody wants any more, and those that can only fail; tidies up after them.

The session allows a task a thousand failures for the sake of the resident one, which may be killed
that often. A query whose task fails for a reason would fail a thousand times.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from evertide.spark.session import trim_memory
from evertide.vocab.errors import SqlError

# A task that failed more often than this fails for a reason that trying again does not remove.
MAX_FAILED_TASKS: Final = 3
WATCH_SECONDS: Final = 0.5
# With nothing to do for so long the JVM gives back the memory that jobs left behind.
IDLE_SECONDS: Final = 10.0


class JobFailed(Exception):
    """Spark could not run a job; the reason is in its log."""


class JobStarved(JobFailed):
    """A job needs more memory or disk than it may take; `error` says so to whoever asked."""

    def __init__(self, error: SqlError) -> None:
        super().__init__(error.message)
        self.error = error


class JobCancelled(Exception):
    """Whoever asked for the job no longer wants its result."""


class JobWatch:
    """One thread that looks at all running job groups now and then.

    One for all, because every thread that speaks to the JVM costs a thread there.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._context = session.sparkContext
        self._running: dict[str, threading.Event] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def job(self, group: str, pool: str, cancelled: threading.Event) -> Iterator[None]:
        """Jobs that this thread starts inside are one group; raises JobFailed or JobCancelled.

        Pools share the application's slots evenly, whatever each of them has to do.
        """
        self._context.setJobGroup(group, pool, interruptOnCancel=True)
        self._context.setLocalProperty("spark.scheduler.pool", pool)
        self._add(group, cancelled)
        try:
            yield
        except (PySparkException, Py4JError) as error:
            if cancelled.is_set():
                raise JobCancelled from None
            raise JobFailed(f"{group}: {error}") from error
        finally:
            with self._changed:
                del self._running[group]

    def _add(self, group: str, cancelled: threading.Event) -> None:
        with self._changed:
            self._running[group] = cancelled
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._watch, name="job-watch", daemon=True)
                self._thread.start()

    def _watch(self) -> None:
        try:
            while True:
                self._watch_until_idle()
                trim_memory(self._session)
                with self._changed:
                    self._changed.wait_for(lambda: self._running)
        except (Py4JError, OSError):
            return  # the application is gone, and all jobs with it

    def _watch_until_idle(self) -> None:
        pause = threading.Event()
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._running, IDLE_SECONDS):
                    return
            pause.wait(WATCH_SECONDS)
            with self._changed:
                running = list(self._running.items())
            for group, cancelled in running:
                if cancelled.is_set() or self._failed_tasks(group) > MAX_FAILED_TASKS:
                    self._context.cancelJobGroup(group)

    def _failed_tasks(self, group: str) -> int:
        tracker = self._context.statusTracker()
        failed = 0
        for job_id in tracker.getJobIdsForGroup(group):
            job = tracker.getJobInfo(job_id)
            for stage_id in () if job is None else job.stageIds:
                stage = tracker.getStageInfo(stage_id)
                failed += 0 if stage is None else stage.numFailedTasks
        return failed
