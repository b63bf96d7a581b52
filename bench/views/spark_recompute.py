"""Spark computes a whole query again, warm, from Parquet files.

The session is a replica's own with both compilers. Rows are made and thrown away where they are, so
that collecting them is not counted.
"""

import json
import os
import sys
from pathlib import Path

from bench.figure import milliseconds
from bench.views.tables import TABLES
from evertide.spark.conf import SessionSettings
from evertide.spark.session import start_session, stop_session

MEMORY_MB = 2_048


def main(directory: Path) -> None:
    """A query and a count in, the number of rows and as many timings out; a line each."""
    settings = SessionSettings(
        directory / "session", workers=os.cpu_count() or 1, memory_mb=MEMORY_MB, bulk=True
    )
    session = start_session(settings)
    for table in TABLES:
        session.read.parquet(str(directory / f"{table}.parquet")).createOrReplaceTempView(table)
    print("ready", flush=True)
    for line in sys.stdin:
        query, count = json.loads(line)
        rows = session.sql(query).count()

        def recompute(query: str = query) -> None:
            session.sql(query).write.format("noop").mode("overwrite").save()

        timings = [milliseconds(recompute) for _ in range(count)]
        print(json.dumps([rows, timings]), flush=True)
    stop_session(session)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
