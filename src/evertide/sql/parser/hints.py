"""`OPTIONS (…)` behind a SELECT: how many rows a group is expected to have.

The words are checked and then forgotten: no plan here depends on such a guess, and no result may.
"""

from typing import Final

from evertide.sql.lexer import NUMBER
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import parenthesized
from evertide.vocab.errors import SqlSyntaxError

_HINTS: Final = (
    ("AGGREGATE", "INPUT", "GROUP", "SIZE"),
    ("DISTINCT", "ON", "INPUT", "GROUP", "SIZE"),
    ("LIMIT", "INPUT", "GROUP", "SIZE"),
    ("EXPECTED", "GROUP", "SIZE"),
)


def pass_hints(cursor: Cursor) -> None:
    """Steps over the options if they are there."""
    if cursor.key == "OPTIONS" and cursor.peek() == "(":
        cursor.advance()
        parenthesized(cursor, _hint)


def _hint(cursor: Cursor) -> None:
    words = next((words for words in _HINTS if cursor.accept_words(*words)), None)
    if words is None:
        cursor.fail("one of EXPECTED or AGGREGATE or DISTINCT or LIMIT")
    cursor.accept("=")
    if cursor.key != NUMBER or not cursor.tokens.values[cursor.index].isdecimal():
        raise SqlSyntaxError(
            f"invalid {' '.join(words)}: cannot use value as number", position=cursor.at + 1
        )
    cursor.advance()
