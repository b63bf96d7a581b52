"""The bulk process of a replica: its Spark application for work over much data.

It gives way to ticks, and ends with the replica, however that ends.
"""

import asyncio
import os
import socket
import sys

import uvloop

from evertide.cli.child import die_with_parent, settle_memory, start_logging
from evertide.spark.bulk.serve import serve_bulk

# On top of what a replica has.
NICENESS = 5


async def launch_bulk(name: str, connection: socket.socket) -> asyncio.subprocess.Process:
    """Start one for the replica of this name; it speaks over this end of a socket pair."""
    descriptor = connection.fileno()
    return await asyncio.create_subprocess_exec(
        sys.executable, "-m", "evertide.cli.bulk", name, str(descriptor),
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=(descriptor,),
    )  # fmt: skip


def main(name: str, descriptor: int) -> None:
    die_with_parent()
    os.nice(NICENESS)
    settle_memory()
    start_logging(f"{name}-bulk")
    asyncio.run(serve_bulk(socket.socket(fileno=descriptor)))
    sys.stderr.flush()
    os._exit(0)  # jobs that nobody waits for any more may still hold threads


if __name__ == "__main__":
    uvloop.install()
    main(sys.argv[1], int(sys.argv[2]))
