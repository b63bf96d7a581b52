"""Python functions of aggregation: values split into summable parts, and sums put together again.

Spark adds up integers exactly and nothing else, so floats and numerics are cut into integers of
fixed weight. A value's parts carry a bucket, its order of magnitude; sums of one bucket add up
without loss, and Python adds up the buckets. NaN and the infinities have buckets of their own, in
which the first part counts them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache, partial
from typing import Final, TypeAlias, assert_never, cast

import msgspec
import numpy as np
import pyarrow as pa

from evertide.dataflow.delta_plan import ReduceNode
from evertide.expr.aggregate import evaluate_aggregate, finish_count, least_error
from evertide.expr.codec import plain_calls, read_calls
from evertide.expr.exact_sum import EXACT
from evertide.expr.functions.row import Accumulator
from evertide.expr.functions.table import by_signature
from evertide.expr.group_rows import consolidated
from evertide.expr.relation import AggregateCall, Types
from evertide.expr.row_key import least
from evertide.persist.coding.encoding import decode_column, encode_column, spark_type_name
from evertide.persist.coding.numeric import decode_numeric
from evertide.spark.accumulate import State, additive, is_additive
from evertide.spark.udf.register import digest
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import SqlError, encode_error
from evertide.vocab.sql_type import Kind

_NAN, _PLUS, _MINUS = -1_000_000, -1_000_001, -1_000_002
_SPECIAL: Final = {"NaN": _NAN, "Infinity": _PLUS, "-Infinity": _MINUS}

# Floats: 53 bits times 2**exponent; parts of 26 bits, shifted by what is left of the exponent.
_SCALE_BITS: Final = 1074
_FLOAT_BUCKET_BITS: Final = 32
_FLOAT_PART_BITS: Final = 26
# Numerics: 39 digits times 10**exponent; three parts of 15 digits and what is above.
_NUMERIC_BUCKET: Final = 9
_NUMERIC_PART: Final = 10**15
# uint8 is stored as a signed integer, this much less.
_UINT8_OFFSET: Final = 2**63

Part: TypeAlias = tuple[int | None, int, int, int]


@dataclass(frozen=True, slots=True)
class SplitFunction:
    """A float or numeric as a bucket b and three integers x, y, z, which add up exactly."""

    accumulator: Accumulator

    returns = "b int, x bigint, y bigint, z bigint"
    deterministic = False

    @property
    def name(self) -> str:
        return digest("split", self.accumulator.value.encode())

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        split = _split_floats if self.accumulator is Accumulator.SUM_FLOAT else _split_numerics
        parts = split(arrays[0])
        return pa.StructArray.from_arrays(list(parts), names=["b", "x", "y", "z"])


def _split_floats(array: pa.Array) -> Sequence[pa.Array]:
    values = np.asarray(array.cast(pa.float64()).fill_null(0.0))
    finite = np.isfinite(values)
    mantissas, exponents = np.frexp(np.where(finite, values, 0.0))
    # A subnormal's digits below 2**-1074 are zeros: shifting right loses nothing.
    digits = (mantissas * 2.0**53).astype(np.int64)
    shifts = exponents.astype(np.int64) - 53 + _SCALE_BITS
    digits = np.where(shifts < 0, digits >> np.minimum(-shifts, 62).clip(0), digits)
    shifts = shifts.clip(0)
    within = shifts % _FLOAT_BUCKET_BITS
    buckets = shifts // _FLOAT_BUCKET_BITS
    high = (digits >> _FLOAT_PART_BITS) << within
    low = (digits & ((1 << _FLOAT_PART_BITS) - 1)) << within
    special = np.where(np.isnan(values), _NAN, np.where(values > 0, _PLUS, _MINUS))
    buckets = np.where(finite, buckets, special)
    high, low = np.where(finite, high, 1), np.where(finite, low, 0)
    nulls = np.asarray(array.is_null())
    return (
        pa.array(buckets.astype(np.int32), mask=nulls),
        pa.array(high, mask=nulls),
        pa.array(low, mask=nulls),
        pa.array(np.zeros(len(values), np.int64), mask=nulls),
    )


def _split_numerics(array: pa.Array) -> Sequence[pa.Array]:
    parts = [None if value is None else _numeric_parts(value) for value in array.to_pylist()]
    types = (pa.int32(), pa.int64(), pa.int64(), pa.int64())
    return [
        pa.array([None if part is None else part[i] for part in parts], sql_type)
        for i, sql_type in enumerate(types)
    ]


def _numeric_parts(encoded: bytes) -> Part:
    value = decode_numeric(encoded)
    if not value.is_finite():
        return _SPECIAL[str(value)], 1, 0, 0
    sign, digits, exponent = value.as_tuple()
    bucket, shift = divmod(cast(int, exponent), _NUMERIC_BUCKET)
    whole = int("".join(map(str, digits))) * 10**shift
    if sign:
        whole = -whole
    rest, low = divmod(whole, _NUMERIC_PART)
    high, middle = divmod(rest, _NUMERIC_PART)
    return bucket, high, middle, low


def joined_state(call: AggregateCall, parts: Sequence[Part], count: int) -> State:
    """The accumulator of an additive aggregate whose argument's parts added up to these."""
    counts = {_NAN: 0, _PLUS: 0, _MINUS: 0}
    finite: list[Part] = []
    for part in parts:
        if part[0] in counts:
            counts[part[0]] += part[1]
        else:
            finite.append(part)
    specials = (counts[_NAN], counts[_PLUS], counts[_MINUS])
    match call.function.accumulator:
        case Accumulator.COUNT:
            return (count,)
        case Accumulator.SUM_INT:
            assert call.argument is not None, "a sum has an argument"
            offset = _UINT8_OFFSET if call.argument.type.kind is Kind.UINT8 else 0
            return (sum((x << 32) + y for _, x, y, _ in finite) + count * offset, count)
        case Accumulator.SUM_FLOAT:
            return (sum(map(_whole_float, finite)), count, *specials)
        case Accumulator.SUM_NUMERIC:
            total = Decimal(0)
            for part in finite:
                total = EXACT.add(total, _whole_numeric(part))
            return (total, count, *specials)
        case Accumulator.ROWS:
            raise AssertionError(f"{call.function} is not a sum")
        case _:
            assert_never(call.function.accumulator)


