"""The rows that a table function gives for one row: the same for every executor."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, TypeAlias

from evertide.expr.compile import compile_scalar
from evertide.expr.functions.row import TableFunction
from evertide.expr.scalar import Scalar
from evertide.vocab.datum import Row
from evertide.vocab.errors import ProgramLimitExceeded

# A row that asks for more is an error: it must not take the memory of everybody else.
MOST_FLAT_ROWS: Final = 1_000_000

FlatRows: TypeAlias = Callable[[Row], list[Row]]


def compile_flat_rows(
    function: TableFunction,
    arguments: Sequence[Scalar],
    *,
    ordinality: bool,
    most: int = MOST_FLAT_ROWS,
) -> FlatRows:
    """A function from a row to the columns that its flat map adds, once per row it gives.

    A NULL argument of a strict function gives no rows. It raises SqlError where an argument or the
    function fails.
    """
    compiled = [compile_scalar(argument) for argument in arguments]
    body, strict = function.body, function.strict

    def rows(row: Row) -> list[Row]:
        values = [argument(row) for argument in compiled]
        if strict and any(value is None for value in values):
            return []
        given: list[Row] = list(islice(body(*values), most + 1))
        if len(given) > most:
            raise ProgramLimitExceeded(f"{function.name} gives more than {most} rows for one row")
        if ordinality:
            given = [(*one, number) for number, one in enumerate(given, start=1)]
        return given

    return rows
