"""Replacements of materialized views: how they are applied, looked at and brought back."""

from typing import Final

from evertide.sql.parser import show
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import integer, qualified_name
from evertide.sql.parser.option import Grammar, no_value, with_options
from evertide.sql.syntax.command import ShowStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.replacement import (
    ApplyReplacementStatement,
    ExplainReplacementStatement,
    ReplacementStatement,
    ShowReplacementChangesStatement,
)
from evertide.sql.syntax.replacement import RestoreVersionStatement as Restore

_APPLY: Final[Grammar] = {"FORWARD TIME": no_value}


def optional_target(cursor: Cursor, *, replacement: bool) -> Name | None:
    """The view to be replaced: after REPLACING, or after FOR where REPLACEMENT stood before."""
    if replacement:
        cursor.expect("FOR")
        return qualified_name(cursor)
    return qualified_name(cursor) if cursor.accept("REPLACING") else None


def alter(cursor: Cursor, name: Name, missing_ok: bool, at: int) -> ReplacementStatement | None:
    """What ALTER MATERIALIZED VIEW does with replacements; None: something else."""
    if cursor.accept("APPLY"):
        cursor.expect("REPLACEMENT")
        replacement = qualified_name(cursor)
        forward_time = bool(with_options(cursor, _APPLY))
        when_ready = cursor.accept("WHEN")
        if when_ready:
            cursor.expect("READY")
        return ApplyReplacementStatement(
            name, replacement, forward_time, when_ready, missing_ok, at=at
        )
    if cursor.accept("RESTORE"):
        cursor.expect("VERSION")
        return Restore(name, integer(cursor, "a version number"), missing_ok, at=at)
    return None


def explain(cursor: Cursor, at: int) -> ExplainReplacementStatement:
    """What follows EXPLAIN REPLACEMENT."""
    return ExplainReplacementStatement(qualified_name(cursor), at=at)


def show_statement(cursor: Cursor) -> ShowStatement | ShowReplacementChangesStatement:
    """Any SHOW statement, those included that cannot stand in a FROM clause."""
    at = cursor.at
    if not cursor.accept_words("SHOW", "REPLACEMENT", "CHANGES"):
        return show.show(cursor)
    cursor.expect("FOR")
    name = qualified_name(cursor)
    limit = integer(cursor) if cursor.accept("LIMIT") else None
    return ShowReplacementChangesStatement(name, limit, at=at)
