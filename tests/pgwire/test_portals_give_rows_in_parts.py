"""Row limits, suspended portals, and how long statements and portals live."""

from collections.abc import Iterator

import asyncpg
import pytest

from evertide.adapter.client import CommandResponse, RowsResponse
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import INT4, TEXT
from tests.pgwire.raw import (
    FLUSH,
    SYNC,
    RawClient,
    bind,
    close,
    describe,
    execute,
    message,
    parse,
    query,
    tags,
)
from tests.pgwire.scripted import Line, RunningServer

NUMBERS = RowsResponse(relation_desc(("n", INT4)), [(n,) for n in range(10)])


@pytest.fixture
def client(server: RunningServer) -> Iterator[RawClient]:
    server.say("SELECT n", NUMBERS)
    server.say("INSERT", CommandResponse("INSERT 0 1"))
    with RawClient(server) as client:
        client.start()
        yield client


async def test_asyncpg_reads_through_a_cursor(server: RunningServer) -> None:
    server.say("SELECT n", NUMBERS)
    connection = await asyncpg.connect(host=server.host, port=server.port, user="u", ssl=False)
    try:
        async with connection.transaction(isolation="read_committed"):
            rows = [row["n"] async for row in connection.cursor("SELECT n", prefetch=3)]
            cursor = await connection.cursor("SELECT n")
            assert [row["n"] for row in await cursor.fetch(4)] == [0, 1, 2, 3]
            assert (await cursor.fetchrow())["n"] == 4
        assert rows == list(range(10))
    finally:
        await connection.close()


def test_a_full_batch_suspends_and_a_short_one_completes(client: RawClient) -> None:
    replies = client.ask(parse("SELECT n"), bind(), *[execute(max_rows=5)] * 3, SYNC)
    assert tags(replies) == "12" + "DDDDDs" + "DDDDDs" + "C" + "Z"
    assert replies[-2].body == b"SELECT 0\0"


def test_the_rest_can_be_asked_for_without_a_limit(client: RawClient) -> None:
    replies = client.ask(parse("SELECT n"), bind(), execute(max_rows=7), execute(), SYNC)
    assert tags(replies) == "12" + "D" * 7 + "s" + "DDDC" + "Z"


def test_a_portal_outlives_sync_only_inside_a_transaction(client: RawClient) -> None:
    client.ask(parse("SELECT n"), bind("p"), execute("p", 2), SYNC)
    replies = client.ask(execute("p", 2), SYNC)
    assert replies[0].fields["C"] == "34000"
    client.ask(query("BEGIN"))
    client.ask(parse("SELECT n"), bind("p"), execute("p", 2), SYNC)
    assert tags(client.ask(execute("p", 2), SYNC)) == "DDsZ"
    client.ask(query("COMMIT"))
    assert client.ask(execute("p", 2), SYNC)[0].fields["C"] == "34000"


def test_commit_inside_a_pipeline_ends_portals(client: RawClient) -> None:
    client.ask(query("BEGIN"))
    replies = client.ask(
        parse("SELECT n", "s"), bind("p", "s"), execute("p", 2),
        parse("COMMIT"), bind(), execute(), execute("p", 2), SYNC,
    )  # fmt: skip
    assert tags(replies) == "12DDs" + "12C" + "EZ"
    assert replies[-2].fields["C"] == "34000"


def test_a_command_runs_once_per_portal(client: RawClient) -> None:
    replies = client.ask(parse("INSERT"), bind(), execute(), execute(), SYNC)
    assert tags(replies) == "12CEZ"
    assert replies[-2].fields["C"] == "55000"


def test_after_an_error_all_is_skipped_up_to_sync(client: RawClient, server: RunningServer) -> None:
    client.send(parse("SELECT nothing"), FLUSH)
    assert client.reply().fields["C"] == "42P01"
    replies = client.ask(bind(), execute(), query("SELECT n"), SYNC)
    assert tags(replies) == "Z"
    assert server.last_session.ends == [True]


def test_names_are_taken_until_closed(client: RawClient) -> None:
    assert tags(client.ask(parse("SELECT n", "s"), SYNC)) == "1Z"
    assert client.ask(parse("SELECT n", "s"), SYNC)[0].fields["C"] == "42P05"
    assert tags(client.ask(close(b"S", "s"), close(b"S", "unknown"), SYNC)) == "33Z"
    assert tags(client.ask(parse("SELECT n", "s"), SYNC)) == "1Z"
    replies = client.ask(bind("p", "s"), bind("p", "s"), SYNC)
    assert tags(replies) == "2EZ"
    assert replies[1].fields["C"] == "42P03"


def test_unnamed_ones_are_replaced_and_forgotten_by_a_simple_query(client: RawClient) -> None:
    assert tags(client.ask(parse("SELECT n"), parse("INSERT"), bind(), bind(), SYNC)) == "1122Z"
    client.ask(query("INSERT"))
    assert client.ask(bind(), SYNC)[0].fields["C"] == "26000"


def test_describe_tells_parameters_and_columns(client: RawClient, server: RunningServer) -> None:
    server.factory.script["ECHO"] = Line(NUMBERS, (INT4, TEXT))
    replies = client.ask(parse("ECHO"), describe(b"S"), SYNC)
    assert tags(replies) == "1tTZ"
    assert replies[1].body == bytes.fromhex("0002 00000017 00000019")
    replies = client.ask(
        parse("INSERT"), bind(), describe(b"P"), describe(b"S"), describe(b"S", "none"), SYNC
    )
    assert tags(replies) == "12" + "n" + "tn" + "EZ"


def test_a_bind_must_fit_its_statement(client: RawClient, server: RunningServer) -> None:
    server.factory.script["ECHO"] = Line(NUMBERS, (INT4,))
    wrong = {
        "no parameters": (b"\0\0" + bytes.fromhex("0000 0000 0000"), "08P01"),
        "a format of the future": (
            b"\0\0" + bytes.fromhex("0001 0002 0001 ffffffff 0000"),
            "22023",
        ),
        "two result formats for one column": (
            b"\0\0" + bytes.fromhex("0000 0001 ffffffff 0002 0000 0000"),
            "08P01",
        ),
        "text that is no number": (b"\0\0" + bytes.fromhex("0000 0001 00000001 78 0000"), "22P02"),
        "a short binary number": (
            b"\0\0" + bytes.fromhex("0001 0001 0001 00000001 78 0000"),
            "22P03",
        ),
    }
    for why, (body, sqlstate) in wrong.items():
        replies = client.ask(parse("ECHO"), message(b"B", body), SYNC)
        assert replies[1].fields["C"] == sqlstate, why


def test_rows_must_have_the_shape_that_was_described(
    client: RawClient, server: RunningServer
) -> None:
    async def changed(*_: object) -> RowsResponse:
        return RowsResponse(relation_desc(("n", TEXT)), [("x",)])

    server.factory.script["CHANGED"] = Line(changed, (), NUMBERS.desc)
    replies = client.ask(parse("CHANGED"), bind(), execute(), SYNC)
    assert replies[2].fields["C"] == "0A000"
