"""The private directory of a generation: sockets and scratch files, gone when it ends."""

import os
import shutil
import tempfile
from pathlib import Path

_POINTER = "runtime"


def make_runtime() -> Path:
    """A fresh private directory.

    Not under the data directory: a socket's path may be 107 bytes long at most.
    """
    return Path(tempfile.mkdtemp(prefix="evertide-"))


def announce_runtime(data: Path, runtime: Path) -> None:
    """Note it under the data directory, so that joining processes find it."""
    pointer = data / _POINTER
    fresh = pointer.with_suffix(f".{os.getpid()}")
    fresh.write_text(str(runtime))
    fresh.replace(pointer)


def find_runtime(data: Path) -> Path | None:
    """The running generation's directory; None if none runs."""
    pointer = data / _POINTER
    if not pointer.exists():
        return None
    runtime = Path(pointer.read_text().strip())
    return runtime if runtime.is_dir() else None


def remove_runtime(data: Path, runtime: Path) -> None:
    """Remove the directory, and the note of it unless a newer generation wrote its own."""
    shutil.rmtree(runtime, ignore_errors=True)
    pointer = data / _POINTER
    try:
        if pointer.read_text().strip() == str(runtime):
            pointer.unlink()
    except FileNotFoundError:
        pass  # the data directory itself is gone
