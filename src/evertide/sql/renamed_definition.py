"""Stored definitions after what they name, or they themselves, got other names."""

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from evertide.sql.renaming import Renaming
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.external import (
    CreateSinkStatement,
    CreateSourceStatement,
    CreateSubsourceStatement,
)
from evertide.sql.syntax.named import CreateTypeStatement
from evertide.sql.syntax.statement import Statement

T = TypeVar("T")


class Rewrite(Protocol):
    """What becomes of a query, of columns or of types within a definition."""

    def __call__(self, node: T, /) -> T: ...


def renamed_definition(statement: Statement, relation: Renaming, within: Rewrite) -> Statement:
    """A definition with all items that it names under their new names."""

    def named(name: Name) -> Name:
        return Name(relation(name.parts))

    match statement:
        case CreateTableStatement():
            columns = within(statement.columns)
            return replace(statement, name=named(statement.name), columns=columns)
        case CreateViewStatement():
            return replace(statement, name=named(statement.name), query=within(statement.query))
        case CreateMaterializedViewStatement():
            target = None if statement.replacing is None else named(statement.replacing)
            body = within(statement.query)
            return replace(statement, name=named(statement.name), query=body, replacing=target)
        case CreateIndexStatement():
            return replace(statement, on=named(statement.on))
        case CreateTypeStatement():
            return replace(statement, name=named(statement.name), form=within(statement.form))
        case CreateSourceStatement():
            return _source(statement, named)
        case CreateSubsourceStatement():
            return replace(statement, name=named(statement.name), source=named(statement.source))
        case CreateSinkStatement():
            return replace(statement, name=named(statement.name), from_=named(statement.from_))
        case _:
            raise AssertionError("an item's definition creates it")


def _source(
    statement: CreateSourceStatement, named: Callable[[Name], Name]
) -> CreateSourceStatement:
    tables = statement.tables
    if tables is not None:
        tables = tuple(
            one if one.name is None else replace(one, name=named(one.name)) for one in tables
        )
    return replace(statement, name=named(statement.name), tables=tables)
