"""The baseline of incremental: Spark computes the whole query again, warm, from Parquet files.

The session is a replica's own, tuned for small jobs, with both compilers: the best case for
recomputing.
"""

import json
import os
import sys
from pathlib import Path

from bench.figure import milliseconds
from bench.joined_rows import COLUMNS, QUERY
from evertide.spark.conf import SessionSettings
from evertide.spark.session import start_session, stop_session


def main(directory: Path) -> None:
    """First the rows of the answer; then for each number asked as many timings."""
    settings = SessionSettings(
        directory / "session", workers=os.cpu_count() or 1, memory_mb=1_024, bulk=True
    )
    session = start_session(settings)
    for table in COLUMNS:
        session.read.parquet(str(directory / f"{table}.parquet")).createOrReplaceTempView(table)
    rows = session.sql(QUERY).collect()
    print(json.dumps(sorted([row.day, row.items, row.total] for row in rows)), flush=True)
    for line in sys.stdin:
        count = int(line)
        timings = [milliseconds(lambda: session.sql(QUERY).collect()) for _ in range(count)]
        print(json.dumps(timings), flush=True)
    stop_session(session)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
