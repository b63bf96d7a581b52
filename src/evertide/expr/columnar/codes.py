"""Integers that stand for the values of a column, within one batch.

`identity_codes` are all equal exactly where two datums are the same; `order_codes` compare as SQL
orders values, and are equal where SQL finds them equal; `looks_codes` order what is equal but looks
different. Several arrays for one column are compared one after the other.
"""

from functools import lru_cache
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.column import Column, Ints, Mask, Numbers, Others, to_datums
from evertide.expr.row_key import is_ambiguous
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.sql_type import Kind, SqlType

_NAN_BITS: Final = 0x7FF8 << 48
# Kinds whose physical bytes are equal, and ordered, exactly as SQL finds the values.
_BY_BYTES: Final = frozenset(
    {
        Kind.TEXT, Kind.VARCHAR, Kind.NAME, Kind.CHAR, Kind.BYTEA, Kind.UUID, Kind.NUMERIC,
    }
)  # fmt: skip


@lru_cache(maxsize=4096)
def looks_are_known(sql_type: SqlType) -> bool:
    """Whether looks_codes can tell apart what is equal in this type and looks different."""
    return not is_ambiguous(sql_type) or sql_type.kind in (Kind.FLOAT4, Kind.FLOAT8)


def identity_codes(column: Column) -> list[Ints]:
    """All equal exactly where the datums are the same."""
    if isinstance(column, Others):
        return arrow_codes(column.array)
    nulls = [] if column.nulls is None else [column.nulls.astype(np.int64)]
    values = column.values
    if values.dtype == np.float64:
        values = np.where(np.isnan(values), _NAN_BITS, values.view(np.int64))
    return [*nulls, values.astype(np.int64, copy=False)]


def arrow_codes(array: pa.Array) -> list[Ints]:
    """identity_codes of a column in Arrow."""
    kind = array.type
    if pa.types.is_struct(kind):
        # Flattened fields are NULL wherever the whole is, whatever lies there: that depends on who
        # wrote the value.
        fields = array.flatten()
        return [_valid(array), *(code for field in fields for code in arrow_codes(field))]
    if pa.types.is_list(kind):
        return [_list_codes(array)]
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        indices = array.dictionary_encode().indices
        if indices.null_count:
            indices = indices.fill_null(-1)
        return [indices.to_numpy().astype(np.int64)]
    nulls = [_valid(array)] if array.null_count else []
    if nulls:
        array = pc.fill_null(array, False if pa.types.is_boolean(kind) else 0)
    values = array.to_numpy(zero_copy_only=False)
    if pa.types.is_floating(kind):
        # Bits, because 0.0 and -0.0 are different datums; all NaNs are one.
        wide = values.astype(np.float64)
        values = np.where(np.isnan(wide), _NAN_BITS, wide.view(np.int64))
    return [*nulls, values.astype(np.int64, copy=False)]


def _valid(array: pa.Array) -> Ints:
    valid: Ints = array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    return valid


def _list_codes(array: pa.Array) -> Ints:
    """Arrays are rare, and Arrow has no codes for them: their texts tell them apart."""
    known: dict[str, int] = {}
    texts = map(repr, array.to_pylist())
    return np.array([known.setdefault(text, len(known)) for text in texts], dtype=np.int64)


def equal_keys(sql_type: SqlType, left: Column, right: Column) -> Mask:
    """Where SQL's grouping finds the values equal: NULL equals NULL, NaN equals NaN."""
    if isinstance(left, Numbers) and isinstance(right, Numbers):
        return _equal_numbers(left, right)
    one, other = _key_array(sql_type, left), _key_array(sql_type, right)
    equal: Mask = np.asarray(pc.equal(one, other).fill_null(False).to_numpy(zero_copy_only=False))
    if one.null_count and other.null_count:
        equal = equal | (left.null_mask & right.null_mask)
    return equal


def _equal_numbers(left: Numbers, right: Numbers) -> Mask:
    equal: Mask = left.values == right.values
    if left.values.dtype == np.float64:
        equal = equal | (np.isnan(left.values) & np.isnan(right.values))
    if left.nulls is None and right.nulls is None:
        return equal
    nulls, others = left.null_mask, right.null_mask
    return (equal & ~nulls & ~others) | (nulls & others)


def order_codes(
    sql_type: SqlType, column: Column, *, descending: bool = False, nulls_first: bool = False
) -> list[Ints]:
    """The order of ORDER BY, the most significant first."""
    values = _ordered_values(sql_type, column)
    if descending:
        values = ~values
    nulls = column.null_mask
    if not nulls.any():
        return [values]
    return [(~nulls if nulls_first else nulls).astype(np.int64), np.where(nulls, 0, values)]


def _ordered_values(sql_type: SqlType, column: Column) -> Ints:
    if isinstance(column, Others):
        ranks = pc.rank(_key_array(sql_type, column), tiebreaker="dense")
        dense: Ints = ranks.to_numpy().astype(np.int64)
        return dense
    if column.values.dtype != np.float64:
        return column.values.astype(np.int64, copy=False)
    # -0.0 becomes 0.0; negatives turn round; NaN is the greatest.
    bits = (column.values + 0.0).view(np.int64)
    bits = np.where(np.isnan(column.values), _NAN_BITS, bits)
    return np.where(bits < 0, ~bits ^ np.int64(-(2**63)), bits)


def looks_codes(sql_type: SqlType, column: Column) -> list[Ints]:
    """Among equal values: 0.0 before -0.0. Only for types whose looks are known."""
    assert looks_are_known(sql_type), f"looks of {sql_type} are told apart by rows"
    if not is_ambiguous(sql_type):
        return []
    assert isinstance(column, Numbers), "floats are numbers"
    return [((column.values == 0) & np.signbit(column.values)).astype(np.int64)]


def _key_array(sql_type: SqlType, column: Column) -> pa.Array:
    """What can be compared by bytes: the column itself, or the keys of its values."""
    assert isinstance(column, Others), "numbers are compared as they are"
    if sql_type.kind in _BY_BYTES:
        return column.array
    encode = key_encoder(sql_type)
    datums = to_datums(sql_type, column)
    return pa.array([None if d is None else encode(d) for d in datums], pa.binary())
