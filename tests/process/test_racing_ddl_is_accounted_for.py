"""Goal: two adapters that race each other with DDL lose nothing, and do nothing by halves.

Method: clients of both adapters send statements about a few names that all of them fight for, and
about names of their own; then everything that they were told is compared with the audit log, with
what both adapters show, and with the shards. A second round is cut off by kill -9.
"""

import asyncio
from pathlib import Path

import pytest

from tests.process.ddl_race import (
    ADAPTERS,
    Connection,
    Race,
    connect,
    events_seen,
    names_seen,
)
from tests.process.stored_environment import faults_of_shards
from tests.support.ddl_accounts import Accounts, account, kinds
from tests.support.ddl_model import DONE, REFUSALS, TAKEN, TAKEN_SCHEMA
from tests.support.ddl_statements import Kind, create
from tests.support.server import Server, start_server

CATALOGS = ("persist", "stash", "shadow")
PER_ADAPTER = 500
# Replies of the second round that come before everything is killed.
UNTIL_KILLED = 200
DUELS = 60


async def check(server: Server, race: Race) -> Accounts:
    """Both adapters show the same, and it is what the clients were told."""
    shown = []
    for adapter in range(ADAPTERS):
        async with await connect(server, adapter) as connection:
            events = await events_seen(connection)
            shown.append((events, await names_seen(connection)))
            await check_contents(connection, race)
    assert shown[0] == shown[1], "adapters do not show the same"
    events, names = shown[0]
    accounts = account(events, race.ledger)
    assert names == kinds(accounts.states[-1])
    return accounts


async def check_contents(connection: Connection, race: Race) -> None:
    """Tables hold what was written into them, and views are computed."""
    written = race.rows | race.leaving
    for name in race.rows:
        assert await contents(connection, name) == [(written[name],)], name
    for name, kind in (await names_seen(connection)).items():
        if kind is Kind.MATERIALIZED_VIEW:
            below = name.removeprefix("public.").removesuffix("_m")
            assert await contents(connection, name) == [(written.get(below),)], name


async def contents(connection: Connection, name: str) -> list[tuple[object, ...]]:
    return await (await connection.execute(f"SELECT a FROM {name}")).fetchall()


async def kill_when_told(server: Server, race: Race) -> None:
    await race.stopped.wait()
    await asyncio.to_thread(server.kill_all)


async def duel(server: Server, race: Race) -> None:
    """Both adapters are sent the same CREATE at once: one wins the free name."""
    async with await connect(server, 0, "a") as one, await connect(server, 1, "b") as other:
        for number in range(DUELS):
            kind = (Kind.TABLE, Kind.VIEW, Kind.SCHEMA)[number % 3]
            wish = create(kind, f"wanted_{number}")
            told = await asyncio.gather(race.send(one, "a", wish), race.send(other, "b", wish))
            taken = TAKEN_SCHEMA if kind is Kind.SCHEMA else TAKEN
            assert sorted(told) == sorted([taken, DONE]), wish.sql


@pytest.mark.timeout(300)
@pytest.mark.parametrize("catalog", CATALOGS)
async def test_a_thousand_racing_statements_are_accounted_for(tmp_path: Path, catalog: str) -> None:
    data, flags = tmp_path / "data", ["--adapters", str(ADAPTERS), "--catalog", catalog]
    race = Race(catalog)
    server = start_server(data, flags)
    try:
        await duel(server, race)
        await race.run_round(server, 1, PER_ADAPTER)
        assert race.replies == 2 * DUELS + ADAPTERS * PER_ADAPTER
        first = await check(server, race)
        check_that_they_raced(first, race)
        race.stop_after = race.replies + UNTIL_KILLED
        killing = asyncio.create_task(kill_when_told(server, race))
        await race.run_round(server, 2, PER_ADAPTER)
        await killing
        server = start_server(data, flags)
        second = await check(server, race)
        assert len(second.changes) > len(first.changes)
        await race.run_round(server, 3, 50)
        await check(server, race)
        assert server.stop() == 0
    finally:
        server.kill_all()
    assert await faults_of_shards(data, tmp_path / "cache", catalog) == []


def check_that_they_raced(accounts: Accounts, race: Race) -> None:
    """Else the round shows nothing: what was done is a change each, and all refusals were told."""
    assert race.ledger.count(DONE) == len(accounts.changes) >= ADAPTERS * PER_ADAPTER // 5
    assert {told.outcome for told in race.ledger.told} >= REFUSALS
