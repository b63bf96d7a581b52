"""The state machine of one connection: a message in; replies and requests out.

Nothing here waits. `handle` is a generator of requests (requests.py); whoever drives it performs
each and sends back the outcome. Replies gather in a buffer that is sent where the protocol lets the
client wait: at ReadyForQuery, at Flush, and after each chunk of a large answer.
"""

import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias, assert_never

import structlog

from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    CopyLayout,
    CopyOutResponse,
    Credentials,
    EmptyResponse,
    Portal,
    Prepared,
    Response,
    RowsResponse,
    RowStream,
    SessionClient,
    StreamResponse,
    TransactionStatus,
)
from evertide.pgwire import metrics, replies, startup
from evertide.pgwire.authentication import authenticate
from evertide.pgwire.copy_in import copy_in
from evertide.pgwire.copy_out import CopyMessages
from evertide.pgwire.messages import (
    Bind,
    BrokenStream,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    EncryptionRequest,
    Execute,
    Flush,
    FrontendMessage,
    FunctionCall,
    InvalidMessage,
    Parse,
    PasswordMessage,
    Query,
    StartupMessage,
    Sync,
    Target,
    Terminate,
)
from evertide.pgwire.portals import Names, check_runnable, check_shape
from evertide.pgwire.replies import Severity
from evertide.pgwire.requests import (
    AnswerEncryption,
    Asking,
    BackendKey,
    CancelBackend,
    Disconnect,
    EndImplicit,
    Send,
    SendRows,
    Steps,
    open_session,
    prepare,
    run,
    take,
)
from evertide.pgwire.row_columns import row_messages
from evertide.pgwire.startup import Gate
from evertide.pgwire.values import TEXT_FORMAT, in_chunks
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import FeatureNotSupported, InternalError, ProtocolViolation, SqlError
from evertide.vocab.relation_desc import RelationDesc

# Rows are sent, and other connections served, at least this often.
CHUNK_BYTES = 64 * 1024

_log = structlog.get_logger(__name__)

# The messages of some rows.
Encode: TypeAlias = Callable[[Sequence[Row]], Iterable[bytes]]

# Answers of these have as many rows as it takes; their tags do not count them.
_UNCOUNTED_TAGS = {"SHOW", "EXPLAIN"}


