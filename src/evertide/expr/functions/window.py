"""Functions that exist as window functions only. Every aggregate is one too, and is not here."""

from enum import StrEnum
from typing import Final

from evertide.vocab.sql_type import FLOAT8, INT4, INT8, SqlType


class WindowFunction(StrEnum):
    """Named as in SQL."""

    ROW_NUMBER = "row_number"
    RANK = "rank"
    DENSE_RANK = "dense_rank"
    PERCENT_RANK = "percent_rank"
    CUME_DIST = "cume_dist"
    NTILE = "ntile"
    LAG = "lag"
    LEAD = "lead"
    FIRST_VALUE = "first_value"
    LAST_VALUE = "last_value"
    NTH_VALUE = "nth_value"


# What those without a value of their own give; the others give their first argument's type.
RESULTS: Final[dict[WindowFunction, SqlType]] = {
    WindowFunction.ROW_NUMBER: INT8,
    WindowFunction.RANK: INT8,
    WindowFunction.DENSE_RANK: INT8,
    WindowFunction.PERCENT_RANK: FLOAT8,
    WindowFunction.CUME_DIST: FLOAT8,
    WindowFunction.NTILE: INT4,
}
# How many arguments each takes, at least and at most.
ARITIES: Final[dict[WindowFunction, tuple[int, int]]] = {
    **dict.fromkeys(RESULTS, (0, 0)),
    WindowFunction.NTILE: (1, 1),
    WindowFunction.LAG: (1, 3),
    WindowFunction.LEAD: (1, 3),
    WindowFunction.FIRST_VALUE: (1, 1),
    WindowFunction.LAST_VALUE: (1, 1),
    WindowFunction.NTH_VALUE: (2, 2),
}
# Those that may pass over NULLs.
NULL_SKIPPING: Final = frozenset(
    {
        WindowFunction.LAG,
        WindowFunction.LEAD,
        WindowFunction.FIRST_VALUE,
        WindowFunction.LAST_VALUE,
        WindowFunction.NTH_VALUE,
    }
)
# Those for which rows that the order finds equal are all the same.
_BLIND_TO_TIES: Final = frozenset(
    {
        WindowFunction.RANK,
        WindowFunction.DENSE_RANK,
        WindowFunction.PERCENT_RANK,
        WindowFunction.CUME_DIST,
    }
)


_BY_NAME: Final = {function.value: function for function in WindowFunction}


def is_blind_to_ties(function: WindowFunction) -> bool:
    """Whether it does not matter which of equal rows comes first."""
    return function in _BLIND_TO_TIES


def window_function(name: str) -> WindowFunction | None:
    """The function by this name; None: there is none."""
    return _BY_NAME.get(name)
