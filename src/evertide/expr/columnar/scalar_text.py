"""Kernels of text functions, LIKE among them.

Arrow's own upper and lower case differ from Python's in places, so only ASCII is left to it.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evertide.expr.columnar.column import Numbers, Others
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    ArrowKernel,
    Build,
    Part,
    Parts,
    arrow_map,
    arrow_operands,
    as_ints,
    from_bools,
)
from evertide.expr.columnar.scalar_like import Test, like_test
from evertide.expr.columnar.scalar_numeric import literal_integer
from evertide.expr.functions.build import Types
from evertide.expr.functions.type_groups import BPCHAR
from evertide.expr.scalar import Literal, Scalar
from evertide.vocab.sql_type import INT4, INT8, TEXT

_LONGEST: Final = 2**31 - 1  # no text has more characters


def _array(part: Part) -> pa.Array:
    (array,) = arrow_operands((part,))
    return array


def _literal_text(scalar: Scalar) -> str | None:
    if isinstance(scalar, Literal) and isinstance(scalar.value, str):
        return scalar.value
    return None


def _is_ascii(text: pa.Array) -> bool:
    offsets = np.frombuffer(text.buffers()[1], np.int32)
    start, end = int(offsets[text.offset]), int(offsets[text.offset + len(text)])
    if start == end:
        return True
    return bool(np.frombuffer(text.buffers()[2], np.uint8)[start:end].max() < 128)


def _case_changed(of_ascii: ArrowKernel, of_any: Callable[[str], str]) -> ArrowKernel:
    def kernel(text: pa.Array) -> pa.Array:
        if _is_ascii(text):
            return of_ascii(text)
        changed = [None if value is None else of_any(value) for value in text.to_pylist()]
        return pa.array(changed, pa.string())

    return kernel


lowered: Final = _case_changed(pc.ascii_lower, str.lower)
_uppered: Final = _case_changed(pc.ascii_upper, str.upper)


def _counted(kernel: ArrowKernel, factor: int = 1) -> Build:
    def apply(parts: Parts) -> Numbers:
        values, nulls = as_ints(kernel(_array(parts[0])))
        return Numbers(values * factor if factor != 1 else values, nulls)

    return lambda _arguments: apply


def _slice(start: int, stop: int | None) -> Apply:
    """Characters from a place, counted from 0 or, if negative, from the end, up to another."""
    return lambda parts: Others(pc.utf8_slice_codeunits(_array(parts[0]), start, stop))


def _substring(arguments: Sequence[Scalar]) -> Apply | None:
    """A start before the text counts, so that the part may be shorter."""
    numbers = [literal_integer(argument) for argument in arguments[1:]]
    start = numbers[0]
    if start is None:
        return None
    first = min(max(start - 1, 0), _LONGEST)
    if len(numbers) == 1:
        return _slice(first, _LONGEST)
    length = numbers[1]
    if length is None or length < 0:
        return None
    return _slice(first, max(min(max(start - 1 + length, 0), _LONGEST), first))


def _left(arguments: Sequence[Scalar]) -> Apply | None:
    count = literal_integer(arguments[1])
    return None if count is None else _slice(0, count)


def _right(arguments: Sequence[Scalar]) -> Apply | None:
    count = literal_integer(arguments[1])
    if count is None or count == 0 or count == -(2**31):
        return None
    return _slice(-count, _LONGEST)


def _trim(kernel: ArrowKernel) -> Build:
    def build(arguments: Sequence[Scalar]) -> Apply | None:
        characters = " " if len(arguments) == 1 else _literal_text(arguments[1])
        if not characters:
            return None
        return lambda parts: Others(kernel(_array(parts[0]), characters))

    return build


def _starts_with(arguments: Sequence[Scalar]) -> Apply | None:
    start = _literal_text(arguments[1])
    if start is None:
        return None
    return lambda parts: from_bools(pc.starts_with(_array(parts[0]), start))


def _concatenate(*texts: pa.Array | pa.Scalar) -> pa.Array:
    return pc.binary_join_element_wise(*texts, "")


def _concatenate_present(*texts: pa.Array | pa.Scalar) -> pa.Array:
    """concat passes over NULLs."""
    return pc.binary_join_element_wise(*texts, "", null_handling="replace", null_replacement="")


def _like(*, ignoring_case: bool = False, negated: bool = False) -> Build:
    def build(arguments: Sequence[Scalar]) -> Apply | None:
        pattern = _literal_text(arguments[1])
        test = None if pattern is None else _test(pattern, ignoring_case)
        if test is None:
            return None

        def apply(parts: Parts) -> Numbers:
            found = test(_array(parts[0]))
            return from_bools(pc.invert(found) if negated else found)

        return apply

    return build


def _test(pattern: str, ignoring_case: bool) -> Test | None:
    if not ignoring_case:
        return like_test(pattern)
    test = like_test(pattern.lower())
    return None if test is None else (lambda text: test(lowered(text)))


_LIKES: Final = {
    "~~": _like(),
    "!~~": _like(negated=True),
    "~~*": _like(ignoring_case=True),
    "!~~*": _like(ignoring_case=True, negated=True),
}
_TRIMS: Final[dict[str, ArrowKernel]] = {
    "btrim": pc.utf8_trim, "trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim,
}  # fmt: skip

KERNELS: Final[dict[tuple[str, Types], Build]] = {
    **{
        (name, (TEXT,)): _counted(pc.utf8_length)
        for name in ("length", "char_length", "character_length")
    },
    ("octet_length", (TEXT,)): _counted(pc.binary_length),
    ("octet_length", (BPCHAR,)): _counted(pc.binary_length),
    ("bit_length", (TEXT,)): _counted(pc.binary_length, 8),
    ("lower", (TEXT,)): arrow_map(lowered),
    ("upper", (TEXT,)): arrow_map(_uppered),
    ("reverse", (TEXT,)): arrow_map(pc.utf8_reverse),
    ("||", (TEXT, TEXT)): arrow_map(_concatenate),
    ("concat", (TEXT,)): arrow_map(_concatenate_present),
    **{(name, (TEXT, INT8)): _substring for name in ("substr", "substring")},
    **{(name, (TEXT, INT8, INT8)): _substring for name in ("substr", "substring")},
    ("left", (TEXT, INT4)): _left,
    ("right", (TEXT, INT4)): _right,
    **{(name, (TEXT,)): _trim(kernel) for name, kernel in _TRIMS.items()},
    **{(name, (TEXT, TEXT)): _trim(kernel) for name, kernel in _TRIMS.items()},
    ("starts_with", (TEXT, TEXT)): _starts_with,
    ("^@", (TEXT, TEXT)): _starts_with,
    **{(name, (TEXT, TEXT)): build for name, build in _LIKES.items()},
    **{(name, (BPCHAR, TEXT)): build for name, build in _LIKES.items()},
}
