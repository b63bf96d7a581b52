"""Long lists of constants, read without a token or a node per cell.

Clients load tables with INSERTs of many rows and pick rows by IN lists of many values. Such a list
is regular: it is read as JSON where it ends as statements mostly do (literal_json.py), else by one
pattern per row. The grammar stays the judge of everything else: a list that this file cannot read
whole is left to it.
"""

import re
from functools import lru_cache
from typing import Final

from evertide.sql.parser.literal_json import rows_as_json
from evertide.sql.syntax.literal_values import CELL, LiteralValues

# Shorter lists go through the grammar, whose nodes know the offset of every cell.
BULK_ROWS: Final = 32
BULK_ITEMS: Final = 32
# But statements that change rows come in great numbers, each with values of its own.
CHANGED_ROWS: Final = 1
CHANGED_ITEMS: Final = 4

_BLANKS: Final = " \t\n\r\f\v"
_BLANK = r"[ \t\n\r\f\v]*+"
_FIRST_ROW = re.compile(rf"{_BLANK}(\({_BLANK}{CELL}{_BLANK}(?:,{_BLANK}{CELL}{_BLANK})*+\))")
_FIRST_CELLS = re.compile(CELL)
_MORE = re.compile(rf"{_BLANK},")
_OPEN = re.compile(rf"{_BLANK}\(")


@lru_cache(maxsize=256)
def _row_pattern(width: int) -> re.Pattern[str]:
    """One row of that many constants, and whether a comma follows."""
    cells = rf"{_BLANK},{_BLANK}".join([CELL] * width)
    return re.compile(rf"{_BLANK}\({_BLANK}{cells}{_BLANK}\){_BLANK}(,)?+")


def scan_literal_rows(text: str, at: int, *, changed: bool) -> tuple[LiteralValues, int] | None:
    """The rows from `at` on and where they end; None if they are few or not all constants.

    `changed`: they are what a statement writes.
    """
    first = _FIRST_ROW.match(text, at)
    if first is None:
        return None
    start, least = first.start(1), CHANGED_ROWS if changed else BULK_ROWS
    if least > 1 and _MORE.match(text, first.end(1)) is None:
        return None  # it is the only one: do not look at all that follows
    found = _rows_to_the_end(text, start, least)
    return found or _rows_by_pattern(text, start, first[1], least)


def _rows_to_the_end(text: str, start: int, least: int) -> tuple[LiteralValues, int] | None:
    """Rows after which the statement ends."""
    end = _outside(text, ";", start)
    source = text[start:end].rstrip(_BLANKS)
    if not source.endswith(")") or source.count("(") < least:
        return None
    found = rows_as_json(source)
    if found is None or found.count < least:
        return None
    values = LiteralValues(found.width, found.count, source, found.encoded, at=start)
    return values, start + len(source)


def _rows_by_pattern(
    text: str, start: int, first: str, least: int
) -> tuple[LiteralValues, int] | None:
    """Rows after which something else follows."""
    width = len(_FIRST_CELLS.findall(first))
    match_row = _row_pattern(width).match
    count, position = 0, start
    while (row := match_row(text, position)) is not None:
        count += 1
        position = row.end()
        if row[1] is None:
            break
    else:
        return None  # after a comma stood something else
    if count < least:
        return None
    return LiteralValues(width, count, text[start:position].rstrip(_BLANKS), at=start), position


def scan_literal_list(text: str, at: int, *, changed: bool) -> tuple[LiteralValues, int] | None:
    """The constants in parentheses from `at` on, each a row of its own, and where they end.

    `changed`: they choose the rows that a statement changes.
    """
    opened = _OPEN.match(text, at)
    if opened is None:
        return None
    start = opened.end() - 1
    end = _outside(text, ")", start)
    if text.count(",", start, end) < (CHANGED_ITEMS if changed else BULK_ITEMS) - 1:
        return None
    source = text[start : end + 1]
    found = rows_as_json(source)
    if found is None or found.count != 1:
        return None
    values = LiteralValues(1, found.width, source, found.encoded, listed=True, at=start)
    return values, end + 1


def _outside(text: str, mark: str, start: int) -> int:
    """Where the mark stands first outside of strings, or the end of the text."""
    quotes, seen = 0, start
    while (found := text.find(mark, seen)) >= 0:
        quotes += text.count("'", seen, found)
        if quotes % 2 == 0:
            return found
        seen = found + 1
    return len(text)
