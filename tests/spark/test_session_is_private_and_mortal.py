"""A replica's Spark application listens on loopback only and dies with its Python process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from evertide.spark.conf import SessionSettings, session_conf, shuffle_partitions


def test_the_jvm_and_its_workers_die_with_a_killed_process(tmp_path: Path) -> None:
    """Method: kill -9 of the driver while a task sleeps; nothing may be left to write anything."""
    program = Path(__file__).parent / "mortal_replica.py"
    replica = subprocess.Popen(
        [sys.executable, str(program), str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert replica.stdout is not None
    try:
        jvm_pid = int(replica.stdout.readline())
        wait_until((tmp_path / "worker").exists, seconds=60)
        worker_pid = int((tmp_path / "worker").read_text())
        assert is_running(jvm_pid)
        assert is_running(worker_pid)
    finally:
        replica.send_signal(signal.SIGKILL)
        replica.wait()
        replica.stdout.close()
    wait_until(lambda: not is_running(jvm_pid), seconds=15)
    wait_until(lambda: not is_running(worker_pid), seconds=15)


def test_everything_spark_opens_is_on_loopback(spark_session: SparkSession) -> None:
    gateway = spark_session.sparkContext._gateway
    assert gateway is not None
    listening = listening_addresses(gateway.proc.pid)
    assert listening, "the gateway itself listens"
    assert all(is_loopback(address) for address in listening), listening


def test_no_setting_holds_a_secret(tmp_path: Path) -> None:
    """They are arguments of a process, which every user of the machine can read."""
    names = session_conf(SessionSettings(directory=tmp_path), "local")
    assert not [name for name in names if "secret" in name or "password" in name]


def test_texts_are_not_rewritten_before_they_are_parsed(spark_session: SparkSession) -> None:
    found = spark_session.sql("SELECT :p AS c0", args={"p": "${system:user.name} \\n '"}).toArrow()
    assert found.column("c0").to_pylist() == ["${system:user.name} \\n '"]


def wait_until(condition: Callable[[], bool], *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    """Whether the process exists and has not ended: a zombie cannot write anything."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def listening_addresses(pid: int) -> list[str]:
    """Hexadecimal addresses of the process's listening TCP sockets."""
    handles = Path(f"/proc/{pid}/fd").iterdir()
    sockets = {target[8:-1] for h in handles if (target := _target(h)).startswith("socket:[")}
    found = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                found.append(fields[1].split(":")[0])
    return found


def _target(handle: Path) -> str:
    try:
        return os.readlink(handle)
    except OSError:
        return ""


def is_loopback(address: str) -> bool:
    """127.0.0.1, as IPv4 or inside IPv6, or ::1; the kernel prints words in host order."""
    return address.endswith("0100007F") or address == "00000000000000000000000001000000"


# What a bulk session may say otherwise: how much is done at once, never what a text means.
SPEED_ONLY = {
    "spark.default.parallelism", "spark.driver.extraJavaOptions", "spark.driver.maxResultSize",
    "spark.master", "spark.sql.adaptive.advisoryPartitionSizeInBytes",
    "spark.sql.adaptive.coalescePartitions.minPartitionNum",
    "spark.sql.adaptive.coalescePartitions.parallelismFirst", "spark.sql.adaptive.enabled",
    "spark.sql.execution.arrow.maxBytesPerBatch", "spark.sql.execution.arrow.maxRecordsPerBatch",
    "spark.sql.execution.topKSortFallbackThreshold", "spark.sql.files.maxPartitionBytes",
    "spark.sql.files.minPartitionNum", "spark.sql.join.preferSortMergeJoin",
    "spark.sql.leafNodeDefaultParallelism", "spark.sql.shuffle.partitions",
    "spark.task.maxFailures",
}  # fmt: skip


def test_texts_mean_the_same_in_bulk_sessions(tmp_path: Path) -> None:
    resident = session_conf(SessionSettings(tmp_path), "local")
    bulk = session_conf(SessionSettings(tmp_path, bulk=True), "local")
    differ = {name for name in {*resident, *bulk} if resident.get(name) != bulk.get(name)}
    assert differ <= SPEED_ONLY
    assert "PruneColumnsForCTEDef" in bulk["spark.sql.optimizer.excludedRules"]
    assert bulk["spark.sql.ansi.enabled"] == "true"


@pytest.mark.parametrize(("workers", "size", "expected"), [(2, 0, 4), (2, 1 << 30, 32), (8, 1, 16)])
def test_shuffles_have_tasks_by_cores_and_bytes(workers: int, size: int, expected: int) -> None:
    assert shuffle_partitions(workers, size) == expected
    assert shuffle_partitions(workers, 1 << 60) == 4_000
