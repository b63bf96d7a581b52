"""A store that is a file, as processes of one host have it; it tells what came of a change.

Modelled on sqlite_writer.py. Reads are done where they are asked for. Changes go through one thread
of the process: what queues up while one commit runs is committed together by the next. The thread
dies and freezes with its process, so nothing arrives late; but between a commit and whoever is told
of it lie steps of their own. A commit that ended in an error is looked for; a disk that cannot even
be read leaves it open, and whoever asked is told that the store failed.
"""

import itertools
import uuid
from asyncio import Future
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, cast

from evertide.persist.faults import StoreFailing, StoreFull, StoreUnreachable
from evertide.persist.news import News
from evertide.persist.store.attempts import Attempt, Change
from evertide.persist.store.protocol import (
    STASH_SHARD,
    AllSet,
    AppliedWrite,
    ChangeOutcome,
    ClaimedWrite,
    CompareAndSet,
    Head,
    OracleRow,
    SetOutcome,
    StashAppend,
    Unchanged,
    check_distinct,
)
from evertide.persist.store.stash import check_append
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import Timeline
from tests.sim.loop import Process
from tests.sim.network import Network

Tell: TypeAlias = Callable[[ChangeOutcome], None]
Ring: TypeAlias = Callable[[Process, list[ShardId], list[News]], None]

# How long a file may stay locked.
LOCK_TIMEOUT_S = 10.0
_LOCKED_PAUSE_S = 0.1


class Place(Protocol):
    """The file itself; each call is one transaction."""

    network: Network

    def do(self, attempt: Attempt, change: Change) -> ChangeOutcome: ...

    def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None: ...

    def shard_ids(self) -> list[ShardId]: ...

    def timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow: ...


@dataclass(slots=True)
class _Request:
    change: Change
    answer: "Future[ChangeOutcome]"
    tell: Tell | None


_Group: TypeAlias = list[_Request]
_Outcomes: TypeAlias = Sequence[ChangeOutcome | Exception]


