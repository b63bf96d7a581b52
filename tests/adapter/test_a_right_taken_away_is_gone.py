"""A right that was revoked cannot be used by a statement that was planned, or prepared, before.

Method: the right goes between planning and appending, or between preparing and executing.
"""

from typing import Any

import pytest

from evertide.adapter.connection import Connection, Connections
from evertide.adapter.environment import Environment as AdapterEnvironment
from evertide.catalog.service import CatalogService
from evertide.vocab.errors import InsufficientPrivilege, InvalidAuthorization
from tests.adapter.test_ddl_that_lost_a_race_is_planned_again import OvertakenCatalog
from tests.catalog.environment import Environment
from tests.catalog.samples import ENVIRONMENT


class Site:
    """Sessions of users over one catalog; those of `overtaken` can be raced."""

    def __init__(self, environment: Environment, service: CatalogService) -> None:
        self.overtaken = OvertakenCatalog(service)
        self._plain = Connections(_environment(environment, service), lambda _: None)
        self._raced = Connections(_environment(environment, self.overtaken), lambda _: None)

    async def connect(self, user: str, *, raced: bool = False) -> Connection:
        opening = self._raced if raced else self._plain
        return await opening.open_session({"user": user}, internal=user.startswith("mz_"))


def _environment(environment: Environment, catalog: Any) -> AdapterEnvironment:
    missing: Any = None
    return AdapterEnvironment(
        environment_id=ENVIRONMENT,
        catalog=catalog,
        oracle=missing,
        storage=missing,
        txns=missing,
        writes=missing,
        compute=missing,
        clock=environment.clock,
    )


async def run(connection: Connection, *texts: str) -> None:
    for text in texts:
        (prepared,) = connection.split(text)
        await connection.execute(prepared, ())
        await connection.end_implicit(failed=False)


OBJECTS = (
    "CREATE ROLE joe",
    "CREATE ROLE boss",
    "CREATE VIEW x AS SELECT 1 AS a",
    "CREATE VIEW z AS SELECT 1 AS a",
    "ALTER VIEW z OWNER TO boss",
)
RACES = [
    ("GRANT CREATE ON SCHEMA public TO joe", "CREATE VIEW v AS SELECT 1"),
    ("GRANT CREATEDB ON SYSTEM TO joe", "CREATE DATABASE d"),
    ("ALTER VIEW x OWNER TO joe", "DROP VIEW x"),
    ("ALTER VIEW x OWNER TO joe", "ALTER VIEW x RENAME TO y"),
    ("ALTER VIEW x OWNER TO joe", "GRANT SELECT ON x TO boss"),
    ("GRANT CREATEROLE ON SYSTEM TO joe", "CREATE ROLE ann"),
    ("GRANT boss TO joe", "REASSIGN OWNED BY boss TO joe"),
]
BACK = {
    "GRANT": lambda text: text.replace("GRANT", "REVOKE", 1).replace(" TO ", " FROM "),
    "ALTER": lambda text: text.replace("joe", "materialize"),
}


@pytest.mark.parametrize(("given", "statement"), RACES)
async def test_a_change_that_lost_its_right_on_the_way_does_not_happen(
    given: str, statement: str
) -> None:
    environment = Environment()
    service = await environment.serve()
    site = Site(environment, service)
    owner = await site.connect("materialize")
    await run(owner, *OBJECTS, given)
    joe = await site.connect("joe", raced=True)
    site.overtaken.other = owner
    site.overtaken.statement = BACK[given.split()[0]](given)
    before = (await service.current()).items
    with pytest.raises(InsufficientPrivilege):
        await run(joe, statement)
    assert site.overtaken.other is None, "the race took place"
    after = (await service.current()).items
    assert {item.name for item in after.values()} == {item.name for item in before.values()}
    await environment.close()


@pytest.mark.parametrize(("given", "statement"), RACES)
async def test_the_same_change_happens_while_the_right_is_there(given: str, statement: str) -> None:
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, *OBJECTS, given)
    joe = await site.connect("joe", raced=True)
    site.overtaken.other, site.overtaken.statement = owner, "CREATE VIEW beside AS SELECT 1"
    await run(joe, statement)
    await environment.close()


async def test_a_prepared_statement_is_checked_whenever_it_is_executed() -> None:
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, "CREATE ROLE joe", "GRANT CREATE ON SCHEMA public TO joe")
    joe = await site.connect("joe")
    prepared = await joe.prepare("CREATE VIEW IF NOT EXISTS v AS SELECT 1", ())
    for _ in range(2):
        await joe.execute(prepared, ())
        await joe.end_implicit(failed=False)
    await run(owner, "REVOKE CREATE ON SCHEMA public FROM joe")
    with pytest.raises(InsufficientPrivilege, match="SCHEMA"):
        await joe.execute(prepared, ())
    await run(owner, "GRANT CREATE ON SCHEMA public TO joe")
    await joe.execute(prepared, ())
    await environment.close()


async def test_preparing_takes_no_right() -> None:
    """As in PostgreSQL: a statement may be described by whoever may not run it."""
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, "CREATE ROLE joe", "CREATE VIEW x AS SELECT 1 AS a")
    joe = await site.connect("joe")
    prepared = await joe.prepare("SELECT a FROM x", ())
    with pytest.raises(InsufficientPrivilege):
        await joe.execute(prepared, ())
    await run(joe, "PREPARE p AS SELECT a FROM x")
    with pytest.raises(InsufficientPrivilege):
        await run(joe, "EXECUTE p")
    await environment.close()


async def test_a_session_is_the_role_it_began_as() -> None:
    """A role of the same name that comes later is another one, and lends it nothing."""
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, "CREATE ROLE joe")
    joe = await site.connect("joe")
    await run(owner, "DROP ROLE joe", "CREATE ROLE joe", "GRANT CREATE ON SCHEMA public TO joe")
    with pytest.raises(InsufficientPrivilege, match="concurrently dropped"):
        await run(joe, "CREATE VIEW v AS SELECT 1")
    again = await site.connect("joe")
    await run(again, "CREATE VIEW v AS SELECT 1")
    await environment.close()


async def test_whoever_may_not_log_in_does_not() -> None:
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, "CREATE ROLE grp NOLOGIN")
    with pytest.raises(InvalidAuthorization, match="not permitted"):
        await site.connect("grp")
    with pytest.raises(InvalidAuthorization, match="does not exist"):
        await site.connect("mz_nobody")
    await run(owner, "ALTER ROLE grp LOGIN")
    await site.connect("grp")
    await environment.close()


async def test_sessions_start_with_their_role_s_variables() -> None:
    environment = Environment()
    site = Site(environment, await environment.serve())
    owner = await site.connect("materialize")
    await run(owner, "CREATE ROLE joe", "ALTER ROLE joe SET application_name = 'mine'")
    joe = await site.connect("joe")
    assert joe.parameters["application_name"] == "mine"
    assert joe.parameters["is_superuser"] == "off"
    assert owner.parameters["is_superuser"] == "on"
    await run(joe, "SET application_name = 'other'", "RESET application_name")
    assert joe.parameters["application_name"] == "mine"
    await run(owner, "ALTER ROLE joe RESET application_name")
    assert (await site.connect("joe")).parameters["application_name"] == ""
    await environment.close()


async def test_a_user_without_a_role_acts_as_the_first_one() -> None:
    environment = Environment()
    service = await environment.serve()
    site = Site(environment, service)
    await run(await site.connect("stranger"), "CREATE VIEW v AS SELECT 1")
    (item,) = (await service.current()).items.values()
    assert (await service.current()).roles[item.owner].name == "materialize"
    await environment.close()
