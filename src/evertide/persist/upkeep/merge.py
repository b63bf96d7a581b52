"""Making one of many: times raised to since, diffs of equal updates added up.

All of it runs in threads beside the event loop. Large merges go by columns, in Arrow, which leaves
the interpreter to the loop; what must be done in Python is done in small steps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.coding.batch import UpdateBatch, concat_batches, from_payload
from evertide.persist.coding.encoding import update_schema
from evertide.persist.coding.inline import decode_inline
from evertide.persist.coding.parts import decode_part, encode_part, table_to_columns
from evertide.persist.coding.updates import UpdateColumns, consolidate_columns
from evertide.persist.state import BlobPart, InlinePart, Part
from evertide.persist.threads import give_way
from evertide.persist.upkeep.row_hash import Hashes, row_hashes
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

# Up to this many updates, Python is faster than setting up columns.
_FEW_UPDATES: Final = 1_000
# A merged batch up to this size stays in the state.
MERGED_INLINE_BYTES: Final = 16 * 1024
_STEP_ROWS: Final = 1_000
_STEP_PARTS: Final = 100
_OWN_COLUMNS: Final = ("t", "d")

_to_bytes = msgspec.msgpack.Encoder().encode
_from_bytes = msgspec.msgpack.Decoder().decode


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """The bytes of a Parquet part that is still to be stored."""

    value: bytes
    rows: int
    decoded_bytes: int

    @classmethod
    def of(cls, table: pa.Table) -> "EncodedPart":
        """Of updates in encoding.update_schema."""
        return cls(encode_part(table), table.num_rows, table.nbytes)


@dataclass(frozen=True, slots=True)
class MergedPart:
    """One part's updates; how many of them take a row away."""

    part: InlinePart | EncodedPart
    retractions: int


def merge_few(
    desc: RelationDesc, parts: Sequence[tuple[Part, bytes]], since: Timestamp
) -> MergedPart | None:
    """One part with the sum of all; None if nothing is left. Each comes with its bytes."""
    if sum(part.rows for part, _ in parts) > _FEW_UPDATES:
        return merged_part(desc, add_up(_key_tables(desc, parts), since))
    updates = chain.from_iterable(_columns(desc, part, value).each() for part, value in parts)
    few = consolidate_columns(desc.types, updates, since)
    return _few_left(UpdateBatch(desc, columns=few))


def _key_tables(desc: RelationDesc, parts: Sequence[tuple[Part, bytes]]) -> list[pa.Table]:
    inline = [part for part, _ in parts if isinstance(part, InlinePart)]
    stored = [(part, value) for part, value in parts if isinstance(part, BlobPart)]
    return [inline_keys(desc, inline), *(part_keys(desc, part, value) for part, value in stored)]


def merge_tables(desc: RelationDesc, tables: Sequence[pa.Table], since: Timestamp) -> pa.Table:
    """One table with times raised to since, diffs of equal updates added up, ordered by time."""
    return from_keys(add_up([to_keys(table) for table in tables], since), update_schema(desc))


def part_keys(desc: RelationDesc, part: BlobPart, value: bytes) -> pa.Table:
    """A part's updates in columns whose equality in Arrow is sameness of representation."""
    return to_keys(decode_part(desc, part, value))


def inline_keys(desc: RelationDesc, parts: Sequence[InlinePart]) -> pa.Table:
    """The same for all parts that lie in the state."""
    batches: list[UpdateBatch] = []
    for number, part in enumerate(parts):
        batches.append(from_payload(desc, part.payload))
        if number % _STEP_PARTS == 0:
            give_way()
    return to_keys(concat_batches(desc, batches).table)


def hashes_of(keys: pa.Table) -> Hashes:
    """The hash of each update's row."""
    return row_hashes(keys.drop_columns(list(_OWN_COLUMNS)))


