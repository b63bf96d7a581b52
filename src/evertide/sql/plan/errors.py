"""Leaves of the error tree that only planning raises, one SQLSTATE each."""

from evertide.vocab.errors import SqlError


class InvalidLimit(SqlError):
    sqlstate = "2201W"


class InvalidOffset(SqlError):
    sqlstate = "2201X"


class InvalidFrameOffset(SqlError):
    sqlstate = "22013"
