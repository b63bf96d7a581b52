"""Writes a sink: follows a collection, turns changes into lines, and holds what is not safe yet.

The hold on the collection says how far the file is: all changes up to it are in the file for good.
It is moved after the file was made safe, so whoever goes on after a crash begins there and finds
in the file either the lines that he would write, or fewer of them, or a torn one.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from evertide.dataflow.description import Import, hold_owner
from evertide.dataflow.external import SinkDescription
from evertide.external.lines import LineEncoder
from evertide.external.sink_file import Locked, SinkFile, SinkFileError
from evertide.external.status import Status
from evertide.persist.contents import Contents
from evertide.persist.faults import BelowSince, ShardMissing
from evertide.persist.handle import PersistClient
from evertide.persist.push.watch import Signal
from evertide.persist.state import ShardChange, existing, move_hold
from evertide.persist.trouble import PASSING, Trouble
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timestamp, step_forward
from evertide.vocab.update import Update

# About so many changes become lines at a time.
PORTION_ROWS: Final = 50_000
# How long the hold trails the file at most, in seconds.
HOLD_SECONDS: Final = 1.0
# How often it is tried whether another process still writes the file.
LOCK_SECONDS: Final = 0.5
POLL_SECONDS: Final = 1.0

# What may pass by itself, or when somebody does something about the file or its disk.
_FAILING: Final = (*PASSING, OSError, SinkFileError)


class Following(Protocol):
    """How one is told of changes, and reads many of them in portions."""

    def watching(self, *collections: Import) -> AbstractContextManager[Signal]: ...

    async def stretch(
        self, collection: Import, lower: Timestamp, upper: Timestamp, rows: int
    ) -> Timestamp: ...


class Collections(Protocol):
    """Reads of durable collections; controller/storage.py offers it."""

    @property
    def following(self) -> Following: ...

    async def upper(self, collection: Import) -> Timestamp: ...

    async def contents(self, collection: Import, as_of: Timestamp) -> Contents: ...

    async def updates(
        self, collection: Import, lower: Timestamp, upper: Timestamp
    ) -> Sequence[Update]: ...


async def on_thread(work: Callable[[], None]) -> None:
    """Work on a file. A caller who is cancelled waits for the end of it before he closes the file:
    the thread would go on with whatever gets its number next."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


class Dropped(Exception):
    """Nobody holds the collection for this sink any more: it is gone from the catalog."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where files of sinks are, and whose."""

    directory: str
    environment_id: str


class SinkWriter:
    """One sink in one replica."""

    def __init__(
        self,
        description: SinkDescription,
        persist: PersistClient,
        collections: Collections,
        place: FilePlace,
        status: Status,
    ) -> None:
        self._described = description
        self._persist = persist
        self._collections = collections
        self._place = place
        self._status = status
        self._encoder = LineEncoder(description.collection.desc)
        # Changes before this are in the file; the hold says the same or less.
        self._next = description.as_of

    async def run(self) -> None:
        """Write until cancelled, or until the sink is gone."""
        trouble = Trouble(f"writing sink {self._described.global_id}")
        while True:
            try:
                await self._write(trouble)
            except Locked as other:
                self._status.starting(str(other))
                await asyncio.sleep(LOCK_SECONDS)
            except _FAILING as fault:
                trouble.met(fault)
                self._status.stalled(str(fault))
                await asyncio.sleep(trouble.wait_s)
            except BelowSince as fault:
                self._status.stalled(f"changes that the file lacks are gone: {fault}")
                await asyncio.sleep(POLL_SECONDS)
            except (Dropped, ShardMissing):
                return

    async def _write(self, trouble: Trouble) -> None:
        """Open the file and write on, for ever."""
        owner = f"sink {self._described.global_id} of {self._place.environment_id}"
        file = SinkFile(self._place.directory, self._described.path, owner)
        try:
            await on_thread(file.open)
            held = await self._held()
            as_of = self._described.as_of
            self._next = as_of if held <= as_of else step_forward(held)
            await on_thread(partial(file.go_on_at, self._next))
            with self._collections.following.watching(self._described.collection) as moved:
                await self._follow(file, moved, trouble)
        finally:
            file.close()

    async def _held(self) -> Timestamp:
        state = await self._persist.state(self._described.collection.shard_id)
        owner = hold_owner(self._described.global_id)
        for hold in state.holds:
            if hold.owner == owner:
                return hold.hold_ts
        raise Dropped

    async def _follow(self, file: SinkFile, moved: Signal, trouble: Trouble) -> None:
        loop = asyncio.get_running_loop()
        move_at = loop.time()
        while True:
            moved.clear()
            caught_up = await self._portion(file)
            if caught_up:
                self._status.running()
                trouble.over()
            if loop.time() >= move_at:
                await self._move_hold()
                move_at = loop.time() + HOLD_SECONDS
            if caught_up:
                await moved.wait(POLL_SECONDS)

    async def _portion(self, file: SinkFile) -> bool:
        """Write some of the changes that are known; whether these were all."""
        collection, lower = self._described.collection, self._next
        upper = await self._collections.upper(collection)
        if upper <= lower:
            file.check()
            return True
        updates: Sequence[Update] = ()
        if lower == self._described.as_of:
            if self._described.snapshot:
                contents = await self._collections.contents(collection, lower)
                updates = contents.updates()
            reached = step_forward(lower)
        else:
            following = self._collections.following
            reached = await following.stretch(collection, lower, upper, PORTION_ROWS)
            updates = await self._collections.updates(collection, lower, reached)
        last = reached == upper
        if updates or file.in_doubt:
            await on_thread(partial(self._put, file, updates, last=last))
        self._next = reached
        return last

    def _put(self, file: SinkFile, updates: Sequence[Update], *, last: bool) -> None:
        file.check()
        file.write(self._encoder.encode(updates))
        if last:
            file.end_here()
        file.make_safe()

    async def _move_hold(self) -> None:
        """Everything before `next` is in the file for good."""
        if self._next <= self._described.as_of:
            return
        hold_ts = Timestamp(min(self._next, EMPTY_FRONTIER - 1) - 1)
        owner = hold_owner(self._described.global_id)
        transition = existing(partial(move_hold, owner=owner, hold_ts=hold_ts))
        change = ShardChange(self._described.collection.shard_id, transition)
        await self._persist.machine.apply_each([change])
