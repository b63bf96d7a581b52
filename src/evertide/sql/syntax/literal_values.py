"""A long list of plain constants, without a node per cell."""

import re
from collections.abc import Iterator
from typing import Final

from evertide.sql.syntax.expression import (
    UNPLACED,
    BooleanLiteral,
    Expression,
    NullLiteral,
    NumberLiteral,
    StringLiteral,
    Unary,
)

_STRING = r"'[^']*+(?:''[^']*+)*+'"
_NUMBER = r"-?(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+"
CELL: Final = rf"(?:{_STRING}|{_NUMBER}|(?i:null|true|false))"
_CELLS = re.compile(CELL)
_KINDS: Final = {
    "'": "s",
    **dict.fromkeys("-.0123456789", "n"),
    **dict.fromkeys("tT", "t"),
    **dict.fromkeys("fF", "f"),
    **dict.fromkeys("nN", "0"),
}


class LiteralValues:
    """Rows of constants as they are written, `(1, 'a'), (2, NULL)`, or `(1, 2)` where `listed`.

    The parser makes it of lists that are long and hold nothing but constants: a statement of ten
    megabytes then costs little more than its text. `encoded` is the same as JSON, where the parser
    has made that. Cells are made when somebody asks for them: row by row, `kinds` has one letter
    per cell: n number (a sign included), s string, t true, f false, 0 null; `texts` has the text of
    numbers and strings and "" for the rest. Column j is `texts[j::width]`.
    """

    __slots__ = ("_cells", "at", "count", "encoded", "listed", "source", "width")

    def __init__(
        self,
        width: int,
        count: int,
        source: str,
        encoded: bytes | None = None,
        *,
        listed: bool = False,
        at: int = UNPLACED,
    ) -> None:
        self.width = width
        self.count = count
        self.source = source
        self.encoded = encoded
        # All stand in one pair of parentheses, and each is a row.
        self.listed = listed
        self.at = at
        self._cells: tuple[str, tuple[str, ...]] | None = None

    @property
    def kinds(self) -> str:
        return self._read()[0]

    @property
    def texts(self) -> tuple[str, ...]:
        return self._read()[1]

    def rows(self) -> Iterator[tuple[tuple[str, str], ...]]:
        """Each row as (kind, text) pairs, for callers that do not work by column."""
        cells = zip(self.kinds, self.texts, strict=True)
        return zip(*[cells] * self.width, strict=True)

    def nodes(self) -> tuple[Expression, ...]:
        """Every cell as the grammar reads it, at its place."""
        return tuple(
            [_node(cell[0], self.at + cell.start()) for cell in _CELLS.finditer(self.source)]
        )

    def _read(self) -> tuple[str, tuple[str, ...]]:
        if self._cells is None:
            self._cells = _read_cells(self.source)
        return self._cells

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LiteralValues):
            return NotImplemented
        alike = (self.width, self.listed) == (other.width, other.listed)
        return alike and (self.source == other.source or self._read() == other._read())

    def __hash__(self) -> int:
        return hash((self.width, self._read()))


def _read_cells(source: str) -> tuple[str, tuple[str, ...]]:
    cells: list[str] = _CELLS.findall(source)
    kinds = "".join([_KINDS[cell[0]] for cell in cells])
    texts = tuple(
        [
            cell if kind == "n" else cell[1:-1].replace("''", "'") if kind == "s" else ""
            for cell, kind in zip(cells, kinds, strict=True)
        ]
    )
    return kinds, texts


def _node(cell: str, at: int) -> Expression:
    match _KINDS[cell[0]]:
        case "n" if cell.startswith("-"):
            return Unary("-", NumberLiteral(cell[1:], at=at + 1), at=at)
        case "n":
            return NumberLiteral(cell, at=at)
        case "s":
            return StringLiteral(cell[1:-1].replace("''", "'"), at=at)
        case "0":
            return NullLiteral(at=at)
        case kind:
            return BooleanLiteral(kind == "t", at=at)
