"""Which functions have kernels."""

from typing import Final

from evertide.expr.columnar import (
    scalar_cast,
    scalar_comparison,
    scalar_datetime,
    scalar_extremes,
    scalar_fields,
    scalar_float,
    scalar_integer,
    scalar_membership,
    scalar_numeric,
    scalar_text,
)
from evertide.expr.columnar.scalar_kernel import Build
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.functions.table import SCALAR_FUNCTIONS

_BY_TYPES: Final = {
    **scalar_comparison.KERNELS,
    **scalar_integer.KERNELS,
    **scalar_float.KERNELS,
    **scalar_numeric.KERNELS,
    **scalar_cast.KERNELS,
    **scalar_datetime.KERNELS,
    **scalar_extremes.KERNELS,
    **scalar_fields.KERNELS,
    **scalar_membership.KERNELS,
    **scalar_text.KERNELS,
}

# By row, not by name: a row bound to a snapshot has its name from the table and another body.
KERNELS: Final[dict[ScalarFunction, Build]] = {
    row: _BY_TYPES[row.name, row.arguments]
    for row in SCALAR_FUNCTIONS
    if (row.name, row.arguments) in _BY_TYPES
}
assert len(KERNELS) == len(_BY_TYPES), sorted(
    map(str, _BY_TYPES.keys() - {(row.name, row.arguments) for row in KERNELS})
)
