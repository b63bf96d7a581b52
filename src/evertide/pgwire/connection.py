"""One connection: drives the state machine and performs what it requests."""

import asyncio
import ssl
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never, cast

import structlog

from evertide.adapter.client import Credentials, Response, SessionClient, SessionFactory
from evertide.pgwire import metrics, replies
from evertide.pgwire.backends import Backends
from evertide.pgwire.channel import Channel, ClientGone
from evertide.pgwire.codec import Decoder
from evertide.pgwire.inbox import Inbox
from evertide.pgwire.machine import Machine
from evertide.pgwire.messages import FrontendMessage
from evertide.pgwire.replies import Severity
from evertide.pgwire.requests import (
    AnswerEncryption,
    Arrived,
    AwaitTurn,
    BackendKey,
    CancelBackend,
    Disconnect,
    EndImplicit,
    FindCredentials,
    GivenRows,
    GiveRows,
    NextMessage,
    NoteAttempt,
    OpenSession,
    Outcome,
    PrepareStatement,
    Request,
    RunStatement,
    Send,
    SendRows,
    SessionOpened,
    Steps,
    TakenRows,
    TakeRows,
)
from evertide.pgwire.short_way import ShortWay
from evertide.pgwire.startup import Gate
from evertide.vocab.errors import IdleInTransactionTimeout, InternalError, QueryCanceled, SqlError

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Listener:
    """What all connections of one listening socket share."""

    backends: Backends
    factory: SessionFactory
    internal: bool
    tls: ssl.SSLContext | None
    # Whether users have to prove who they are, and whether nobody may listen to them.
    demands_password: bool = False
    demands_tls: bool = False

    def gate(self) -> Gate:
        return Gate(self.tls is not None, self.demands_tls, self.demands_password)


