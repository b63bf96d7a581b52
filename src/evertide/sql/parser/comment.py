"""COMMENT ON."""

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import qualified_name, string_literal
from evertide.sql.parser.objects import object_kind, object_name
from evertide.sql.syntax.comment import CommentStatement


def comment(cursor: Cursor) -> CommentStatement:
    """A comment on an object or a column."""
    at = cursor.at
    cursor.expect("COMMENT", "ON")
    if cursor.accept("COLUMN"):
        kind, name = None, qualified_name(cursor)
        if len(name.parts) == 1:
            cursor.fail("dot")
    else:
        kind = object_kind(cursor, "COMMENT ON")
        name = object_name(cursor, kind)
    cursor.expect("IS")
    text = None if cursor.accept("NULL") else string_literal(cursor).value
    return CommentStatement(kind, name, text, at=at)
