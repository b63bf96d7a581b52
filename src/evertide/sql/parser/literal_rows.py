"""Long VALUES lists of constants, read without a token or a node per cell.

Clients load tables with INSERTs of many rows. Such a list is regular, so one pattern per row reads
it several times faster than the grammar could, and what is kept is one string per cell. The grammar
stays the judge of everything else: a list that this file cannot read whole is left to it.
"""

import re
from functools import lru_cache
from typing import Final

from evertide.sql.syntax.query import LiteralValues

# Shorter lists go through the grammar, whose nodes know the offset of every cell.
BULK_ROWS: Final = 32

_BLANK = r"[ \t\n\r\f\v]*+"
_STRING = r"'[^']*+(?:''[^']*+)*+'"
_NUMBER = r"-?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
_CELL = rf"(?:{_STRING}|{_NUMBER}|(?i:null|true|false))"
_FIRST_ROW = re.compile(rf"{_BLANK}(\({_BLANK}{_CELL}{_BLANK}(?:,{_BLANK}{_CELL}{_BLANK})*+\))")
_FIRST_CELLS = re.compile(_CELL)
_KINDS: Final = {
    "'": "s",
    **dict.fromkeys("-.0123456789", "n"),
    **dict.fromkeys("tT", "t"),
    **dict.fromkeys("fF", "f"),
    **dict.fromkeys("nN", "0"),
}


@lru_cache(maxsize=256)
def _row_pattern(width: int) -> re.Pattern[str]:
    """One row of that many constants, and whether a comma follows."""
    cells = rf"{_BLANK},{_BLANK}".join([f"({_CELL})"] * width)
    return re.compile(rf"{_BLANK}\({_BLANK}{cells}{_BLANK}\){_BLANK}(,)?+")


def scan_literal_rows(text: str, at: int) -> tuple[LiteralValues, int] | None:
    """The rows from `at` on and where they end; None if they are few or not all constants."""
    first = _FIRST_ROW.match(text, at)
    if first is None:
        return None
    width = len(_FIRST_CELLS.findall(first[1]))
    match_row = _row_pattern(width).match
    cells: list[str] = []
    position = at
    while (row := match_row(text, position)) is not None:
        *values, comma = row.groups()
        cells += values
        position = row.end()
        if comma is None:
            break
    else:
        return None  # after a comma stood something else
    if len(cells) < BULK_ROWS * width:
        return None
    return _decode(width, cells, first.start(1)), position


def _decode(width: int, cells: list[str], at: int) -> LiteralValues:
    kinds = "".join([_KINDS[cell[0]] for cell in cells])
    texts = tuple(
        [
            cell if kind == "n" else cell[1:-1].replace("''", "'") if kind == "s" else ""
            for cell, kind in zip(cells, kinds, strict=True)
        ]
    )
    return LiteralValues(width, kinds, texts, at=at)
