"""COPY ... FROM STDIN on the wire: what the client may send while its rows are awaited."""

from evertide.adapter.client import CopyInResponse
from evertide.pgwire import replies
from evertide.pgwire.binary_rows import BinaryRows
from evertide.pgwire.messages import (
    BrokenStream,
    CopyData,
    CopyDone,
    CopyFail,
    Flush,
    FrontendMessage,
    InvalidMessage,
    Sync,
    Terminate,
)
from evertide.pgwire.requests import Asking, Disconnect, Send, give, next_message
from evertide.vocab.errors import ProtocolViolation, QueryCanceled, SqlError


def copy_in(response: CopyInResponse, said_before: bytes) -> Asking[bytes]:
    """Ask for the rows and hand them over; returns the completion.

    Sync and Flush are passed over: a client of the extended protocol has sent its Sync before it
    knew that rows were wanted, and sends another behind them.
    """
    types = response.binary_types
    rows = None if types is None else BinaryRows(types)
    binary = rows is not None
    yield Send(said_before + replies.copy_in_response(response.column_count, binary=binary))
    while True:
        message = yield from next_message()
        match message:
            case CopyData(payload):
                yield from give(response.rows, payload if rows is None else rows.feed(payload))
            case CopyDone():
                if rows is not None:
                    rows.check_ended()
                tag = yield from give(response.rows, None)
                assert tag is not None, "the last call gives the tag"
                return replies.command_complete(tag)
            case Sync() | Flush():
                pass
            case Terminate():
                yield Disconnect(with_reason=False)
                raise QueryCanceled("COPY from stdin failed: the client has gone")
            case _:
                raise _refusal(message)


def _refusal(message: FrontendMessage) -> SqlError:
    match message:
        case CopyFail(reason):
            return QueryCanceled(f"COPY from stdin failed: {reason}")
        case InvalidMessage(error=error) | BrokenStream(error=error):
            return error
        case _:
            name = type(message).__name__
            return ProtocolViolation(f"unexpected message {name} during COPY from stdin")
