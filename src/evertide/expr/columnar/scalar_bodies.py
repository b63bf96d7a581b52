"""The kernel of functions that have none of their own: their body, once per row of the batch.

It spares the other columns of the row, and everything around the call, the way by rows.
"""

from collections.abc import Sequence

from evertide.expr.columnar.column import Column, from_datums, to_datums
from evertide.expr.columnar.scalar_kernel import Apply, ByRows, Parts, plain
from evertide.expr.functions.row import ScalarFunction
from evertide.expr.scalar import Scalar
from evertide.vocab.datum import Datum
from evertide.vocab.errors import SqlError


def by_body(function: ScalarFunction, arguments: Sequence[Scalar]) -> Apply:
    """Call the body for every row; an error anywhere leaves the batch to the row-wise path."""
    types = tuple(argument.type for argument in arguments)
    body, result = function.body, function.result
    strict = function.strict

    def apply(parts: Parts) -> Column:
        length = max(map(len, parts), default=1)
        columns = [
            _repeated(to_datums(sql_type, plain(part)), length)
            for sql_type, part in zip(types, parts, strict=True)
        ]
        rows = zip(*columns, strict=True) if columns else [()]
        try:
            if strict:
                datums: list[Datum] = [None if None in row else body(*row) for row in rows]
            else:
                datums = [body(*row) for row in rows]
            return from_datums(result, datums)
        except (SqlError, OverflowError):  # the latter: a value that its type does not hold
            raise ByRows from None

    return apply


def _repeated(datums: list[Datum], length: int) -> list[Datum]:
    return datums if len(datums) == length else datums * length
