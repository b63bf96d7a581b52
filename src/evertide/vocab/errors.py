"""One error tree, one SQLSTATE per leaf.

A SqlError is the user's mistake or a state of the system the user must know of. Message: lower
case, no full stop, names the object and its kind; hint: what to do. It is raised where the fact is
known and turned into a wire message once, in pgwire/machine.py.
"""

import json
from dataclasses import dataclass
from typing import ClassVar


class SqlError(Exception):
    """What a client is told. `position` counts characters of the statement from 1."""

    sqlstate: ClassVar[str] = "XX000"

    def __init__(
        self,
        message: str,
        *,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        context: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.hint = hint
        self.position = position
        # Where in the data it happened, as PostgreSQL's CONTEXT says it.
        self.context = context

    @property
    def code(self) -> str:
        """The SQLSTATE; errors read back from data carry their own."""
        return self.sqlstate


class SqlSyntaxError(SqlError):
    sqlstate = "42601"


class FeatureNotSupported(SqlError):
    sqlstate = "0A000"


class ProtocolViolation(SqlError):
    sqlstate = "08P01"


class InvalidAuthorization(SqlError):
    sqlstate = "28000"


class InvalidPassword(SqlError):
    sqlstate = "28P01"


class InvalidName(SqlError):
    sqlstate = "42602"


class NameTooLong(SqlError):
    sqlstate = "42622"


class UndefinedTable(SqlError):
    sqlstate = "42P01"


class UndefinedColumn(SqlError):
    sqlstate = "42703"


class UndefinedFunction(SqlError):
    sqlstate = "42883"


class UndefinedObject(SqlError):
    sqlstate = "42704"


class UndefinedSchema(SqlError):
    sqlstate = "3F000"


class UndefinedDatabase(SqlError):
    sqlstate = "3D000"


class UndefinedPreparedStatement(SqlError):
    sqlstate = "26000"


class UndefinedPortal(SqlError):
    sqlstate = "34000"


class UndefinedParameter(SqlError):
    sqlstate = "42P02"


class IndeterminateType(SqlError):
    sqlstate = "42P18"


class AmbiguousColumn(SqlError):
    sqlstate = "42702"


class AmbiguousFunction(SqlError):
    sqlstate = "42725"


class DuplicateTable(SqlError):
    sqlstate = "42P07"


class DuplicateColumn(SqlError):
    sqlstate = "42701"


class InvalidTableDefinition(SqlError):
    sqlstate = "42P16"


class DuplicateAlias(SqlError):
    sqlstate = "42712"


class DuplicateObject(SqlError):
    sqlstate = "42710"


class DuplicatePreparedStatement(SqlError):
    sqlstate = "42P05"


class DuplicateCursor(SqlError):
    sqlstate = "42P03"


class WrongObjectType(SqlError):
    sqlstate = "42809"


class DatatypeMismatch(SqlError):
    sqlstate = "42804"


class CannotCoerce(SqlError):
    sqlstate = "42846"


class GroupingError(SqlError):
    sqlstate = "42803"


class WindowingError(SqlError):
    sqlstate = "42P20"


class InvalidColumnReference(SqlError):
    sqlstate = "42P10"


class InvalidParameterValue(SqlError):
    sqlstate = "22023"


class InvalidArgumentForNtile(SqlError):
    sqlstate = "22014"


class InvalidArgumentForNthValue(SqlError):
    sqlstate = "22016"


class NullValueNotAllowed(SqlError):
    sqlstate = "22004"


class DependentObjectsStillExist(SqlError):
    sqlstate = "2BP01"


class NotNullViolation(SqlError):
    sqlstate = "23502"


class NumericOutOfRange(SqlError):
    sqlstate = "22003"


class DivisionByZero(SqlError):
    sqlstate = "22012"


class InvalidTextRepresentation(SqlError):
    sqlstate = "22P02"


class BadCopyFileFormat(SqlError):
    sqlstate = "22P04"


class InvalidBinaryRepresentation(SqlError):
    sqlstate = "22P03"


class InvalidDatetimeFormat(SqlError):
    sqlstate = "22007"


class DatetimeFieldOverflow(SqlError):
    sqlstate = "22008"


class StringDataRightTruncation(SqlError):
    sqlstate = "22001"


class CharacterNotInRepertoire(SqlError):
    sqlstate = "22021"


class CardinalityViolation(SqlError):
    sqlstate = "21000"


class DataException(SqlError):
    sqlstate = "22000"


class ActiveTransaction(SqlError):
    sqlstate = "25001"


class InvalidTransactionState(SqlError):
    sqlstate = "25000"


class ReadOnlyTransaction(SqlError):
    sqlstate = "25006"


class IdleInTransactionTimeout(SqlError):
    sqlstate = "25P03"


class InFailedTransaction(SqlError):
    sqlstate = "25P02"


class NoActiveTransaction(SqlError):
    sqlstate = "25P01"


class SerializationFailure(SqlError):
    sqlstate = "40001"


class QueryCanceled(SqlError):
    sqlstate = "57014"


class AdminShutdown(SqlError):
    sqlstate = "57P01"


class StatementTooComplex(SqlError):
    sqlstate = "54001"


class ProgramLimitExceeded(SqlError):
    sqlstate = "54000"


class ObjectInUse(SqlError):
    sqlstate = "55006"


class ObjectNotInPrerequisiteState(SqlError):
    sqlstate = "55000"


class InsufficientPrivilege(SqlError):
    sqlstate = "42501"


class InvalidGrantOperation(SqlError):
    sqlstate = "0LP01"


class InsufficientResources(SqlError):
    sqlstate = "53000"


class OutOfMemory(SqlError):
    """What is asked needs more memory than it may take; everything else goes on."""

    sqlstate = "53200"


class DiskFull(SqlError):
    sqlstate = "53100"


class DuplicateFile(SqlError):
    sqlstate = "58P02"


class IoError(SqlError):
    sqlstate = "58030"


class DataCorrupted(SqlError):
    sqlstate = "XX001"


class InvalidSavepoint(SqlError):
    sqlstate = "3B001"


class CannotChangeParameter(SqlError):
    sqlstate = "55P02"


class InternalError(SqlError):
    sqlstate = "XX000"


class DataError(SqlError):
    """An error that a row of data carries: read back from a collection's error rows."""

    def __init__(self, code: str, message: str, *, detail: str | None = None) -> None:
        super().__init__(message, detail=detail)
        self._code = code

    @property
    def code(self) -> str:
        return self._code


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a client should know that is not an error."""

    severity: str  # NOTICE or WARNING
    sqlstate: str
    message: str
    detail: str | None = None
    hint: str | None = None


def encode_error(error: SqlError) -> str:
    """An error as the text of an error row: the same bytes for the same error everywhere.

    >>> encode_error(DivisionByZero("division by zero"))
    '["22012","division by zero"]'
    """
    return json.dumps([error.code, error.message], separators=(",", ":"), ensure_ascii=False)


def decode_error(text: str) -> DataError:
    """The error that an error row holds."""
    code, message = json.loads(text)
    return DataError(code, message)
