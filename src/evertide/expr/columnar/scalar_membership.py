"""Whether a value is one of many constants: IN lists and = ANY (array)."""

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import numpy as np
import pyarrow.compute as pc

from evertide.expr.columnar.column import Mask, Numbers, Values, from_datums
from evertide.expr.columnar.scalar_comparison import trimmed
from evertide.expr.columnar.scalar_kernel import (
    Apply,
    Build,
    Part,
    Parts,
    arrow_operands,
    from_bools,
    masked,
    null_mask,
)
from evertide.expr.functions.build import Types
from evertide.expr.functions.comparison import IN_COLUMNS, ROWS
from evertide.expr.functions.type_groups import BPCHAR
from evertide.expr.scalar import Call, Literal, Scalar
from evertide.vocab.datum import Datum
from evertide.vocab.sql_type import INTERVAL, SqlType, array_of

Membership: TypeAlias = Callable[[Part], Numbers]

# Fewer comparisons than these are as fast one by one.
_WORTHWHILE: Final = 3
_TYPES: Final = frozenset(IN_COLUMNS) - {INTERVAL}
_EQUALITIES: Final = frozenset(
    row for row in ROWS if row.name == "=" and row.arguments[0] in _TYPES
)


def membership(sql_type: SqlType, members: Sequence[Datum]) -> Membership:
    """Whether a value is one of these, none of which is NULL; NULL for NULL."""
    column = from_datums(sql_type, members)
    if isinstance(column, Numbers):
        return _of_numbers(column.values)
    (array,) = arrow_operands((column,))
    if sql_type == BPCHAR:
        array = trimmed(array)

    def test(part: Part) -> Numbers:
        (values,) = arrow_operands((part,))
        if sql_type == BPCHAR:
            values = trimmed(values)
        found = from_bools(pc.is_in(values, value_set=array))
        return masked(found.values, null_mask(part))

    return test


def _of_numbers(members: Values) -> Membership:
    # NaN is the greatest, and there once at most: so it is found like all others, but not equal.
    ordered = np.unique(members)
    with_nan = bool(ordered.dtype.kind == "f" and np.isnan(ordered[-1]))

    def test(part: Part) -> Numbers:
        assert isinstance(part, Numbers)
        places = np.minimum(np.searchsorted(ordered, part.values), len(ordered) - 1)
        found: Mask = ordered[places] == part.values
        if with_nan:
            found |= np.isnan(part.values)
        return masked(found, part.nulls)

    return test


def in_lists(terms: Sequence[Scalar]) -> tuple[list[tuple[Scalar, Membership]], list[Scalar]]:
    """Equalities of one operand with many constants, as one test each; and the other terms."""
    members: dict[tuple[SqlType, Scalar, str], list[Scalar]] = {}
    for term in terms:
        found = _equality(term)
        if found is not None:
            # Printed too, as 0.0 and -0.0 make different operands that Python finds equal.
            members.setdefault((*found, repr(found[1])), []).append(term)
    members = {key: some for key, some in members.items() if len(some) >= _WORTHWHILE}
    gathered = {id(term) for some in members.values() for term in some}
    lists = [
        (operand, membership(sql_type, [_constant(term) for term in some]))
        for (sql_type, operand, _), some in members.items()
    ]
    return lists, [term for term in terms if id(term) not in gathered]


def _equality(term: Scalar) -> tuple[SqlType, Scalar] | None:
    if not isinstance(term, Call) or term.function not in _EQUALITIES:
        return None
    left, right = term.arguments
    if term.function.arguments[0] != term.function.arguments[1]:
        return None
    if isinstance(right, Literal) and right.value is not None and not isinstance(left, Literal):
        return term.function.arguments[0], left
    return None


def _constant(term: Scalar) -> Datum:
    assert isinstance(term, Call)
    literal = term.arguments[1]
    assert isinstance(literal, Literal)
    return literal.value


def _contains(element: SqlType) -> Build:
    """`x = ANY (array)` with a constant array."""

    def build(arguments: Sequence[Scalar]) -> Apply | None:
        array = arguments[1].value if isinstance(arguments[1], Literal) else None
        if not isinstance(array, tuple) or not array:
            return None
        present = [datum for datum in array if datum is not None]
        if not present:
            return None
        test = membership(element, present)
        with_null = len(present) < len(array)

        def apply(parts: Parts) -> Numbers:
            found = test(parts[0])
            return Numbers(found.values, ~found.values) if with_null else found

        return apply

    return build


KERNELS: Final[dict[tuple[str, Types], Build]] = {
    ("array_contains", (sql_type, array_of(sql_type))): _contains(sql_type) for sql_type in _TYPES
}
