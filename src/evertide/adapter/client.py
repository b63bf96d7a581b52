"""What one connection may ask of the adapter.

The wire protocol knows sessions only through these types, so that its state machine can be tested
against a scripted client and an adapter without sockets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Protocol, TypeAlias

from evertide.vocab.datum import Datum, Row
from evertide.vocab.errors import Notice
from evertide.vocab.ids import RoleId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.scram import Verifier
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp


class TransactionStatus(Enum):
    """The byte that ReadyForQuery carries."""

    IDLE = b"I"
    IN_TRANSACTION = b"T"
    FAILED = b"E"


@dataclass(frozen=True, slots=True)
class RowsResponse:
    """Rows of a SELECT, SHOW, EXPLAIN or INSERT ... RETURNING."""

    desc: RelationDesc
    rows: Sequence[Row]
    # The word of the command tag; the row count is added by the protocol: `SELECT 3`.
    tag: str = "SELECT"


class CopyKind(Enum):
    """The formats of COPY."""

    TEXT = auto()
    CSV = auto()
    BINARY = auto()


@dataclass(frozen=True, slots=True)
class CopyLayout:
    """How COPY writes rows; the quote is that of CSV, and binary has none of these."""

    kind: CopyKind = CopyKind.TEXT
    delimiter: str = "\t"
    null: str = "\\N"
    quote: str = '"'


@dataclass(frozen=True, slots=True)
class CopyOutResponse:
    """Rows to be sent in one of COPY's formats."""

    desc: RelationDesc
    rows: Sequence[Row]
    layout: CopyLayout = CopyLayout()


class RowStream(Protocol):
    """Rows that come as time passes. Belongs to the transaction it was opened in."""

    async def take(self, most: int | None) -> Sequence[Row] | None:
        """The next rows, at least one and no more than `most`; None once there are no more.

        Waits for as long as there are none. Cancelling it loses no rows.
        """
        ...

    @property
    def ready(self) -> bool:
        """Whether rows are at hand, so that taking some does not wait."""
        ...

    def close(self) -> None:
        """Nobody takes any more. May be repeated."""
        ...


@dataclass(frozen=True, slots=True)
class StreamResponse:
    """Rows to be sent as they come.

    No timeout ends the wait for them, only a cancel: they last for as long as somebody reads.
    """

    desc: RelationDesc
    rows: RowStream
    # One of COPY's formats to send them in; None: as rows of a query.
    layout: CopyLayout | None = None
    tag: str = "SELECT"
    # They are a query's: all are computed and only on their way. A subscription's are yet to be.
    is_query: bool = False


class RowSink(Protocol):
    """Takes the lines that a client sends after COPY ... FROM STDIN."""

    async def feed(self, received: bytes) -> None:
        """Take what the client sent, cut anywhere."""
        ...

    async def feed_rows(self, rows: Sequence[Row]) -> None:
        """Take rows that were read already: those of the binary format."""
        ...

    async def finish(self) -> str:
        """That was all; gives the command's tag once the rows are written."""
        ...


@dataclass(frozen=True, slots=True)
class CopyInResponse:
    """The client is to send lines of so many fields, or rows in COPY's binary format."""

    column_count: int
    rows: RowSink
    # The types of its rows' fields if they come in binary; None: they come as text.
    binary_types: tuple[SqlType, ...] | None = None


@dataclass(frozen=True, slots=True)
class CommandResponse:
    """A finished statement without rows: `CREATE TABLE`, `INSERT 0 3`."""

    tag: str


@dataclass(frozen=True, slots=True)
class EmptyResponse:
    """The statement was empty."""


