"""A job whose task fails for a reason fails soon, and one that nobody wants is cancelled."""

import threading
import time

import pytest

from evertide.spark.jobs import SparkJobs
from evertide.spark.watch import JobCancelled, JobFailed


def test_a_task_that_always_fails_is_not_tried_a_thousand_times(spark_jobs: SparkJobs) -> None:
    started = time.monotonic()
    with spark_jobs.job() as job, pytest.raises(JobFailed):
        job.run("SELECT raise_error('always') AS c0 FROM range(0, 1, 1, 1)")
    assert time.monotonic() - started < 60


def test_a_cancelled_job_ends(spark_jobs: SparkJobs) -> None:
    cancelled = threading.Event()
    threading.Timer(1.0, cancelled.set).start()
    endless = "SELECT count(*) AS c0 FROM range(1000000000000) WHERE id * id % 7 = rand() * 7"
    with spark_jobs.job() as job, pytest.raises(JobCancelled):
        job.run(endless, cancelled)


def test_nothing_of_a_job_is_left(spark_jobs: SparkJobs) -> None:
    with spark_jobs.job() as job:
        view = job.offer((), [], [])
        assert job.run(f"SELECT d FROM {view.name}").num_rows == 0
    assert not spark_jobs.session.catalog.tableExists(view.name)