class SimWriter:
    """The thread of one process that writes. `rings`: it also tells the other processes."""

    def __init__(self, place: Place, process: Process, ring: Ring | None) -> None:
        self._place = place
        self._process = process
        self._ring = ring
        self._marks = map(partial(Attempt, uuid.uuid4().hex), itertools.count(1))
        self._queue: deque[_Request] = deque()
        self._busy = False
        # What the event loop has yet to be told, in order.
        self._settled: deque[tuple[_Group, _Outcomes]] = deque()

    @property
    def rings(self) -> bool:
        return self._ring is not None

    def run(self, change: Change, tell: Tell | None) -> "Future[ChangeOutcome]":
        """It is on its way already when this returns."""
        answer: Future[ChangeOutcome] = self._place.network.loop.create_future()
        self._queue.append(_Request(change, answer, tell))
        if not self._busy:
            self._busy = True
            self._later(self._begin)
        return answer

    def _begin(self) -> None:
        group, loop = list(self._queue), self._place.network.loop
        self._queue.clear()
        self._busy = bool(group)
        if group:
            self._write(group, loop.time() + LOCK_TIMEOUT_S)

    def _write(self, group: _Group, deadline_s: float) -> None:
        network = self._place.network
        faults, happens = network.faults, network.happens
        if self._process in network.cut_off or happens(faults.refused):
            if network.loop.time() > deadline_s:
                self._deliver(group, [StoreUnreachable("it stayed locked")] * len(group))
            else:
                self._later(partial(self._write, group, deadline_s), _LOCKED_PAUSE_S)
        elif happens(faults.full):
            self._deliver(group, [self._no_room(request) for request in group])
        elif happens(faults.cut):
            network.loop.note("the commit ended in an error")
            done = self._commit(group) if happens(0.6) else None
            self._later(partial(self._look, group, done, deadline_s))
        else:
            self._later(partial(self._deliver, group, self._commit(group)))

    def _look(self, group: _Group, done: _Outcomes | None, deadline_s: float) -> None:
        """Whether it happened."""
        network = self._place.network
        if network.happens(network.faults.failing):
            self._deliver(group, [StoreFailing("nobody knows")] * len(group))
        elif done is not None:
            self._deliver(group, done)
        else:
            self._write(group, deadline_s)

    def _commit(self, group: _Group) -> _Outcomes:
        return [self._do(request.change) for request in group]

    def _do(self, change: Change) -> ChangeOutcome | Exception:
        try:
            return self._place.do(next(self._marks), change)
        except Exception as error:  # noqa: BLE001 - whoever asked is told
            return error

    def _no_room(self, request: _Request) -> Exception:
        try:
            self._place.timeline(request.change.epoch, Timeline.EPOCH_MS)
        except Exception as error:  # noqa: BLE001 - who is fenced writes nothing, and needs no room
            return error
        return StoreFull("no room")

    def _deliver(self, group: _Group, outcomes: _Outcomes) -> None:
        """Ring and wake the event loop, which comes to it later; what has queued up is next."""
        self._settled.append((group, outcomes))
        self._later(self._settle)
        changed: dict[ShardId, None] = {}
        news: list[News] = []
        for request, outcome in zip(group, outcomes, strict=True):
            if not isinstance(outcome, Exception):
                changed.update(dict.fromkeys(_changed(request.change)))
                if isinstance(outcome, AllSet):
                    news += (one.news for one in request.change.sets if one.news is not None)
        if self._ring is not None and changed:
            self._ring(self._process, list(changed), news)
        self._later(self._begin)

    def _settle(self) -> None:
        """On the event loop: `tell` hears first, and also if nobody waits any more."""
        for request, outcome in zip(*self._settled.popleft(), strict=True):
            failed = isinstance(outcome, Exception)
            if not failed and request.tell is not None:
                request.tell(cast(ChangeOutcome, outcome))
            if request.answer.done():
                continue
            if isinstance(outcome, Exception):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(outcome)

    def _later(self, callback: Callable[[], None], pause_s: float = 0.0) -> None:
        """In the process, as all that its threads do."""
        network = self._place.network
        network.loop.call_later(pause_s + network.delay(), callback, context=self._process.context)


class SimTelling:
    """Shard states under one epoch."""

    def __init__(self, place: Place, writer: SimWriter, epoch: Epoch) -> None:
        self._place = place
        self._writer = writer
        self._epoch = epoch

    @property
    def rings(self) -> bool:
        return self._writer.rings

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        return self._place.head(shard_id, known_seqno)

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        return {shard: self._place.head(shard, known) for shard, known in known_seqnos.items()}

    async def shard_ids(self) -> list[ShardId]:
        return self._place.shard_ids()

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        return await self.set_all_telling(
            sets, None, applied=applied, claimed=claimed, stash=stash, raises_epoch=raises_epoch
        )

    def set_all_telling(
        self,
        sets: Sequence[CompareAndSet],
        tell: Tell | None,
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> Awaitable[ChangeOutcome]:
        check_distinct(sets)
        if stash is not None:
            check_append(stash)
        change = Change(self._epoch, sets, applied, claimed, stash=stash, raises_epoch=raises_epoch)
        return self._writer.run(change, tell)

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        return await self.set_each_telling(sets, None)

    def set_each_telling(
        self, sets: Sequence[CompareAndSet], tell: Callable[[SetOutcome], None] | None
    ) -> Awaitable[SetOutcome]:
        check_distinct(sets)
        asked = self._writer.run(Change(self._epoch, sets, each=True), cast(Tell | None, tell))
        return cast("Awaitable[SetOutcome]", asked)


def _changed(change: Change) -> list[ShardId]:
    changed = [one.shard_id for one in change.sets]
    return changed if change.stash is None else [*changed, STASH_SHARD]
