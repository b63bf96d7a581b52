"""A process that opens the catalog of the directories it is told, and says how long that took."""

import asyncio
import sys
import time
from pathlib import Path

from bench.filled import config_for
from evertide.cli.stores import open_generation
from evertide.persist.push.notify import LocalNotifier


async def _seconds(data: Path) -> float:
    """Until the catalog could be asked, as the supervisor opens it."""
    config = config_for(data)
    started = time.perf_counter()
    opened = await open_generation(config, data / "cache", LocalNotifier())
    took = time.perf_counter() - started
    await opened.close()
    return took


if __name__ == "__main__":
    for line in sys.stdin:
        print(asyncio.run(_seconds(Path(line.strip()))), flush=True)
