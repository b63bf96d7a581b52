"""Identifiers, qualified names, and the small lists and constants that many statements share."""

from collections.abc import Callable
from typing import TypeVar

from evertide.sql.lexer import NUMBER, QUOTED, STRING, fold_identifier
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.keywords import NOT_NAMES, RESERVED
from evertide.sql.syntax.expression import Name, StringLiteral

T = TypeVar("T")


def is_word(key: str) -> bool:
    """Whether a key is that of an unquoted word."""
    return key[:1] == "_" or key[:1].isalpha()


def is_name(key: str) -> bool:
    """Whether the token may be a column or object name."""
    return key == QUOTED or (key not in NOT_NAMES and is_word(key))


def take_word(cursor: Cursor) -> str:
    """Steps over a word or quoted identifier and returns the identifier."""
    quoted = cursor.key == QUOTED
    value = cursor.advance()
    return value if quoted else fold_identifier(value)


def identifier(cursor: Cursor, what: str = "identifier") -> str:
    """A name that no keyword may be unless it is unreserved."""
    if not is_name(cursor.key):
        cursor.fail(what)
    return take_word(cursor)


def label(cursor: Cursor, what: str = "identifier") -> str:
    """A name where no keyword can be meant: after AS, after a dot, a variable or role name."""
    if cursor.key != QUOTED and not is_word(cursor.key):
        cursor.fail(what)
    return take_word(cursor)


def cluster_name(cursor: Cursor) -> str:
    """A cluster's name. The first cluster is called `default`, which is a keyword elsewhere."""
    return label(cursor) if cursor.key == "DEFAULT" else identifier(cursor)


def qualified_name(cursor: Cursor, what: str = "identifier") -> Name:
    """`a`, `a.b` or `a.b.c`."""
    at = cursor.at
    parts = [identifier(cursor, what)]
    while cursor.accept("."):
        parts.append(label(cursor))
    return Name(tuple(parts), at=at)


def variable_name(cursor: Cursor) -> str:
    """A variable's name; a dot parts the namespace of an extension from the name."""
    parts = [label(cursor)]
    while cursor.accept("."):
        parts.append(label(cursor))
    return ".".join(parts)


def function_name_allowed(key: str) -> bool:
    return key == QUOTED or (key not in RESERVED and is_word(key))


def comma_separated(cursor: Cursor, item: Callable[[Cursor], T]) -> tuple[T, ...]:
    """One or more items."""
    items = [item(cursor)]
    while cursor.accept(","):
        items.append(item(cursor))
    return tuple(items)


def parenthesized(cursor: Cursor, item: Callable[[Cursor], T]) -> tuple[T, ...]:
    """`(item, ...)`, at least one."""
    cursor.expect("(")
    items = comma_separated(cursor, item)
    cursor.expect(")")
    return items


def optional_columns(cursor: Cursor) -> tuple[str, ...]:
    """`(a, b)` if it is there."""
    return parenthesized(cursor, label) if cursor.key == "(" else ()


def string_literal(cursor: Cursor) -> StringLiteral:
    at = cursor.at
    if cursor.key != STRING:
        cursor.fail("string literal")
    return StringLiteral(cursor.advance(), at=at)


def integer(cursor: Cursor, what: str = "literal unsigned integer") -> int:
    """A count or a modifier, kept small: no meaning here needs more than nine digits."""
    if cursor.key != NUMBER:
        cursor.fail(what)
    text = cursor.tokens.values[cursor.index]
    if not text.isdecimal() or len(text) > 9:
        cursor.fail(what)
    cursor.advance()
    return int(text)


def one_of(cursor: Cursor, *words: str) -> str:
    """Steps over one of these words and returns it."""
    if cursor.key not in words:
        cursor.fail(expected_words(words))
    key = cursor.key
    cursor.advance()
    return key


def expected_words(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else "one of " + " or ".join(words)


def if_exists(cursor: Cursor) -> bool:
    return cursor.accept_words("IF", "EXISTS")


def if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept_words("IF", "NOT", "EXISTS")
