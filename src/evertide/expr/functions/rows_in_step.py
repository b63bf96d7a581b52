"""Several table functions side by side: their first rows are one row, then their second ones.

Where one has fewer rows than another its columns are NULL. Such a function is made when a query
asks for it, and found again by its signature, which lists those of its parts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

from evertide.expr.functions.row import TableFunction
from evertide.vocab.datum import Datum, Row

_HEAD: Final = "rows_in_step["
_SEPARATOR: Final = "; "


def in_step(parts: Sequence[TableFunction]) -> TableFunction:
    """One function of all arguments in turn, with all columns in turn."""
    assert parts, "nothing has no rows"
    if len(parts) == 1:
        return parts[0]
    inside = _SEPARATOR.join(part.signature for part in parts)
    return TableFunction(
        f"{_HEAD}{inside}]",
        tuple(argument for part in parts for argument in part.arguments),
        tuple(column for part in parts for column in part.columns),
        _side_by_side(parts),
        strict=False,
    )


def parts_of(signature: str) -> list[str]:
    """The signatures of the functions that one runs in step; none: it is no such function."""
    if not signature.startswith(_HEAD):
        return []
    inside, _, _ = signature.removeprefix(_HEAD).rpartition("](")
    return inside.split(_SEPARATOR)


def _side_by_side(parts: Sequence[TableFunction]) -> Callable[..., Iterator[Row]]:
    blanks: list[Row] = [(None,) * len(part.columns) for part in parts]

    def rows(*arguments: Datum) -> Iterator[Row]:
        given: list[Iterable[Row]] = []
        first = 0
        for part in parts:
            values = arguments[first : first + len(part.arguments)]
            first += len(part.arguments)
            absent = part.strict and any(value is None for value in values)
            given.append(() if absent else part.body(*values))
        for found in zip_longest(*given):
            filled = (
                blank if row is None else row for row, blank in zip(found, blanks, strict=True)
            )
            yield tuple(value for row in filled for value in row)

    return rows
