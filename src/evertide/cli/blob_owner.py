"""One blob store belongs to one environment, and says so itself.

Consensus refers to parts by their keys. Over another environment's blob store they would be
missing, writes would go where nobody finds them, and each would sweep up the other's parts.
"""

from evertide.cli.config import Config, UsageError, without_password
from evertide.persist.faults import BlobMissing
from evertide.persist.store.protocol import Blob, Store
from evertide.vocab.ids import EnvironmentId, Epoch

_KEY = "environment"
_NOTE = "blob"
_MARKED = "marked"


async def is_unmarked(config: Config, store: Store, blob: Blob, environment: EnvironmentId) -> bool:
    """Whether it has no owner yet and may become this environment's; changes nothing.

    Raises UsageError if it is another's, or not the one that this environment had before.
    """
    owner = await _owner(blob)
    if owner is None and await store.note(_NOTE, "") != _MARKED:
        return True
    _check(config, owner, environment)
    return False


async def mark_blob(store: Store, blob: Blob, environment: EnvironmentId, epoch: Epoch) -> None:
    """Make it this environment's."""
    await blob.put(_KEY, environment.encode())
    await store.set_note(epoch, _NOTE, _MARKED)


async def check_blob_owner(config: Config, blob: Blob, environment: EnvironmentId) -> None:
    """Raises UsageError unless it is this environment's."""
    _check(config, await _owner(blob), environment)


def _check(config: Config, owner: EnvironmentId | None, environment: EnvironmentId) -> None:
    if owner != environment:
        whose = "no environment yet" if owner is None else "another environment"
        raise UsageError(
            f"--blob {without_password(config.blob)} belongs to {whose}: name the blob store that"
            " this environment was started with"
        )


async def _owner(blob: Blob) -> EnvironmentId | None:
    try:
        return EnvironmentId((await blob.get(_KEY)).decode())
    except BlobMissing:
        return None
