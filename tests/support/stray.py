"""What no writer of ours does: changes of a table that nobody has asked for."""

import asyncio
from pathlib import Path

from evertide.persist.handle import PersistClient
from evertide.persist.store.file import FileBlob
from evertide.persist.store.sqlite import SqliteStore
from evertide.persist.txn import Committed, TableWrite, Txns
from evertide.vocab.datum import Row
from evertide.vocab.ids import ShardId
from evertide.vocab.relation_desc import RelationDesc


def append_stray(data: Path, shard_id: str, desc: RelationDesc, row: Row, diff: int) -> None:
    """Append one change to a table whose server has ended, at the next timestamp there is."""
    asyncio.run(_append(data, ShardId(shard_id), desc, row, diff))


async def _append(data: Path, shard_id: ShardId, desc: RelationDesc, row: Row, diff: int) -> None:
    store = SqliteStore(data / "consensus.db")
    try:
        consensus = store.consensus(await store.current_epoch())
        async with PersistClient(consensus, FileBlob(data / "blob")) as client:
            txns = Txns(client, ShardId("txns"))
            write = {shard_id: TableWrite(desc, [(row, diff)])}
            outcome = await txns.commit(write, at=await txns.upper())
        assert isinstance(outcome, Committed), outcome
    finally:
        await store.close()
