"""The settings of a replica's Spark applications, as plain values: nothing here needs Spark.

A resident application runs tasks that live as long as it and small jobs, a bulk one runs jobs over
much data. What a text means is the same in both.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evertide.spark.arrangements.memory import MEMORY_VARIABLE

LOOPBACK = "127.0.0.1"
# How often a killed task is run again before its job fails.
MAX_TASK_FAILURES = 1000
# The same where no task is resident: one that fails for want of memory does so again.
MAX_BULK_TASK_FAILURES = 3
# What a task of a bulk job reads, and what it gives on to the next stage, at about this size.
BULK_TASK_BYTES = 32 << 20
# Names and counts come back from a bulk job, and the groups of a build, but no rows.
MAX_BULK_RESULT = "512m"
# More tasks than this cost more than they bring.
MAX_PARTITIONS = 4_000
# How many hundredths of its heap Spark's parser may keep of what it has learnt.
PARSER_SHARE = 15
# Settings of what Spark shows, and of secrets, which come from files.
_SHOWN = ("spark.ui.", "spark.sql.ui.", "spark.eventLog.")
_HIDDEN = ("spark.authenticate", "spark.ssl.", "spark.jars", "spark.submit.")

# Measured: a heap that starts small and shrinks again takes 180 MB from a JVM that has worked, and
# 100 MB from one that has not. The first compiler alone makes small jobs faster; long ones take up
# to three times as long, so that bulk applications have both.
SMALL_JVM = (
    "-XX:+UseSerialGC",
    "-Xms48m",
    "-Xss512k",
    "-XX:-UsePerfData",
    "-XX:-ShrinkHeapInSteps",
    "-XX:MinHeapFreeRatio=10",
    "-XX:MaxHeapFreeRatio=20",
)
FIRST_COMPILER_ONLY = ("-XX:TieredStopAtLevel=1",)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a replica's size and place say about its Spark application.

    `directory` must be private to this replica. `master` None is local mode. Each of `partitions`
    resident tasks holds a slot for as long as the replica lives, beside those of `workers`.
    `address` is where executors find this host, and `secret_file` what a cluster's processes prove
    to one another that they know; local mode needs neither. `jvm_options` come on top of ours.
    A `bulk` application runs jobs over much data and no resident task. `conf` is an operator's, of
    names that refused_conf leaves.
    """

    directory: Path
    workers: int = 2
    memory_mb: int = 512
    master: str | None = None
    bulk: bool = False
    partitions: int = 1
    address: str = LOOPBACK
    secret_file: Path | None = None
    jvm_options: tuple[str, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        """Whether all tasks run in processes below this one."""
        return self.master is None or self.master.startswith("local")

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self.workers + self.partitions


def session_conf(settings: SessionSettings, local: str) -> dict[str, str]:
    """Every setting that differs from Spark's own, with nothing secret among them.

    Spark's launcher passes them as arguments of a process, where every user can read them.
    """
    return {
        **_process_conf(settings, local),
        **({} if settings.is_local else _cluster_conf(settings)),
        **_privacy_conf(settings, local),
        **_memory_conf(),
        **(_bulk_conf(settings) if settings.bulk else _small_job_conf()),
        **_meaning_conf(),
        **settings.conf,
    }


def refused_conf(names: Iterable[str]) -> list[str]:
    """Those of an operator's settings that are ours to make, or are none of Spark's.

    What one sees in Spark's own pages is the operator's: they are off unless asked for.
    """
    here = Path.cwd()
    both = (SessionSettings(here, master="spark://any:1", bulk=bulk) for bulk in (False, True))
    ours = {name for settings in both for name in session_conf(settings, "")}
    return [
        name
        for name in names
        if not name.startswith("spark.")
        or (name in ours and not name.startswith(_SHOWN))
        or name.startswith(_HIDDEN)
    ]


def _process_conf(settings: SessionSettings, local: str) -> dict[str, str]:
    own = (
        f"-Dlog4j2.configurationFile={(settings.directory / 'log4j2.properties').as_uri()}",
        _quoted(f"-Djava.io.tmpdir={settings.directory / 'tmp'}"),
        *map(_quoted, settings.jvm_options),
    )
    jvm_options = (*SMALL_JVM, *own, *(() if settings.bulk else FIRST_COMPILER_ONLY))
    failures = MAX_BULK_TASK_FAILURES if settings.bulk else MAX_TASK_FAILURES
    return {
        "spark.master": settings.master or f"local[{settings.slots},{failures}]",
        "spark.task.maxFailures": str(failures),
        "spark.driver.memory": f"{settings.memory_mb}m",
        "spark.driver.extraJavaOptions": " ".join(jvm_options),
        "spark.dynamicAllocation.enabled": "false",
        "spark.speculation": "false",
        "spark.scheduler.mode": "FAIR",
        # Measured: a job with a Python worker takes half as long over a Unix socket. Elsewhere
        # the directory may not be.
        "spark.python.unix.domain.socket.enabled": str(settings.is_local).lower(),
        "spark.python.unix.domain.socket.dir": local,
        # Starting a Python worker costs a second, keeping it 80 MB; Spark ends idle ones after a
        # minute.
        "spark.python.factory.idleWorkerMaxPoolSize": str(settings.workers),
    }


def _cluster_conf(settings: SessionSettings) -> dict[str, str]:
    """What executors of a cluster get that local mode has no use for."""
    return {
        "spark.cores.max": str(settings.slots),
        "spark.executor.memory": f"{settings.memory_mb}m",
        "spark.executor.extraJavaOptions": " ".join((*SMALL_JVM, *FIRST_COMPILER_ONLY)),
        # A resident task waits for its driver, which may have nothing to say for hours.
        "spark.network.timeout": "120s",
        "spark.executorEnv.MALLOC_ARENA_MAX": "2",
        f"spark.executorEnv.{MEMORY_VARIABLE}": os.environ.get(MEMORY_VARIABLE, ""),
        # Resident tasks stay where they start: let them find all executors there.
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "10s",
    }


def _quoted(option: str) -> str:
    """One option for Spark's launcher, which splits at spaces: a directory may have some."""
    escaped = option.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _privacy_conf(settings: SessionSettings, local: str) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": settings.address,
        "spark.driver.host": settings.address,
        # In local mode Spark makes a fresh secret by itself and keeps it in memory. That of a
        # cluster comes from a file, see _prepare_directory.
        "spark.authenticate": str(settings.is_local or settings.secret_file is not None).lower(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.eventLog.enabled": "false",
        "spark.logConf": "false",
        "spark.local.dir": local,
        "spark.sql.warehouse.dir": str(settings.directory / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
    }


def _memory_conf() -> dict[str, str]:
    """What Spark would else keep for as long as it lives."""
    return {
        # What its parser has learnt from texts is kept for ever otherwise, 6 kB for each state of
        # its automaton: texts of many shapes fill the heap until there is nothing but collecting.
        "spark.sql.parser.manageParserCaches": "true",
        "spark.sql.parser.parserDfaCacheFlushRatio": str(PARSER_SHARE),
        # Every text of every tick would otherwise be kept with its plan.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "1",
        "spark.ui.retainedStages": "1",
        "spark.ui.retainedTasks": "1",
        "spark.ui.dagGraph.retainedRootRDDs": "1",
    }


def _small_job_conf() -> dict[str, str]:
    return {
        "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.leafNodeDefaultParallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    }


def _bulk_conf(settings: SessionSettings) -> dict[str, str]:
    """Many tasks of moderate size: what does not fit in memory is sorted, spilled and merged."""
    least = str(least_tasks(settings.workers))
    task_bytes = str(BULK_TASK_BYTES)
    return {
        # A job sets its own by its bytes (shuffle_partitions); this is the least.
        "spark.sql.shuffle.partitions": least,
        "spark.default.parallelism": least,
        "spark.sql.files.maxPartitionBytes": task_bytes,
        "spark.sql.files.minPartitionNum": least,
        "spark.sql.adaptive.enabled": "true",
        "spark.sql.adaptive.advisoryPartitionSizeInBytes": task_bytes,
        "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",
        "spark.sql.adaptive.coalescePartitions.minPartitionNum": least,
        "spark.sql.join.preferSortMergeJoin": "true",
        # Above this the first rows of an order are found by sorting, not kept in one heap.
        "spark.sql.execution.topKSortFallbackThreshold": "100000",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "50000",
        "spark.sql.execution.arrow.maxBytesPerBatch": str(8 << 20),
        "spark.driver.maxResultSize": MAX_BULK_RESULT,
    }


def least_tasks(workers: int) -> int:
    """So many tasks a stage has at least: with fewer, a slow one leaves cores idle."""
    return 2 * workers


def shuffle_partitions(workers: int, input_bytes: int) -> int:
    """Into how many a bulk job's shuffles are cut, before adaptive execution joins small ones."""
    return min(max(least_tasks(workers), -(-input_bytes // BULK_TASK_BYTES)), MAX_PARTITIONS)


def _meaning_conf() -> dict[str, str]:
    """What a text means must not depend on the machine, on its contents or on who runs it."""
    return {
        "spark.sql.cbo.enabled": "false",
        # Its cost grows with the square of a text's columns and worse; seconds for ours.
        "spark.sql.constraintPropagation.enabled": "false",
        # It prunes columns of shared queries by position and takes the wrong ones once a reader of
        # them has been optimised away: wrong results, seen in Spark 4.3.0.
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.catalyst.optimizer.PushdownPredicatesAndPruneColumnsForCTEDef"
        ),
        "spark.locality.wait": "0",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.ansi.enabled": "true",
        # Else `FROM r0 WHERE (c1)` names r0 anew: WHERE, with a column c1.
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.variable.substitute": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
    }
