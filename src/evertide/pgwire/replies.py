"""What the server says, as bytes: one function per backend message."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from struct import Struct

from evertide.adapter.client import CopyKind, CopyLayout, TransactionStatus
from evertide.vocab.errors import Notice, SqlError
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.scram import MECHANISM
from evertide.vocab.sql_type import SqlType

# The only version this server speaks, 3.0, as the number that clients compare.
PROTOCOL_VERSION = 3 << 16

_HEADER = Struct("!ci")
_INT16 = Struct("!h")
_INT32 = Struct("!i")
_KEY = Struct("!II")
_FIELD = Struct("!IhIhih")
_COPY_HEADER = Struct("!bh")


class Severity(StrEnum):
    """How bad it is: an ERROR ends the statement, a FATAL the connection."""

    ERROR = "ERROR"
    FATAL = "FATAL"


def _message(tag: bytes, body: bytes = b"") -> bytes:
    return _HEADER.pack(tag, len(body) + 4) + body


def _string(text: str) -> bytes:
    """A string as the protocol ends it, at the first NUL; so none may be inside."""
    return text.replace("\0", "").encode("utf-8", "replace") + b"\0"


AUTHENTICATION_OK = _message(b"R", _INT32.pack(0))
# The ways to authenticate that are offered, each ended by a NUL, and one more behind them all.
AUTHENTICATION_SASL = _message(b"R", _INT32.pack(10) + _string(MECHANISM) + b"\0")
PARSE_COMPLETE = _message(b"1")
BIND_COMPLETE = _message(b"2")
CLOSE_COMPLETE = _message(b"3")
NO_DATA = _message(b"n")
PORTAL_SUSPENDED = _message(b"s")
EMPTY_QUERY_RESPONSE = _message(b"I")
COPY_DONE = _message(b"c")

_READY_FOR_QUERY = {status: _message(b"Z", status.value) for status in TransactionStatus}


def ready_for_query(status: TransactionStatus) -> bytes:
    return _READY_FOR_QUERY[status]


def authentication_sasl_continue(challenge: str) -> bytes:
    return _message(b"R", _INT32.pack(11) + challenge.encode())


def authentication_sasl_final(outcome: str) -> bytes:
    return _message(b"R", _INT32.pack(12) + outcome.encode())


def negotiate_protocol_version(unknown_options: Sequence[str]) -> bytes:
    """Tells a client that asked for more what it gets."""
    options = b"".join([_string(name) for name in unknown_options])
    return _message(
        b"v", _INT32.pack(PROTOCOL_VERSION) + _INT32.pack(len(unknown_options)) + options
    )


def parameter_status(parameters: Mapping[str, str]) -> bytes:
    return b"".join(
        [_message(b"S", _string(name) + _string(value)) for name, value in parameters.items()]
    )


def backend_key_data(pid: int, secret: int) -> bytes:
    return _message(b"K", _KEY.pack(pid, secret))


def command_complete(tag: str) -> bytes:
    return _message(b"C", _string(tag))


def parameter_description(types: Sequence[SqlType]) -> bytes:
    return _message(
        b"t", Struct(f"!H{len(types)}I").pack(len(types), *[sql_type.oid for sql_type in types])
    )


def row_description(desc: RelationDesc, formats: Sequence[int]) -> bytes:
    """Columns of a result never name a table's column: a result belongs to a query."""
    fields = [
        _string(column.name)
        + _FIELD.pack(
            0, 0, column.type.oid, column.type.type_length, column.type.type_modifier, code
        )
        for column, code in zip(desc.columns, formats, strict=True)
    ]
    return _message(b"T", _INT16.pack(len(fields)) + b"".join(fields))


def copy_out_response(column_count: int, layout: CopyLayout) -> bytes:
    """Announces COPY's rows."""
    return _message(b"H", _copy_formats(column_count, binary=layout.kind is CopyKind.BINARY))


def copy_in_response(column_count: int, *, binary: bool) -> bytes:
    """Asks for COPY's rows."""
    return _message(b"G", _copy_formats(column_count, binary=binary))


def _copy_formats(column_count: int, *, binary: bool) -> bytes:
    """The format of the whole, and that of each column, which is the same."""
    code = _INT16.pack(int(binary))
    return _COPY_HEADER.pack(int(binary), column_count) + code * column_count


def error_response(error: SqlError, severity: Severity = Severity.ERROR) -> bytes:
    position = None if error.position is None else str(error.position)
    return _report(
        b"E", severity, error.code, error.message, error.detail, error.hint, position, error.context
    )


def notice_response(notices: Iterable[Notice]) -> bytes:
    return b"".join(
        [_report(b"N", n.severity, n.sqlstate, n.message, n.detail, n.hint, None) for n in notices]
    )


def _report(
    tag: bytes,
    severity: str,
    sqlstate: str,
    message: str,
    detail: str | None,
    hint: str | None,
    position: str | None,
    context: str | None = None,
) -> bytes:
    """Severity goes twice: S may be translated, V never is, and clients read either."""
    fields = {
        b"S": severity, b"V": severity, b"C": sqlstate, b"M": message,
        b"D": detail, b"H": hint, b"P": position, b"W": context,
    }  # fmt: skip
    given = [code + _string(value) for code, value in fields.items() if value is not None]
    return _message(tag, b"".join(given) + b"\0")
