"""Leaves of the error tree that only evaluation of expressions raises, one SQLSTATE each."""

from evertide.vocab.errors import SqlError


class IntervalFieldOverflow(SqlError):
    sqlstate = "22015"


class InvalidArgumentForLogarithm(SqlError):
    sqlstate = "2201E"


class InvalidArgumentForPower(SqlError):
    sqlstate = "2201F"


class InvalidArgumentForWidthBucket(SqlError):
    sqlstate = "2201G"


class InvalidRegularExpression(SqlError):
    sqlstate = "2201B"


class InvalidEscapeSequence(SqlError):
    sqlstate = "22025"


class InvalidTimeZoneDisplacement(SqlError):
    sqlstate = "22009"


class ArraySubscriptError(SqlError):
    sqlstate = "2202E"


class UntranslatableCharacter(SqlError):
    sqlstate = "22P05"


class NullValueNotAllowed(SqlError):
    sqlstate = "22004"


class SubstringError(SqlError):
    sqlstate = "22011"
