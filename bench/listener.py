"""A process that follows a shard, and says for each row how long it was on its way.

Run by storage_listen.py: `python -m bench.listener KIND PLACE HUB BLOB`.
"""

import sys
import time
from pathlib import Path

import uvloop

from bench.listening import DESC, SHARD, Link, open_link


async def _follow(link: Link) -> None:
    state = await link.client.state(SHARD)
    print("ready", flush=True)
    async for updates, _ in link.client.listen(SHARD, DESC, state.upper):
        arrived = time.monotonic_ns()
        for update in updates:
            assert isinstance(update.row[0], int)
            print((arrived - update.row[0]) / 1e6, flush=True)


async def _main(kind: str, place: str, hub: Path, blob: Path) -> None:
    async with open_link(kind, place, hub, blob) as link:
        await _follow(link)


if __name__ == "__main__":
    uvloop.run(_main(sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])))
