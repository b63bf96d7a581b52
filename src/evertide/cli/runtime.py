"""The private directory of a generation: sockets and scratch files, gone when it ends."""

import shutil
import tempfile
from pathlib import Path

from evertide.persist.store.protocol import Store
from evertide.vocab.ids import Epoch

_NOTE = "runtime"


def make_runtime() -> Path:
    """A fresh private directory.

    Not under the data directory: a socket's path may be 107 bytes long at most.
    """
    return Path(tempfile.mkdtemp(prefix="evertide-"))


async def announce_runtime(store: Store, epoch: Epoch, runtime: Path) -> None:
    """Note it in the consensus store, so that joining processes find it."""
    await store.set_note(epoch, _NOTE, str(runtime))


async def find_runtime(store: Store) -> Path | None:
    """The running generation's directory; None if none runs on this host."""
    text = await store.note(_NOTE, "")
    return Path(text) if text and _is_there(text) else None


def _is_there(directory: str) -> bool:
    return Path(directory).is_dir()


def remove_runtime(runtime: Path) -> None:
    """Remove the directory; a note of one that is gone leads nowhere."""
    shutil.rmtree(runtime, ignore_errors=True)
