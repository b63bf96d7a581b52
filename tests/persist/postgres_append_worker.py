"""A writer process over PostgreSQL: appends rows while it lives, and says which are durable.

    python -m tests.persist.postgres_append_worker BLOB_DIRECTORY EPOCH NAME

The URL comes from the variable STORE_URL. Prints a number after each acknowledged append; `fenced`
when it finds itself fenced.
"""

import os
import sys
from pathlib import Path

import uvloop

from evertide.persist.faults import Fenced
from evertide.persist.handle import PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.postgres import PostgresStore
from evertide.vocab.ids import Epoch
from tests.persist.racing import append_one


async def main(blob: Path, epoch: Epoch, name: str) -> None:
    store = PostgresStore(os.environ["STORE_URL"])
    client = PersistClient(store.consensus(epoch), FileBlob(blob))
    number = 0
    while True:
        try:
            await append_one(client, name, number)
        except Fenced:
            print("fenced", flush=True)
            break
        print(number, flush=True)
        number += 1
    await client.__aexit__()
    await store.close()


if __name__ == "__main__":
    uvloop.run(main(Path(sys.argv[1]), Epoch(int(sys.argv[2])), sys.argv[3]))
