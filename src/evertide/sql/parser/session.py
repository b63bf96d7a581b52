"""SET, RESET, ALTER SYSTEM, DISCARD, and the bounds of transactions."""

from typing import Final, Literal

from evertide.sql.lexer import NUMBER, QUOTED, STRING
from evertide.sql.parser.cursor import Cursor
from evertide.sql.parser.names import (
    comma_separated,
    identifier,
    is_word,
    one_of,
    take_word,
    variable_name,
)
from evertide.sql.parser.type_name import interval_fields
from evertide.sql.syntax.command import (
    AlterSystemResetStatement,
    AlterSystemSetStatement,
    BeginStatement,
    CommitStatement,
    DiscardStatement,
    ResetVariableStatement,
    RollbackStatement,
    SavepointAction,
    SavepointStatement,
    SetTransactionStatement,
    SetVariableStatement,
    TransactionModes,
)

_ISOLATION_LEVELS: Final = (
    "READ UNCOMMITTED",
    "READ COMMITTED",
    "REPEATABLE READ",
    "SERIALIZABLE",
    "STRICT SERIALIZABLE",
    "STRONG SESSION SERIALIZABLE",
)

# SET ROLE, and SET SESSION AUTHORIZATION: what they would set, as PostgreSQL calls it.
_OF_ROLES: Final = {"ROLE": "role", "AUTHORIZATION": "session_authorization"}


def set_(cursor: Cursor) -> SetVariableStatement | SetTransactionStatement:
    """Any SET statement."""
    at = cursor.at
    cursor.expect("SET")
    if cursor.accept_words("SESSION", "CHARACTERISTICS", "AS", "TRANSACTION"):
        return SetTransactionStatement(_modes(cursor, required=True), session=True, at=at)
    local = False
    if cursor.key in ("SESSION", "LOCAL") and cursor.peek() not in ("=", "TO"):
        local = cursor.key == "LOCAL"
        cursor.advance()
    if cursor.key == "TRANSACTION" and cursor.peek() not in ("=", "TO"):
        cursor.advance()
        return SetTransactionStatement(_modes(cursor, required=True), at=at)
    if cursor.accept_words("TIME", "ZONE"):
        return SetVariableStatement("timezone", _time_zone(cursor), local, at=at)
    if cursor.key == "SCHEMA" and cursor.peek() in (STRING, "TO", "="):
        cursor.advance()
        values = (cursor.advance(),) if cursor.key == STRING else _assigned(cursor)
        return SetVariableStatement("search_path", values, local, at=at)
    for words in ("ROLE", "AUTHORIZATION"):
        if cursor.key == words and cursor.peek() not in ("=", "TO"):
            cursor.advance()
            values = None if cursor.accept("DEFAULT") else (_value(cursor),)
            return SetVariableStatement(_OF_ROLES[words], values, local, at=at)
    name = variable_name(cursor)
    return SetVariableStatement(name, _assigned(cursor), local, at=at)


def _assigned(cursor: Cursor) -> tuple[str, ...] | None:
    if not cursor.accept("TO") and not cursor.accept("="):
        cursor.fail("equals sign or TO")
    return None if cursor.accept("DEFAULT") else comma_separated(cursor, _value)


def _value(cursor: Cursor) -> str:
    """A value as text. A word is folded like an identifier."""
    sign = ""
    if cursor.key in ("-", "+") and cursor.peek() == NUMBER:
        sign = "-" if cursor.key == "-" else ""
        cursor.advance()
    if cursor.key in (STRING, NUMBER):
        return sign + cursor.advance()
    if cursor.key != QUOTED and not is_word(cursor.key):
        cursor.fail("variable value")
    return take_word(cursor)


def _time_zone(cursor: Cursor) -> tuple[str, ...] | None:
    if cursor.accept("DEFAULT") or cursor.accept("LOCAL"):
        return None
    if cursor.key == "INTERVAL" and cursor.peek() == STRING:
        cursor.advance()
        value = cursor.advance()
        interval_fields(cursor)  # an offset from UTC has hours and minutes, whatever is said
        return (value,)
    return (_value(cursor),)


