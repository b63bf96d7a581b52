"""One Spark application for the whole run: starting one costs more than most tests do."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from evertide.spark.class_archive import reading_options
from evertide.spark.conf import SessionSettings, session_conf
from evertide.spark.jobs import SparkJobs
from evertide.spark.session import start_session, stop_session


@pytest.fixture(scope="session")
def spark_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run's Spark application writes."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark_session(spark_directory: Path) -> Iterator[SparkSession]:
    """The session of a replica with two workers and a slot for its resident task."""
    session = start_session(
        SessionSettings(spark_directory, workers=2, jvm_options=reading_options())
    )
    yield session
    stop_session(session)


@pytest.fixture(scope="session")
def spark_jobs(spark_session: SparkSession, spark_directory: Path) -> SparkJobs:
    """Runs texts on the run's session."""
    return SparkJobs(spark_session, spark_directory / "jobs")


@pytest.fixture(scope="session")
def bulk_jobs(spark_session: SparkSession, spark_directory: Path) -> SparkJobs:
    """The same with what a bulk application says of its queries; it shares the run's JVM."""
    session = spark_session.newSession()
    settings = SessionSettings(spark_directory, workers=2, bulk=True, partitions=0)
    for name, value in session_conf(settings, str(spark_directory)).items():
        if session.conf.isModifiable(name):
            session.conf.set(name, value)
    return SparkJobs(session, spark_directory / "bulk-jobs", bulk_workers=2)
