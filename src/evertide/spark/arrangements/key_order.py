"""Entries in the order of their keys: what an index needs to look up ranges and parts of keys.

Runs and layers lie in the order of hashes, which finds whole keys only. The first lookup of another
kind has every one of them sorted once more, by the encoded key itself; from then on such a lookup
is two binary searches in each. Ticks pay nothing: what never changes is sorted on a thread beside
them, into a file that is mapped and has no name; of the newest layer new keys are only noted.
"""

import os
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from evertide.dataflow.lookup import Lookup, Span
from evertide.expr.columnar.batch import Batch, Entry, add_up, batch_of, concat_batches
from evertide.expr.columnar.column import Column, Ints, from_arrow, to_datums
from evertide.expr.columnar.key_bytes import key_bytes
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import one_chunk
from evertide.persist.coding.keys import row_key_encoder
from evertide.persist.threads import give_way
from evertide.spark.arrangements.arrangement import Arrangement
from evertide.spark.arrangements.layer import Layer
from evertide.spark.arrangements.levels import Source
from evertide.spark.arrangements.runs import Run
from evertide.vocab.datum import Row

# Keys of one length.
Alike: TypeAlias = "npt.NDArray[np.bytes_]"

# So few entries are sorted at once; more than that would hold ticks up.
SMALL_RECORDS: Final = 4_000
# So many entries are waited for, about two seconds, if the rows can be had elsewhere.
PATIENT_RECORDS: Final = 2_000_000
# So few spans are searched for one by one.
_FEW_SPANS: Final = 4
# So few new keys are put in their places one by one.
_FEW_KEYS: Final = 64
# After so many ticks without such a lookup the orders are let go.
IDLE_TICKS: Final = 20_000
# About a millisecond of work.
_PIECE_ROWS: Final = 1_000


class OrderPending(Exception):
    """What the lookup needs is being sorted on another thread: ask again after `done`."""

    def __init__(self, done: "Future[SortedKeys]") -> None:
        super().__init__("the index is being sorted")
        self.done = done


class LookupRefused(Exception):
    """Not answered by the index; the shards can be read instead."""


class SortedKeys:
    """The keys of a run or layer in order, and where each entry is."""

    def __init__(self, keys: pa.Array, places: Ints) -> None:
        self.places = places
        _, offsets, memory = keys.buffers()
        self._offsets = memoryview(offsets).cast("B").cast("q")[: len(keys) + 1]
        self._memory = memoryview(memory).cast("B")
        self._length = len(keys)
        # The same for numpy, where all keys are of one length.
        self._alike: Alike | None = None
        width = self._offsets[1]
        if width and (np.diff(np.frombuffer(self._offsets, np.int64)) == width).all():
            self._alike = np.frombuffer(self._memory, f"S{width}", len(keys))

    def between(self, spans: Sequence[Span]) -> list[range]:
        """Which of the keys are in each of the spans."""
        if self._alike is not None and len(spans) > _FEW_SPANS:
            bounds = [bound for span in spans for bound in span]
            firsts = _search(self._alike, bounds).tolist()
            return [range(*pair) for pair in zip(firsts[::2], firsts[1::2], strict=True)]
        starts = [self._first_from(span.lower, 0) for span in spans]
        return [
            range(start, self._first_from(span.upper, start))
            for start, span in zip(starts, spans, strict=True)
        ]

    def _first_from(self, key: bytes, low: int) -> int:
        offsets, memory, high = self._offsets, self._memory, self._length
        while low < high:
            middle = (low + high) // 2
            if bytes(memory[offsets[middle] : offsets[middle + 1]]) < key:
                low = middle + 1
            else:
                high = middle
        return low


def _search(keys: Alike, bounds: Sequence[bytes]) -> Ints:
    """Where the first key not before each bound is. Shorter bounds are as if zeros followed; what
    is longer than a key comes after the key that it begins with."""
    width = keys.dtype.itemsize
    needles = np.array([bound[:width] for bound in bounds], keys.dtype)
    longer = np.array([len(bound) > width for bound in bounds])
    return np.where(longer, keys.searchsorted(needles, "right"), keys.searchsorted(needles))


