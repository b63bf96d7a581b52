"""Text to statements: what the rest of the system calls."""

from collections.abc import Callable
from typing import Final

from evertide.sql.lexer import tokenize
from evertide.sql.parser import (
    alter,
    comment,
    create,
    dml,
    explain,
    expression,
    portal,
    replacement,
    role,
    session,
    stream,
    type_name,
    undrop,
)
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.keywords import KEYWORDS
from evertide.sql.syntax.expression import DataType, Expression
from evertide.sql.syntax.statement import Statement
from evertide.vocab.errors import SqlSyntaxError


def parse_statements(text: str) -> list[Statement]:
    """All statements of a text; empty ones between semicolons leave no trace.

    Offsets count from the start of the whole text, as the positions that clients expect do.
    """
    cursor = Cursor(tokenize(text))
    statements: list[Statement] = []
    while True:
        while cursor.accept(";"):
            pass
        if cursor.key == "":
            return statements
        statements.append(_statement(cursor))
        if cursor.key not in (";", ""):
            cursor.fail("end of statement")


def parse_statement(text: str) -> Statement:
    """The one statement of a text."""
    statements = parse_statements(text)
    if len(statements) != 1:
        raise SqlSyntaxError(f"expected exactly one statement, but got {len(statements)}")
    return statements[0]


def parse_expression(text: str) -> Expression:
    """A scalar expression that fills the text."""
    cursor = Cursor(tokenize(text))
    found = expression.expression(cursor)
    if cursor.key != "":
        cursor.fail("end of expression")
    return found


def parse_data_type(text: str) -> DataType:
    """A type name that fills the text, such as the argument of to_regtype."""
    cursor = Cursor(tokenize(text))
    found = type_name.data_type(cursor)
    if cursor.key != "":
        cursor.fail("end of data type")
    return found


def _statement(cursor: Cursor) -> Statement:
    read = _STATEMENTS.get(cursor.key)
    if read is None:
        if cursor.key in KEYWORDS:
            raise SqlSyntaxError(
                f"Unexpected keyword {cursor.key} at the beginning of a statement",
                position=cursor.at + 1,
            )
        cursor.fail("a keyword at the beginning of a statement")
    return read(cursor)


_STATEMENTS: Final[dict[str, Callable[[Cursor], Statement]]] = {
    **dict.fromkeys(("SELECT", "WITH", "VALUES", "TABLE", "("), dml.select_statement),
    "INSERT": dml.insert,
    "UPDATE": dml.update,
    "DELETE": dml.delete,
    "CREATE": create.create,
    "DROP": alter.drop,
    "UNDROP": undrop.undrop,
    "ALTER": alter.alter,
    "COMMENT": comment.comment,
    "GRANT": role.grant,
    "REVOKE": role.revoke,
    "REASSIGN": role.reassign_owned,
    "SHOW": replacement.show_statement,
    "SET": session.set_,
    "RESET": session.reset,
    "BEGIN": session.begin,
    "START": session.begin,
    "COMMIT": session.commit,
    "END": session.commit,
    "ROLLBACK": session.rollback,
    "SAVEPOINT": session.savepoint,
    "RELEASE": session.savepoint,
    "ABORT": session.rollback,
    "DISCARD": session.discard,
    "EXPLAIN": explain.explain,
    "COPY": stream.copy,
    **dict.fromkeys(stream.SUBSCRIBING, stream.subscribe),
    "DECLARE": portal.declare,
    "FETCH": portal.fetch,
    "CLOSE": portal.close,
    "PREPARE": portal.prepare,
    "EXECUTE": portal.execute,
    "DEALLOCATE": portal.deallocate,
}
