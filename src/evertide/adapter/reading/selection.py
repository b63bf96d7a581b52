"""The rows that UPDATE and DELETE change, found in columns.

A table's image (persist/image.py) is searched by the values that the condition pins a column to,
and what is left of the condition is computed over columns. Only rows that match are ever made into
Python's. Conditions that columns cannot answer are left to the ordinary read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.adapter.reading.leaves import ShardLeaf
from evertide.adapter.reading.pinned import Pinned, pin
from evertide.adapter.transaction import SeenImage, Writing
from evertide.controller.storage import Storage
from evertide.expr.columnar.column import from_arrow
from evertide.expr.columnar.scalars import ByRows, compile_column_predicates
from evertide.expr.scalar import Scalar
from evertide.expr.scalar_walk import is_fallible
from evertide.persist.coding.batch import COLUMNAR_ROWS
from evertide.persist.coding.encoding import decode_column, encode_column, one_chunk
from evertide.persist.image import Ints, Places, TableImage, advance
from evertide.persist.txn import diff_table, diffs_at
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import Kind, SqlType
from evertide.vocab.timestamp import Timestamp

# Equal as integers where SQL finds them equal, and stored as they are.
_INTEGERS = frozenset(
    {Kind.INT2, Kind.INT4, Kind.INT8, Kind.UINT2, Kind.UINT4, Kind.OID, Kind.DATE, Kind.TIME,
     Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.MZ_TIMESTAMP}
)  # fmt: skip
# Equal as bytes where SQL finds them equal.
_BYTES = frozenset({Kind.TEXT, Kind.VARCHAR, Kind.NUMERIC, Kind.UUID, Kind.BYTEA, Kind.NAME})


@dataclass(slots=True)
class Found:
    """Where rows are; not `exact`: among them may be some that do not match."""

    image: TableImage
    places: Places
    exact: bool
    _counts: list[int] | None = None

    def __len__(self) -> int:
        """How many different rows."""
        return sum(map(len, self.places))

    def table(self) -> tuple[pa.Table, Ints]:
        """The rows, and how often each is there."""
        return self.image.take(self.places)

    def rows(self, types: tuple[SqlType, ...]) -> list[Row]:
        """The rows as Python's, in the order of `counts`."""
        if len(self) < COLUMNAR_ROWS:
            return self.image.read(self.places, types)
        return to_rows(self.table()[0], types)

    @property
    def counts(self) -> list[int]:
        """How often each row is there."""
        if self._counts is None:
            self._counts = self.image.counts(self.places)
        return self._counts

    @property
    def count(self) -> int:
        """How many rows, each counted as often as it is there."""
        return sum(self.counts)


async def find_rows(
    leaf: ShardLeaf, storage: Storage, as_of: Timestamp, writing: Writing
) -> Found | None:
    """Rows of a table that may match the conditions over it; None if they cannot be found so."""
    image = await table_image(leaf, storage, as_of, writing)
    if image is None:
        return None
    return search(image, leaf.predicates, leaf.collection.desc.types)


async def table_image(
    leaf: ShardLeaf, storage: Storage, as_of: Timestamp, writing: Writing
) -> TableImage | None:
    """The table at the timestamp, which is complete, after what the transaction did to it."""
    shard_id, desc = leaf.collection.shard_id, leaf.collection.desc
    seen = writing.images.get(shard_id)
    if seen is None:
        image = await storage.images.at(shard_id, desc, as_of)
        if image is None:
            return None
        seen = SeenImage(image, 0)
    changes = writing.changes_of(shard_id)
    image = seen.image
    for change in changes[seen.changes :]:
        updates = diffs_at(desc, diff_table(change), as_of)
        found = advance(image, updates, as_of, image.boundary)
        if found is None:
            # Such as a NULL where rows are told apart: the ordinary read knows what to do.
            writing.images.pop(shard_id, None)
            return None
        image = found
    writing.images[shard_id] = SeenImage(image, len(changes))
    return image


def search(
    image: TableImage, predicates: Sequence[Scalar], types: tuple[SqlType, ...]
) -> Found | None:
    """Rows for which all predicates are true, as far as columns tell."""
    if not predicates:
        return Found(image, image.all_places(), exact=True)
    key = _telling_pin(image, predicates)
    if key is None:
        return _scan(image, predicates, types)
    number, pinned = key
    # Python's own order of a few numbers is there long before numpy's.
    values = sorted(set(cast("Sequence[int]", pinned.values)))
    places, counts = image.find_counted(pinned.column, np.array(values, np.int64))
    if len(predicates) == 1:
        return Found(image, places, exact=True, _counts=counts)
    rest = [p for i, p in enumerate(predicates) if i != number]
    kept: Places = []
    for run, at in zip(image.runs, places, strict=True):
        mask = _mask(run.rows.take(pa.array(at)), rest, types)
        if mask is None:
            return Found(image, places, exact=False)
        kept.append(at[mask])
    return Found(image, kept, exact=True)


def _telling_pin(image: TableImage, predicates: Sequence[Scalar]) -> tuple[int, Pinned] | None:
    """The condition to search by: it pins a column of integers to the fewest values.

    Where the others can fail, a row with NULL in the column must not be passed over: its error
    would count.
    """
    found: list[tuple[int, Pinned]] = []
    for number, predicate in enumerate(predicates):
        pinned = pin(predicate)
        if pinned is None or pinned.type.kind not in _INTEGERS:
            continue
        others = predicates[:number], predicates[number + 1 :]
        fallible = any(is_fallible(other) for side in others for other in side)
        if not fallible or not any(r.rows.column(pinned.column).null_count for r in image.runs):
            found.append((number, pinned))
    return min(found, key=lambda pair: len(pair[1].values), default=None)


def _scan(
    image: TableImage, predicates: Sequence[Scalar], types: tuple[SqlType, ...]
) -> Found | None:
    """Every row looked at, by columns."""
    places: Places = []
    for run in image.runs:
        mask = _mask(run.rows, predicates, types)
        if mask is None:
            return None
        places.append(np.flatnonzero(mask & (run.counts != 0)))
    return Found(image, places, exact=True)


def _mask(
    rows: pa.Table, predicates: Sequence[Scalar], types: tuple[SqlType, ...]
) -> "np.ndarray[tuple[int], np.dtype[np.bool_]] | None":
    """Where all predicates are true; None if the rows must be asked one by one."""
    mask = np.ones(rows.num_rows, np.bool_)
    others: list[Scalar] = []
    fallible = any(is_fallible(predicate) for predicate in predicates)
    for predicate in predicates:
        pinned = pin(predicate)
        if pinned is None or pinned.type.kind not in _INTEGERS | _BYTES or fallible:
            others.append(predicate)
            continue
        wanted = encode_column(pinned.type, pinned.values)
        found = pc.is_in(rows.column(pinned.column), value_set=wanted)
        mask &= found.to_numpy()
    if not others:
        return mask
    compute = compile_column_predicates(others, types)
    if compute is None:
        return None
    columns = [
        from_arrow(sql_type, one_chunk(column))
        for sql_type, column in zip(types, rows.columns, strict=True)
    ]
    try:
        return mask & compute(columns, rows.num_rows)
    except ByRows:
        return None


def to_rows(table: pa.Table, types: Sequence[SqlType]) -> list[Row]:
    """Rows of a table's image as Python's."""
    columns = [decode_column(t, table.column(i)) for i, t in enumerate(types)]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows
