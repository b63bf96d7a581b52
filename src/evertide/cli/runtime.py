"""The private directory of a generation: sockets and scratch files, gone when it ends."""

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import msgspec

from evertide.controller.sizes import Size
from evertide.persist.store.protocol import Store
from evertide.vocab.ids import Epoch

HUB_SOCKET = "hub.sock"
_NOTE = "runtime"
_OWNER = "owner"
_SIZES_NOTE = "sizes"


def make_runtime(consensus: str) -> Path:
    """A fresh private directory for processes over this consensus store.

    Not under the data directory: a socket's path may be 107 bytes long at most.
    """
    runtime = Path(tempfile.mkdtemp(prefix="evertide-"))
    (runtime / _OWNER).write_text(consensus)
    return runtime


async def announce_runtime(store: Store, epoch: Epoch, runtime: Path) -> None:
    """Note it in the consensus store, so that joining processes find it."""
    await store.set_note(epoch, _NOTE, str(runtime))


async def find_runtime(store: Store, consensus: str) -> Path | None:
    """The running generation's directory; None if none runs on this host.

    Only one that says itself that it is this store's: a copied store brings the note along, and
    what the note names may be anything.
    """
    text = await store.note(_NOTE, "")
    return Path(text) if text and _is_ours(Path(text), consensus) else None


async def announce_sizes(store: Store, epoch: Epoch, added: Mapping[str, Size]) -> None:
    """Note what this generation's file adds to the size table: joining processes have no file."""
    await store.set_note(epoch, _SIZES_NOTE, msgspec.json.encode(added).decode())


async def find_sizes(store: Store) -> dict[str, Size]:
    """What the running generation adds to the size table."""
    found = await store.find_note(_SIZES_NOTE)
    return {} if found is None else msgspec.json.decode(found, type=dict[str, Size])


def _is_ours(runtime: Path, consensus: str) -> bool:
    try:
        return (runtime / _OWNER).read_text() == consensus
    except OSError:
        return False


def remove_runtime(runtime: Path) -> None:
    """Remove the directory; a note of one that is gone leads nowhere."""
    shutil.rmtree(runtime, ignore_errors=True)
