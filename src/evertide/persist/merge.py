"""Making one batch of many: times raised to since, diffs of equal updates added up.

All of it runs in a thread beside the event loop. Large merges go by columns, in Arrow, which leaves
the interpreter to the loop; what must be done in Python is done in small steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from evertide.persist.encoding import update_schema
from evertide.persist.inline import decode_inline, encode_inline
from evertide.persist.parts import (
    columns_to_table,
    decode_part,
    encode_part,
    table_to_columns,
)
from evertide.persist.state import BlobPart, InlinePart, Part
from evertide.persist.threads import give_way
from evertide.persist.updates import UpdateColumns, consolidate_columns
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.timestamp import Timestamp

# Up to this many updates, Python is faster than setting up columns.
_FEW_UPDATES: Final = 1_000
# A merged batch up to this size stays in the state.
MERGED_INLINE_BYTES: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """The bytes of a Parquet part that is still to be stored."""

    value: bytes
    rows: int


def merge_parts(
    desc: RelationDesc, parts: Sequence[tuple[Part, bytes]], since: Timestamp
) -> InlinePart | EncodedPart | None:
    """One part with the sum of all; None if nothing is left. Each comes with its bytes."""
    if sum(part.rows for part, _ in parts) <= _FEW_UPDATES:
        updates = chain.from_iterable(_columns(desc, p, value).each() for p, value in parts)
        few = consolidate_columns(desc.types, updates, since)
        payload = encode_inline(few.each())
        if not len(few):
            return None
        if len(payload) <= MERGED_INLINE_BYTES:
            return InlinePart(payload, len(few))
        return EncodedPart(encode_part(columns_to_table(desc, few)), len(few))
    merged = merge_tables(desc, _tables(desc, parts), since)
    return EncodedPart(encode_part(merged), merged.num_rows) if merged.num_rows else None


def merge_tables(desc: RelationDesc, tables: Sequence[pa.Table], since: Timestamp) -> pa.Table:
    """One table with times raised to since, diffs of equal updates added up, ordered by time."""
    table = pa.concat_tables(tables)
    if any(pa.types.is_list(field.type) for field in table.schema):
        updates = consolidate_columns(desc.types, table_to_columns(desc, table).each(), since)
        return columns_to_table(desc, updates)
    raised = pc.max_element_wise(table["t"], pa.scalar(since, pa.int64()))
    table = table.set_column(table.schema.get_field_index("t"), "t", raised)
    keys = _key_table(table)
    sums = keys.group_by([name for name in keys.column_names if name != "d"], use_threads=False)
    summed = sums.aggregate([("d", "sum")]).rename_columns({"d_sum": "d"})
    left = summed.filter(pc.not_equal(summed["d"], 0)).sort_by("t")
    return _from_key_table(left, update_schema(desc))


def _columns(desc: RelationDesc, part: Part, value: bytes) -> UpdateColumns:
    if isinstance(part, BlobPart):
        return table_to_columns(desc, decode_part(desc, part, value))
    return decode_inline(desc, value)


def _tables(desc: RelationDesc, parts: Sequence[tuple[Part, bytes]]) -> list[pa.Table]:
    tables: list[pa.Table] = []
    for part, value in parts:
        if isinstance(part, BlobPart):
            tables.append(decode_part(desc, part, value))
        else:
            tables.append(columns_to_table(desc, decode_inline(desc, value)))
            give_way()
    return tables


def _key_table(table: pa.Table) -> pa.Table:
    """The same with columns whose equality in Arrow is sameness of representation.

    Floats become their bits, because 0.0 and -0.0 differ here and NaN is itself; intervals become
    one column for each field, because structs cannot be grouped by.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_struct(field.type):
            columns.update(zip(_child_names(field), column.flatten(), strict=True))
        elif pa.types.is_floating(field.type):
            columns[field.name] = _reinterpret(column, _bits_type(field.type))
        else:
            columns[field.name] = column
    return pa.table(columns)


def _from_key_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Inverse of _key_table."""
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in schema:
        if pa.types.is_struct(field.type):
            children = [table[name].combine_chunks() for name in _child_names(field)]
            missing = children[0].is_null()
            columns.append(
                pa.StructArray.from_arrays(children, fields=list(field.type), mask=missing)
            )
        elif pa.types.is_floating(field.type):
            columns.append(_reinterpret(table[field.name], field.type))
        else:
            columns.append(table[field.name])
    return pa.Table.from_arrays(columns, schema=schema)


def _child_names(field: pa.Field) -> list[str]:
    return [f"{field.name}.{child.name}" for child in field.type]


def _bits_type(float_type: pa.DataType) -> pa.DataType:
    return pa.int64() if float_type == pa.float64() else pa.int32()


def _reinterpret(column: pa.ChunkedArray, as_type: pa.DataType) -> pa.ChunkedArray:
    return pa.chunked_array([chunk.view(as_type) for chunk in column.chunks], type=as_type)
