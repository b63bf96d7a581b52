"""Goal: rows that come in pieces reach the client as the very bytes that the same rows are if they
come at once; and a stream that is not sent to its end is closed.

Method: the state machine, driven by hand, with both answers.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pytest

from evertide.adapter.client import (
    CopyKind,
    CopyLayout,
    CopyOutResponse,
    Prepared,
    Response,
    RowsResponse,
    StreamResponse,
)
from evertide.pgwire.machine import CHUNK_BYTES, Machine
from evertide.pgwire.messages import (
    Bind,
    Execute,
    FrontendMessage,
    Parse,
    Query,
    StartupMessage,
    Sync,
)
from evertide.pgwire.requests import (
    BackendKey,
    OpenSession,
    Outcome,
    PrepareStatement,
    Request,
    RunStatement,
    Send,
    SendRows,
    SessionOpened,
    TakenRows,
    TakeRows,
)
from evertide.pgwire.startup import Gate
from evertide.vocab.datum import Row
from evertide.vocab.errors import QueryCanceled
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, JSONB, TEXT
from tests.pgwire.scripted import Line, ScriptedSession

SHAPE = relation_desc(("n", INT4), ("t", TEXT), ("f", FLOAT8))
# Rows of this one are encoded one by one.
ODD = relation_desc(("n", INT4), ("t", TEXT), ("j", JSONB))


@dataclass
class Pieces:
    """Rows in pieces of any size."""

    rows: Sequence[Row]
    rng: random.Random = field(default_factory=lambda: random.Random(1))
    closed: int = 0
    ready = True

    async def take(self, most: int | None) -> Sequence[Row] | None:
        return self.next_piece(most)

    def next_piece(self, most: int | None) -> Sequence[Row] | None:
        size = self.rng.choice([1, 2, 100, 1_000])
        taken = self.rows[: size if most is None else min(size, most)]
        self.rows = self.rows[len(taken) :]
        return taken or None

    def close(self) -> None:
        self.closed += 1


def rows(count: int) -> list[Row]:
    rng = random.Random(count)
    texts = [None, "", "a\tb\\c", 'say "x", y', "\\N", "é" * 300]
    return [(n, rng.choice(texts), rng.choice([None, n / 3])) for n in range(count)]


class Client:
    """A machine, and what it says."""

    def __init__(self, response: Response) -> None:
        prepared = Prepared("S", Line(response), (), None)
        if isinstance(response, RowsResponse | StreamResponse):
            prepared = Prepared("S", Line(response), (), response.desc)
        self.prepared, self.response = prepared, response
        self.machine = Machine(BackendKey(7, 9), Gate())
        session = ScriptedSession({"S": Line(response)}, {}, internal=False)
        self.outcomes: dict[type[Request], Outcome] = {
            OpenSession: SessionOpened(session),
            PrepareStatement: prepared,
            RunStatement: response,
        }
        self.sent: list[bytes] = []
        self.fail_at: type[Request] | None = None
        self.say(StartupMessage(3, 0, {"user": "u"}))
        self.sent.clear()

    def say(self, *messages: FrontendMessage) -> None:
        for message in messages:
            steps = self.machine.handle(message)
            try:
                request = next(steps)
                while True:
                    if type(request) is self.fail_at:
                        self.fail_at = None
                        request = steps.throw(QueryCanceled("canceled"))
                    else:
                        request = steps.send(self._outcome(request))
            except StopIteration:
                pass

    def _outcome(self, request: Request) -> Outcome:
        match request:
            case Send(payload) | SendRows(payload):
                self.sent.append(payload)
                return None
            case TakeRows(stream, most):
                assert isinstance(stream, Pieces)
                return TakenRows(stream.next_piece(most))
            case _:
                return self.outcomes.get(type(request))

    @property
    def heard(self) -> bytes:
        return b"".join(self.sent)


def simple(response: Response) -> bytes:
    client = Client(response)
    client.say(Query("S"))
    return client.heard


def extended(code: int) -> Callable[[Response], bytes]:
    def heard(response: Response) -> bytes:
        client = Client(response)
        client.say(
            Parse("", "S", ()), Bind("", "", (), (), (code,)),
            Execute("", 700), Execute("", 1), Execute("", 0), Sync(),
        )  # fmt: skip
        return client.heard

    return heard


@pytest.mark.parametrize("count", [0, 1, 5, 3_000])
@pytest.mark.parametrize(
    "ask", [simple, extended(0), extended(1)], ids=["simple", "text", "binary"]
)
@pytest.mark.parametrize("desc", [SHAPE, ODD], ids=["by columns", "by rows"])
def test_rows(desc: RelationDesc, ask: Callable[[Response], bytes], count: int) -> None:
    given = rows(count)
    if desc is ODD:
        given = [(n, t, None if f is None else str(n)) for n, t, f in given]
    expected = ask(RowsResponse(desc, given))
    assert ask(StreamResponse(desc, Pieces(given))) == expected
    assert expected.count(b"D\0\0") >= count


@pytest.mark.parametrize("count", [0, 1, 3_000])
@pytest.mark.parametrize("kind", CopyKind)
def test_copies(kind: CopyKind, count: int) -> None:
    layout = CopyLayout(kind, ";", "nothing") if kind is CopyKind.CSV else CopyLayout(kind)
    expected = simple(CopyOutResponse(SHAPE, rows(count), layout))
    assert simple(StreamResponse(SHAPE, Pieces(rows(count)), layout)) == expected
    assert f"COPY {count}\0".encode() in expected


def test_a_command_that_is_no_query_counts_all_that_it_gave() -> None:
    """As FETCH does, whose rows came with one command."""
    for response in (
        RowsResponse(SHAPE, rows(5), "FETCH"),
        StreamResponse(SHAPE, Pieces(rows(5)), tag="FETCH"),
    ):
        client = Client(response)
        client.say(Parse("", "S", ()), Bind("", "", (), (), ()), Execute("", 3), Execute("", 3))
        client.say(Sync())
        assert b"FETCH 5\0" in client.heard


@pytest.mark.parametrize("fail_at", [SendRows, TakeRows])
@pytest.mark.parametrize("layout", [None, CopyLayout()])
def test_a_stream_that_is_not_sent_to_its_end_is_closed(
    fail_at: type[Request], layout: CopyLayout | None
) -> None:
    stream = Pieces(rows(3_000))
    client = Client(StreamResponse(SHAPE, stream, layout))
    client.fail_at = fail_at
    client.say(Query("S"))
    assert stream.closed == 1
    assert b"C57014\0" in client.heard
    whole = Pieces(rows(30))
    simple(StreamResponse(SHAPE, whole, layout))
    assert not whole.closed


def test_what_is_sent_at_once_is_bounded() -> None:
    client = Client(StreamResponse(SHAPE, Pieces([(n, "x" * 40_000, None) for n in range(100)])))
    client.say(Query("S"))
    assert max(map(len, client.sent)) < 2 * CHUNK_BYTES
