"""Functions of booleans. AND, OR and IS NULL are nodes of the tree, not functions."""

import operator
from typing import Final

from evertide.expr.functions.build import total
from evertide.expr.functions.row import ScalarFunction
from evertide.vocab.sql_type import BOOL


def _is_true(value: bool | None) -> bool:
    return value is True


def _is_false(value: bool | None) -> bool:
    return value is False


ROWS: Final = (
    total("not", (BOOL,), BOOL, operator.not_, "NOT {0}"),
    ScalarFunction("is_true", (BOOL,), BOOL, _is_true, strict=False, spark="{0} IS TRUE"),
    ScalarFunction("is_false", (BOOL,), BOOL, _is_false, strict=False, spark="{0} IS FALSE"),
)