class LayerKeys:
    """The keys of a layer that may still grow, in order."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer
        self._ordered = sorted(layer.groups)
        self._fresh: set[bytes] = set()

    def note(self, keys: Iterable[bytes]) -> None:
        """These may be new. Cheap: they are put in order when somebody looks."""
        self._fresh.update(keys)

    def between(self, span: Span) -> Iterator[Entry]:
        """The entries of the keys in the span; keys that have gone are still in the list."""
        if self._fresh:
            self._put_in_order()
        ordered, groups = self._ordered, self._layer.groups
        for place in range(bisect_left(ordered, span.lower), bisect_left(ordered, span.upper)):
            yield from groups.get(ordered[place], ())

    def _put_in_order(self) -> None:
        fresh, self._fresh = self._fresh, set()
        if len(fresh) > _FEW_KEYS:
            self._ordered = sorted(fresh.union(self._ordered))
            return
        for key in fresh:
            place = bisect_left(self._ordered, key)
            if place == len(self._ordered) or self._ordered[place] != key:
                insort(self._ordered, key)


class KeyOrders:
    """The orders of one index's arrangement, from the first lookup on that needs them."""

    def __init__(self, rows: Arrangement, directory: Path) -> None:
        self._rows = rows
        self._directory = directory
        # None while nobody asks.
        self._thread: ThreadPoolExecutor | None = None
        self._sorted: dict[Source, Future[SortedKeys]] = {}
        self._layers: dict[Layer, LayerKeys] = {}
        self._idle_ticks = 0
        # The sources that were looked at last; tuples that are replaced, never changed.
        self._seen: tuple[object, object] = ((), ())

    def note(self, keys: Iterable[bytes]) -> None:
        """A tick is about to add entries of these keys to the newest layer."""
        layer = self._layers.get(self._rows.levels.layer)
        if layer is not None:
            layer.note(keys)

    def follow(self) -> None:
        """A tick is over: what a merge has made is sorted before somebody asks for it.

        If nobody has for long, everything is let go.
        """
        if self._thread is None:
            return
        self._idle_ticks += 1
        levels = self._rows.levels
        seen, self._seen = self._seen, (levels.frozen, levels.runs)
        if self._idle_ticks > IDLE_TICKS:
            self.close()
        elif seen[0] is not levels.frozen or seen[1] is not levels.runs:
            # Others come and go with the ticks: they are sorted for those who ask.
            lasting = [s for s in levels.hashed if isinstance(s, Run) or s in self._sorted]
            self._prepare(self._thread, lasting)

    def _prepare(self, thread: ThreadPoolExecutor, sources: Sequence[Source]) -> None:
        """Have sorted what is not, and forget what is no longer there."""
        known, layers = self._sorted, self._layers
        self._sorted = {s: known.get(s) or self._sort(s, thread) for s in sources}
        keyed = self._rows.levels.keyed
        self._layers = {layer: layers.get(layer) or LayerKeys(layer) for layer in keyed}

    def _sort(self, source: Source, thread: ThreadPoolExecutor) -> "Future[SortedKeys]":
        if _is_large(source):
            return thread.submit(sort_keys, source, self._rows.key, self._directory)
        done: Future[SortedKeys] = Future()
        done.set_result(sort_keys(source, self._rows.key, None))
        return done

    def find(self, lookup: Lookup) -> Batch:
        """All entries with a key that is wanted; raises OrderPending or LookupRefused."""
        self._idle_ticks = 0
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="key-order")
        self._prepare(self._thread, self._rows.levels.hashed)
        self._check_ready(lookup)
        try:
            orders = {source: future.result() for source, future in self._sorted.items()}
        except OSError as error:
            self._sorted = {}  # the next lookup tries again
            raise LookupRefused(f"the index cannot be sorted: {error}") from error
        return self._found(lookup, orders)

    def _check_ready(self, lookup: Lookup) -> None:
        """Short work is waited for; where there is another way, long work is not."""
        waiting = {s: future for s, future in self._sorted.items() if not future.done()}
        if lookup.most is not None and sum(map(_records, waiting)) > PATIENT_RECORDS:
            raise LookupRefused("the index is being sorted")
        for future in waiting.values():
            raise OrderPending(future)

    def _found(self, lookup: Lookup, orders: Mapping[Source, SortedKeys]) -> Batch:
        spans, types = lookup.spans, self._rows.types
        ranges = {source: order.between(spans) for source, order in orders.items()}
        entries = [
            e for keys in self._layers.values() for span in spans for e in keys.between(span)
        ]
        total = len(entries) + sum(len(part) for parts in ranges.values() for part in parts)
        if lookup.most is not None and total > lookup.most:
            raise LookupRefused(f"the lookup would find {total} entries")
        batches = [
            source.at(_places(orders[source], parts))
            for source, parts in ranges.items()
            if any(map(len, parts))
        ]
        return concat_batches(types, [*batches, batch_of(types, entries)])

    def close(self) -> None:
        """Let everything go; what the thread has not begun is left."""
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None
        self._sorted, self._layers = {}, {}


