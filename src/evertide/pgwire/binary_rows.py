"""COPY's binary format, read as it comes; pure."""

from collections.abc import Sequence
from struct import Struct
from typing import Final

from evertide.pgwire.values import BINARY_FORMAT, parameter_decoder
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import BadCopyFileFormat, SqlError
from evertide.vocab.sql_type import SqlType

SIGNATURE: Final = b"PGCOPY\n\xff\r\n\0"
_START: Final = Struct("!11sII")
_COUNT: Final = Struct("!h")
_LENGTH: Final = Struct("!i")
# Flags in the upper half say that an older reader cannot understand the rest.
_CRITICAL: Final = 0xFFFF_0000
_END: Final = -1
_NULL: Final = -1


class _NotWhole(Exception):
    """The rest has not come yet."""


class BinaryRows:
    """Takes bytes cut anywhere and gives whole rows; keeps what is not whole yet."""

    def __init__(self, types: Sequence[SqlType]) -> None:
        self._decoders = [parameter_decoder(sql_type, BINARY_FORMAT) for sql_type in types]
        self._rest = b""
        self._begun = False
        self._ended = False
        self._count = 0

    def feed(self, received: bytes) -> list[Row]:
        """The rows that are whole by now."""
        self._rest += received
        rows: list[Row] = []
        at = 0
        try:
            if not self._begun:
                at = self._start()
            while not self._ended:
                row, at = self._row(at)
                if row is None:
                    self._ended = True
                else:
                    rows.append(row)
                    self._count += 1
        except _NotWhole:
            pass
        except SqlError as error:
            error.context = error.context or f"line {self._count + 1}"
            raise
        self._rest = self._rest[at:]
        if self._ended and self._rest:
            raise BadCopyFileFormat("received copy data after EOF marker")
        return rows

    def check_ended(self) -> None:
        """Raises unless the last row has come whole. The mark of the end may be missing."""
        if self._rest or not self._begun:
            raise BadCopyFileFormat("unexpected EOF in COPY data")

    def _start(self) -> int:
        if not SIGNATURE.startswith(self._rest[: len(SIGNATURE)]):
            raise BadCopyFileFormat("COPY file signature not recognized")
        if len(self._rest) < _START.size:
            raise _NotWhole
        flags, extension = (int(number) for number in _START.unpack_from(self._rest)[1:])
        if flags & _CRITICAL:
            raise BadCopyFileFormat("unrecognized critical flags in COPY file header")
        if len(self._rest) < _START.size + extension:
            raise _NotWhole
        self._begun = True
        return _START.size + extension

    def _row(self, at: int) -> tuple[Row | None, int]:
        """The row that begins here and where it ends; None: the end of all rows."""
        (count,) = _COUNT.unpack(self._take(at, 2))
        at += 2
        if count == _END:
            return None, at
        if count != len(self._decoders):
            raise BadCopyFileFormat(f"row field count is {count}, expected {len(self._decoders)}")
        row: list[Datum] = []
        for decode in self._decoders:
            (length,) = _LENGTH.unpack(self._take(at, 4))
            at += 4
            if length < _NULL:
                raise BadCopyFileFormat("invalid field size")
            row.append(None if length == _NULL else decode(self._take(at, length)))
            at += max(length, 0)
        return tuple(row), at

    def _take(self, at: int, size: int) -> bytes:
        taken = self._rest[at : at + size]
        if len(taken) < size:
            raise _NotWhole
        return taken