Response: TypeAlias = (
    RowsResponse
    | CopyOutResponse
    | CopyInResponse
    | StreamResponse
    | CommandResponse
    | EmptyResponse
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A statement that was parsed and, where it has parameters or rows, planned once for its types.

    `statement` belongs to the adapter; the protocol only hands it back.
    """

    text: str
    statement: object
    parameter_types: tuple[SqlType, ...] = ()
    # None: returns no rows.
    result: RelationDesc | None = None


@dataclass(slots=True)
class Portal:
    """A statement with its parameters, and how much of its answer the client has been given.

    Bind makes one, and so does DECLARE, which calls it a cursor: they share their names.
    """

    prepared: Prepared
    parameters: Sequence[Datum] = ()
    # One per column of its rows: 0 is text, 1 is binary.
    formats: tuple[int, ...] = ()
    # None until the first rows are asked for.
    response: Response | None = None
    rows_given: int = 0

    @property
    def desc(self) -> RelationDesc | None:
        """Its rows' columns; None: it has no rows."""
        return self.prepared.result

    def end(self) -> None:
        """Nobody asks for its rows any more: a stream would else live on with its transaction."""
        if isinstance(self.response, StreamResponse):
            self.response.rows.close()

    def take_rows(self, most: int | None) -> Sequence[Row]:
        """The next rows."""
        assert isinstance(self.response, RowsResponse)
        rows = self.response.rows
        if most is not None:
            rows = rows[self.rows_given : self.rows_given + most]
        elif self.rows_given:
            rows = rows[self.rows_given :]
        self.rows_given += len(rows)
        return rows


@dataclass(slots=True)
class SessionEvents:
    """What happened beside the answer since it was last taken."""

    notices: list[Notice] = field(default_factory=list)
    # Reported variables that changed: name to value, sent as ParameterStatus.
    parameters: dict[str, str] = field(default_factory=dict)
    # Of a query that failed while it ran: the rows that it would have had.
    unfinished: RelationDesc | None = None


class SharedNames(Protocol):
    """What the statements of SQL and the messages of the protocol both name and change."""

    # Whether what is run next is not the last before Sync: it commits with what follows.
    pipelined: bool

    @property
    def statements(self) -> dict[str, Prepared]:
        """What names stand for, be they given by Parse or by PREPARE; the empty one is unnamed."""
        ...

    @property
    def portals(self) -> dict[str, Portal]:
        """What names stand for, be they given by Bind or by DECLARE. Gone at a COMMIT."""
        ...

    @property
    def float_digits(self) -> int:
        """How many digits a float has beyond those that its type always keeps; from 1 on it has as
        many as tell it from all others."""
        ...

    @property
    def idle_limit_s(self) -> float | None:
        """How long the client may say nothing now; None: for ever."""
        ...

    def check_described(self, prepared: Prepared) -> None:
        """Raises 0A000 if its rows are not what it was described with any more."""
        ...


class Awaited(Protocol):
    """Rows that were asked for and have not come yet."""

    def forget(self) -> None:
        """Nobody waits for them any more."""
        ...


class Lookups(Protocol):
    """A session's statements that look rows up by a key: the short way to their rows.

    Outside of transactions only, and for all of the rows. A statement that goes this way begins and
    ends a transaction of its own, and has nothing to tell but its rows.
    """

    def recognise(self, prepared: Prepared) -> object | None:
        """How to find its rows, if it may go this way now: the same object for as long as nothing
        has changed that matters for it."""
        ...

    def ask(
        self,
        recipe: object,
        parameters: Sequence[Datum],
        answer: Callable[[Sequence[Row] | None, Timestamp], None],
    ) -> Awaited:
        """Look the rows up by what `recognise` gave. `answer` is called once and soon, though not
        before this returns. None instead of rows: the statement has to be executed."""
        ...


class SessionClient(Protocol):
    """One session. Calls come one at a time; only `cancel` may come while another runs."""

    @property
    def transaction_status(self) -> TransactionStatus: ...

    @property
    def parameters(self) -> dict[str, str]:
        """The variables reported at start-up: server_version, client_encoding, ..."""
        ...

    def split(self, text: str) -> list[Prepared]:
        """Parse a simple query into its statements, not planned yet.

        A syntax error anywhere refuses the whole text.
        """
        ...

    async def prepare(self, text: str, parameter_oids: Sequence[int]) -> Prepared:
        """Parse and plan one statement for the extended protocol; 0 leaves a type to be found."""
        ...

    async def execute(self, prepared: Prepared, parameters: Sequence[Datum]) -> Response:
        """Run it. Parameters are datums of `prepared.parameter_types`."""
        ...

    @property
    def shared(self) -> SharedNames:
        """What the statements of SQL and the messages of the protocol both name and change."""
        ...

    async def end_implicit(self, *, failed: bool) -> None:
        """End the implicit transaction: after a simple query's last statement, or at Sync.

        An explicit transaction (BEGIN) is left open, failed if `failed`.
        """
        ...

    @property
    def lookups(self) -> Lookups:
        """The short way for some of its prepared statements."""
        ...

    def take_events(self) -> SessionEvents:
        """Notices and changed parameters since the last call."""
        ...

    def cancel(self) -> None:
        """Ask the running statement to end with 57014; nothing if none runs."""
        ...

    async def close(self) -> None:
        """The connection is gone: cancel what runs, release what is held."""
        ...


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a user's password is checked by. Not `genuine`: nothing that the user says is right."""

    verifier: Verifier
    genuine: bool
    # Whose password it is; another role of the same name is another role.
    role_id: RoleId | None = None


class SessionFactory(Protocol):
    """Opens sessions; `parameters` are those of the startup message (user, database, options)."""

    async def credentials(self, user: str) -> Credentials:
        """By what to check this user's password; a user without one gets a decoy."""
        ...

    async def open_session(
        self, parameters: dict[str, str], *, internal: bool, proved: Credentials | None = None
    ) -> SessionClient:
        """`proved`: what the user's password was checked by. If that is not what it is checked by
        now, the user is refused. None: users are trusted to be who they say."""
        ...
