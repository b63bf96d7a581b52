"""Table functions whose columns follow from a constant: fields of CSV, groups of a pattern.

Such a function is made when a query names the constant, and found again by its signature, which
tells how many columns it has.
"""

import csv
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from io import StringIO
from typing import Final

from evertide.expr.functions.regex import first_groups, group_count
from evertide.expr.functions.row import TableFunction
from evertide.expr.functions.text import MAX_CHARACTERS
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import BadCopyFileFormat, InvalidParameterValue
from evertide.vocab.sql_type import INT4, TEXT, SqlType

# As many columns as a relation of PostgreSQL may have.
_MOST_COLUMNS: Final = 1_600
_SIGNATURE: Final = re.compile(r"(csv_extract|regexp_extract)\[(\d+)\]\(.*\)")

# Texts made by one call are no longer; those joined from several may be, and are refused.
csv.field_size_limit(MAX_CHARACTERS)


def _fields(width: int, _width: int, text: str) -> Iterator[Row]:
    """Lines of another number of fields are passed over, and so are empty ones."""
    try:
        for line in csv.reader(StringIO(text, newline="")):
            if len(line) == width:
                yield tuple(line)
    except csv.Error as error:
        raise BadCopyFileFormat(f"csv_extract cannot read its text: {error}") from None


def _groups(_width: int, pattern: str, text: str) -> Iterator[Row]:
    found = first_groups(pattern, text)
    if found is not None:
        yield found


_ARGUMENTS: Final[dict[str, tuple[SqlType, ...]]] = {
    "csv_extract": (INT4, TEXT),
    "regexp_extract": (TEXT, TEXT),
}
_BODIES: Final[dict[str, Callable[..., Iterator[Row]]]] = {
    "csv_extract": _fields,
    "regexp_extract": _groups,
}


@cache
def _of_width(name: str, width: int) -> TableFunction:
    columns = tuple((f"column{number}", TEXT) for number in range(1, width + 1))
    body = partial(_BODIES[name], width)
    return TableFunction(f"{name}[{width}]", _ARGUMENTS[name], columns, body)


# What calls are resolved to before their constant is looked at.
EXTRACTING: Final = tuple(
    TableFunction(name, types, (("column1", TEXT),), partial(_BODIES[name], 1))
    for name, types in _ARGUMENTS.items()
)


def with_columns(function: TableFunction, constant: Datum) -> TableFunction:
    """The function with the columns that its first argument asks for.

    >>> [name for name, _ in with_columns(EXTRACTING[0], 2).columns]
    ['column1', 'column2']
    """
    if function not in EXTRACTING:
        return function
    width = group_count(constant) if isinstance(constant, str) else constant
    if not isinstance(width, int):
        kind = "a string" if function.name == "regexp_extract" else "an integer"
        raise InvalidParameterValue(
            f"{function.name} requires {kind} literal as its first argument"
        )
    if not width and isinstance(constant, str):
        raise InvalidParameterValue("regexp_extract must specify at least one capture group")
    if not 1 <= width <= _MOST_COLUMNS:
        raise InvalidParameterValue(
            f"{function.name} number of columns must be between 1 and {_MOST_COLUMNS}"
        )
    return _of_width(function.name, width)


def extracting_function(signature: str) -> TableFunction | None:
    """The function with this signature, if it is one of these."""
    found = _SIGNATURE.fullmatch(signature)
    return None if found is None else _of_width(found[1], int(found[2]))
