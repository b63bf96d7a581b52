"""Functions that no SQL text names: the planner inserts them."""

from typing import Final

from evertide.expr.functions.build import guarded, partial
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.type_groups import EVERY_TYPE
from evertide.persist.coding.keys import key_encoder
from evertide.vocab.errors import CardinalityViolation, NotNullViolation
from evertide.vocab.sql_type import BOOL, BYTEA, INT8, TEXT

_TWO_ROWS: Final = "more than one record produced in subquery"


def _at_most_one_row(count: int) -> bool:
    if count > 1:
        raise CardinalityViolation(_TWO_ROWS)
    return True


def _must_not_be_null(is_null: bool, message: str) -> bool:
    if is_null:
        raise NotNullViolation(message)
    return True


def _joined(*keys: bytes) -> bytes:
    return b"".join(keys)


# A row's fields as one value: such values are equal where the rows are, NULL being equal to NULL.
_KEYS: Final = tuple(
    ScalarFunction("mz_key", (one,), BYTEA, key_encoder(one), strict=False) for one in EVERY_TYPE
)
_JOINED: Final = ScalarFunction("mz_joined_keys", (BYTEA,), BYTEA, _joined, variadic=True)
# Whether a value is NULL, and what is wrong with it then.
MUST_NOT_BE_NULL: Final = partial("mz_must_not_be_null", (BOOL, TEXT), BOOL, _must_not_be_null)

ROWS: Final = (
    *_KEYS,
    _JOINED,
    MUST_NOT_BE_NULL,
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
