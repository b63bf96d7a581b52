"""Functions that no SQL text names: the planner inserts them."""

from typing import Final

from evertide.expr.functions.build import guarded
from evertide.vocab.errors import CardinalityViolation
from evertide.vocab.sql_type import BOOL, INT8

_TWO_ROWS: Final = "more than one row returned by a subquery used as an expression"


def _at_most_one_row(count: int) -> bool:
    if count > 1:
        raise CardinalityViolation(_TWO_ROWS)
    return True


ROWS: Final = (
    guarded(
        "mz_at_most_one_row",
        (INT8,),
        BOOL,
        _at_most_one_row,
        spark="CASE WHEN {0} <= 1 THEN true END",
        fails="{0} > 1",
        error=CardinalityViolation(_TWO_ROWS),
    ),
)
