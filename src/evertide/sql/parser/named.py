"""CREATE TYPE, CREATE SECRET and ALTER SECRET ... AS, and two neighbours that are refused."""

from typing import NoReturn

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.expression import expression
from evertide.sql.parser.names import comma_separated, identifier, if_not_exists, qualified_name
from evertide.sql.parser.type_name import data_type
from evertide.sql.syntax.expression import DataType, ListType, MapType
from evertide.sql.syntax.named import (
    CreateSecretStatement,
    CreateTypeStatement,
    RecordFields,
    TypeField,
)
from evertide.vocab.errors import FeatureNotSupported


def create_type(cursor: Cursor, at: int) -> CreateTypeStatement:
    """The cursor is behind CREATE TYPE."""
    name = qualified_name(cursor)
    cursor.expect("AS")
    form_at = cursor.at
    if cursor.accept("LIST"):
        (element,) = _parts(cursor, "ELEMENT")
        return CreateTypeStatement(name, ListType(element, at=form_at), at=at)
    if cursor.accept("MAP"):
        key, value = _parts(cursor, "KEY", "VALUE")
        return CreateTypeStatement(name, MapType(key, value, at=form_at), at=at)
    if cursor.key != "(":
        cursor.fail("one of LIST or MAP or left parenthesis")
    cursor.advance()
    fields = comma_separated(cursor, _field)
    cursor.expect(")")
    return CreateTypeStatement(name, RecordFields(fields, at=form_at), at=at)


def _parts(cursor: Cursor, *wanted: str) -> list[DataType]:
    """`(KEY TYPE = a, VALUE TYPE = b)` in any order; the types in the order wanted."""
    found: dict[str, DataType] = {}
    cursor.expect("(")
    while True:
        missing = [word for word in wanted if word not in found]
        if cursor.key not in missing:
            cursor.fail(" or ".join(f"{word} TYPE" for word in missing) or "right parenthesis")
        word = cursor.key
        cursor.expect(word, "TYPE")
        cursor.accept("=")
        found[word] = data_type(cursor)
        if not cursor.accept(","):
            break
    if len(found) < len(wanted):
        cursor.fail("comma")
    cursor.expect(")")
    return [found[word] for word in wanted]


def _field(cursor: Cursor) -> TypeField:
    at = cursor.at
    name = identifier(cursor)
    return TypeField(name, data_type(cursor), at=at)


def create_secret(cursor: Cursor, at: int) -> CreateSecretStatement:
    """The cursor is behind CREATE SECRET."""
    exists_ok = if_not_exists(cursor)
    name = qualified_name(cursor)
    cursor.expect("AS")
    return CreateSecretStatement(name, expression(cursor), exists_ok, at=at)


def refuse_connection(at: int) -> NoReturn:
    """Nothing here could use one, so none is kept: sources are load generators, sinks files."""
    raise FeatureNotSupported(
        "CREATE CONNECTION is not supported",
        detail="No source or sink could use a connection.",
        hint="Use load generators as sources, and files as sinks.",
        position=at + 1,
    )


def refuse_network_policy(at: int) -> NoReturn:
    """A policy that nobody enforces would be worse than none."""
    raise FeatureNotSupported(
        "CREATE NETWORK POLICY is not supported",
        detail="Nothing would enforce it.",
        hint="Decide by --sql-addr, or by a firewall, who may connect.",
        position=at + 1,
    )
