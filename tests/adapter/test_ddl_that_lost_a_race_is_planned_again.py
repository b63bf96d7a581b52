"""DDL whose objects change while it is under way does what it says of what is there then.

Method: another session's statement commits between planning and appending, every time.
"""

from typing import Any

import pytest

from evertide.adapter.client import CommandResponse
from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.durable.protocol import AppendOutcome
from evertide.catalog.service import CatalogService
from evertide.vocab.errors import SqlError
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT


class OvertakenCatalog:
    """A catalog in which somebody else is always quicker, once."""

    def __init__(self, service: CatalogService) -> None:
        self._service = service
        self.other: Connection | None = None
        self.statement = ""

    async def compare_and_append(self, *arguments: Any, **options: Any) -> AppendOutcome:
        """By now the statement has been planned."""
        other, self.other = self.other, None
        if other is not None:
            await run(other, self.statement)
        return await self._service.compare_and_append(*arguments, **options)

    def __getattr__(self, name: str) -> object:
        return getattr(self._service, name)

    def overtake(self, other: Connection, statement: str) -> None:
        """From the next statement on."""
        self.other, self.statement = other, statement


async def connect(environment: Environment, catalog: Any) -> Connection:
    """A session of an adapter that has a catalog, and nothing that views need not."""
    missing: Any = None
    env = AdapterEnvironment(
        environment_id=ENVIRONMENT,
        catalog=catalog,
        oracle=missing,
        storage=missing,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=environment.clock,
    )
    connections = Connections(env, lambda _: None)
    return await connections.open_session({"user": "materialize"}, internal=False)


async def run(connection: Connection, text: str) -> tuple[str, list[str]]:
    """The tag and the notices."""
    (prepared,) = connection.split(text)
    response = await connection.execute(prepared, ())
    await connection.end_implicit(failed=False)
    assert isinstance(response, CommandResponse)
    return response.tag, [notice.message for notice in connection.take_events().notices]


async def outcome(connection: Connection, text: str) -> str:
    try:
        tag, notices = await run(connection, text)
    except SqlError as error:
        return error.code
    return "; ".join([tag, *notices])


@pytest.mark.parametrize(
    ("meanwhile", "statement", "wanted"),
    [
        (
            "DROP VIEW x",
            "ALTER VIEW IF EXISTS x RENAME TO y",
            'ALTER VIEW; VIEW "x" does not exist, skipping',
        ),
        ("DROP VIEW x", "ALTER VIEW x RENAME TO y", "42P01"),
        ("CREATE VIEW y AS SELECT 1", "ALTER VIEW x RENAME TO y", "42P07"),
        ("DROP VIEW x", "DROP VIEW IF EXISTS x", 'DROP VIEW; VIEW "x" does not exist, skipping'),
        ("DROP VIEW x", "CREATE VIEW v AS SELECT a FROM x", "42P01"),
        ("CREATE VIEW v AS SELECT a FROM x", "DROP VIEW x", "2BP01"),
        ("CREATE VIEW v AS SELECT a FROM x", "DROP VIEW x CASCADE", "DROP VIEW"),
        (
            "CREATE VIEW v AS SELECT a FROM x",
            "CREATE VIEW IF NOT EXISTS v AS SELECT 2",
            "CREATE VIEW; catalog item 'v' already exists, skipping",
        ),
    ],
)
async def test_a_statement_means_what_is_there_when_it_is_done(
    meanwhile: str, statement: str, wanted: str
) -> None:
    environment = Environment()
    service = await environment.serve()
    catalog = OvertakenCatalog(service)
    first, other = await connect(environment, catalog), await connect(environment, service)
    await run(other, "CREATE VIEW x AS SELECT 1 AS a")
    catalog.overtake(other, meanwhile)
    assert await outcome(first, statement) == wanted
    await environment.close()
