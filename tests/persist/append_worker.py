"""A writer process: appends rows to a shard for as long as it lives, and says which are durable.

    python -m tests.persist.append_worker DIRECTORY EPOCH NAME COUNT

Prints a number after each acknowledged append; `fenced` when it finds itself fenced.
"""

import asyncio
import sys
from pathlib import Path

from evertide.persist.faults import Fenced
from evertide.persist.handle import PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.vocab.ids import Epoch
from tests.persist.racing import append_one
from tests.support.owned import OURS


async def main(directory: Path, epoch: Epoch, name: str, count: int) -> None:
    store = SqliteStore(directory / "consensus.db")
    client = PersistClient(
        store.consensus(epoch), FileBlob(directory / "blob"), grace_s=0.05, owner=OURS
    )
    for number in range(count):
        try:
            await append_one(client, name, number)
        except Fenced:
            print("fenced", flush=True)
            return
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), Epoch(int(sys.argv[2])), sys.argv[3], int(sys.argv[4])))
