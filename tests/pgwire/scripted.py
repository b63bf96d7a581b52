"""Sessions that answer from a script, and a server in a thread that hands them out."""

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from evertide.adapter.client import (
    CommandResponse,
    Credentials,
    EmptyResponse,
    Portal,
    Prepared,
    Response,
    RowsResponse,
    RowStream,
    SessionClient,
    SessionEvents,
    StreamResponse,
    TransactionStatus,
)
from evertide.pgwire.backends import Limits
from evertide.pgwire.server import PgServer
from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import QueryCanceled, UndefinedTable
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.scram import Verifier, decoy_verifier
from evertide.vocab.sql_type import INT2, INT4, INT8, TEXT, SqlType
from evertide.vocab.timestamp import Timestamp

Body: TypeAlias = Callable[["ScriptedSession", Sequence[Datum]], Awaitable[Response]]


@dataclass(frozen=True)
class Line:
    """What one statement answers: a response, an exception, or a function that finds out."""

    answer: Response | Exception | Body
    parameter_types: tuple[SqlType, ...] = ()
    result: RelationDesc | None = None

    @property
    def described(self) -> RelationDesc | None:
        if isinstance(self.answer, RowsResponse | StreamResponse):
            return self.answer.desc
        return self.result


PARAMETERS = {
    "server_version": "16.0",
    "client_encoding": "UTF8",
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, MDY",
    "IntervalStyle": "postgres",
    "TimeZone": "UTC",
    "integer_datetimes": "on",
    "mz_version": "v0.130.0 (scripted)",
}


@dataclass
class ScriptedSession:
    """Splits at semicolons, knows BEGIN, COMMIT, ROLLBACK, and the lines of its script."""

    script: dict[str, Line]
    opened_with: dict[str, str]
    internal: bool
    status: TransactionStatus = TransactionStatus.IDLE
    events: SessionEvents = field(default_factory=SessionEvents)
    ends: list[bool] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    closed: threading.Event = field(default_factory=threading.Event)
    names: "ScriptedNames" = field(default_factory=lambda: ScriptedNames())
    known_keys: "ScriptedLookups" = field(default_factory=lambda: ScriptedLookups())

    @property
    def transaction_status(self) -> TransactionStatus:
        return self.status

    @property
    def parameters(self) -> dict[str, str]:
        return PARAMETERS

    def split(self, text: str) -> list[Prepared]:
        return [self._prepared(part.strip()) for part in text.split(";") if part.strip()]

    async def prepare(self, text: str, parameter_oids: Sequence[int]) -> Prepared:
        self.texts.append(text)
        prepared = self._prepared(text.strip().rstrip(";"))
        asked = [_BY_OID.get(oid) for oid in parameter_oids]
        asked += [None] * (len(prepared.parameter_types) - len(asked))
        types = zip(asked, prepared.parameter_types, strict=True)
        return replace(prepared, parameter_types=tuple(want or own for want, own in types))

    def _prepared(self, text: str) -> Prepared:
        if text.upper() in _TRANSACTION_VERBS or not text:
            return Prepared(text, text)
        line = self.script.get(text)
        if line is None:
            raise UndefinedTable(f"no line for {text[:100]}", position=1)
        return Prepared(text, line, line.parameter_types, line.described)

    async def execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        self.cancelled.clear()
        if not prepared.text:
            return EmptyResponse()
        if isinstance(prepared.statement, str):
            return self._change_transaction(prepared.statement.upper())
        assert isinstance(prepared.statement, Line)
        answer = prepared.statement.answer
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, StreamResponse):
            return replace(answer, rows=CancellableStream(answer.rows, self))
        if not callable(answer):
            return answer
        return await answer(self, parameters)

    def _change_transaction(self, verb: str) -> Response:
        self.status = _TRANSACTION_VERBS[verb]
        return CommandResponse(verb.split()[0])

    @property
    def shared(self) -> "ScriptedNames":
        return self.names

    @property
    def lookups(self) -> "ScriptedLookups":
        return self.known_keys

    async def end_implicit(self, *, failed: bool) -> None:
        self.ends.append(failed)
        if failed and self.status is TransactionStatus.IN_TRANSACTION:
            self.status = TransactionStatus.FAILED

    def take_events(self) -> SessionEvents:
        taken, self.events = self.events, SessionEvents()
        return taken

    def cancel(self) -> None:
        self.cancelled.set()

    async def close(self) -> None:
        self.cancelled.set()
        self.closed.set()

    async def wait_for_cancel(self) -> Response:
        await self.cancelled.wait()
        raise QueryCanceled("canceling statement due to user request")


@dataclass
class ScriptedNames:
    """Names that nothing but the protocol gives."""

    statements: dict[str, Prepared] = field(default_factory=dict)
    portals: dict[str, Portal] = field(default_factory=dict)
    float_digits: int = 1
    pipelined: bool = False
    idle_limit_s: float | None = None

    def check_described(self, prepared: Prepared) -> None:
        assert prepared in self.statements.values()