def reset(cursor: Cursor) -> ResetVariableStatement:
    at = cursor.at
    cursor.expect("RESET")
    return ResetVariableStatement(_reset_name(cursor), at=at)


def _reset_name(cursor: Cursor) -> str | None:
    if cursor.accept("ALL"):
        return None
    if cursor.accept_words("TIME", "ZONE"):
        return "timezone"
    if cursor.accept_words("SESSION", "AUTHORIZATION"):
        return "session_authorization"
    return variable_name(cursor)


def alter_system(cursor: Cursor, at: int) -> AlterSystemSetStatement | AlterSystemResetStatement:
    """The cursor is behind ALTER SYSTEM."""
    if one_of(cursor, "SET", "RESET") == "SET":
        name = variable_name(cursor)
        return AlterSystemSetStatement(name, _assigned(cursor), at=at)
    return AlterSystemResetStatement(_reset_name(cursor), at=at)


def begin(cursor: Cursor) -> BeginStatement:
    """BEGIN or START TRANSACTION."""
    at = cursor.at
    if cursor.accept("START"):
        cursor.expect("TRANSACTION")
    else:
        cursor.expect("BEGIN")
        _skip_noise(cursor)
    return BeginStatement(_modes(cursor, required=False), at=at)


def _skip_noise(cursor: Cursor) -> None:
    if cursor.key in ("WORK", "TRANSACTION"):
        cursor.advance()


def _modes(cursor: Cursor, *, required: bool) -> TransactionModes:
    """Transaction modes, with or without commas. If one is said twice, the last counts."""
    at = cursor.at
    isolation: str | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    while required or cursor.key not in (";", ""):
        if cursor.accept_words("ISOLATION", "LEVEL"):
            isolation = _isolation_level(cursor)
        elif cursor.accept("READ"):
            read_only = one_of(cursor, "ONLY", "WRITE") == "ONLY"
        elif cursor.accept("DEFERRABLE"):
            deferrable = True
        elif cursor.accept_words("NOT", "DEFERRABLE"):
            deferrable = False
        else:
            cursor.fail("transaction mode")
        required = cursor.accept(",")
    return TransactionModes(isolation, read_only, deferrable, at=at)


def _isolation_level(cursor: Cursor) -> str:
    for level in _ISOLATION_LEVELS:
        if cursor.accept_words(*level.split()):
            return level.lower()
    cursor.fail("isolation level")


def commit(cursor: Cursor) -> CommitStatement:
    """COMMIT or END."""
    at = cursor.at
    cursor.advance()
    _skip_noise(cursor)
    return CommitStatement(_chain(cursor), at=at)


def rollback(cursor: Cursor) -> RollbackStatement | SavepointStatement:
    """ROLLBACK or ABORT, of all or of what came after a savepoint."""
    at = cursor.at
    cursor.advance()
    _skip_noise(cursor)
    if not cursor.accept("TO"):
        return RollbackStatement(_chain(cursor), at=at)
    if cursor.key == "SAVEPOINT":
        cursor.advance()
    return SavepointStatement(SavepointAction.ROLL_BACK, identifier(cursor), at=at)


def savepoint(cursor: Cursor) -> SavepointStatement:
    """SAVEPOINT, or RELEASE of one."""
    at = cursor.at
    release = cursor.key == "RELEASE"
    cursor.advance()
    if release and cursor.key == "SAVEPOINT":
        cursor.advance()
    action = SavepointAction.RELEASE if release else SavepointAction.SET
    return SavepointStatement(action, identifier(cursor), at=at)


def _chain(cursor: Cursor) -> bool:
    if not cursor.accept("AND"):
        return False
    chain = not cursor.accept("NO")
    cursor.expect("CHAIN")
    return chain


def discard(cursor: Cursor) -> DiscardStatement:
    at = cursor.at
    cursor.expect("DISCARD")
    return DiscardStatement(_DISCARDS[one_of(cursor, *_DISCARDS)], at=at)


_DISCARDS: Final[dict[str, Literal["ALL", "PLANS", "SEQUENCES", "TEMP"]]] = {
    "ALL": "ALL",
    "PLANS": "PLANS",
    "SEQUENCES": "SEQUENCES",
    "TEMP": "TEMP",
    "TEMPORARY": "TEMP",
}
