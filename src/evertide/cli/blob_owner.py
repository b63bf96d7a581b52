"""One blob store belongs to one environment: what programs say that find another's.

Over another environment's blob store the parts that consensus refers to would be missing, and
writes would go where nobody finds them. Which of several copies of an environment may delete what
lies there is told by persist/owner.py.
"""

from evertide.cli.config import Config, UsageError, without_password
from evertide.persist.faults import Corrupt
from evertide.persist.owner import Found, OwnerRecord, Ownership, read_owner
from evertide.persist.store.protocol import BlobStore, Store
from evertide.vocab.ids import EnvironmentId, Epoch

_NOTE = "blob"
_MARKED = "marked"


async def check_blob_owner(
    config: Config, store: Store, blob: BlobStore, environment: EnvironmentId, *, opens: bool = True
) -> None:
    """Raises UsageError if it is another's, or not the one that this environment had before.

    Changes nothing. One that is nobody's yet will do for whoever `opens` the environment.
    """
    found = await _found(config, blob)
    is_new = found is None and opens and await store.find_note(_NOTE) != _MARKED
    owner = found.environment if isinstance(found, OwnerRecord) else found
    if not is_new and owner != environment:
        whose = "no environment yet" if owner is None else "another environment"
        raise UsageError(
            f"--blob {without_password(config.blob)} belongs to {whose}: name the blob store that"
            " this environment was started with"
        )


async def open_blob_store(
    config: Config,
    store: Store,
    blob: BlobStore,
    ownership: Ownership,
    environment: EnvironmentId,
    epoch: Epoch,
) -> None:
    """Make it this environment's, and this generation's, which has raised the epoch."""
    # Another environment may have come to the same place first.
    await check_blob_owner(config, store, blob, environment)
    await ownership.open(environment, epoch)
    if await store.find_note(_NOTE) != _MARKED:
        await store.set_note(epoch, _NOTE, _MARKED)


async def _found(config: Config, blob: BlobStore) -> Found:
    try:
        return await read_owner(blob)
    except Corrupt as fault:
        raise UsageError(f"--blob {without_password(config.blob)}: {fault}") from fault
