"""Goal: a size's Spark application has a slot for each resident task, wherever it runs, and tells
nobody its secret."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from evertide.spark.application import FillLimits, SparkApplication, SparkGone
from evertide.spark.conf import MAX_TASK_FAILURES, SessionSettings, session_conf
from evertide.spark.session import _prepare_directory, is_stopped
from evertide.spark.worker import Worker

MASTER = "spark://10.0.0.5:7077"


def conf(settings: SessionSettings) -> dict[str, str]:
    return session_conf(settings, str(settings.directory / "local"))


@pytest.mark.parametrize("partitions", [1, 4])
def test_partitions_come_on_top_of_workers(tmp_path: Path, partitions: int) -> None:
    local = conf(SessionSettings(tmp_path, workers=2, partitions=partitions))
    assert local["spark.master"] == f"local[{2 + partitions},{MAX_TASK_FAILURES}]"
    far = conf(SessionSettings(tmp_path, workers=2, partitions=partitions, master=MASTER))
    assert far["spark.master"] == MASTER
    assert far["spark.cores.max"] == str(2 + partitions)
    for given in (local, far):
        assert given["spark.task.maxFailures"] == str(MAX_TASK_FAILURES)
        assert given["spark.dynamicAllocation.enabled"] == "false"
        assert given["spark.speculation"] == "false"


def test_executors_are_given_an_address_and_no_directory_of_ours(tmp_path: Path) -> None:
    far = conf(SessionSettings(tmp_path, master=MASTER, address="10.0.0.4", memory_mb=700))
    assert far["spark.driver.host"] == far["spark.driver.bindAddress"] == "10.0.0.4"
    assert far["spark.executor.memory"] == "700m"
    assert far["spark.python.unix.domain.socket.enabled"] == "false"
    assert str(tmp_path) not in far["spark.executor.extraJavaOptions"]
    near = conf(SessionSettings(tmp_path))
    assert near["spark.driver.host"] == "127.0.0.1"
    assert near["spark.python.unix.domain.socket.enabled"] == "true"


def test_the_secret_is_in_a_file_that_only_we_can_read(tmp_path: Path) -> None:
    """Settings are arguments of a process: every user of the host can read those."""
    secret = tmp_path / "secret"
    secret.write_text("sesame-4711\n")
    settings = SessionSettings(tmp_path / "own", master=MASTER, secret_file=secret)
    assert conf(settings)["spark.authenticate"] == "true"
    assert "sesame" not in str(conf(settings))
    previous = os.umask(0)
    try:
        for _ in range(2):  # a directory that was used before
            _prepare_directory(settings)
    finally:
        os.umask(previous)
    written = tmp_path / "own" / "conf" / "spark-defaults.conf"
    assert written.read_text() == "spark.authenticate.secret sesame-4711\n"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    open_cluster = SessionSettings(tmp_path / "own", master=MASTER)
    assert conf(open_cluster)["spark.authenticate"] == "false"
    _prepare_directory(open_cluster)
    assert not written.exists(), "nothing of another size is left"


async def test_an_application_that_the_cluster_ended_ends_the_replica(
    spark_session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its JVM lives on, but no task will ever come: the supervisor must start another."""
    assert not is_stopped(spark_session)
    worker = Worker(None, None, None)  # type: ignore[arg-type]
    settings = SessionSettings(tmp_path, master=MASTER)
    application = SparkApplication(
        settings,
        worker,
        None,  # type: ignore[arg-type]
        "auto",
        None,  # type: ignore[arg-type]
        FillLimits(),
    )
    monkeypatch.setattr("evertide.spark.application.is_stopped", lambda _: True)
    with pytest.raises(SparkGone, match="the cluster has ended the application"):
        await asyncio.wait_for(application._until_dead(spark_session), 30)
