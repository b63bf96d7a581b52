"""Kernels of = <> < <= > >= and what is made of them."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.column import Ints, Mask, Numbers, Others, Values, is_number
from evertide.expr.columnar.numeric_columns import Scaled
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    Part,
    Parts,
    arrow_operands,
    arrow_test,
    as_ints,
    either_null,
    from_bools,
    masked,
    null_mask,
    total_over_numbers,
)
from evertide.expr.columnar.scalar_numeric import at_one_scale
from evertide.expr.functions.build import Types
from evertide.expr.functions.comparison import IN_COLUMNS
from evertide.expr.functions.type_groups import BPCHAR, FLOATS
from evertide.expr.scalar import Scalar
from evertide.vocab.datum import MICROS_PER_DAY
from evertide.vocab.sql_type import FLOAT4, FLOAT8, INTERVAL, JSONB, NUMERIC, SqlType

Compare: TypeAlias = Callable[[Values, Values], Mask]

_NUMBERS: Final[dict[str, Compare]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_ARROW: Final = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _of_floats(name: str) -> Compare:
    """NaN equals itself and is greater than all else."""
    compare = _NUMBERS[name]

    def test(left: Values, right: Values) -> Mask:
        result = compare(left, right)
        left_nan, right_nan = np.isnan(left), np.isnan(right)
        odd = left_nan | right_nan
        # Where one is NaN, what decides is which.
        return np.where(odd, compare(left_nan, right_nan), result) if odd.any() else result

    return test


def _unpadded(name: str) -> Callable[..., pa.Array]:
    compare = _ARROW[name]
    return lambda left, right: compare(trimmed(left), trimmed(right))


def trimmed(padded: pa.Array | pa.Scalar) -> pa.Array | pa.Scalar:
    """char(n) without its blanks."""
    return pc.ascii_rtrim(padded, characters=" ")


def _of_numerics(name: str) -> Build:
    """By their bytes, which sort as the numbers do, or by the integers they are computed as."""
    by_bytes, by_integers = _ARROW[name], _NUMBERS[name]

    def apply(parts: Parts) -> Numbers:
        if any(isinstance(part, Scaled) and part.encoding is None for part in parts):
            left, right, _ = at_one_scale(parts)
            return masked(by_integers(left, right), either_null(parts))
        return from_bools(by_bytes(*arrow_operands(parts)))

    return lambda _arguments: apply


def _of_intervals(name: str) -> Build:
    """By their length: days of 24 hours first, then what is left of a day."""
    compare = _NUMBERS[name]
    longer = np.less if name.startswith("<") else np.greater

    def apply(parts: Parts) -> Numbers:
        (left_days, left_micros), (right_days, right_micros) = map(_span, parts)
        same_days = left_days == right_days
        if name in ("=", "<>"):
            found = same_days & (left_micros == right_micros)
            return masked(found if name == "=" else ~found, either_null(parts))
        found = longer(left_days, right_days) | (same_days & compare(left_micros, right_micros))
        return masked(found, either_null(parts))

    return lambda _arguments: apply


def _span(part: Part) -> tuple[Ints, Ints]:
    """Days and, less than a day, microseconds."""
    assert isinstance(part, Others)
    months, days, micros = (
        as_ints(part.array.field(name))[0] for name in ("months", "days", "micros")
    )
    return months * 30 + days + micros // MICROS_PER_DAY, micros % MICROS_PER_DAY


def _distinct(equal: Build) -> Build:
    """IS DISTINCT FROM: NULL is a value like any other, equal to itself."""

    def build(arguments: Sequence[Scalar]) -> Apply | None:
        compare = equal(arguments)
        assert compare is not None, "comparisons do not ask for literals"

        def apply(parts: Parts) -> Numbers:
            found = compare(parts)
            assert isinstance(found, Numbers)
            if found.nulls is None:
                return Numbers(~found.values)
            left, right = (null_mask(part) for part in parts)
            no = np.zeros(1, np.bool_)
            left, right = no if left is None else left, no if right is None else right
            return Numbers(np.where(found.nulls, left != right, ~found.values))

        return apply

    return build


def _build(sql_type: SqlType, name: str) -> Build | None:
    if sql_type in FLOATS:
        return total_over_numbers(_of_floats(name))
    if sql_type == INTERVAL:
        return _of_intervals(name)
    if sql_type == JSONB and name not in ("=", "<>"):
        return None
    if sql_type == NUMERIC:
        return _of_numerics(name)
    if is_number(sql_type):
        return total_over_numbers(_NUMBERS[name])
    if sql_type == BPCHAR:
        return arrow_test(_unpadded(name))
    # UTF-8 sorts as its characters do.
    return arrow_test(_ARROW[name])


def _kernels() -> dict[tuple[str, Types], Build]:
    found = {
        (name, (sql_type, sql_type)): _build(sql_type, name)
        for sql_type in IN_COLUMNS
        for name in _NUMBERS
    }
    for both in ((FLOAT4, FLOAT8), (FLOAT8, FLOAT4)):
        found |= {(name, both): total_over_numbers(_of_floats(name)) for name in _NUMBERS}
    built: dict[tuple[str, Types], Build] = {
        key: build for key, build in found.items() if build is not None
    }
    for sql_type in IN_COLUMNS:
        both = (sql_type, sql_type)
        built["is_distinct_from", both] = _distinct(built["=", both])
    return built


KERNELS: Final = _kernels()
