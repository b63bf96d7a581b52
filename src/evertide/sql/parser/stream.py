"""COPY and SUBSCRIBE: results that leave, or rows that come, outside the usual row messages."""

from typing import Final

from evertide.sql.parser import option, query, show
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.dml import as_of, select_statement
from evertide.sql.parser.expression import expression
from evertide.sql.parser.names import (
    identifier,
    one_of,
    optional_columns,
    parenthesized,
    qualified_name,
    string_literal,
)
from evertide.sql.syntax.command import (
    CopyFromStatement,
    CopyTable,
    CopyToStatement,
    EnvelopeOutput,
    SelectStatement,
    SubscribeStatement,
    WithinTimestampOutput,
)
from evertide.sql.syntax.expression import Name, Star
from evertide.sql.syntax.option import Option
from evertide.sql.syntax.query import Query, Select, SelectItem, ShowTable

# TAIL is the older word.
SUBSCRIBING: Final = ("SUBSCRIBE", "TAIL")


def copy(cursor: Cursor) -> CopyToStatement | CopyFromStatement:
    """COPY to or from the client; files and programs are no part of the grammar."""
    at = cursor.at
    cursor.expect("COPY")
    source: CopyTable | SelectStatement | SubscribeStatement
    if cursor.accept("("):
        subscribing = cursor.key in SUBSCRIBING
        source = subscribe(cursor) if subscribing else select_statement(cursor)
        cursor.expect(")", "TO", "STDOUT")
        return CopyToStatement(source, _copy_options(cursor), at=at)
    table_at = cursor.at
    source = CopyTable(qualified_name(cursor), optional_columns(cursor), at=table_at)
    if one_of(cursor, "TO", "FROM") == "TO":
        cursor.expect("STDOUT")
        return CopyToStatement(source, _copy_options(cursor), at=at)
    cursor.expect("STDIN")
    return CopyFromStatement(source, _copy_options(cursor), at=at)


def _copy_options(cursor: Cursor) -> tuple[Option, ...]:
    """Options in parentheses, or in the older form that drivers still send."""
    cursor.accept("WITH")
    if cursor.key == "(":
        return option.parenthesized_options(cursor, option.COPY)
    found: list[Option] = []
    while cursor.key not in (";", ""):
        found.append(_old_copy_option(cursor))
    return tuple(found)


def _old_copy_option(cursor: Cursor) -> Option:
    at = cursor.at
    word = one_of(cursor, "BINARY", "CSV", "HEADER", "DELIMITER", "NULL", "QUOTE", "ESCAPE")
    if word in ("BINARY", "CSV"):
        return Option("FORMAT", Name((word.lower(),), at=at), at=at)
    if word == "HEADER":
        return Option(word, at=at)
    cursor.accept("AS")
    return Option(word, string_literal(cursor), at=at)


def subscribe(cursor: Cursor) -> SubscribeStatement:
    at = cursor.at
    if not cursor.accept("TAIL"):
        cursor.expect("SUBSCRIBE")
    cursor.accept("TO")
    source: Name | Query
    if cursor.key == "(" and cursor.peek() == "SHOW":
        source = _shown(cursor)
    elif cursor.accept("("):
        source = query.query(cursor)
        cursor.expect(")")
    else:
        source = qualified_name(cursor)
    output = _output(cursor)
    options = option.with_options(cursor, option.SUBSCRIBE)
    start = as_of(cursor)
    until = expression(cursor) if cursor.accept_words("UP", "TO") else None
    if output is None:
        output = _output(cursor)
    return SubscribeStatement(source, output, options, start, until, at=at)


def _shown(cursor: Cursor) -> Query:
    """`(SHOW ...)` is `(SELECT * FROM (SHOW ...))`."""
    at = cursor.at
    cursor.expect("(")
    listing = ShowTable(show.show(cursor), at=at)
    cursor.expect(")")
    return Query(Select((SelectItem(Star(at=at), at=at),), (listing,), at=at), at=at)


def _output(cursor: Cursor) -> EnvelopeOutput | WithinTimestampOutput | None:
    """The form of the rows: said right after what is subscribed to, or at the end."""
    at = cursor.at
    if cursor.accept("ENVELOPE"):
        upsert = one_of(cursor, "UPSERT", "DEBEZIUM") == "UPSERT"
        cursor.expect("(", "KEY")
        key = parenthesized(cursor, identifier)
        cursor.expect(")")
        return EnvelopeOutput("UPSERT" if upsert else "DEBEZIUM", key, at=at)
    if cursor.accept("WITHIN"):
        cursor.expect("TIMESTAMP")
        if cursor.key != "ORDER":
            cursor.fail("ORDER")
        return WithinTimestampOutput(query.order_by(cursor), at=at)
    return None
