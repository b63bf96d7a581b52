"""Arrays of several dimensions in expressions: what casts and subscripts make of them.

PostgreSQL's type does not tell how many dimensions an array has. Here it does, so a cast takes it
from what is cast.
"""

import re
from typing import Final

from evertide.expr.dimensions import (
    MOST_DIMENSIONS,
    base_of,
    dimension_count,
    is_nested,
    with_dimensions,
)
from evertide.expr.scalar import Literal, Scalar
from evertide.sql.resolve import position_of
from evertide.sql.syntax.expression import Slice, Subscript
from evertide.vocab.errors import FeatureNotSupported, ProgramLimitExceeded
from evertide.vocab.sql_type import UNKNOWN, Kind, SqlType

_BRACES: Final = re.compile(r"\s*(?:\[[^=]*=)?\s*((?:\{\s*)+)")


def as_many_dimensions(target: SqlType, operand: Scalar) -> SqlType:
    """The array type that a cast to `target` gives: with the dimensions of what is cast.

    >>> str(as_many_dimensions(with_dimensions(UNKNOWN, 1), Literal("{{1},{2}}", UNKNOWN)))
    'unknown[][]'
    """
    if target.kind is not Kind.ARRAY:
        return target
    count = dimension_count(operand.type)
    if operand.type == UNKNOWN and isinstance(operand, Literal) and isinstance(operand.value, str):
        found = _BRACES.match(operand.value)
        count = 0 if found is None else found[1].count("{")
    if count > MOST_DIMENSIONS:
        raise ProgramLimitExceeded(
            f"number of array dimensions ({count}) exceeds the maximum allowed ({MOST_DIMENSIONS})"
        )
    return with_dimensions(target, count) if count > 1 else target


def checked_subscripts(node: Subscript, whole: SqlType, value: Scalar) -> Scalar:
    """What subscripts of an array of type `whole` give: NULL if there are fewer than dimensions."""
    if not is_nested(whole):
        return value
    sliced = isinstance(node.index, Slice)
    if isinstance(node.operand, Subscript) and (sliced or isinstance(node.operand.index, Slice)):
        raise FeatureNotSupported(
            "slices of several dimensions are not supported", position=position_of(node.at)
        )
    if value.type.kind is Kind.ARRAY and not sliced:
        return Literal(None, base_of(whole))
    return value
