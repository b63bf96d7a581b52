"""Rows of table functions that are worked out while a statement is planned.

Planning holds up every session, and what it makes is kept with the plan, so only few rows are made:
so many for a whole statement. A function that gives more stays a call, made when the query runs.
"""

from collections.abc import Sequence
from itertools import islice
from typing import Final

from evertide.expr.functions.row import TableFunction
from evertide.expr.relation import Constant
from evertide.expr.scalar import Literal, Scalar
from evertide.vocab.datum import Row
from evertide.vocab.sql_type import INT8

MOST_ROWS: Final = 10_000


class KnownRows:
    """One statement's."""

    def __init__(self) -> None:
        self._left = MOST_ROWS

    def of(
        self, function: TableFunction, arguments: Sequence[Scalar], *, ordinality: bool = False
    ) -> Constant | None:
        """The rows of constant arguments; None: those are not constant, or the rows too many."""
        literals = [argument for argument in arguments if isinstance(argument, Literal)]
        if len(literals) < len(arguments):
            return None
        values = [literal.value for literal in literals]
        given = () if function.strict and None in values else function.body(*values)
        rows: list[Row] = list(islice(given, self._left + 1))
        if len(rows) > self._left:
            self._left = 0  # what was tried was made, too
            return None
        self._left -= len(rows)
        types = tuple(sql_type for _, sql_type in function.columns)
        if ordinality:
            rows = [(*row, number) for number, row in enumerate(rows, start=1)]
            types = (*types, INT8)
        return Constant(tuple((row, 1) for row in rows), types)