def at(found: Batch, as_of: int) -> list[tuple[Row, int]]:
    """What entries add up to at a timestamp."""
    then = found.take(found.times <= as_of)
    whole = add_up(then.at(np.full(len(then), as_of, np.int64)))
    return list(zip(whole.rows(), whole.diffs.tolist(), strict=True))


def sort_keys(source: Source, key: Sequence[int], directory: Path | None) -> SortedKeys:
    """Sort the keys of a run or layer; into a file there, if given, that is only mapped."""
    types = tuple(source.types[i] for i in key)
    keys = _encoded(types, [_column(source, i) for i in key], _records(source))
    order = pc.sort_indices(keys)
    table = pa.table({"k": keys.take(order), "p": order.cast(pa.int64())})
    if directory is not None:
        table = _mapped(table, directory)
    keys, places = (one_chunk(table.column(name)) for name in ("k", "p"))
    return SortedKeys(keys, places.to_numpy())


def _mapped(table: pa.Table, directory: Path) -> pa.Table:
    """The same in a file without a name: its room is free again when nobody looks at it."""
    path = directory / f"order-{os.getpid()}-{id(table)}.arrow"
    try:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        with pa.memory_map(str(path)) as mapped:
            return pa.ipc.open_file(mapped).read_all()
    finally:
        path.unlink(missing_ok=True)


def _records(source: Source) -> int:
    return source.length if isinstance(source, Run) else source.records


def _is_large(source: Source) -> bool:
    return _records(source) > SMALL_RECORDS


def _column(source: Source, number: int) -> Column:
    if isinstance(source, Run):
        return from_arrow(source.types[number], source.table.column(f"c{number}").chunk(0))
    return source.batch.columns[number]


def _encoded(types: Types, columns: Sequence[Column], length: int) -> pa.Array:
    """The keys of all entries: by columns, or row by row where a type has no such way."""
    found = key_bytes(types, columns, length)
    if found is not None:
        offsets = np.append(found.starts, len(found.memory))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(found.memory)]
        return pa.Array.from_buffers(pa.large_binary(), length, buffers)
    encode = row_key_encoder(types)
    keys: list[bytes] = []
    for start in range(0, length, _PIECE_ROWS):
        piece = np.arange(start, min(start + _PIECE_ROWS, length))
        datums = [to_datums(t, c.take(piece)) for t, c in zip(types, columns, strict=True)]
        keys += map(encode, zip(*datums, strict=True))
        give_way()
    return pa.array(keys, pa.large_binary())


def _places(order: SortedKeys, ranges: Sequence[range]) -> Ints:
    return np.concatenate([order.places[r.start : r.stop] for r in ranges])
