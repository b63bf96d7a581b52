"""Stored definitions of replacements, as they are staged and once they are applied."""

from dataclasses import replace

from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.history import RETAIN_HISTORY
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import name_of
from evertide.sql.syntax.definition import CreateMaterializedViewStatement
from evertide.sql.syntax.expression import Name


def definition_of(create_sql: str) -> CreateMaterializedViewStatement:
    """A materialized view's definition as a tree."""
    statement = parse_statement(create_sql)
    assert isinstance(statement, CreateMaterializedViewStatement), "its definition creates it"
    return statement


def applied_text(target: Item, replacement: Item, snapshot: Snapshot) -> str:
    """The replacement's definition as its target's; how long history stays is the target's own."""
    staged, before = definition_of(replacement.create_sql), definition_of(target.create_sql)
    history = tuple(one for one in before.options if one.name == RETAIN_HISTORY)
    return to_sql(
        replace(
            staged,
            name=Name(name_of(target, snapshot).parts),
            replacing=None,
            options=(*staged.options, *history),
        )
    )


def with_target(create_sql: str, target: Name) -> str:
    """A replacement's definition once its target has another name."""
    return to_sql(replace(definition_of(create_sql), replacing=target))