@dataclass
class ScriptedLookups:
    """Recognises the texts that it is told of. Answers when the test says so."""

    texts: set[str] = field(default_factory=set)
    asked: "list[ScriptedLookup]" = field(default_factory=list)
    # Set once something is asked, for a test that waits on another thread.
    came: threading.Event = field(default_factory=threading.Event)

    def recognise(self, prepared: Prepared) -> object | None:
        return prepared.text if prepared.text in self.texts else None

    def ask(
        self,
        recipe: object,
        parameters: Sequence[Datum],
        answer: Callable[[Sequence[Row] | None, Timestamp], None],
    ) -> "ScriptedLookup":
        asked = ScriptedLookup(recipe, parameters, answer, asyncio.get_running_loop())
        self.asked.append(asked)
        self.came.set()
        return asked


@dataclass
class ScriptedLookup:
    """One question that waits for the test's answer."""

    recipe: object
    parameters: Sequence[Datum]
    answer: Callable[[Sequence[Row] | None, Timestamp], None]
    loop: asyncio.AbstractEventLoop
    forgotten: bool = False

    def forget(self) -> None:
        self.forgotten = True

    def tell(self, rows: Sequence[Row] | None) -> None:
        """From the test's thread."""
        self.loop.call_soon_threadsafe(self._tell, rows)

    def _tell(self, rows: Sequence[Row] | None) -> None:
        if not self.forgotten:
            self.answer(rows, Timestamp(1))


@dataclass
class CancellableStream:
    """A stream of a script, which a cancel of its session ends."""

    rows: RowStream
    session: ScriptedSession

    async def take(self, most: int | None) -> Sequence[Row] | None:
        self.session.cancelled.clear()
        taking = asyncio.ensure_future(self.rows.take(most))
        waiting = asyncio.ensure_future(self.session.wait_for_cancel())
        await asyncio.wait([taking, waiting], return_when=asyncio.FIRST_COMPLETED)
        if taking.done():
            waiting.cancel()
            return await taking
        taking.cancel()
        await waiting
        raise AssertionError("a cancel raises")

    @property
    def ready(self) -> bool:
        return self.rows.ready

    def close(self) -> None:
        self.rows.close()


# Types that clients choose by themselves for what they send.
_BY_OID = {sql_type.oid: sql_type for sql_type in (INT2, INT4, INT8, TEXT)}

_TRANSACTION_VERBS = {
    "BEGIN": TransactionStatus.IN_TRANSACTION,
    "COMMIT": TransactionStatus.IDLE,
    "ROLLBACK": TransactionStatus.IDLE,
    "BEGIN ISOLATION LEVEL READ COMMITTED": TransactionStatus.IN_TRANSACTION,
}


@dataclass
class ScriptedFactory:
    """Opens sessions and keeps them, so that a test can look at what a client did."""

    script: dict[str, Line]
    sessions: list[ScriptedSession] = field(default_factory=list)
    refusal: Exception | None = None
    # Users and their passwords, for servers that demand them.
    verifiers: dict[str, Verifier] = field(default_factory=dict)
    # What each session's client has proved to know.
    proved: list[Credentials | None] = field(default_factory=list)

    async def credentials(self, user: str) -> Credentials:
        known = self.verifiers.get(user)
        return Credentials(known or decoy_verifier(b"of the script", user), known is not None)

    async def open_session(
        self, parameters: dict[str, str], *, internal: bool, proved: Credentials | None = None
    ) -> SessionClient:
        if self.refusal is not None:
            raise self.refusal
        self.proved.append(proved)
        session = ScriptedSession(self.script, parameters, internal)
        self.sessions.append(session)
        return session


@dataclass
class RunningServer:
    """A server whose event loop runs in a thread, so that blocking clients can be used."""

    factory: ScriptedFactory
    loop: asyncio.AbstractEventLoop
    server: PgServer
    host: str = ""
    port: int = 0

    @property
    def dsn(self) -> str:
        return f"host={self.host} port={self.port} user=tester dbname=test sslmode=disable"

    @property
    def last_session(self) -> ScriptedSession:
        return self.factory.sessions[-1]

    def say(self, text: str, answer: Response | Exception | Body, *types: SqlType) -> None:
        """Add a line to the script."""
        self.factory.script[text] = Line(answer, types)

    def run(self, work: Awaitable[object]) -> None:
        """Run this in the server's thread and wait for it."""

        async def wrapped() -> None:
            await work

        asyncio.run_coroutine_threadsafe(wrapped(), self.loop).result(timeout=30)


@contextmanager
def running_server(
    *,
    limits: Limits | None = None,
    tls: ssl.SSLContext | None = None,
    passwords: bool = False,
    new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> Iterator[RunningServer]:
    loop = new_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    server = PgServer(limits=limits, tls=tls, passwords=passwords)
    running = RunningServer(ScriptedFactory({}), loop, server)

    async def start() -> None:
        running.host, running.port = await running.server.start(
            "127.0.0.1", 0, running.factory, internal=False
        )

    running.run(start())
    try:
        yield running
    finally:
        running.run(running.server.stop())
        loop.call_soon_threadsafe(loop.stop)
        thread.join(timeout=30)
        loop.close()
