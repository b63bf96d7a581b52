"""Kernels of casts that are not of numerics, and of functions of booleans."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.column import Ints, Mask, Numbers, Others, Values
from evertide.expr.columnar.scalar_comparison import trimmed
from evertide.expr.columnar.scalar_float import single
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    Part,
    Parts,
    arrow_map,
    arrow_operands,
    as_ints,
    number_values,
    over_numbers,
    refuse,
    refuse_outside,
    relabel,
    total_over_numbers,
)
from evertide.expr.columnar.scalar_numeric import literal_integer
from evertide.expr.functions.build import Types
from evertide.expr.functions.type_groups import (
    BPCHAR,
    CHAR,
    FLOATS,
    INTEGERS,
    RANGES,
    REGISTERED,
    SCALARS,
    UINT8,
    VARCHAR,
)
from evertide.expr.scalar import Literal, Scalar
from evertide.expr.type_modifier import MAX_LENGTH
from evertide.vocab.sql_type import (
    BOOL,
    FLOAT4,
    FLOAT8,
    INT4,
    INT8,
    MZ_TIMESTAMP,
    NAME,
    OID,
    TEXT,
    SqlType,
)

_INTEGERS: Final = tuple(sql_type for sql_type in INTEGERS if sql_type != UINT8)
_TEXTS: Final = (TEXT, VARCHAR, BPCHAR)


def _into(target: SqlType) -> Build:
    least, greatest = RANGES[target]

    def kernel(values: Ints, nulls: Mask | None) -> Ints:
        refuse_outside(values, least, greatest, nulls)
        return values

    return over_numbers(kernel)


def _float_to_integer(target: SqlType) -> Build:
    """Rounded half to even. The bounds are doubles, but for the greatest bigint."""
    least, greatest = RANGES[target]

    def kernel(values: Values, nulls: Mask | None) -> Ints:
        rounded = np.rint(values)
        fits = (rounded >= float(least)) & (rounded < float(greatest + 1))
        refuse(~fits, nulls)
        return np.where(fits, rounded, 0).astype(np.int64)

    return over_numbers(kernel)


def _integer_to_single(values: Ints) -> Values:
    """Rounded once, from the integer."""
    return values.astype(np.float32).astype(np.float64)


def _to_double(values: Values) -> Values:
    return values.astype(np.float64)


def _to_integer(values: Mask) -> Ints:
    return values.astype(np.int64)


def _is_set(values: Ints) -> Mask:
    return np.not_equal(values, 0)


def _to_text(_arguments: Sequence[Scalar]) -> Apply:
    """Integers in digits, booleans in words."""

    def apply(parts: Parts) -> Others:
        part = parts[0]
        values = number_values(part)
        return Others(pa.array(values, mask=_nulls(part)).cast(pa.string()))

    return apply


def _nulls(part: Part) -> Mask | None:
    assert isinstance(part, Numbers)
    return part.nulls


def _oid_to_int4(values: Ints) -> Ints:
    return np.where(values >= 2**31, values - 2**32, values)


def _fit_text(arguments: Sequence[Scalar]) -> Apply | None:
    """varchar(n): a cast that the user wrote cuts; another one may cut blanks only, by rows."""
    length = literal_integer(arguments[1])
    explicit = arguments[2].value if isinstance(arguments[2], Literal) else None
    if length is None or explicit is None or not 1 <= length <= MAX_LENGTH:
        return None

    def apply(parts: Parts) -> Part:
        (text,) = arrow_operands(parts[:1])
        lengths, nulls = as_ints(pc.utf8_length(text))
        if lengths.max() <= length:
            return parts[0]
        if not explicit:
            refuse(lengths > length, nulls)
        return Others(pc.utf8_slice_codeunits(text, 0, length))

    return apply


def _is(wanted: bool) -> Build:
    """IS TRUE and IS FALSE, which are never NULL."""

    def apply(parts: Parts) -> Numbers:
        part = parts[0]
        assert isinstance(part, Numbers)
        if wanted:
            return Numbers(part.values)  # false below NULLs
        return Numbers(~part.values if part.nulls is None else ~(part.values | part.nulls))

    return lambda _arguments: apply


def _numbers() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {}
    for source in _INTEGERS:
        for target in (*_INTEGERS, MZ_TIMESTAMP):
            if source != target:
                found[target.kind.value, (source,)] = _into(target)
        found["float8", (source,)] = total_over_numbers(_to_double)
        found["float4", (source,)] = total_over_numbers(_integer_to_single)
        found |= {(target.kind.value, (source,)): _to_text for target in _TEXTS}
    for source in FLOATS:
        for target in _INTEGERS:
            found[target.kind.value, (source,)] = _float_to_integer(target)
    return found | {
        ("float8", (FLOAT4,)): relabel,
        ("float4", (FLOAT8,)): over_numbers(single),
    }


def _booleans() -> dict[tuple[str, Types], Build]:
    return {
        ("bool", (INT4,)): total_over_numbers(_is_set),
        ("bool", (INT8,)): total_over_numbers(_is_set),
        ("int4", (BOOL,)): total_over_numbers(_to_integer),
        ("int8", (BOOL,)): total_over_numbers(_to_integer),
        ("not", (BOOL,)): total_over_numbers(np.logical_not),
        ("is_true", (BOOL,)): _is(True),
        ("is_false", (BOOL,)): _is(False),
        **{(target.kind.value, (BOOL,)): _to_text for target in _TEXTS},
    }


def _strings() -> dict[tuple[str, Types], Build]:
    same = (
        *((VARCHAR, target) for target in (TEXT, BPCHAR)),
        *((TEXT, target) for target in (VARCHAR, BPCHAR)),
        *((source, target) for source in (NAME, CHAR) for target in _TEXTS),
    )
    return {
        **{(target.kind.value, (source,)): relabel for source, target in same},
        ("text", (BPCHAR,)): arrow_map(trimmed),
        ("varchar", (BPCHAR,)): arrow_map(trimmed),
        ("bpcharout", (BPCHAR,)): relabel,
        ("varchar", (VARCHAR, INT4, BOOL)): _fit_text,
    }


def _oids() -> dict[tuple[str, Types], Build]:
    found: dict[tuple[str, Types], Build] = {}
    for target in (OID, *REGISTERED):
        found["int8", (target,)] = relabel
        found["int4", (target,)] = total_over_numbers(_oid_to_int4)
        found[target.kind.value, (INT8,)] = _into(OID)
    for registered in REGISTERED:
        found["oid", (registered,)] = found[registered.kind.value, (OID,)] = relabel
    return found


KERNELS: Final[dict[tuple[str, Types], Build]] = {
    **{(sql_type.kind.value, (sql_type,)): relabel for sql_type in SCALARS},
    **_numbers(),
    **_booleans(),
    **_strings(),
    **_oids(),
}
