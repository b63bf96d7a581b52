"""Clients of two adapters that race each other with DDL, and all that they were told."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeAlias

import psycopg

from tests.support.ddl_accounts import Audited, Ledger, Looked, audited
from tests.support.ddl_model import DONE, SKIPPED
from tests.support.ddl_statements import Drawing, Kind, Statement
from tests.support.server import Server

ADAPTERS = 2
# Connections per adapter, so that statements of one adapter race each other as well.
CONNECTIONS = 3
# Every so many statements, a client looks at all names.
LOOK_EVERY = 10
# The connection was lost, or an adapter was quick enough to say that it ends.
NO_ANSWER = (None, "57P01")

Connection: TypeAlias = psycopg.AsyncConnection[tuple[Any, ...]]

NAMES = """
    SELECT s.name, o.name, o.type FROM mz_objects o JOIN mz_schemas s ON o.schema_id = s.id
    WHERE o.id LIKE 'u%'
    UNION ALL SELECT name, NULL, 'schema' FROM mz_schemas WHERE id LIKE 'u%'
"""
EVENTS = 'SELECT id, "user", event_type, object_type, details FROM mz_audit_events'


async def connect(server: Server, adapter: int, user: str = "materialize") -> Connection:
    return await psycopg.AsyncConnection.connect(
        server.dsn(adapter), user=user, autocommit=True, prepare_threshold=None
    )


async def names_seen(connection: Connection) -> dict[str, Kind]:
    """All schemas and items, in one statement."""
    rows = await (await connection.execute(NAMES)).fetchall()
    return {
        schema if item is None else f"{schema}.{item}": Kind(kind) for schema, item, kind in rows
    }


async def events_seen(connection: Connection) -> list[Audited]:
    """The audit log in order, but for what the system did by itself."""
    rows = await (await connection.execute(EVENTS)).fetchall()
    found = [audited(int(number), *others) for number, *others in rows]
    ours = [one for one in found if one is not None and one.user is not None]
    return sorted(ours, key=lambda one: one.event_id)


@dataclass(slots=True)
class Race:
    """Rounds of statements against servers over one environment. One clock for all of them."""

    seed: str
    ledger: Ledger = field(default_factory=lambda: Ledger(count(1).__next__))
    # Tables whose names one client alone knows, with what was written into them; and those of
    # them whose end was asked for, and not yet acknowledged.
    rows: dict[str, int] = field(default_factory=dict)
    leaving: dict[str, int] = field(default_factory=dict)
    replies: int = 0
    # The number of replies after which the round is over for everybody.
    stop_after: int | None = None
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def run_round(self, server: Server, number: int, per_adapter: int) -> None:
        """So many statements on each adapter; ends early if the server is gone."""
        budgets = [iter(range(per_adapter)) for _ in range(ADAPTERS)]
        async with asyncio.TaskGroup() as group:
            for client in range(ADAPTERS * CONNECTIONS):
                adapter = client % ADAPTERS
                user = f"r{number}c{client}"
                group.create_task(self._run_client(server, adapter, user, budgets[adapter]))

    async def _run_client(
        self, server: Server, adapter: int, user: str, budget: Iterator[int]
    ) -> None:
        """One statement after the other, until there are no more to send or nobody answers."""
        drawing = Drawing(self.seed, user)
        async with AsyncExitStack() as stack:
            own = await stack.enter_async_context(await connect(server, adapter, user))
            other = await stack.enter_async_context(await connect(server, 1 - adapter))
            try:
                for number in budget:
                    await self._step(own, other, user, drawing.next())
                    if number % LOOK_EVERY == 0:
                        await self._look(other)
            except psycopg.OperationalError as error:
                if not self.stopped.is_set() or error.sqlstate not in NO_ANSWER:
                    raise

    async def _step(
        self, own: Connection, other: Connection, user: str, statement: Statement
    ) -> None:
        """One statement. What a client alone knows of is whole at once, also for the other side."""
        name = statement.name
        if not name.startswith(user):
            await self.send(own, user, statement)
            return
        if statement.verb == "drop":
            self.leaving[name] = self.rows.pop(name)
        outcome = await self.send(own, user, statement)
        assert outcome == DONE, f"{statement.sql}: {outcome}"
        if statement.verb == "drop":
            del self.leaving[name]
        elif statement.kind is Kind.TABLE:
            number = self.ledger.tick()
            await other.execute(f"INSERT INTO {name} VALUES ({number})")
            self.rows[name] = number
            found = await (await own.execute(f"SELECT a FROM {name}")).fetchall()
            assert found == [(number,)], f"{name} has {found}"

    async def send(self, connection: Connection, user: str, statement: Statement) -> str:
        """The outcome; raises if nobody answered."""
        told = self.ledger.send(user, statement)
        notices: list[str | None] = []

        def note(notice: psycopg.errors.Diagnostic) -> None:
            notices.append(notice.message_primary)

        connection.add_notice_handler(note)
        try:
            await connection.execute(statement.sql)
        except psycopg.Error as error:
            if error.sqlstate in NO_ANSWER:
                raise
            outcome = error.sqlstate
        else:
            skipped = any("skipping" in str(notice) for notice in notices)
            outcome = SKIPPED if skipped else DONE
        finally:
            connection.remove_notice_handler(note)
        self.ledger.reply(told, outcome)
        self.replies += 1
        if self.stop_after is not None and self.replies >= self.stop_after:
            self.stopped.set()
        return outcome

    async def _look(self, connection: Connection) -> None:
        sent = self.ledger.tick()
        names = await names_seen(connection)
        looked = Looked(connection.info.user, names, sent, self.ledger.tick())
        self.ledger.looked.append(looked)