class Connection(asyncio.Protocol):
    """Callbacks of the transport above; one task, which handles messages in order, below."""

    def __init__(self, listener: Listener) -> None:
        limits = listener.backends.limits
        self._listener = listener
        self._key = listener.backends.new_key()
        self._channel = Channel(drain_timeout_s=limits.drain_timeout_s)
        self._inbox = Inbox(self._channel, Decoder(max_message_bytes=limits.max_message_bytes))
        self._short_way = ShortWay(self._channel, self._inbox, Machine(self._key, listener.gate()))
        self._session: SessionClient | None = None
        self._task: asyncio.Task[None] | None = None
        # Ends a start-up that takes too long, later a statement that outlives its client.
        self._timer: asyncio.TimerHandle | None = None

    @property
    def key(self) -> BackendKey:
        return self._key

    # What the transport tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports behave as asyncio.Transport but do not inherit from it.
        self._channel.attach(cast(asyncio.Transport, transport))
        if not self._listener.backends.add(self, internal=self._listener.internal):
            self._channel.abort()
            return
        self._set_timer(self._listener.backends.limits.startup_timeout_s, self._channel.abort)
        self._task = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        self._short_way.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Nobody waits for the running statement any more; dbt cancels in this way."""
        self._channel.set_lost()
        self._short_way.close()
        self._inbox.close()
        if self._session is not None:
            self._session.cancel()
        if self._task is not None and not self._task.done():
            self._set_timer(self._listener.backends.limits.grace_s, self._task.cancel)

    def pause_writing(self) -> None:
        self._channel.pressure.set_full(True)

    def resume_writing(self) -> None:
        self._channel.pressure.set_full(False)

    # What other connections and the server ask

    def cancel(self) -> None:
        """End the running statement, or the sending of its rows, with 57014."""
        if self._session is not None:
            self._session.cancel()
        error = QueryCanceled("canceling statement due to user request")
        self._channel.pressure.interrupt(error)
        self._inbox.interrupt(error)
        self._short_way.interrupt(error)

    async def shut_down(self, error: SqlError) -> None:
        """Tell the client why, hang up, and wait until the session is closed."""
        self._channel.write(replies.error_response(error, Severity.FATAL))
        self._short_way.close()
        self._inbox.close()
        if self._session is not None:
            self._session.cancel()
        self._channel.close()
        if self._task is not None:
            grace_s = self._listener.backends.limits.grace_s
            _, running = await asyncio.wait([self._task], timeout=grace_s)
            for task in running:
                task.cancel()
                await asyncio.wait([task], timeout=grace_s)

    # The task

    async def _serve(self) -> None:
        structlog.contextvars.bind_contextvars(connection_id=self._key.pid)
        machine = self._short_way.machine
        try:
            while (message := await self._next_message()) is not None:
                await self._drive(machine.handle(message))
        except ClientGone:
            pass
        except Exception:  # noqa: BLE001 - this loop owns the connection
            _log.error("connection failed", traceback=traceback.format_exc())
            fatal = replies.error_response(InternalError("internal error"), Severity.FATAL)
            self._channel.write(fatal)
        finally:
            await self._finish()

    async def _next_message(self) -> FrontendMessage | None:
        """None when there will be no more, because the client was silent for too long, say."""
        limit_s = None if self._session is None else self._session.shared.idle_limit_s
        if limit_s is None:
            return await self._inbox.next_message()
        try:
            async with asyncio.timeout(limit_s):
                return await self._inbox.next_message()
        except TimeoutError:
            error = IdleInTransactionTimeout(
                "terminating connection due to idle-in-transaction timeout"
            )
            self._channel.write(replies.error_response(error, Severity.FATAL))
            self._inbox.close()
            return None

    async def _drive(self, steps: Steps) -> None:
        """Perform each request and hand back what came of it."""
        try:
            request = next(steps)
            while True:
                try:
                    outcome = await self._perform(request)
                except ClientGone:
                    raise
                except Exception as error:  # noqa: BLE001 - the machine decides what it means
                    request = steps.throw(error)
                else:
                    request = steps.send(outcome)
        except StopIteration:
            pass

    async def _perform(self, request: Request) -> Outcome:
        match request:
            case Send(payload):
                await self._send(payload)
            case SendRows(payload):
                await self._channel.write_and_drain(payload, interruptible=True)
            case RunStatement():
                return await self._run(request)
            case TakeRows(stream, most):
                return TakenRows(await stream.take(most))
            case NextMessage():
                message = await self._inbox.next_message(interruptible=True)
                if message is None:
                    raise ClientGone
                return Arrived(message)
            case GiveRows(sink, received):
                if received is None:
                    return GivenRows(await sink.finish())
                if isinstance(received, bytes):
                    await sink.feed(received)
                else:
                    await sink.feed_rows(received)
                return GivenRows(None)
            case PrepareStatement(text, parameter_oids):
                return await self._open_session.prepare(text, parameter_oids)
            case EndImplicit(failed):
                await self._open_session.end_implicit(failed=failed)
            case FindCredentials(user):
                return await self._listener.factory.credentials(user)
            case AwaitTurn(user):
                await self._listener.backends.await_turn(self._channel.peer, user)
            case NoteAttempt(user, succeeded):
                self._listener.backends.note_attempt(self._channel.peer, user, succeeded=succeeded)
            case OpenSession(parameters, proved):
                return await self._open(parameters, proved)
            case CancelBackend(key):
                self._listener.backends.cancel(key)
            case AnswerEncryption(accept):
                await self._answer_encryption(accept)
            case Disconnect(with_reason):
                self._inbox.close()
                self._channel.close(linger=with_reason)
            case _:
                assert_never(request)
        return None

    async def _send(self, payload: bytes) -> None:
        """Who asks and asks and never reads the answers has to wait as well."""
        if self._channel.pressure.is_full:
            await self._channel.write_and_drain(payload, interruptible=False)
        else:
            self._channel.write(payload)

    @property
    def _open_session(self) -> SessionClient:
        assert self._session is not None, "the machine opens a session first"
        return self._session

    async def _run(self, request: RunStatement) -> Response:
        started = time.perf_counter()
        # Where Sync is at hand already, what runs is all there is and commits at once.
        more = request.until_sync and not self._inbox.is_synced
        self._open_session.shared.pipelined = more
        try:
            return await self._open_session.execute(request.prepared, request.parameters)
        finally:
            metrics.observe_statement(time.perf_counter() - started)

    async def _open(self, parameters: dict[str, str], proved: Credentials | None) -> SessionOpened:
        """The client has said all it must say, so its time to do so no longer runs."""
        assert proved is not None or not self._listener.demands_password, "asked for before"
        self._clear_timer()
        internal = self._listener.internal
        self._listener.backends.take_seat(self._key.pid, internal=internal)
        self._session = await self._listener.factory.open_session(
            parameters, internal=internal, proved=proved
        )
        self._inbox.let_in()
        return SessionOpened(self._session)

    async def _answer_encryption(self, accept: bool) -> None:
        if not self._inbox.expect_startup():
            return  # the next message says what is wrong
        self._channel.write(b"S" if accept else b"N")
        if accept:
            assert self._listener.tls is not None
            await self._channel.start_tls(self, self._listener.tls)

    async def _finish(self) -> None:
        """Also after a cancel of this task: the session must be closed in any case."""
        self._clear_timer()
        self._channel.close()
        backends = self._listener.backends
        try:
            if self._session is not None:
                await self._session.close()
        except Exception:  # noqa: BLE001 - this task owns the session and ends it
            _log.error("closing a session failed", traceback=traceback.format_exc())
        finally:
            backends.release_seat(self._key.pid)
        await self._channel.wait_lost()
        backends.remove(self._key.pid)

    def _set_timer(self, delay_s: float, action: Callable[[], object]) -> None:
        self._clear_timer()
        self._timer = asyncio.get_running_loop().call_later(delay_s, action)

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
