"""The least that PySpark can be: one local session with Spark's own settings, doing nothing."""

import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from evertide.spark.java import find_java_home


def main(directory: Path) -> None:
    """Says so once a first job has run, and ends with its input."""
    directory.mkdir(parents=True, exist_ok=True)
    os.environ["JAVA_HOME"] = str(find_java_home(directory))
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraJavaOptions", f"-Djava.io.tmpdir={directory}")
        .config("spark.ui.enabled", "false").getOrCreate()
    )  # fmt: skip
    session.range(1).count()
    print("up", flush=True)
    sys.stdin.read()
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
