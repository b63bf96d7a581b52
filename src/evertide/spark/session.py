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
from dataclasses import replace
from pathlib import Path

import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from evertide.spark.conf import SessionSettings, session_conf
from evertide.spark.java import find_java_home

LONGEST_SOCKET_ADDRESS = 100
# Spark's are a dot, a UUID and ".sock", below a slash.
LONGEST_SOCKET_NAME = 45
# Each would change which Spark is started, or how, from outside this file.
FOREIGN_VARIABLES = (
    "PYSPARK_ALLOW_INSECURE_GATEWAY", "PYSPARK_DRIVER_PYTHON", "PYSPARK_GATEWAY_PORT",
    "PYSPARK_GATEWAY_SECRET", "PYSPARK_SUBMIT_ARGS", "SPARK_CONNECT_MODE_ENABLED",
    "SPARK_ENV_LOADED", "SPARK_LOCAL_DIRS", "SPARK_REMOTE", "SPARK_TESTING",
)  # fmt: skip

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
