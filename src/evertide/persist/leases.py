"""Read holds of one process: one lease per shard it reads, in that shard's state.

A reader that needs a shard at a timestamp for a while counts itself on the process's lease, in
memory. Only the first reader of a shard, or one that asks for an earlier time than the lease
covers, costs a store write. The lease follows its readers forward in the background, and runs out
by itself if the process dies. A process that was frozen for so long that its lease ran out finds
out when it reads: history that is gone is refused there, never guessed.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import structlog

from evertide.persist.faults import (
    BelowSince,
    Corrupt,
    PersistFault,
    ShardMissing,
    StoreFailing,
    StoreFull,
)
from evertide.persist.machine import Known, Machine
from evertide.persist.state import (
    Changed,
    HoldBelowSince,
    Missing,
    ShardChange,
    ShardState,
    existing,
    release_hold,
    set_hold,
)
from evertide.persist.trouble import Trouble
from evertide.vocab.clock import Clock
from evertide.vocab.ids import ShardId
from evertide.vocab.timestamp import Timestamp, step_back

LEASE_MS: Final = 300_000
# Others judge by their own clocks whether a lease ran out; they may differ from ours by this.
_SKEW_MS: Final = 30_000
_PAUSE_S: Final = 5.0
# A lease is moved when that frees at least this much history.
_WORTH_MOVING_MS: Final = 5_000

_log = structlog.get_logger()


@dataclass(slots=True)
class _Lease:
    """What the state of one shard is known to hold for this process."""

    hold_ts: Timestamp
    expires_ms: int
    used_ms: int
    readers: Counter[Timestamp] = field(default_factory=Counter)

    def covers(self, hold_ts: Timestamp, now_ms: int) -> bool:
        return self.hold_ts <= hold_ts and now_ms < self.expires_ms - _SKEW_MS

    def earliest(self, since: Timestamp, default: Timestamp) -> Timestamp:
        """What its readers need. Those below since have lost it, and must not cost others theirs:
        a lease at their time would be refused."""
        return min((ts for ts in self.readers if ts >= since), default=default)


class ReadHold:
    """Keeps several shards readable from a timestamp on, until released."""

    def __init__(self, leases: "Leases", shard_ids: Sequence[ShardId], hold_ts: Timestamp) -> None:
        self._leases = leases
        self._shard_ids = tuple(shard_ids)
        self.hold_ts = hold_ts

    def __enter__(self) -> "ReadHold":
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def move(self, to: Timestamp) -> None:
        """What lies before `to` is no longer needed; never backwards."""
        if to > self.hold_ts:
            self._leases.count(self._shard_ids, to, 1)
            self._leases.count(self._shard_ids, self.hold_ts, -1)
            self.hold_ts = to

    def release(self) -> None:
        """It is no longer needed. May be repeated."""
        self._leases.count(self._shard_ids, self.hold_ts, -1)
        self._shard_ids = ()


class Leases:
    """The leases of one process."""

    def __init__(self, machine: Machine, clock: Clock, *, lease_ms: int = LEASE_MS) -> None:
        self._machine = machine
        self._clock = clock
        self._lease_ms = lease_ms
        self._owner = f"lease {uuid.uuid4().hex[:12]}"
        self._leases: dict[ShardId, _Lease] = {}
        # Store writes come one after the other, so that a later wish is not overtaken.
        self._writing = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        # Shards whose state was last found damaged, which the log has been told.
        self._damaged: set[ShardId] = set()

    async def hold(self, shard_ids: Iterable[ShardId], hold_ts: Timestamp) -> ReadHold:
        """From now on these shards stay readable at hold_ts; raises BelowSince, ShardMissing."""
        wanted = list(dict.fromkeys(shard_ids))
        self.count(wanted, hold_ts, 1)
        hold = ReadHold(self, wanted, hold_ts)
        if all(self._covers(shard_id, hold_ts) for shard_id in wanted):
            return hold
        try:
            async with self._writing:
                missing = [s for s in wanted if not self._covers(s, hold_ts)]
                await self._take_or_wait(missing, hold_ts)
        except BaseException:
            hold.release()
            raise
        return hold

    def count(self, shard_ids: Iterable[ShardId], hold_ts: Timestamp, by: int) -> None:
        """Add or remove a reader at a timestamp; holds do this for themselves."""
        now_ms = self._clock.now_ms()
        for shard_id in shard_ids:
            lease = self._leases.get(shard_id)
            if lease is None:
                # Nothing is held yet: an expiry in the past covers no reader.
                lease = self._leases[shard_id] = _Lease(hold_ts, 0, now_ms)
            lease.used_ms = now_ms
            lease.readers[hold_ts] += by
            if not lease.readers[hold_ts]:
                del lease.readers[hold_ts]

    async def look_after(self) -> None:
        """Renew, move and give up leases as they are used; one store transaction for all."""
        async with self._writing:
            now_ms = self._clock.now_ms()
            known = await self._read_sound()
            changes = []
            # A lease that came meanwhile is written by whoever asked for it.
            for shard_id, found in known.items():
                lease, state = self._leases[shard_id], found.state
                change = None if state is None else self._next(shard_id, lease, state, now_ms)
                if change is not None:
                    changes.append(change)
            if changes:
                await self._apply(changes, now_ms)

    async def close(self) -> None:
        """Give up every lease, as far as the store still lets us."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        held = [shard_id for shard_id, lease in self._leases.items() if lease.expires_ms]
        self._leases.clear()
        with suppress(PersistFault):  # then they run out by themselves
            await self._release_all(held)

    async def _release_all(self, shard_ids: Sequence[ShardId]) -> None:
        changes = [self._release(shard_id) for shard_id in shard_ids]
        try:
            await self._machine.apply_each(changes)
        except Corrupt:
            for change in changes:
                with suppress(Corrupt):
                    await self._machine.apply_each([change])

    async def _read_sound(self) -> dict[ShardId, Known]:
        """The states of leased shards. A damaged one must not cost the others their leases."""
        shard_ids = list(self._leases)
        try:
            known = await self._machine.read_all(shard_ids)
        except Corrupt:
            known = {}
            for shard_id in shard_ids:
                try:
                    known[shard_id] = await self._machine.read(shard_id)
                except Corrupt as fault:
                    if shard_id not in self._damaged:
                        _log.error("a lease cannot be renewed", reason=str(fault))
                    self._damaged.add(shard_id)
        self._damaged.difference_update(known)
        return known

    def _covers(self, shard_id: ShardId, hold_ts: Timestamp) -> bool:
        lease = self._leases.get(shard_id)
        return lease is not None and lease.covers(hold_ts, self._clock.now_ms())

    async def _take_or_wait(self, shard_ids: Sequence[ShardId], hold_ts: Timestamp) -> None:
        """Write the leases, or leave that to the background while the store takes no writes.

        Reading needs no room: such a store moves no since either. If one moves later, before the
        lease is written, whoever reads is told so.
        """
        try:
            await self._take(shard_ids, hold_ts)
        except (StoreFull, StoreFailing):
            for shard_id, known in (await self._machine.read_all(shard_ids)).items():
                if known.state is None:
                    raise ShardMissing(shard_id) from None
                if known.state.since > hold_ts:
                    raise BelowSince(shard_id, hold_ts, known.state.since) from None
            self._start()

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _take(self, shard_ids: Sequence[ShardId], hold_ts: Timestamp) -> None:
        """Write the leases, as early as any reader of this process wishes."""
        if not shard_ids:
            return
        now_ms = self._clock.now_ms()
        outcomes = await self._machine.apply_each(
            [self._first(shard_id, hold_ts, now_ms) for shard_id in shard_ids]
        )
        for shard_id, outcome in zip(shard_ids, outcomes, strict=True):
            match outcome:
                case ShardState():
                    self._note(shard_id, outcome, now_ms)
                case HoldBelowSince(since):
                    raise BelowSince(shard_id, hold_ts, since)
                case Missing():
                    raise ShardMissing(shard_id)
                case _:
                    raise AssertionError(f"a hold is not refused by {outcome}")
        self._start()

    def _next(
        self, shard_id: ShardId, lease: _Lease, state: ShardState, now_ms: int
    ) -> ShardChange | None:
        """What is due for one lease; its record says so before the store does."""
        if lease.expires_ms and all(hold.owner != self._owner for hold in state.holds):
            _log.warning("a lease was lost", shard_id=shard_id, since=state.since)
            lease.expires_ms = 0
        if not lease.readers and not lease.expires_ms:
            del self._leases[shard_id]  # it was refused
            return None
        if not lease.readers and now_ms > lease.used_ms + self._lease_ms // 2:
            del self._leases[shard_id]
            return self._release(shard_id)
        wish = max(lease.hold_ts, lease.earliest(state.since, step_back(state.upper)))
        written_since = bool(state.batches) and state.batches[-1].upper > lease.hold_ts
        worth_moving = written_since and wish >= lease.hold_ts + _WORTH_MOVING_MS
        if not worth_moving and now_ms < lease.expires_ms - self._lease_ms // 2:
            return None
        lease.hold_ts = wish
        return self._set(shard_id, wish, now_ms)

    async def _apply(self, changes: Sequence[ShardChange], now_ms: int) -> None:
        outcomes = await self._machine.apply_each(changes)
        for change, outcome in zip(changes, outcomes, strict=True):
            lease = self._leases.get(change.shard_id)
            if isinstance(outcome, ShardState) and lease is not None:
                self._note(change.shard_id, outcome, now_ms)
            elif lease is not None:
                _log.warning("a lease was lost", shard_id=change.shard_id, reason=str(outcome))
                lease.expires_ms = 0

    def _first(self, shard_id: ShardId, hold_ts: Timestamp, now_ms: int) -> ShardChange:
        """The lease for a new reader at hold_ts, and for those that there are already."""
        lease, expires_ms = self._leases[shard_id], now_ms + self._lease_ms

        def transition(state: ShardState) -> Changed:
            if hold_ts < state.since:
                return HoldBelowSince(state.since)
            wish = lease.earliest(state.since, hold_ts)
            return set_hold(state, owner=self._owner, hold_ts=wish, expires_ms=expires_ms)

        return ShardChange(shard_id, existing(transition))

    def _set(self, shard_id: ShardId, hold_ts: Timestamp, now_ms: int) -> ShardChange:
        transition = partial(
            set_hold, owner=self._owner, hold_ts=hold_ts, expires_ms=now_ms + self._lease_ms
        )
        return ShardChange(shard_id, existing(transition))

    def _release(self, shard_id: ShardId) -> ShardChange:
        return ShardChange(shard_id, existing(partial(release_hold, owner=self._owner)))

    def _note(self, shard_id: ShardId, state: ShardState, taken_ms: int) -> None:
        """What the state says, not what was meant: a lease given up may be asked for again while
        its release is under way, and then is not held."""
        lease = self._leases[shard_id]
        for hold in state.holds:
            if hold.owner == self._owner:
                lease.hold_ts, lease.expires_ms = hold.hold_ts, taken_ms + self._lease_ms

    async def _run(self) -> None:
        trouble = Trouble("renewing leases")
        while True:
            await asyncio.sleep(_PAUSE_S)
            try:
                await self.look_after()
                trouble.over()
            except PersistFault as fault:
                trouble.met(fault)
