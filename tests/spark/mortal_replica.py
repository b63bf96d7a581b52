"""A program: a session with a task that never ends; says who they are, waits to be killed."""

import os
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from evertide.spark.conf import SessionSettings
from evertide.spark.session import start_session


def main(directory: Path) -> None:
    session = start_session(SessionSettings(directory=directory / "[a], {b} *", workers=1))
    context = session.sparkContext
    worker_file = str(directory / "worker")

    def stay(_partition: Iterable[int]) -> Iterable[int]:
        Path(worker_file).write_text(str(os.getpid()))
        time.sleep(600)
        return ()

    def run() -> None:
        context.parallelize([0], 1).mapPartitions(stay).collect()

    threading.Thread(target=run, daemon=True).start()
    assert context._gateway is not None
    print(context._gateway.proc.pid, flush=True)
    time.sleep(600)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
