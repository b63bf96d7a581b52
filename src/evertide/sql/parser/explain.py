"""EXPLAIN."""

from typing import Final

from evertide.sql.parser import create, option, replacement, stream
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.dml import select_statement
from evertide.sql.parser.names import comma_separated, is_word, one_of, qualified_name
from evertide.sql.syntax.command import (
    ExplainFormat,
    ExplainObject,
    ExplainPlanStatement,
    ExplainTarget,
    ExplainTimestampStatement,
)
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateViewStatement,
    ObjectKind,
)
from evertide.sql.syntax.option import Option
from evertide.sql.syntax.replacement import ExplainReplacementStatement
from evertide.vocab.errors import SqlSyntaxError

_STAGES: Final = (
    "LOCALLY OPTIMIZED", "OPTIMIZED", "PHYSICAL", "RAW", "DECORRELATED", "DELTA", "SPARK",
)  # fmt: skip
_OBJECTS: Final = (ObjectKind.MATERIALIZED_VIEW, ObjectKind.VIEW, ObjectKind.INDEX)


def explain(
    cursor: Cursor,
) -> ExplainPlanStatement | ExplainTimestampStatement | ExplainReplacementStatement:
    """Any EXPLAIN statement."""
    at = cursor.at
    cursor.expect("EXPLAIN")
    if cursor.accept("REPLACEMENT"):
        return replacement.explain(cursor, at)
    if cursor.accept("TIMESTAMP"):
        format_ = _format(cursor)
        cursor.expect("FOR")
        return ExplainTimestampStatement(select_statement(cursor), format_, at=at)
    stage = next((words for words in _STAGES if cursor.accept_words(*words.split())), None)
    cursor.accept("PLAN")
    options: tuple[Option, ...] = ()
    if cursor.key == "WITH" and cursor.peek() == "(":
        cursor.expect("WITH", "(")
        options = comma_separated(cursor, _explain_option)
        cursor.expect(")")
    format_ = _format(cursor)
    cursor.accept("FOR")
    return ExplainPlanStatement(_target(cursor), stage, options, format_, at=at)


def _format(cursor: Cursor) -> ExplainFormat | None:
    if not cursor.accept("AS"):
        return None
    match one_of(cursor, "TEXT", "VERBOSE", "JSON"):
        case "TEXT":
            return "TEXT"
        case "VERBOSE":
            cursor.expect("TEXT")
            return "VERBOSE TEXT"
        case _:
            return "JSON"


def _explain_option(cursor: Cursor) -> Option:
    """Any words: which options exist changes with the optimizer, and the planner knows them."""
    at = cursor.at
    words: list[str] = []
    while is_word(cursor.key):
        words.append(cursor.key)
        cursor.advance()
    if not words:
        cursor.fail("an option name")
    value = option.value(cursor) if cursor.key == "=" else None
    return Option(" ".join(words), value, at=at)


def _target(cursor: Cursor) -> ExplainTarget:
    at = cursor.at
    if cursor.key == "CREATE":
        statement = create.create(cursor)
        match statement:
            case CreateViewStatement() | CreateMaterializedViewStatement() | CreateIndexStatement():
                return statement
            case _:
                raise SqlSyntaxError(
                    "only CREATE VIEW, MATERIALIZED VIEW and INDEX can be explained",
                    position=at + 1,
                )
    if cursor.key in stream.SUBSCRIBING:
        return stream.subscribe(cursor)
    replan = cursor.accept("REPLAN")
    for kind in _OBJECTS:
        if cursor.accept_words(*kind.split()):
            return ExplainObject(kind, qualified_name(cursor), replan, at=at)
    if replan:
        cursor.fail("one of VIEW or MATERIALIZED VIEW or INDEX")
    return select_statement(cursor)
