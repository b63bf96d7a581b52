"""Goal: a JVM maps the archive that the setup made, and one that does not fit is no hindrance.

Method: a replica's own session and what its JVM has mapped; then a program that starts one from a
file that is no archive.
"""

import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from evertide.spark.class_archive import ARCHIVE, reading_options
from evertide.spark.session import gateway_process

PROGRAM = """
import sys
from pathlib import Path
from evertide.spark.class_archive import reading_options
from evertide.spark.conf import SessionSettings
from evertide.spark.session import start_session
options = reading_options(Path(sys.argv[2]))
session = start_session(SessionSettings(Path(sys.argv[1]), workers=1, jvm_options=options))
print(options, session.sql("SELECT 1 + 1 AS c0").toArrow().column("c0").to_pylist())
"""


def test_the_archive_is_mapped_where_there_is_one(spark_session: SparkSession) -> None:
    jvm = gateway_process(spark_session)
    assert jvm is not None
    mapped = Path(f"/proc/{jvm.pid}/maps").read_text(errors="replace")
    assert (str(ARCHIVE.resolve()) in mapped) == ARCHIVE.is_file()


def test_without_one_nothing_is_asked_of_the_jvm(tmp_path: Path) -> None:
    assert reading_options(tmp_path / "missing") == ()


def test_what_does_not_fit_is_left_alone(tmp_path: Path) -> None:
    broken = tmp_path / "an archive, as it were"
    broken.write_bytes(b"\0" * 10_000)
    told = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "spark"), str(broken)],
        check=True,
        capture_output=True,
        text=True,
    )
    assert str(broken) in told.stdout
    assert told.stdout.endswith("[2]\n")
