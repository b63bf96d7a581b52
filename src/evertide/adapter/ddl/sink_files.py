"""What CREATE SINK finds where its file is to be."""

import asyncio
from pathlib import Path

from evertide.vocab.errors import DuplicateFile


async def refuse_existing_file(directory: str | None, path: str) -> None:
    """A sink begins with a file of its own: it neither overwrites nor goes on with another's.

    Whoever writes the file looks again; this is for the user, who is told at once.
    """
    assert directory is not None, "the planner asks for a directory"
    target = Path(directory, path)
    if await asyncio.to_thread(_exists, target):
        raise DuplicateFile(
            f"file '{path}' exists already",
            detail=f"It is '{target}'.",
            hint="Name another file, or remove that one.",
        )


def _exists(target: Path) -> bool:
    return target.is_symlink() or target.exists()
