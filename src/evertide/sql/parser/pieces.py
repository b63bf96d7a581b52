"""Texts whose statements are each a beginning and one list of constants; pure.

Programs send a block of changes as one text: BEGIN, some `DELETE ... IN (...)`, some `INSERT ...
VALUES (...), (...)`, COMMIT. The lists are new each time, and all before them stays the same. Here
such a text is cut into beginnings and lists by one pattern. What a beginning means is not for this
file to say: whoever uses it must ask the grammar, once for each.
"""

import re
from typing import Final, NamedTuple

from evertide.sql.parser.literal_rows import scan_literal_list, scan_literal_rows
from evertide.sql.syntax.literal_values import LiteralValues

# Texts of more are left to the grammar, which counts their tokens.
MOST_PIECES: Final = 64

# So much of a text holds the last word, and what parts it from the statement before.
_END_LENGTH: Final = 64
_BLANKS_AND_ENDS: Final = " \t\n\r\f\v;"
_BLANK: Final = r"[ \t\n\r\f\v]"
# Either all that stands before a list, or a single word that is a statement.
_BEGINNING = re.compile(
    rf"((?:insert|delete){_BLANK}[^';]{{1,500}}?\b(?:(values)|in){_BLANK}*+)(?=\()"
    rf"|([a-z]++)(?={_BLANK}*+(?:;|\Z))",
    re.IGNORECASE | re.ASCII,
)
_BLANKS = re.compile(rf"{_BLANK}*+")
_END = re.compile(rf"{_BLANK}*+(?:;{_BLANK}*+|\Z)")


class Piece(NamedTuple):
    """One statement; without `values` it is its beginning alone, a word."""

    beginning: str
    values: LiteralValues | None


def pieces_of(text: str) -> list[Piece] | None:
    """All statements of a text; None where it is of another kind.

    Each list is read as the lexer does it in a statement that changes rows.
    """
    if not _may_end_so(text):
        return None
    pieces: list[Piece] = []
    blanks = _BLANKS.match(text)
    at = 0 if blanks is None else blanks.end()
    while at < len(text):
        found = _BEGINNING.match(text, at)
        if found is None or len(pieces) == MOST_PIECES:
            return None
        beginning, values_word, word = found.groups()
        at = found.end()
        if word is not None:
            pieces.append(Piece(word, None))
        else:
            scan = scan_literal_list if values_word is None else scan_literal_rows
            scanned = scan(text, at, changed=True)
            if scanned is None:
                return None
            values, at = scanned
            pieces.append(Piece(beginning, values))
        end = _END.match(text, at)
        if end is None:
            return None
        at = end.end()
    return pieces


def _may_end_so(text: str) -> bool:
    """Whether its end is that of a list, or a word: else a long text would be read in vain."""
    if text.count(";") > MOST_PIECES:
        return False
    end = text[-_END_LENGTH:].rstrip(_BLANKS_AND_ENDS)
    return end.endswith(")") or end.rpartition(";")[2].strip().isalpha()