def split_rows(
    keys: pa.Table, hashes: Hashes, *, residue: int, steps: int, buckets: int
) -> list[pa.Table]:
    """Those rows whose hash is `residue` modulo `steps`, by their buckets.

    The first table is of bucket `residue`, the next ones of every `steps`th bucket after it.
    """
    places = hashes & np.uint64(buckets - 1)
    wanted = np.flatnonzero(places & np.uint64(steps - 1) == residue)
    groups = (places[wanted] // np.uint64(steps)).astype(np.uint16)
    sorted_keys = keys.take(pa.array(wanted[np.argsort(groups, kind="stable")]))
    counts = np.bincount(groups, minlength=buckets // steps).tolist()
    starts = np.cumsum([0, *counts]).tolist()
    return [sorted_keys.slice(start, n) for start, n in zip(starts, counts, strict=False)]


def add_up(tables: list[pa.Table], since: Timestamp) -> pa.Table:
    """Times raised to since, diffs of equal updates added up, ordered by time.

    Empties the list, so that what went into the sum need not stay in memory beside it.
    """
    keys = pa.concat_tables(tables)
    tables.clear()
    names = keys.column_names
    raised = pc.max_element_wise(keys["t"], pa.scalar(since, pa.int64()))
    keys = keys.set_column(names.index("t"), "t", raised)
    sums = keys.group_by([name for name in names if name != "d"], use_threads=False)
    del keys
    summed = sums.aggregate([("d", "sum")]).rename_columns({"d_sum": "d"})
    del sums
    nothing = pc.equal(summed["d"], 0)
    if pc.any(nothing).as_py():
        summed = summed.filter(pc.invert(nothing))
    return summed.sort_by("t").select(names)


def merged_part(desc: RelationDesc, keys: pa.Table, *, inline: bool = True) -> MergedPart | None:
    """What is to be kept of added up updates, in the state if that may be and they are few."""
    if not keys.num_rows:
        return None
    table = from_keys(keys, update_schema(desc))
    if inline and table.num_rows <= _FEW_UPDATES:
        return _few_left(UpdateBatch(desc, table=table))
    retractions = pc.sum(pc.less(table["d"], 0)).as_py()
    return MergedPart(EncodedPart.of(table), retractions)


def _few_left(few: UpdateBatch) -> MergedPart | None:
    if not len(few):
        return None
    diffs = few.table["d"].to_pylist() if few.columnar else few.columns.diffs
    retractions = sum(diff < 0 for diff in diffs)
    if len(few.payload) <= MERGED_INLINE_BYTES:
        return MergedPart(InlinePart(few.payload, len(few)), retractions)
    return MergedPart(EncodedPart.of(few.table), retractions)


def _columns(desc: RelationDesc, part: Part, value: bytes) -> UpdateColumns:
    if isinstance(part, BlobPart):
        return table_to_columns(desc, decode_part(desc, part, value))
    return decode_inline(desc, value)


def to_keys(table: pa.Table) -> pa.Table:
    """The same with columns that Arrow can group by, and tells apart as we do.

    Floats become their bits, because 0.0 and -0.0 differ here and NaN is itself; intervals become
    one column for each field, and lists become bytes, because neither can be grouped by.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_struct(field.type):
            columns.update(zip(_child_names(field), column.flatten(), strict=True))
        elif pa.types.is_floating(field.type):
            columns[field.name] = _reinterpret(column, _bits_type(field.type))
        elif pa.types.is_list(field.type):
            columns[field.name] = _lists_to_bytes(column)
        else:
            columns[field.name] = column
    return pa.table(columns)


def from_keys(keys: pa.Table, schema: pa.Schema) -> pa.Table:
    """Inverse of to_keys."""
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            children = [keys[name].combine_chunks() for name in _child_names(field)]
            # A range may lack bounds, but always says which of them are in it.
            missing = children[-1].is_null()
            columns.append(
                pa.StructArray.from_arrays(children, fields=list(field.type), mask=missing)
            )
        elif pa.types.is_floating(field.type):
            columns.append(_reinterpret(keys[field.name], field.type))
        elif pa.types.is_list(field.type):
            columns.append(_lists_from_bytes(keys[field.name], field.type))
        else:
            columns.append(keys[field.name])
    return pa.Table.from_arrays(columns, schema=schema)


def _child_names(field: pa.Field) -> list[str]:
    return [f"{field.name}.{child.name}" for child in field.type]


def _bits_type(float_type: pa.DataType) -> pa.DataType:
    return pa.int64() if float_type == pa.float64() else pa.int32()


def _reinterpret(column: pa.ChunkedArray, as_type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.view(as_type) for chunk in column.chunks], type=as_type)


def _lists_to_bytes(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return _each(column, _to_bytes, pa.binary())


def _lists_from_bytes(column: pa.ChunkedArray, list_type: pa.DataType) -> pa.ChunkedArray:
    return _each(column, _from_bytes, list_type)


def _each(
    column: pa.ChunkedArray, convert: Callable[[Any], object], as_type: pa.DataType
) -> pa.ChunkedArray:
    """Convert all but NULLs, in steps that give way."""
    converted: list[pa.Array] = []
    for start in range(0, len(column), _STEP_ROWS):
        values = column.slice(start, _STEP_ROWS).to_pylist()
        some = [None if value is None else convert(value) for value in values]
        converted.append(pa.array(some, type=as_type))
        give_way()
    return pa.chunked_array(converted, type=as_type)
