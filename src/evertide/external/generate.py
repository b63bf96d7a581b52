"""Writes a source: what is due by the clock, appended where its shards stand.

All shards of a source move in one store transaction, so that its tables agree at every time.
Whoever loses the race to another replica finds the same rows there that he would have written.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from evertide.catalog.objects import AuctionLoad, CounterLoad
from evertide.dataflow.external import GeneratedTable, SourceDescription
from evertide.external.auction import Change, auction_changes, opening_changes
from evertide.external.counter import counter_changes
from evertide.external.schedule import Due, Schedule
from evertide.external.status import Status
from evertide.persist.append import Append, Appended
from evertide.persist.faults import ShardMissing
from evertide.persist.handle import PersistClient
from evertide.persist.machine import Refused
from evertide.persist.push.watch import Signal
from evertide.persist.state import Forgotten, Missing, UpperMismatch
from evertide.persist.trouble import PASSING, Trouble
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp
from evertide.vocab.update import Update

# The shortest time between two appends of a source, in milliseconds.
PACE_MS: Final = 50
# The same if tables are ahead of it: then somebody may be waiting.
AWAITED_PACE_MS: Final = 10
# What more ticks bring is made on a thread, so that others go on meanwhile.
FEW_TICKS: Final = 100


class Tables(Protocol):
    """How far tables are: reads are never later than that."""

    @property
    def shard_id(self) -> ShardId: ...

    async def upper(self) -> Timestamp: ...


class Gone(Exception):
    """The source was dropped, or one of its tables: whoever follows the catalog will say which."""


class SourceWriter:
    """One source in one replica."""

    def __init__(
        self,
        description: SourceDescription,
        persist: PersistClient,
        tables: Tables,
        clock: Clock,
        status: Status,
    ) -> None:
        self._described = description
        self._schedule = Schedule(description.load, description.as_of)
        self._persist = persist
        self._tables = tables
        self._clock = clock
        self._status = status
        # Where the shards were when they were last looked at.
        self._known = description.as_of

    async def run(self) -> None:
        """Write until cancelled, or until the source is gone."""
        trouble = Trouble(f"writing source {self._described.global_id}")
        with self._persist.watch.on((self._tables.shard_id,)) as tables_moved:
            while True:
                tables_moved.clear()
                try:
                    pause_s = await self.round()
                    trouble.over()
                    await self._wait(tables_moved, pause_s)
                except PASSING as fault:
                    trouble.met(fault)
                    self._status.stalled(str(fault))
                    await asyncio.sleep(trouble.wait_s)
                except Gone:
                    return

    async def _wait(self, tables_moved: Signal, pause_s: float) -> None:
        """Until something is due, or until tables are ahead: then readers may wait for it."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + pause_s
        while (left_s := end_s - loop.time()) > 0:
            await asyncio.sleep(min(left_s, AWAITED_PACE_MS / 1_000))
            await tables_moved.wait(max(end_s - loop.time(), 0))
            tables_moved.clear()
            if await self._tables.upper() > self._known:
                return

    async def round(self) -> float:
        """Append what is due; gives how many seconds nothing else is."""
        upper = self._known = await self._upper()
        tables_upper = await self._tables.upper()
        now = Timestamp(max(self._clock.now_ms(), tables_upper))
        due = self._schedule.due(upper, now)
        if due is None:
            self._status.running()
            return self._schedule.pause_ms(upper, now) / 1_000
        if due.last - due.first > FEW_TICKS:
            appends = await asyncio.to_thread(self._appends, upper, due)
        else:
            appends = self._appends(upper, due)
        outcome = await self._persist.append_all(appends)
        if isinstance(outcome, Refused):
            return self._refused(outcome)
        assert isinstance(outcome, Appended), "appended or refused"
        self._known = due.upper
        self._status.running()
        if due.more:
            return 0.0
        return max(self._schedule.pause_ms(due.upper, now), PACE_MS) / 1_000

    def _refused(self, outcome: Refused) -> float:
        match outcome.refusal:
            case UpperMismatch():
                return 0.0  # another replica was first, with the same rows
            case Forgotten() | Missing():
                raise Gone
            case other:
                self._status.stalled(f"shard {outcome.shard_id}: {type(other).__name__}")
                return 1.0

    async def _upper(self) -> Timestamp:
        """Where all of the shards are; they never part."""
        shard_ids = [table.shard_id for table in self._described.tables]
        if not shard_ids:
            raise Gone
        try:
            states = await self._persist.machine.states(shard_ids)
        except ShardMissing:
            raise Gone from None
        if any(state.forgotten for state in states.values()):
            raise Gone
        uppers = {state.upper for state in states.values()}
        assert len(uppers) == 1, "the tables of a source move together"
        return uppers.pop()

    def _appends(self, lower: Timestamp, due: Due) -> list[Append]:
        updates = self._updates(lower, due)
        return [
            Append(
                table.shard_id,
                table.desc,
                updates[table.table],
                lower,
                due.upper,
                table.global_id,
            )
            for table in self._described.tables
        ]

    def _updates(self, lower: Timestamp, due: Due) -> Mapping[str, Sequence[Update]]:
        tables: Sequence[GeneratedTable] = self._described.tables
        found: dict[str, list[Update]] = {table.table: [] for table in tables}
        for at, (table, row, diff) in self._changes(lower, due):
            if table in found:
                found[table].append(Update(row, at, diff))
        return found

    def _changes(self, lower: Timestamp, due: Due) -> Iterator[tuple[Timestamp, Change]]:
        load, as_of = self._described.load, self._described.as_of
        if isinstance(load, AuctionLoad) and lower <= as_of:
            for change in opening_changes(load):
                yield as_of, change
        for tick in range(due.first, due.last):
            at = self._schedule.at(tick)
            match load:
                case CounterLoad():
                    for row, diff in counter_changes(load, tick):
                        yield at, (self._described.tables[0].table, row, diff)
                case AuctionLoad():
                    for change in auction_changes(load, tick, at):
                        yield at, change
