"""The checksum of a file's bytes, the same that a part's state keeps."""

from pathlib import Path
from typing import Final

import xxhash

_STEP_BYTES: Final = 1024**2


def file_checksum(path: Path) -> int:
    """XXH3-64 of all bytes. Blocks: give it a thread."""
    digest = xxhash.xxh3_64()
    with path.open("rb", buffering=0) as file:
        while step := file.read(_STEP_BYTES):
            digest.update(step)
    return digest.intdigest()
