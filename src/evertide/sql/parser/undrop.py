"""UNDROP."""

from typing import Final

from evertide.sql.lexer import STRING
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import identifier, if_exists, qualified_name, string_literal
from evertide.sql.syntax.definition import ObjectKind
from evertide.sql.syntax.undrop import UndropStatement

_KINDS: Final = (
    ObjectKind.MATERIALIZED_VIEW,
    ObjectKind.TABLE,
    ObjectKind.VIEW,
    ObjectKind.INDEX,
    ObjectKind.TYPE,
)


def undrop(cursor: Cursor) -> UndropStatement:
    """What was dropped, by its kind and name or by its id."""
    at = cursor.at
    cursor.expect("UNDROP")
    kind = next((kind for kind in _KINDS if cursor.accept_words(*kind.split())), None)
    missing_ok = if_exists(cursor)
    name = item_id = None
    if cursor.key == "ID" and cursor.peek() == STRING:
        cursor.advance()
        item_id = string_literal(cursor).value
    elif kind is None:
        cursor.fail("one of " + " or ".join([*_KINDS, "ID"]) + " after UNDROP")
    else:
        name = qualified_name(cursor)
    new_name = None
    if cursor.accept("AS") or cursor.accept_words("RENAME", "TO"):
        new_name = identifier(cursor)
    restrict = cursor.accept("RESTRICT")
    if not restrict:
        cursor.accept("CASCADE")
    return UndropStatement(kind, name, item_id, new_name, missing_ok, restrict, at=at)
