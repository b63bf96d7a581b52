"""CREATE SOURCE and CREATE SUBSOURCE."""

from typing import Final

from evertide.sql.parser import option
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import (
    identifier,
    if_not_exists,
    label,
    one_of,
    parenthesized,
    qualified_name,
)
from evertide.sql.parser.objects import optional_cluster
from evertide.sql.syntax.external import (
    CreateSourceStatement,
    CreateSubsourceStatement,
    LoadTable,
)
from evertide.vocab.errors import FeatureNotSupported

GENERATORS: Final = ("AUCTION", "COUNTER")
# Those that users of similar systems may look for.
_OTHERS: Final = ("CLOCK", "DATUMS", "KEY VALUE", "MARKETING", "TPCH")
_OPTIONS: Final[option.Grammar] = {
    "TICK INTERVAL": option.value,
    "AS OF": option.value,
    "UP TO": option.value,
    "MAX CARDINALITY": option.value,
    "SEED": option.value,
}


def create_source(cursor: Cursor, *, materialized: bool, at: int) -> CreateSourceStatement:
    """After the word SOURCE."""
    exists_ok = if_not_exists(cursor)
    name = qualified_name(cursor)
    cluster = optional_cluster(cursor)
    cursor.expect("FROM", "LOAD", "GENERATOR")
    generator = _generator(cursor)
    found = option.parenthesized_options(cursor, _OPTIONS) if cursor.key == "(" else ()
    return CreateSourceStatement(
        name,
        generator,
        found,
        _tables(cursor),
        cluster,
        option.with_options(cursor, option.RETAINED),
        materialized,
        exists_ok,
        at=at,
    )


def _generator(cursor: Cursor) -> str:
    for words in _OTHERS:
        position = cursor.at + 1
        if cursor.accept_words(*words.split()):
            raise FeatureNotSupported(
                f"load generator {words} is not supported",
                hint=f"There are {' and '.join(GENERATORS)}.",
                position=position,
            )
    return one_of(cursor, *GENERATORS)


def _tables(cursor: Cursor) -> tuple[LoadTable, ...] | None:
    if not cursor.accept("FOR"):
        return None
    if cursor.accept("ALL"):
        cursor.expect("TABLES")
        return ()
    if not cursor.accept("TABLES"):
        cursor.fail("one of ALL or TABLES")
    return parenthesized(cursor, _table)


def _table(cursor: Cursor) -> LoadTable:
    at = cursor.at
    table = identifier(cursor)
    return LoadTable(table, qualified_name(cursor) if cursor.accept("AS") else None, at=at)


def create_subsource(cursor: Cursor, at: int) -> CreateSubsourceStatement:
    """After the word SUBSOURCE."""
    name = qualified_name(cursor)
    cursor.expect("OF", "SOURCE")
    source = qualified_name(cursor)
    cursor.expect("(", "TABLE")
    table = label(cursor)
    cursor.expect(")")
    return CreateSubsourceStatement(name, source, table, at=at)
