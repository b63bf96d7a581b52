"""Clients of simulated adapters that change the catalog by SQL, look at it, and follow it.

Every process has the real parts of an adapter, from a session's text down to the store. Replicas
are not there: nothing that is asked here needs one.
"""

import random
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evertide.adapter.client import Response, RowsResponse
from evertide.adapter.connection import Connections
from evertide.adapter.environment import Environment
from evertide.catalog.durable.codec import encode_object
from evertide.catalog.objects import CatalogUpdate
from evertide.catalog.service import Change
from evertide.catalog.snapshot import Snapshot
from evertide.controller.compute import ComputeClient
from evertide.persist.faults import PersistFault
from evertide.vocab.datum import Row
from evertide.vocab.errors import Notice, SqlError
from evertide.vocab.ids import EnvironmentId
from evertide.vocab.timestamp import Timeline, Timestamp
from tests.sim.history import require
from tests.sim.loop import SimLoop
from tests.sim.node import Node
from tests.support.ddl_accounts import Ledger, Looked
from tests.support.ddl_model import DONE, SKIPPED
from tests.support.ddl_statements import Drawing, Kind, Statement, create, drop

# The server says that nothing was done: there was no room.
NOTHING_DONE: Final = "53100"
# The server says that it does not know, or that it has to end.
IN_DOUBT: Final = {"58030", "XX000"}


@dataclass(slots=True)
class Followed:
    """What a subscription gave: all objects at first, then one transaction after the other."""

    process: str
    first: Timestamp
    upper: Timestamp
    changes: list[tuple[Timestamp, Counter[Row]]] = field(default_factory=list)

    def add(self, change: Change) -> None:
        require(change.upper > self.upper, f"a follower's upper moves on from {self.upper}")
        require(change.snapshot.upper == change.upper, "the snapshot is of the change")
        self.upper = change.upper
        if change.updates:
            self.changes.append((Timestamp(change.upper - 1), diffs_of(change.updates)))


def diffs_of(updates: Sequence[CatalogUpdate]) -> Counter[Row]:
    """Rows as they are stored, and by how much each changes."""
    found: Counter[Row] = Counter()
    for update in updates:
        found[encode_object(update.object)] += update.diff
    return found


def names_in(snapshot: Snapshot) -> dict[str, Kind]:
    """All schemas and items of users, as the model names them."""
    found = {one.name: Kind.SCHEMA for one in snapshot.schemas.values() if one.database_id}
    for item in snapshot.items.values():
        schema = snapshot.schemas[item.schema_id].name
        found[f"{schema}.{item.name}"] = Kind(item.kind.value)
    return found


class CatalogHistory:
    """What all clients were told, whoever crashes."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self._last = 0
        self._users = 0
        self.ledger = Ledger(self.moment)
        self.followed: list[Followed] = []
        # Tables that somebody made, and that nobody knows yet but who takes it from here.
        self.made: list[str] = []

    def moment(self) -> int:
        """Moments of the loop; two in one step differ all the same."""
        self._last = max(self._last + 1, self._loop.moment * 100)
        return self._last

    def new_user(self) -> str:
        self._users += 1
        return f"u{self._users}"


class SqlClient:
    """One who sends SQL to one process."""

    def __init__(self, node: Node, history: CatalogHistory, rng: random.Random) -> None:
        self.node = node
        self.history = history
        self._rng = rng
        self._drawing = Drawing(str(rng.random()), f"own{history.new_user()}")
        self._connections: Connections | None = None

    async def run(self, user: str, text: str) -> tuple[Response, list[Notice]]:
        """The answer to one statement, in a session of its own."""
        connections = await self._connect()
        session = await connections.open_session({"user": user}, internal=False)
        try:
            (prepared,) = session.split(text)
            response = await session.execute(prepared, ())
            return response, session.take_events().notices
        finally:
            await session.close()

    async def change(self) -> None:
        """DDL that others may race."""
        await self._ddl(self._drawing.next())

    async def make(self) -> None:
        """CREATE TABLE, for somebody else to use."""
        name = f"made_{self.history.new_user()}"
        if await self._ddl(create(Kind.TABLE, name)) == DONE:
            self.history.made.append(name)

    async def use(self) -> None:
        """Write, read and drop a table that is acknowledged, whoever made it, wherever."""
        made = self.history.made
        if not made:
            return
        name = made.pop(self._rng.randrange(len(made)))
        try:
            await self.run("somebody", f"INSERT INTO {name} VALUES (7)")
            response, _ = await self.run("somebody", f"SELECT a FROM {name}")
        except SqlError as error:
            require(error.code in {NOTHING_DONE, *IN_DOUBT}, f"{name}: {error.code} {error}")
            return
        assert isinstance(response, RowsResponse)
        require(list(response.rows) == [(7,)], f"{name} has {response.rows}")
        require(await self._ddl(drop(Kind.TABLE, name)) in (DONE, None), f"{name} is not there")

    async def _ddl(self, statement: Statement) -> str | None:
        """What came of it; None if nothing was done, or if nobody knows."""
        # A user of its own for each, so that the audit log says which of them was done.
        user, ledger = self.history.new_user(), self.history.ledger
        told = ledger.send(user, statement)
        try:
            _, notices = await self.run(user, statement.sql)
        except SqlError as error:
            if error.code == NOTHING_DONE:
                ledger.told.remove(told)
            elif error.code not in IN_DOUBT:
                ledger.reply(told, error.code)
        else:
            skipped = any("skipping" in notice.message for notice in notices)
            ledger.reply(told, SKIPPED if skipped else DONE)
        self._note(str(told))
        return told.outcome

    async def look(self) -> None:
        """All names that a statement which begins now is planned with."""
        catalog, ledger = await self.node.catalog(), self.history.ledger
        sent = ledger.tick()
        snapshot = await catalog.current()
        who = self.node.process.name
        ledger.looked.append(Looked(who, names_in(snapshot), sent, ledger.tick()))

    async def follow(self) -> None:
        """Every transaction from some time on, as controllers follow it; for ever."""
        catalog = await self.node.catalog()
        followed: Followed | None = None
        reading = await self.node.oracle.read_ts(Timeline.CATALOG)
        async for change in catalog.subscribe_at(reading):
            if followed is None:
                require(change.upper > reading, f"{change.upper} does not hold {reading}")
                followed = Followed(self.node.process.name, change.upper, change.upper)
                self.history.followed.append(followed)
            else:
                followed.add(change)

    async def _connect(self) -> Connections:
        if self._connections is None:
            node = self.node
            environment = Environment(
                environment_id=EnvironmentId(str(uuid.UUID(int=0))),
                catalog=await node.catalog(),
                oracle=node.oracle,
                storage=node.storage,
                txns=node.txns,
                writes=node.writes,
                compute=ComputeClient(Path("nowhere")),
                clock=node.clock,
            )
            self._connections = Connections(environment, self._fault)
        return self._connections

    def _fault(self, fault: PersistFault) -> None:
        """A process that is fenced or without a store ends."""
        self._note(f"exits: {fault}")
        self.node.process.kill()

    def _note(self, text: str) -> None:
        self.node.place.loop.note(text)