def _whole_float(part: Part) -> int:
    """A count of 2**-1074. A bucket without a number holds NULLs only."""
    bucket, x, y, _ = part
    return ((x << _FLOAT_PART_BITS) + y) << ((bucket or 0) * _FLOAT_BUCKET_BITS)


def _whole_numeric(part: Part) -> Decimal:
    bucket, x, y, z = part
    whole = Decimal((x * _NUMERIC_PART + y) * _NUMERIC_PART + z)
    return whole.scaleb((bucket or 0) * _NUMERIC_BUCKET, EXACT)


@dataclass(frozen=True, slots=True)
class FinishFunction:
    """The aggregates of a group from what Spark added up and collected.

    Takes the group's net rows; then, if keys may look different while equal, the list of those key
    columns' values; then one or two columns per aggregate, see `_finisher`. Gives e, the shown
    ambiguous keys k0, k1, ... and the results v0, v1, ...
    """

    calls: bytes
    # Positions and types of the keys to choose, and positions of the aggregates to finish.
    ambiguous: tuple[int, ...]
    key_types: Types
    finished: tuple[int, ...]

    deterministic = False

    @classmethod
    def of(
        cls, node: ReduceNode, ambiguous: tuple[int, ...], finished: tuple[int, ...]
    ) -> "FinishFunction":
        """The function of this node."""
        calls = msgspec.msgpack.encode(plain_calls([node.aggregates[i] for i in finished]))
        return cls(calls, ambiguous, tuple(node.keys[i].type for i in ambiguous), finished)

    @property
    def name(self) -> str:
        shape = repr((self.ambiguous, self.key_types, self.finished))
        return digest("finish", self.calls, shape.encode())

    @property
    def returns(self) -> str:
        chosen = zip(self.ambiguous, self.key_types, strict=True)
        keys = [f"k{i} {spark_type_name(sql_type)}" for i, sql_type in chosen]
        calls = zip(self.finished, _read_calls(self.calls), strict=True)
        values = [f"v{i} {spark_type_name(call.type)}" for i, call in calls]
        return ", ".join(["e string", *keys, *values])

    def __call__(self, *arrays: pa.Array) -> pa.Array:
        rows = cast("list[int]", arrays[0].to_pylist())
        given = list(arrays[1:])
        shown = _shown_keys(self.key_types, given.pop(0)) if self.ambiguous else []
        keys = [
            encode_column(sql_type, [row[i] for row in shown])
            for i, sql_type in enumerate(self.key_types)
        ]
        calls = _read_calls(self.calls)
        columns = [_finished(call, rows, given) for call in calls]
        results = [_result([column[i] for column in columns]) for i in range(len(rows))]
        values = [
            encode_column(call.type, [values[i] for _, values in results])
            for i, call in enumerate(calls)
        ]
        errors = pa.array([error for error, _ in results], pa.string())
        names = ["e", *(f"k{i}" for i in self.ambiguous), *(f"v{i}" for i in self.finished)]
        return pa.StructArray.from_arrays([errors, *keys, *values], names=names)


