"""Constraints of tables and their columns: keys are read, all others refused by name."""

from typing import Final

from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import identifier, parenthesized
from evertide.sql.syntax.definition import TableKey
from evertide.vocab.errors import FeatureNotSupported

_REFUSED: Final = {
    "CHECK": "CHECK constraints",
    "REFERENCES": "FOREIGN KEY constraints",
    "FOREIGN": "FOREIGN KEY constraints",
}


def column_key(cursor: Cursor, column: str) -> TableKey | None:
    """`[CONSTRAINT name] PRIMARY KEY | UNIQUE` of one column, if it is there."""
    at = cursor.at
    name = _name(cursor)
    primary = _kind(cursor)
    if primary is not None:
        return TableKey((column,), primary, name, at=at)
    refuse_constraint(cursor)
    if name is not None:
        cursor.fail("one of PRIMARY KEY or UNIQUE")
    return None


def table_key(cursor: Cursor) -> TableKey | None:
    """`[CONSTRAINT name] PRIMARY KEY (columns) | UNIQUE (columns)`, if it is there."""
    at = cursor.at
    name = _name(cursor)
    primary = _kind(cursor)
    if primary is not None:
        return TableKey(parenthesized(cursor, identifier), primary, name, at=at)
    refuse_constraint(cursor)
    if name is not None:
        cursor.fail("one of PRIMARY KEY or UNIQUE")
    return None


def refuse_constraint(cursor: Cursor) -> None:
    """Constraints that are not kept are refused by name: ignoring them would be a false promise."""
    refused = _REFUSED.get(cursor.key)
    if refused is not None:
        raise FeatureNotSupported(f"{refused} are not supported", position=cursor.at + 1)


def _name(cursor: Cursor) -> str | None:
    return identifier(cursor) if cursor.accept("CONSTRAINT") else None


def _kind(cursor: Cursor) -> bool | None:
    """Whether a primary key begins here, or another; None: neither."""
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return True
    return False if cursor.accept("UNIQUE") else None
