"""What the state machine asks of the side that may wait, and how it gets the answers.

The machine's handlers are generators: they yield a request and are resumed with its outcome, or
with the exception it raised. So a handler reads from top to bottom like a coroutine, yet a test can
play the other side by hand.
"""

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from evertide.adapter.client import (
    CommandResponse,
    CopyInResponse,
    CopyOutResponse,
    Credentials,
    EmptyResponse,
    Prepared,
    Response,
    RowSink,
    RowsResponse,
    RowStream,
    SessionClient,
    StreamResponse,
)
from evertide.pgwire.messages import FrontendMessage
from evertide.vocab.datum import Datum, Row


@dataclass(frozen=True, slots=True)
class BackendKey:
    """What a client must show to cancel: `pid` finds the connection, `secret` proves the right."""

    pid: int
    secret: int


@dataclass(frozen=True, slots=True)
class AnswerEncryption:
    """Say yes or no to an encryption request and, after a yes, go on encrypted."""

    accept: bool


@dataclass(frozen=True, slots=True)
class FindCredentials:
    """By what to check this user's password."""

    user: str


@dataclass(frozen=True, slots=True)
class AwaitTurn:
    """Wait until this user's password may be tried again."""

    user: str


@dataclass(frozen=True, slots=True)
class NoteAttempt:
    """The user's password was tried."""

    user: str
    succeeded: bool


@dataclass(frozen=True, slots=True)
class OpenSession:
    parameters: dict[str, str]
    # What the client has proved to know; None: it is trusted to be who it says.
    proved: Credentials | None = None


@dataclass(frozen=True, slots=True)
class CancelBackend:
    """Cancel whatever runs on the connection with this key, if there is one."""

    key: BackendKey


@dataclass(frozen=True, slots=True)
class PrepareStatement:
    text: str
    parameter_oids: Sequence[int]


@dataclass(frozen=True, slots=True)
class RunStatement:
    """`until_sync`: it ends with a Sync, and others may come before that."""

    prepared: Prepared
    parameters: Sequence[Datum]
    until_sync: bool = False


@dataclass(frozen=True, slots=True)
class TakeRows:
    """Wait for the next rows of a stream: no more than `most`."""

    stream: RowStream
    most: int | None


@dataclass(frozen=True, slots=True)
class NextMessage:
    """Wait for what the client sends next; a cancel that comes meanwhile raises QueryCanceled."""


@dataclass(frozen=True, slots=True)
class GiveRows:
    """Hand over what the client sent for a COPY, as lines or rows; None: that was all."""

    sink: RowSink
    received: bytes | Sequence[Row] | None


@dataclass(frozen=True, slots=True)
class EndImplicit:
    failed: bool


@dataclass(frozen=True, slots=True)
class Send:
    """Write this, in order and whole."""

    payload: bytes


@dataclass(frozen=True, slots=True)
class SendRows:
    """Write this part of an answer, then wait until the client has read enough for the next.

    A cancel that comes meanwhile raises QueryCanceled here: the statement has run, but its answer
    may be endless to its reader.
    """

    payload: bytes


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection when all that was sent has gone out.

    `with_reason`: the client does not expect it, so give it time to read why.
    """

    with_reason: bool


Request: TypeAlias = (
    AnswerEncryption | FindCredentials | AwaitTurn | NoteAttempt | OpenSession | CancelBackend
    | PrepareStatement | RunStatement | TakeRows | NextMessage | GiveRows | EndImplicit | Send
    | SendRows | Disconnect
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SessionOpened:
    session: SessionClient


@dataclass(frozen=True, slots=True)
class TakenRows:
    """None: there are no more."""

    rows: Sequence[Row] | None


@dataclass(frozen=True, slots=True)
class Arrived:
    message: FrontendMessage


@dataclass(frozen=True, slots=True)
class GivenRows:
    """The command's tag, once all rows are written."""

    tag: str | None


Outcome: TypeAlias = (
    Credentials | SessionOpened | Prepared | Response | TakenRows | Arrived | GivenRows | None
)  # fmt: skip

T = TypeVar("T")
Asking: TypeAlias = Generator[Request, Outcome, T]
Steps: TypeAlias = Asking[None]


def find_credentials(user: str) -> Asking[Credentials]:
    outcome = yield FindCredentials(user)
    assert isinstance(outcome, Credentials)
    return outcome


def await_turn(user: str) -> Steps:
    yield AwaitTurn(user)


def open_session(parameters: dict[str, str], proved: Credentials | None) -> Asking[SessionClient]:
    outcome = yield OpenSession(parameters, proved)
    assert isinstance(outcome, SessionOpened)
    return outcome.session


def prepare(text: str, parameter_oids: Sequence[int]) -> Asking[Prepared]:
    outcome = yield PrepareStatement(text, parameter_oids)
    assert isinstance(outcome, Prepared)
    return outcome


def run(
    prepared: Prepared, parameters: Sequence[Datum], *, until_sync: bool = False
) -> Asking[Response]:
    outcome = yield RunStatement(prepared, parameters, until_sync)
    assert isinstance(
        outcome,
        RowsResponse
        | CopyOutResponse
        | CopyInResponse
        | StreamResponse
        | CommandResponse
        | EmptyResponse,
    )
    return outcome


def take(stream: RowStream, most: int | None) -> Asking[Sequence[Row] | None]:
    outcome = yield TakeRows(stream, most)
    assert isinstance(outcome, TakenRows)
    return outcome.rows


def next_message() -> Asking[FrontendMessage]:
    outcome = yield NextMessage()
    assert isinstance(outcome, Arrived)
    return outcome.message


def give(sink: RowSink, received: bytes | Sequence[Row] | None) -> Asking[str | None]:
    outcome = yield GiveRows(sink, received)
    assert isinstance(outcome, GivenRows)
    return outcome.tag
