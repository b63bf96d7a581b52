"""Starts the Spark application of one replica, small, private and silent.

A replica is one process with one JVM below it. Nothing here listens beyond loopback, unless a size
says by which address a cluster's executors find it; nothing is read from the user's own Spark
configuration, and everything written lies under one directory. The JVM ends with the Python
process, however that ends: its standard input is a pipe from it.
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from evertide.spark.arrangements.memory import MEMORY_VARIABLE
from evertide.spark.java import find_java_home

LOOPBACK = "127.0.0.1"
# How often a killed task is run again before its job fails.
MAX_TASK_FAILURES = 1000

LONGEST_SOCKET_ADDRESS = 100
# Spark's are a dot, a UUID and ".sock", below a slash.
LONGEST_SOCKET_NAME = 45
# How many hundredths of its heap Spark's parser may keep of what it has learnt.
PARSER_SHARE = 15

# Each would change which Spark is started, or how, from outside this file.
FOREIGN_VARIABLES = (
    "PYSPARK_ALLOW_INSECURE_GATEWAY", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET", "PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_ENV_LOADED", "SPARK_LOCAL_DIRS", "SPARK_REMOTE", "SPARK_TESTING",
)  # fmt: skip

# Measured: a heap that starts small and shrinks again takes 180 MB from a JVM that has worked, and
# 100 MB from one that has not. The first compiler alone makes small jobs faster; long ones take up
# to three times as long, which a size with more cores buys back by `full_compiler`.
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

# The gateway's own logger is named because it would else set the level of all others to WARN.
LOGGING = """\
rootLogger.level = error
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = spark %p %c{1}: %m%n%ex
"""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """What a replica's size and place say about its Spark application.

    `directory` must be private to this replica. `master` None is local mode. Each of `partitions`
    resident tasks holds a slot for as long as the replica lives, beside those of `workers`.
    `address` is where executors find this host, and `secret_file` what a cluster's processes prove
    to one another that they know; local mode needs neither. `jvm_options` come on top of ours.
    """

    directory: Path
    workers: int = 2
    memory_mb: int = 512
    master: str | None = None
    full_compiler: bool = False
    partitions: int = 1
    address: str = LOOPBACK
    secret_file: Path | None = None
    jvm_options: tuple[str, ...] = ()

    @property
    def is_local(self) -> bool:
        """Whether all tasks run in processes below this one."""
        return self.master is None or self.master.startswith("local")

    @property
    def slots(self) -> int:
        """How many tasks run at once."""
        return self.workers + self.partitions


def start_session(settings: SessionSettings) -> SparkSession:
    """The one session of this process, ready to run jobs."""
    settings = replace(settings, directory=settings.directory.resolve())
    _prepare_directory(settings)
    _prepare_environment(settings)
    builder = SparkSession.builder.appName("evertide")
    for name, value in session_conf(settings, _local_directory(settings.directory)).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def stop_session(session: SparkSession, seconds: float = 30) -> None:
    """Stops the application and its JVM, so that a later session of this process starts anew."""
    context = session.sparkContext
    gateway = context._gateway
    try:
        session.stop()
    except (Py4JError, OSError):
        pass  # the JVM is gone already
    if gateway is not None:
        process = gateway_process(session)
        gateway.shutdown()
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait(seconds)
    type(context)._gateway = None
    type(context)._jvm = None


def gateway_process(session: SparkSession) -> "subprocess.Popen[bytes] | None":
    """The JVM below this process; None if it was started by someone else."""
    process: subprocess.Popen[bytes] | None = getattr(session.sparkContext._gateway, "proc", None)
    return process


def is_stopped(session: SparkSession) -> bool:
    """Whether the application will run no job any more. A call into the JVM: for a thread."""
    try:
        return bool(session.sparkContext._jsc.sc().isStopped())
    except (Py4JError, OSError):
        return True  # the JVM is gone


def trim_memory(session: SparkSession) -> None:
    """Gives memory that a large job left behind back to the system.

    The first collection lets Spark's cleaner see which broadcasts and shuffles are dead, the second
    frees them. Takes about half a second: for a thread that may wait, after a hydration.
    """
    jvm = session._jvm
    assert jvm is not None, "a classic session has a JVM of its own"
    jvm.System.gc()
    time.sleep(0.3)
    jvm.System.gc()


def tiny_job_session(session: SparkSession) -> SparkSession:
    """A session of the same application for jobs whose data is tiny and whose texts are many.

    Compiling a plan costs more than it saves there: measured, half the time without.
    """
    tiny = session.newSession()
    for name, value in (
        ("spark.sql.shuffle.partitions", "1"),
        ("spark.sql.codegen.wholeStage", "false"),
    ):
        tiny.conf.set(name, value)
    return tiny


def session_conf(settings: SessionSettings, local: str) -> dict[str, str]:
    """Every setting that differs from Spark's own, with nothing secret among them.

    Spark's launcher passes them as arguments of a process, where every user can read them.
    """
    return {
        **_process_conf(settings, local),
        **({} if settings.is_local else _cluster_conf(settings)),
        **_privacy_conf(settings, local),
        **_small_job_conf(),
        **_meaning_conf(),
    }


def _process_conf(settings: SessionSettings, local: str) -> dict[str, str]:
    own = (
        f"-Dlog4j2.configurationFile={(settings.directory / 'log4j2.properties').as_uri()}",
        _quoted(f"-Djava.io.tmpdir={settings.directory / 'tmp'}"),
        *map(_quoted, settings.jvm_options),
    )
    jvm_options = (*SMALL_JVM, *own, *(() if settings.full_compiler else FIRST_COMPILER_ONLY))
    return {
        "spark.master": settings.master or f"local[{settings.slots},{MAX_TASK_FAILURES}]",
        "spark.task.maxFailures": str(MAX_TASK_FAILURES),
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


def _small_job_conf() -> dict[str, str]:
    return {
        "spark.default.parallelism": "1",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.leafNodeDefaultParallelism": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.cbo.enabled": "false",
        # Its cost grows with the square of a text's columns and worse; seconds for ours.
        "spark.sql.constraintPropagation.enabled": "false",
        # It prunes columns of shared queries by position and takes the wrong ones once a reader of
        # them has been optimised away: wrong results, seen in Spark 4.3.0.
        "spark.sql.optimizer.excludedRules": (
            "org.apache.spark.sql.catalyst.optimizer.PushdownPredicatesAndPruneColumnsForCTEDef"
        ),
        "spark.locality.wait": "0",
        "spark.sql.join.preferSortMergeJoin": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
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


def _meaning_conf() -> dict[str, str]:
    """What a text means must not depend on the machine or on its own contents."""
    return {
        "spark.sql.ansi.enabled": "true",
        # Else `FROM r0 WHERE (c1)` names r0 anew: WHERE, with a column c1.
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.variable.substitute": "false",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "false",
    }


def _prepare_directory(settings: SessionSettings) -> None:
    directory = settings.directory
    for part in ("local", "warehouse", "tmp"):
        (directory / part).mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chmod(directory, 0o700)
    (directory / "log4j2.properties").write_text(LOGGING, encoding="utf-8")
    # A classpath with a directory on it fits no archive of classes: there is none without need.
    configuration = directory / "conf"
    shutil.rmtree(configuration, ignore_errors=True)
    if settings.secret_file is not None and not settings.is_local:
        # Arguments of a process can be read by every user of the host, this file cannot.
        secret = settings.secret_file.read_text(encoding="utf-8").strip()
        configuration.mkdir(mode=0o700)
        defaults = configuration / "spark-defaults.conf"
        handle = os.open(defaults, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"spark.authenticate.secret {secret}\n")


def _local_directory(directory: Path) -> str:
    """A name for Spark's own files that Spark can use whatever the directory is called.

    It takes a list of directories, split at commas; and it puts Unix sockets there, whose addresses
    may have about a hundred characters. A name that is too long or has commas is replaced by one
    through a handle, which lasts as long as this process and is never closed.
    """
    local = str(directory / "local")
    if "," not in local and len(local) + LONGEST_SOCKET_NAME <= LONGEST_SOCKET_ADDRESS:
        return local
    return f"/proc/{os.getpid()}/fd/{os.open(local, os.O_PATH | os.O_DIRECTORY)}"


def _prepare_environment(settings: SessionSettings) -> None:
    """Spark's launcher and its Python workers read these; nothing else may steer them."""
    for name in FOREIGN_VARIABLES:
        os.environ.pop(name, None)
    os.environ.update(
        JAVA_HOME=str(find_java_home(settings.directory)),
        SPARK_HOME=str(Path(pyspark.__file__).parent),
        SPARK_CONF_DIR=str(settings.directory / "conf"),
        SPARK_LOCAL_IP=settings.address,
        PYSPARK_PYTHON=sys.executable,
        # Threads of the JVM would else each reserve an arena of their own.
        MALLOC_ARENA_MAX="2",
    )