class Machine:
    """One connection's protocol state."""

    def __init__(self, key: BackendKey, gate: Gate) -> None:
        self._key = key
        self._gate = gate
        self._session: SessionClient | None = None
        self._names = Names()
        self._replies: list[bytes] = []
        # After an error, what a client sent in the belief that all went well is passed over.
        self._skipping_to_sync = False

    @property
    def idle_session(self) -> SessionClient | None:
        """The session, unless something is half answered or passed over."""
        return None if self._replies or self._skipping_to_sync else self._session

    def handle(self, message: FrontendMessage) -> Steps:
        """Everything one message leads to."""
        if self._skipping_to_sync and not isinstance(message, Sync | Terminate | BrokenStream):
            return
        try:
            yield from self._dispatch(message)
        except SqlError as error:
            yield from self._recover(message, error)
        except Exception:  # noqa: BLE001 - a bug ends its statement, not the connection
            # As text: a rendered traceback may show local variables, and so statements' secrets.
            _log.error("internal error", traceback=traceback.format_exc())
            yield from self._recover(message, InternalError("internal error"))

    def _dispatch(self, message: FrontendMessage) -> Steps:
        match message:
            case Query():
                yield from self._query(message)
            case Parse():
                yield from self._parse(message)
            case Bind():
                self._names.bind(message, self._open_session.shared)
                self._reply(replies.BIND_COMPLETE)
            case Describe():
                self._describe(message)
            case Execute():
                yield from self._execute(message)
            case Sync():
                yield from self._sync()
            case Close():
                self._names.close(message.kind, message.name)
                self._reply(replies.CLOSE_COMPLETE)
            case Flush():
                yield from self._flush()
            case CopyData() | CopyDone() | CopyFail():
                pass  # what is left of a COPY that has already failed
            case InvalidMessage():
                raise message.error
            case FunctionCall():
                raise FeatureNotSupported("function calls by OID are not supported")
            case PasswordMessage():
                raise ProtocolViolation("nobody asked for a password")
            case StartupMessage() | EncryptionRequest() | CancelRequest():
                yield from self._before_session(message)
            case BrokenStream():
                yield from self._refuse(message.error)
            case Terminate():
                yield Disconnect(with_reason=False)
            case _:
                assert_never(message)

    # Start-up

    def _before_session(self, message: StartupMessage | EncryptionRequest | CancelRequest) -> Steps:
        match message:
            case StartupMessage():
                yield from self._start(message)
            case EncryptionRequest():
                accept = self._gate.answer(message.kind)
                yield AnswerEncryption(accept)
            case CancelRequest():
                yield CancelBackend(BackendKey(message.pid, message.secret))
                yield Disconnect(with_reason=False)
            case _:
                assert_never(message)

    def _start(self, message: StartupMessage) -> Steps:
        startup.check_startup(message)
        self._gate.check_encrypted()
        unknown = startup.unknown_extensions(message)
        if message.minor > 0 or unknown:
            self._reply(replies.negotiate_protocol_version(unknown))
        proved: Credentials | None = None
        last_word = b""
        if self._gate.demands_password:
            yield from self._flush()
            proved, last_word = yield from authenticate(message.parameters["user"])
        session = yield from open_session(startup.session_parameters(message), proved)
        self._reply(last_word)
        self._session = session
        self._names = Names(session.shared.statements, session.shared.portals)
        self._reply(replies.AUTHENTICATION_OK)
        self._reply(replies.parameter_status(session.parameters))
        self._reply(replies.backend_key_data(self._key.pid, self._key.secret))
        yield from self._ready()

    # Simple protocol

    def _query(self, message: Query) -> Steps:
        """Several statements are one implicit transaction; the first error ends them all.

        The last CommandComplete waits until that transaction has committed: a client that has seen
        it may rely on it.
        """
        self._names.forget_unnamed()
        completion = replies.EMPTY_QUERY_RESPONSE
        for number, prepared in enumerate(self._open_session.split(message.text)):
            if number:
                self._reply(completion)
            response = yield from self._run(prepared, ())
            completion = yield from self._answer(response)
            self._reply_events()
        yield EndImplicit(failed=False)
        self._reply_events()
        self._reply(completion)
        yield from self._ready()

    def _answer(self, response: Response) -> Asking[bytes]:
        """Send what comes before the completion; returns the completion."""
        match response:
            case RowsResponse():
                formats = (TEXT_FORMAT,) * response.desc.arity
                self._reply(replies.row_description(response.desc, formats))
                yield from self._send_rows(response.desc, formats, response.rows)
                return _rows_complete(response.tag, len(response.rows))
            case CopyOutResponse():
                return (yield from self._copy_out(response))
            case CopyInResponse():
                return (yield from copy_in(response, self._take_replies()))
            case StreamResponse(layout=CopyLayout() as layout):
                return (yield from self._copy_stream(response, layout))
            case StreamResponse():
                formats = (TEXT_FORMAT,) * response.desc.arity
                self._reply(replies.row_description(response.desc, formats))
                encode = self._encoder(response.desc, formats)
                count, _ = yield from self._send_stream(encode, response.rows, None)
                return _rows_complete(response.tag, count)
            case CommandResponse():
                return replies.command_complete(response.tag)
            case EmptyResponse():
                return replies.EMPTY_QUERY_RESPONSE
            case _:
                assert_never(response)

    # Extended protocol

    def _parse(self, message: Parse) -> Steps:
        self._names.check_new_statement(message.name)
        prepared = yield from prepare(message.text, message.parameter_oids)
        self._names.statements[message.name] = prepared
        self._reply(replies.PARSE_COMPLETE)

    def _describe(self, message: Describe) -> None:
        if message.kind is Target.PORTAL:
            portal = self._names.portal(message.name)
            self._reply_shape(portal.desc, portal.formats)
            return
        prepared = self._names.statement(message.name)
        self._open_session.shared.check_described(prepared)
        self._reply(replies.parameter_description(prepared.parameter_types))
        columns = 0 if prepared.result is None else prepared.result.arity
        self._reply_shape(prepared.result, (TEXT_FORMAT,) * columns)

    def _reply_shape(self, desc: RelationDesc | None, formats: Sequence[int]) -> None:
        self._reply(replies.NO_DATA if desc is None else replies.row_description(desc, formats))

    def _execute(self, message: Execute) -> Steps:
        portal = self._names.portal(message.portal)
        check_runnable(portal, message.portal)
        if portal.response is None:
            response = yield from self._run(portal.prepared, portal.parameters, until_sync=True)
            check_shape(portal.prepared, response)
            portal.response = response
        if isinstance(portal.response, RowsResponse):
            completion = yield from self._fetch(portal, portal.response, message.max_rows)
        elif isinstance(portal.response, StreamResponse) and portal.response.layout is None:
            completion = yield from self._follow(portal, portal.response, message.max_rows)
        else:
            completion = yield from self._answer(portal.response)
        self._reply_events()
        self._reply(completion)

    def _fetch(self, portal: Portal, response: RowsResponse, max_rows: int) -> Asking[bytes]:
        """As PostgreSQL does it, a full batch always leaves the portal suspended, even if it was
        the last: clients ask again and get an empty batch. Only SELECT counts the rows of one."""
        rows = portal.take_rows(max_rows if max_rows > 0 else None)
        yield from self._send_rows(response.desc, portal.formats, rows)
        if max_rows > 0 and len(rows) == max_rows:
            return replies.PORTAL_SUSPENDED
        count = len(rows) if response.tag == "SELECT" else len(response.rows)
        return _rows_complete(response.tag, count)

    def _follow(self, portal: Portal, response: StreamResponse, max_rows: int) -> Asking[bytes]:
        encode = self._encoder(response.desc, portal.formats)
        most = max_rows if max_rows > 0 else None
        count, ended = yield from self._send_stream(encode, response.rows, most)
        portal.rows_given += count
        if not ended:
            return replies.PORTAL_SUSPENDED
        return _rows_complete(
            response.tag, count if response.tag == "SELECT" else portal.rows_given
        )

    def _sync(self) -> Steps:
        failed = self._skipping_to_sync
        self._skipping_to_sync = False
        yield EndImplicit(failed=failed)
        yield from self._ready()

    # Both protocols

    @property
    def _open_session(self) -> SessionClient:
        assert self._session is not None, "the decoder gives no other message before StartupMessage"
        return self._session

    def _run(
        self, prepared: Prepared, parameters: Sequence[Datum], *, until_sync: bool = False
    ) -> Asking[Response]:
        """Run a statement; if it ended a transaction, the portals of that are gone."""
        session = self._open_session
        was_open = session.transaction_status is not TransactionStatus.IDLE
        response = yield from run(prepared, parameters, until_sync=until_sync)
        if was_open and session.transaction_status is TransactionStatus.IDLE:
            self._names.forget_portals()
        return response

    def _copy_out(self, response: CopyOutResponse) -> Asking[bytes]:
        self._reply(replies.copy_out_response(response.desc.arity, response.layout))
        messages = self._copy_messages(response.desc, response.layout)
        yield from self._send_messages(messages.of(response.rows))
        self._reply(messages.end() + replies.COPY_DONE)
        return replies.command_complete(f"COPY {len(response.rows)}")

    def _send_rows(
        self, desc: RelationDesc, formats: tuple[int, ...], rows: Sequence[Row]
    ) -> Steps:
        yield from self._send_messages(self._encoder(desc, formats)(rows))

    def _send_messages(self, messages: Iterable[bytes]) -> Steps:
        """The last chunk stays in the buffer, so that a small answer is one write."""
        for chunk in in_chunks(messages, CHUNK_BYTES):
            self._reply(chunk)
            if len(chunk) >= CHUNK_BYTES:
                yield SendRows(self._take_replies())

    def _copy_stream(self, response: StreamResponse, layout: CopyLayout) -> Asking[bytes]:
        self._reply(replies.copy_out_response(response.desc.arity, layout))
        messages = self._copy_messages(response.desc, layout)
        count, _ = yield from self._send_stream(messages.of, response.rows, None)
        self._reply(messages.end() + replies.COPY_DONE)
        return replies.command_complete(f"COPY {count}")

    def _send_stream(
        self, encode: Encode, stream: RowStream, most: int | None
    ) -> Asking[tuple[int, bool]]:
        """Send rows as they come, no more than `most`; how many, and whether the stream ended.

        What was said before goes out first: the client should see that its stream has begun. The
        next rows are asked for when these are sent, so a slow client slows its stream. One that is
        not sent to its end, by a cancel say, is nobody's any more.
        """
        count = 0
        self._reply_events()
        yield from self._flush()
        try:
            while most is None or count < most:
                rows = yield from take(stream, None if most is None else most - count)
                if rows is None:
                    return count, True
                count += len(rows)
                for chunk in in_chunks(encode(rows), CHUNK_BYTES):
                    yield SendRows(chunk)
        except BaseException:
            stream.close()
            raise
        return count, False

    def _ready(self) -> Steps:
        status = self._open_session.transaction_status
        if status is not TransactionStatus.IN_TRANSACTION:
            self._names.portals.clear()
        self._reply_events()
        self._reply(replies.ready_for_query(status))
        yield from self._flush()

    def _recover(self, message: FrontendMessage, error: SqlError) -> Steps:
        """Tell the client, then go on where the protocol says that both sides go on."""
        if self._session is None:
            yield from self._refuse(error)
            return
        unfinished = self._reply_events()
        if unfinished is not None and isinstance(message, Query):
            # Clients of PostgreSQL have been told of the columns before the first row is found.
            self._reply(replies.row_description(unfinished, (TEXT_FORMAT,) * unfinished.arity))
        self._reply_error(error, Severity.ERROR)
        if _ends_with_ready(message):
            yield EndImplicit(failed=True)
            yield from self._ready()
        else:
            self._skipping_to_sync = True
            yield from self._flush()

    def _refuse(self, error: SqlError) -> Steps:
        """The client cannot be served any further."""
        self._reply_error(error, Severity.FATAL)
        yield from self._flush()
        yield Disconnect(with_reason=True)

    def _reply(self, payload: bytes) -> None:
        self._replies.append(payload)

    def _encoder(self, desc: RelationDesc, formats: tuple[int, ...]) -> Encode:
        return partial(row_messages, desc.types, formats, self._open_session.shared.float_digits)

    def _copy_messages(self, desc: RelationDesc, layout: CopyLayout) -> CopyMessages:
        return CopyMessages(desc.types, layout, self._open_session.shared.float_digits)

    def _reply_events(self) -> RelationDesc | None:
        """Gives the columns of a query that did not come to its end."""
        events = self._open_session.take_events()
        if events.notices:
            self._reply(replies.notice_response(events.notices))
        if events.parameters:
            self._reply(replies.parameter_status(events.parameters))
        return events.unfinished

    def _reply_error(self, error: SqlError, severity: Severity) -> None:
        metrics.count_error(error.code)
        self._reply(replies.error_response(error, severity))

    def _take_replies(self) -> bytes:
        payload = b"".join(self._replies)
        self._replies.clear()
        return payload

    def _flush(self) -> Steps:
        if self._replies:
            yield Send(self._take_replies())


def _rows_complete(tag: str, count: int) -> bytes:
    return replies.command_complete(tag if tag in _UNCOUNTED_TAGS else f"{tag} {count}")


def _ends_with_ready(message: FrontendMessage) -> bool:
    """Whether the client waits for ReadyForQuery after this message, without sending Sync."""
    match message:
        case Query() | FunctionCall() | Sync():
            return True
        case InvalidMessage(tag=tag):
            return tag in (b"Q", b"F")
        case _:
            return False
