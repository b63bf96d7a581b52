"""Goal: a statement that goes the short way is answered as on the ordinary one, and in its turn.

Method: a scripted session recognises one statement, whose rows the test tells when it likes. What
the ordinary way would say is in the script: the same rows, so that the replies can be compared, or
an error, so that it shows who answered.
"""

import asyncio
import struct
from collections.abc import Iterator, Sequence

import pytest

from evertide.adapter.client import RowsResponse
from evertide.pgwire.short_way import read_bind
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import FLOAT8, INT4, TEXT
from tests.pgwire.raw import (
    SYNC,
    RawClient,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    tags,
)
from tests.pgwire.scripted import RunningServer, ScriptedLookup, ScriptedLookups

LOOKUP, OTHER = "SELECT by key", "SELECT other"
DESC = relation_desc(("id", INT4), ("t", TEXT), ("f", FLOAT8))
ROWS: list[Row] = [(1, "one", 1.5), (2, None, float("nan"))]


@pytest.fixture
def client(server: RunningServer) -> Iterator[RawClient]:
    """Its session has prepared both statements; only one of them is recognised."""
    server.say(LOOKUP, RowsResponse(DESC, ROWS), INT4)
    server.say(OTHER, RowsResponse(DESC, ROWS), INT4)
    with RawClient(server) as raw:
        raw.start()
        raw.ask(parse(LOOKUP, "lookup"), parse(OTHER, "other"), SYNC)
        server.last_session.known_keys.texts.add(LOOKUP)
        yield raw


def bound(
    statement: str,
    *values: bytes | None,
    given: Sequence[int] = (),
    wanted: Sequence[int] = (),
    portal: str = "",
) -> bytes:
    body = f"{portal}\0{statement}\0".encode()
    body += struct.pack(f"!h{len(given)}h", len(given), *given) + struct.pack("!h", len(values))
    for value in values:
        body += struct.pack("!i", -1 if value is None else len(value)) + (value or b"")
    return message(b"B", body + struct.pack(f"!h{len(wanted)}h", len(wanted), *wanted))


def lookups(server: RunningServer) -> ScriptedLookups:
    return server.last_session.known_keys


def asked(server: RunningServer) -> ScriptedLookup:
    """What was asked last, once it is."""
    assert lookups(server).came.wait(20)
    lookups(server).came.clear()
    return lookups(server).asked[-1]


@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("wanted", [(), (0,), (1,), (1, 0, 1)])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_answer_is_that_of_the_ordinary_way(
    server: RunningServer, client: RawClient, described: bool, wanted: Sequence[int], count: int
) -> None:
    server.say(OTHER, RowsResponse(DESC, ROWS[:count]), INT4)
    client.ask(close(b"S", "other"), parse(OTHER, "other"), SYNC)
    behind = (describe(b"P") if described else b"") + execute() + SYNC
    client.send(bound("lookup", b"7", wanted=wanted) + behind)
    question = asked(server)
    assert question.parameters == [7]
    question.tell(ROWS[:count])
    short = client.until_ready()
    assert short == client.ask(bound("other", b"7", wanted=wanted) + behind)
    assert len(lookups(server).asked) == 1


def test_parameters_come_in_either_format(server: RunningServer, client: RawClient) -> None:
    for value, given in ((b"5", ()), (b"5", (0,)), (struct.pack("!i", 5), (1,)), (None, ())):
        client.send(bound("lookup", value, given=given) + execute() + SYNC)
        question = asked(server)
        assert question.parameters == [None if value is None else 5]
        question.tell([])
        assert tags(client.until_ready()) == "2CZ"


def test_what_is_not_found_after_all_is_executed(server: RunningServer, client: RawClient) -> None:
    client.send(bound("lookup", b"7") + execute() + SYNC)
    asked(server).tell(None)
    assert tags(client.until_ready()) == "2DDCZ"


def test_a_long_answer_is_sent_in_parts_as_ever(server: RunningServer, client: RawClient) -> None:
    client.send(bound("lookup", b"7") + execute() + SYNC)
    asked(server).tell([(1, "x" * 100_000, 0.5)])
    assert tags(client.until_ready()) == "2DDCZ", "the ordinary way has answered"


