"""The table of bulk figures: a number, a key of a million values, and a text of 88 characters."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

KEYS = 1_000_003
CHUNK_ROWS = 250_000
CREATE = "CREATE TABLE bulk (id bigint NOT NULL, k bigint NOT NULL, txt text NOT NULL)"
# Of these rows the text is another after the update.
UPDATE = "UPDATE bulk SET txt = 'zz' || txt WHERE id % 10 = 0"
_MIX = np.uint64(0x9E3779B97F4A7C15)


def chunks(rows: int) -> Iterator[pa.Table]:
    """All rows, some at a time: id, k, txt."""
    for start in range(0, rows, CHUNK_ROWS):
        ids = np.arange(start, min(start + CHUNK_ROWS, rows), dtype=np.uint64)
        texts = [f"{mixed:016x}{mixed:016x}{i:056d}" for i, mixed in _pairs(ids)]
        columns = {"id": ids.astype(np.int64), "k": (ids % KEYS).astype(np.int64), "txt": texts}
        yield pa.table(columns)


def _pairs(ids: "np.ndarray[tuple[int], np.dtype[np.uint64]]") -> Iterator[tuple[int, int]]:
    return zip(ids.tolist(), (ids * _MIX).tolist(), strict=True)


def copy_text(table: pa.Table) -> bytes:
    """A chunk as COPY's text format takes it."""
    rows = zip(*(table[name].to_pylist() for name in ("id", "k", "txt")), strict=True)
    return "".join(f"{i}\t{k}\t{txt}\n" for i, k, txt in rows).encode()