Outcome: TypeAlias = "Datum | SqlError"


def _result(found: Sequence[Outcome]) -> tuple[str | None, tuple[Datum, ...]]:
    """A group's row, or the least of its aggregates' errors."""
    failures = [outcome for outcome in found if isinstance(outcome, SqlError)]
    if failures:
        return encode_error(least_error(failures)), (None,) * len(found)
    return None, cast("tuple[Datum, ...]", tuple(found))


def _attempt(finish: Callable[[], Datum]) -> Outcome:
    try:
        return finish()
    except SqlError as error:
        return error


def _finished(call: AggregateCall, rows: list[int], given: list[pa.Array]) -> list[Outcome]:
    """One aggregate of every group, from the columns it takes off `given`.

    count: its count. Sums: a list of parts, and the count of values. Others: a list of values with
    their multiplicities.
    """
    if call.argument is None:
        return [_attempt(partial(finish_count, call.function, n)) for n in rows]
    if not needs_values(call):
        if call.function.accumulator is Accumulator.COUNT:
            counts = given.pop(0).to_pylist()
            return [_attempt(partial(finish_count, call.function, n)) for n in counts]
        lists, counts = part_lists(given.pop(0)), given.pop(0).to_pylist()
        finish = additive(call).finish
        states = [joined_state(call, p, n) for p, n in zip(lists, counts, strict=True)]
        return [_attempt(partial(finish, state)) for state in states]
    sql_type = call.argument.type
    outcomes: list[Outcome] = []
    for count, members in zip(rows, struct_lists((sql_type,), given.pop(0)), strict=True):
        weighted = [((row[0],), cast(int, row[-1])) for row in members]
        values = [(row[0], n) for row, n in consolidated(weighted, (sql_type,))]
        outcomes.append(_attempt(partial(evaluate_aggregate, call, count, values)))
    return outcomes


def needs_values(call: AggregateCall) -> bool:
    """Whether an aggregate looks at the group's values, not just at their sum."""
    return call.argument is not None and not is_additive(call)


def _shown_keys(types: Types, array: pa.Array) -> list[Row]:
    return [least(types, [row[:-1] for row in rows]) for rows in struct_lists(types, array)]


def part_lists(array: pa.Array) -> list[list[Part]]:
    return [
        [(part["b"], *(int(part[name] or 0) for name in ("x", "y", "z"))) for part in parts]
        for parts in array.to_pylist()
    ]


def struct_lists(types: Types, array: pa.Array) -> list[list[Row]]:
    """Lists of structs (f0, f1, ..., n): the fields decoded, n last."""
    flat = array.flatten()
    columns = [decode_column(t, flat.field(i)) for i, t in enumerate(types)]
    members = list(zip(*columns, flat.field(len(types)).to_pylist(), strict=True))
    lists, start = [], 0
    for length in array.value_lengths().to_pylist():
        lists.append(members[start : start + length])
        start += length
    return lists


@lru_cache(maxsize=256)
def _read_calls(encoded: bytes) -> tuple[AggregateCall, ...]:
    return read_calls(msgspec.msgpack.decode(encoded), by_signature)
