"""Goal: who proved a password acts as the role whose password that was, or not at all.

Method: between the beginning of the exchange and the session an operator changes the role.
"""

import pytest

from evertide.adapter.client import Credentials
from evertide.adapter.connection import Connection, Connections
from evertide.vocab.errors import InvalidAuthorization, InvalidPassword, SqlError
from evertide.vocab.scram import make_verifier
from tests.adapter.test_a_right_taken_away_is_gone import _environment, run
from tests.catalog.environment import Environment

VERIFIER = make_verifier("open sesame").text
MADE = f"CREATE ROLE x WITH LOGIN PASSWORD '{VERIFIER}'"


class Door:
    """One environment with a user x, whose exchange has begun."""

    def __init__(self, environment: Environment, opening: Connections, owner: Connection) -> None:
        self.environment = environment
        self.opening = opening
        self.owner = owner

    async def enter(self, proved: Credentials, user: str = "x") -> Connection:
        return await self.opening.open_session({"user": user}, internal=False, proved=proved)

    async def refusal(self, proved: Credentials, user: str = "x") -> type[SqlError]:
        with pytest.raises(SqlError) as refused:
            await self.enter(proved, user)
        return type(refused.value)


async def opened() -> Door:
    environment = Environment()
    opening = Connections(_environment(environment, await environment.serve()), lambda _: None)
    owner = await opening.open_session({"user": "mz_system"}, internal=True)
    await run(owner, MADE)
    return Door(environment, opening, owner)


async def test_the_role_that_was_proved_is_the_one_that_acts() -> None:
    door = await opened()
    proved = await door.opening.credentials("x")
    await run(door.owner, "CREATE ROLE beside", "ALTER ROLE beside PASSWORD 'y'")
    session = await door.enter(proved)
    assert session._session.role_id == proved.role_id is not None
    assert not session._session.login.superuser
    await door.environment.close()


@pytest.mark.parametrize(
    ("meanwhile", "told"),
    [
        (("DROP ROLE x",), InvalidPassword),
        (("DROP ROLE x", MADE), InvalidPassword),
        (("DROP ROLE x", f"{MADE} SUPERUSER"), InvalidPassword),
        (("DROP ROLE x", "CREATE ROLE x WITH LOGIN"), InvalidPassword),
        (("ALTER ROLE x PASSWORD 'another'",), InvalidPassword),
        (("ALTER ROLE x PASSWORD 'open sesame'",), InvalidPassword),
        (("ALTER ROLE x PASSWORD NULL",), InvalidPassword),
        (("ALTER ROLE x NOLOGIN",), InvalidAuthorization),
    ],
)
async def test_a_role_that_changed_meanwhile_is_not_entered(
    meanwhile: tuple[str, ...], told: type[SqlError]
) -> None:
    door = await opened()
    proved = await door.opening.credentials("x")
    await run(door.owner, *meanwhile)
    assert await door.refusal(proved) is told
    await door.environment.close()


async def test_a_user_without_a_role_is_always_refused_where_passwords_are_asked_for() -> None:
    door = await opened()
    for user in ("nobody", "mz_system", "materialize"):
        proved = await door.opening.credentials(user)
        assert (proved.genuine, proved.role_id) == (False, None)
        assert await door.refusal(proved, user) is InvalidPassword
    assert await door.refusal(await door.opening.credentials("x"), "nobody") is InvalidPassword
    await door.environment.close()