def test_what_comes_meanwhile_is_answered_afterwards(
    server: RunningServer, client: RawClient
) -> None:
    client.send(bound("lookup", b"7") + execute() + SYNC)
    first = asked(server)
    client.send(bound("lookup", b"8") + execute() + SYNC)
    first.tell(ROWS[:1])
    assert tags(client.until_ready()) == "2DCZ"
    second = asked(server)
    assert second.parameters == [8]
    client.send(query(OTHER), bound("lookup", b"9") + execute() + SYNC)
    second.tell([])
    assert tags(client.until_ready()) == "2CZ"
    assert tags(client.until_ready()) == "TDDCZ"
    assert tags(client.until_ready()) == "2DDCZ", "it stood behind another one"


def test_a_cancel_ends_it(server: RunningServer, client: RawClient) -> None:
    key = next(iter(server.server._backends.all())).key
    client.send(bound("lookup", b"7") + execute() + SYNC)
    question = asked(server)
    with RawClient(server) as other:
        other.send(struct.pack("!iiII", 16, (1234 << 16) | 5678, key.pid, key.secret))
        other.until_closed()
    ended = client.until_ready()
    assert tags(ended) == "EZ"
    assert ended[0].fields["C"] == "57014"
    assert question.forgotten
    client.send(bound("lookup", b"8") + execute() + SYNC)
    asked(server).tell(ROWS)
    assert tags(client.until_ready()) == "2DDCZ"


def test_nobody_answers_a_client_that_left(server: RunningServer, client: RawClient) -> None:
    client.send(bound("lookup", b"7") + execute() + SYNC)
    question = asked(server)
    client.socket.close()
    assert server.last_session.closed.wait(20)
    assert question.forgotten
    question.tell(ROWS)


@pytest.mark.parametrize(
    "messages",
    [
        pytest.param(bound("lookup", b"7") + execute(max_rows=1) + SYNC, id="some rows"),
        pytest.param(bound("lookup", b"7", portal="p") + execute("p") + SYNC, id="named portal"),
        pytest.param(bound("lookup", b"7") + execute() + execute() + SYNC, id="twice"),
        pytest.param(bound("lookup", b"x") + execute() + SYNC, id="no number"),
        pytest.param(bound("lookup", b"7", wanted=(2,)) + execute() + SYNC, id="no format"),
        pytest.param(bound("lookup") + execute() + SYNC, id="no value"),
        pytest.param(bound("lookup", b"7", b"8") + execute() + SYNC, id="a value too many"),
        pytest.param(bound("unknown", b"7") + execute() + SYNC, id="no statement"),
        pytest.param(bound("lookup", b"7") + describe(b"S", "lookup") + SYNC, id="not run"),
    ],
)
def test_whatever_else_comes_goes_the_ordinary_way(
    server: RunningServer, client: RawClient, messages: bytes
) -> None:
    with RawClient(server) as other:
        other.start()
        other.ask(parse(LOOKUP, "lookup"), SYNC)
        assert client.ask(messages) == other.ask(messages)
    assert not any(session.known_keys.asked for session in server.factory.sessions)


def test_what_was_not_answered_yet_comes_first(server: RunningServer, client: RawClient) -> None:
    texts = server.last_session.texts
    before = len(texts)

    async def prepared() -> None:
        while len(texts) == before:
            await asyncio.sleep(0)

    client.send(parse(OTHER, "third"))
    server.run(prepared())  # its reply waits for the Sync
    replies = client.ask(bound("lookup", b"7") + execute() + SYNC)
    assert tags(replies) == "12DDCZ"
    assert not lookups(server).asked


def test_after_an_error_all_is_passed_over_until_sync(
    server: RunningServer, client: RawClient
) -> None:
    client.send(parse("SELECT nothing known", "fourth"))
    assert client.reply().tag == b"E"
    client.send(bound("lookup", b"7") + execute() + SYNC)
    assert tags(client.until_ready()) == "Z"
    assert not lookups(server).asked


def test_every_cut_of_a_bind_is_read_or_refused() -> None:
    whole = bound("lookup", b"123", None, given=(0, 1), wanted=(1,))
    read = read_bind(whole, len(whole))
    assert read is not None
    assert (read.name, list(read.values)) == (b"lookup", [b"123", None])
    assert read.parameter_formats == struct.pack("!hhh", 2, 0, 1)
    assert read.result_formats == struct.pack("!hh", 1, 1)
    for end in range(6, len(whole)):
        assert read_bind(whole[:end], end) is None
