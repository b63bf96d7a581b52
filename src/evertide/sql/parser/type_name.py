"""Type names, which SQL spells in more ways than any other name."""

from evertide.sql.lexer import NUMBER, STRING
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import (
    function_name_allowed,
    integer,
    label,
    parenthesized,
    take_word,
)
from evertide.sql.syntax.expression import ArrayType, DataType, ListType, MapType, TypeName

# Which later fields an interval's first field may run to.
_INTERVAL_FIELDS = {
    "YEAR": ("MONTH",),
    "MONTH": (),
    "DAY": ("HOUR", "MINUTE", "SECOND"),
    "HOUR": ("MINUTE", "SECOND"),
    "MINUTE": ("SECOND",),
    "SECOND": (),
}
_MODIFIER_TOKENS = 8  # how far to look for the end of `(10, -2)`


def data_type(cursor: Cursor) -> DataType:
    """A type with its array and list suffixes."""
    cursor.enter(1)
    at = cursor.at
    result = _map_type(cursor) if cursor.key == "MAP" and cursor.peek() == "[" else None
    element: DataType = result or base_type(cursor)
    height = 0
    while True:
        if cursor.accept("LIST"):
            element = ListType(element, at=at)
        elif cursor.key in ("[", "ARRAY"):
            element = ArrayType(element, _dimensions(cursor), at=at)
        else:
            break
        height += 1
        cursor.enter(1)  # a suffix makes the tree higher, like a level of nesting
    cursor.depth -= 1 + height
    return element


def _map_type(cursor: Cursor) -> MapType:
    at = cursor.at
    cursor.expect("MAP", "[")
    key = data_type(cursor)
    cursor.expect("=>")
    value = data_type(cursor)
    cursor.expect("]")
    return MapType(key, value, at=at)


def _dimensions(cursor: Cursor) -> int:
    if cursor.accept("ARRAY"):
        if cursor.accept("["):
            integer(cursor)
            cursor.expect("]")
        return 1
    count = 0
    while cursor.accept("["):
        if cursor.key == NUMBER:
            integer(cursor)
        cursor.expect("]")
        count += 1
    return count


def base_type(cursor: Cursor) -> TypeName:
    """A type without suffixes. Several-word names are given their one-word form."""
    at = cursor.at
    match cursor.key if cursor.peek() != "." else None:
        case "TIMESTAMP" | "TIME":
            return _time_type(cursor)
        case "INTERVAL":
            cursor.advance()
            return TypeName(("interval",), modifiers(cursor), interval_fields(cursor), at=at)
        case "DOUBLE" if cursor.peek() == "PRECISION":
            cursor.expect("DOUBLE", "PRECISION")
            return TypeName(("float8",), at=at)
        case "CHARACTER" | "CHAR" | "NATIONAL" | "NCHAR":
            return _character_type(cursor)
        case "BIT":
            cursor.advance()
            name = "varbit" if cursor.accept("VARYING") else "bit"
            return TypeName((name,), modifiers(cursor), at=at)
    if not function_name_allowed(cursor.key):
        cursor.fail("a data type name")
    parts = [take_word(cursor)]
    while cursor.accept("."):
        parts.append(label(cursor))
    return TypeName(tuple(parts), modifiers(cursor), at=at)


def _time_type(cursor: Cursor) -> TypeName:
    at = cursor.at
    name = take_word(cursor)
    precision = modifiers(cursor)
    if cursor.accept_words("WITH", "TIME", "ZONE"):
        name += "tz"
    else:
        cursor.accept_words("WITHOUT", "TIME", "ZONE")
    return TypeName((name,), precision, at=at)


def _character_type(cursor: Cursor) -> TypeName:
    """`char` means one character; the quoted type "char" is another type and never comes here."""
    at = cursor.at
    if cursor.accept("NATIONAL") and cursor.key not in ("CHARACTER", "CHAR"):
        cursor.fail("one of CHARACTER or CHAR")
    cursor.advance()
    varying = cursor.accept("VARYING")
    length = modifiers(cursor)
    if varying:
        return TypeName(("varchar",), length, at=at)
    return TypeName(("bpchar",), length or (1,), at=at)


def modifiers(cursor: Cursor) -> tuple[int, ...]:
    """`(10, 2)` if it is there."""
    return parenthesized(cursor, _modifier) if cursor.key == "(" else ()


def _modifier(cursor: Cursor) -> int:
    sign = -1 if cursor.accept("-") else 1
    return sign * integer(cursor, "a type modifier")


def interval_fields(cursor: Cursor) -> str:
    """`DAY TO SECOND` and the like, after an interval type or constant; a plural is the same."""
    first = cursor.key.removesuffix("S")
    if first not in _INTERVAL_FIELDS:
        return ""
    cursor.advance()
    fields = first
    if cursor.key == "TO" and cursor.peek() in _INTERVAL_FIELDS[first]:
        cursor.advance()
        fields = f"{first} TO {cursor.key}"
        cursor.advance()
    if fields.endswith("SECOND") and cursor.key == "(" and cursor.peek() == NUMBER:
        (precision,) = parenthesized(cursor, integer)
        fields += f" ({precision})"
    return fields


def at_typed_literal(cursor: Cursor) -> bool:
    """Whether a type of several words and then a string stand here: `TIMESTAMP(3) '...'`.

    Looks ahead without stepping, because `timestamp(3)` may be a call instead.
    """
    ahead = 2 if cursor.peek() in ("PRECISION", "VARYING") else 1
    if cursor.peek(ahead) == "(":
        ahead = _after_modifiers(cursor, ahead)
    if cursor.peek(ahead) in ("WITH", "WITHOUT") and cursor.peek(ahead + 2) == "ZONE":
        ahead += 3
    return cursor.peek(ahead) == STRING


def at_modifiers_of_literal(cursor: Cursor) -> bool:
    """Whether `(10, 2) '...'` stands here; its type's name has been read."""
    return cursor.peek() == NUMBER and cursor.peek(_after_modifiers(cursor, 0)) == STRING


def _after_modifiers(cursor: Cursor, ahead: int) -> int:
    """How far ahead the token behind `(10, 2)` is; if no modifiers stand there, that of `(`."""
    end = ahead + 1
    while cursor.peek(end) in (NUMBER, ",", "-") and end < ahead + _MODIFIER_TOKENS:
        end += 1
    return end + 1 if cursor.peek(end) == ")" else ahead
