"""A Spark standalone cluster of real processes on loopback: a master and its workers."""

import json
import os
import re
import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from evertide.spark.java import find_java_home
from tests.support.server import command_line, descendants_of, eventually

HEAP = "-Xmx256m"


@dataclass
class SparkCluster:
    """Where the master listens, its processes, and the secret that all of them know."""

    master: str
    secret_file: Path
    workers: list[subprocess.Popen[bytes]]

    def executors(self) -> list[int]:
        """The JVMs that run tasks."""
        below = [pid for worker in self.workers for pid in descendants_of(worker.pid)]
        return [pid for pid in below if "CoarseGrainedExecutorBackend" in command_line(pid)]

    def size_table(self, path: Path, **sizes: dict[str, object]) -> Path:
        """A size table whose sizes are on this cluster."""
        own = {"master": self.master, "secret_file": str(self.secret_file), "memory_mb": 512}
        path.write_text(json.dumps({name: own | size for name, size in sizes.items()}))
        return path


@contextmanager
def spark_cluster(directory: Path, workers: int = 2, cores: int = 4) -> Iterator[SparkCluster]:
    """A cluster for one test; whatever happens, nothing of it is left."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    secret = directory / "secret"
    secret.write_text(secrets.token_hex(16))
    properties = directory / "spark.properties"
    properties.write_text(
        f"spark.authenticate true\nspark.authenticate.secret {secret.read_text()}\n"
        "spark.ui.reverseProxy false\nspark.master.rest.enabled false\n"
    )
    properties.chmod(0o600)
    started: list[subprocess.Popen[bytes]] = []
    try:
        main = ["master.Master", "--host", "127.0.0.1", "--port", "0"]
        started.append(_start(directory / "master", [*main, *_common(properties)]))
        address = _address(directory / "master")
        for number in range(workers):
            own = directory / f"worker-{number}"
            asked = ["--cores", str(cores), "--memory", "2g", "--work-dir", str(own / "work")]
            main = ["worker.Worker", "--host", "127.0.0.1", "--port", "0", *asked]
            started.append(_start(own, [*main, *_common(properties), address]))
        eventually(lambda: _log(directory / "master").count("Registering worker") == workers)
        yield SparkCluster(address, secret, started[1:])
    finally:
        below = [pid for process in started for pid in descendants_of(process.pid)]
        for process in started:
            process.kill()
            process.wait(30)
        for pid in below:
            _kill(pid)


def _common(properties: Path) -> list[str]:
    return ["--webui-port", "0", "--properties-file", str(properties)]


def _start(directory: Path, main: list[str]) -> "subprocess.Popen[bytes]":
    directory.mkdir(mode=0o700)
    java = find_java_home(directory)
    home = Path(pyspark.__file__).parent
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSP"))
    } | {"JAVA_HOME": str(java), "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1",
         "SPARK_LOCAL_DIRS": str(directory / "local"), "SPARK_SCALA_VERSION": "2.13"}  # fmt: skip
    command = [
        str(java / "bin" / "java"), HEAP, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        "-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{main[0]}", *main[1:],
    ]  # fmt: skip
    with (directory / "log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=directory)


def _log(directory: Path) -> str:
    return (directory / "log").read_text(errors="replace")


def _address(directory: Path) -> str:
    """Where the master listens, once it says so."""
    line = re.compile(r"Starting Spark master at (spark://\S+)")
    return eventually(lambda: line.findall(_log(directory)), pause=0.1)[0]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, 9)
    except ProcessLookupError:
        pass
