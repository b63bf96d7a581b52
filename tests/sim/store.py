"""Stores with a network in front of them, or as a file of the processes' own host (writer.py).

Behind it is the port that tests/conformance holds to its promises, so whatever reaches a store is
done at one moment, whole or not at all. Everything that was ever done is kept in a log, which says
what truly happened.
"""

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from evertide.persist.faults import BlobMissing, StoreFailing, StoreFull, StoreUnreachable
from evertide.persist.state import decode_state
from evertide.persist.store.attempts import (
    Attempt,
    Attempts,
    AttemptsAtTime,
    Change,
    NotReached,
    OutcomeUnknown,
    insist,
)
from evertide.persist.store.memory import MemoryStore
from evertide.persist.store.protocol import (
    OWNER_KEY,
    AllSet,
    ChangeOutcome,
    CompareAndSet,
    Head,
    OracleRow,
    SetMismatch,
    SetOutcome,
    StashPage,
    Unchanged,
)
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp
from tests.sim.loop import Process, running_process
from tests.sim.network import Network
from tests.sim.writer import Ring, SimTelling, SimWriter
from tests.support.memory_port import MemoryPort

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Done:
    """One transaction that changed something: under which epoch, and what it left behind."""

    moment: int
    now_s: float
    epoch: Epoch
    sets: tuple[CompareAndSet, ...]
    read_ts: Timestamp


@dataclass(frozen=True, slots=True)
class Raised:
    """A new generation."""

    moment: int
    epoch: Epoch


class SimStore:
    """One place with shard states and timelines, as a Store and as its log tells."""

    def __init__(self, network: Network, *, tells: bool = False, ring: Ring | None = None) -> None:
        """`tells`: as a file of this host; else over the network. `ring` tells other processes."""
        self.network = network
        self.log: list[Done | Raised] = []
        self._cells = MemoryStore()
        self._port = MemoryPort(self._cells)
        self._tells = tells
        self._ring = ring
        self._writers: dict[Process, SimWriter] = {}

    @property
    def epoch(self) -> Epoch:
        """As somebody sees it who looks from outside."""
        return _now(self._cells.current_epoch())

    async def raise_epoch(self) -> Epoch:
        return await self._call("raise epoch", self._raise_epoch)

    async def current_epoch(self) -> Epoch:
        return await insist(lambda: SimPort(self).ask("current epoch", lambda: self.epoch))

    def consensus(self, epoch: Epoch) -> Attempts | SimTelling:
        process = running_process()
        if not self._tells or process is None:
            return Attempts(SimPort(self), epoch)
        if process not in self._writers:
            self._writers[process] = SimWriter(self, process, self._ring)
        return SimTelling(self, self._writers[process], epoch)

    def oracle_rows(self, epoch: Epoch) -> AttemptsAtTime:
        return AttemptsAtTime(SimPort(self), epoch)

    def stash(self) -> "SimStash":
        return SimStash(self)

    async def find_note(self, name: str) -> str | None:
        return await self._call("find note", lambda: _now(self._cells.find_note(name)))

    async def note(self, name: str, text: str) -> str:
        return await self._call("note", lambda: _now(self._cells.note(name, text)))

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        assert not raises_epoch, "nobody moves a simulated catalog"
        await self._call("set note", lambda: _now(self._cells.set_note(epoch, name, text)))

    async def close(self) -> None:
        pass

    def do(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        """What a change does when it arrives."""
        outcome = _now(self._port.change(attempt, change))
        if isinstance(outcome, AllSet):
            self._keep(change.epoch, *change.sets)
            if change.raises_epoch:
                self._keep_raised()
        elif change.each and isinstance(outcome, SetMismatch):
            self._keep(
                change.epoch, *(s for s in change.sets if s.shard_id not in outcome.shard_ids)
            )
        return outcome

    def settle(self, attempt: Attempt) -> SetOutcome | None:
        """What became of it; if nothing did, nothing will."""
        return _now(self._port.settle(attempt))

    def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        return _now(self._port.head(shard_id, known_seqno))

    def upper(self, shard_id: ShardId) -> Timestamp:
        """As somebody sees it who looks from outside."""
        head = self.head(shard_id, None)
        assert isinstance(head, Head), f"{shard_id} exists"
        return decode_state(head.value).upper

    def shard_ids(self) -> list[ShardId]:
        return _now(self._port.shard_ids())

    def read_stash(self, lower: Timestamp, kinds: Collection[str] | None) -> StashPage:
        return _now(self._cells.stash().read(lower, kinds))

    def ensure_stash(self, kinds: Collection[str]) -> None:
        _now(self._cells.stash().ensure(kinds))

    def timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        return _now(self._port.read_timeline(epoch, timeline))

    def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        return _now(self._port.allocate(epoch, timeline, at_least, count))

    def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        _now(self._port.apply(epoch, timeline, write_ts))
        self._keep(epoch)

    def _keep(self, epoch: Epoch, *sets: CompareAndSet) -> None:
        loop = self.network.loop
        read_ts = self.timeline(self.epoch, Timeline.EPOCH_MS).read_ts
        self.log.append(Done(loop.moment, loop.time(), epoch, sets, read_ts))
        loop.note(f"store: {' '.join(f'{s.shard_id}@{s.next_seqno}' for s in sets)} read {read_ts}")

    def _raise_epoch(self) -> Epoch:
        _now(self._cells.raise_epoch())
        return self._keep_raised()

    def _keep_raised(self) -> Epoch:
        self.log.append(Raised(self.network.loop.moment, self.epoch))
        self.network.loop.note(f"store: epoch {self.epoch}")
        return self.epoch

    async def _call(self, what: str, action: Callable[[], T]) -> T:
        return await self.network.call(
            what, action, refused=_unreachable(what), unknown=_unreachable(what)
        )


class SimStash:
    """The store's tables, by the same way. Every call may simply be repeated."""

    def __init__(self, store: SimStore) -> None:
        self._store = store
        self._port = SimPort(store)

    async def ensure(self, kinds: Collection[str]) -> None:
        await insist(lambda: self._port.ask("ensure", lambda: self._store.ensure_stash(kinds)))

    async def upper(self) -> Timestamp:
        return (await self.read(kinds=())).upper

    async def read(
        self, lower: Timestamp = MIN_TS, kinds: Collection[str] | None = None
    ) -> StashPage:
        def action() -> StashPage:
            return self._store.read_stash(lower, kinds)

        return await insist(lambda: self._port.ask("read stash", action))


class SimPort:
    """The way into the store, which may be cut at any moment."""

    def __init__(self, store: SimStore) -> None:
        self._store = store

    async def change(self, attempt: Attempt, change: Change) -> ChangeOutcome:
        what = f"change {' '.join(s.shard_id for s in change.sets)}"
        return await self._write(what, change.epoch, lambda: self._store.do(attempt, change))

    async def settle(self, attempt: Attempt) -> SetOutcome | None:
        return await self.ask("settle", lambda: self._store.settle(attempt))

    async def head(self, shard_id: ShardId, known_seqno: int | None) -> Head | Unchanged | None:
        return await self.ask("head", lambda: self._store.head(shard_id, known_seqno))

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        def action() -> dict[ShardId, Head | Unchanged | None]:
            return {shard: self._store.head(shard, known) for shard, known in known_seqnos.items()}

        return await self.ask("heads", action)

    async def shard_ids(self) -> list[ShardId]:
        return await self.ask("shard ids", self._store.shard_ids)

    async def read_timeline(self, epoch: Epoch, timeline: Timeline) -> OracleRow:
        def action() -> OracleRow:
            return self._store.timeline(epoch, timeline)

        return await self.ask("read timeline", action)

    async def allocate(
        self, epoch: Epoch, timeline: Timeline, at_least: Timestamp, count: int
    ) -> Timestamp:
        def action() -> Timestamp:
            return self._store.allocate(epoch, timeline, at_least, count)

        return await self._write("allocate", epoch, action)

    async def apply(self, epoch: Epoch, timeline: Timeline, write_ts: Timestamp) -> None:
        def action() -> None:
            self._store.apply(epoch, timeline, write_ts)

        await self._write("apply", epoch, action)

    async def ask(self, what: str, action: Callable[[], T]) -> T:
        return await self._store.network.call(
            what, action, refused=lambda: NotReached(what), unknown=lambda: NotReached(what)
        )

    async def _write(self, what: str, epoch: Epoch, action: Callable[[], T]) -> T:
        def no_room() -> T:
            self._store.timeline(epoch, Timeline.EPOCH_MS)  # whoever is fenced is told that first
            raise StoreFull(what)

        return await self._store.network.call(
            what,
            action,
            refused=lambda: NotReached(what),
            unknown=lambda: OutcomeUnknown(what),
            full=no_room,
        )


class SimBlob:
    """Large values. `ever` keeps what was put even after it was deleted."""

    def __init__(self, network: Network) -> None:
        self.ever: dict[str, bytes] = {}
        self._network = network
        self._values: dict[str, bytes] = {}

    async def put(self, key: str, value: bytes) -> None:
        assert key not in self.ever, "keys are never reused"

        def action() -> None:
            self.ever[key] = self._values[key] = value

        await self._call(f"put {key}", action)

    async def get(self, key: str) -> bytes:
        def action() -> bytes:
            if key not in self._values:
                raise BlobMissing(key)
            return self._values[key]

        return await self._call(f"get {key}", action)

    async def delete(self, key: str) -> None:
        await self._call(f"delete {key}", lambda: self._values.pop(key, None))

    async def keys(self, prefix: str = "") -> list[str]:
        def action() -> list[str]:
            return sorted(key for key in self._values if key.startswith(prefix))

        return await self._call("keys", action)

    async def remove_unfinished(self, before_ms: int) -> int:  # noqa: ARG002 - there is nothing
        return 0

    async def read_owner(self) -> bytes | None:
        return await self._call("read owner", lambda: self._values.get(OWNER_KEY))

    async def write_owner(self, value: bytes) -> None:
        await self._call("write owner", lambda: self._values.update({OWNER_KEY: value}))

    def local_path(self, key: str) -> Path | None:  # noqa: ARG002 - nothing lies in a file
        return None

    @asynccontextmanager
    async def localize(
        self,
        keys: Sequence[str],  # noqa: ARG002 - nothing lies in a file
    ) -> AsyncIterator[Mapping[str, Path]]:
        yield {}

    async def _call(self, what: str, action: Callable[[], T]) -> T:
        def no_room() -> T:
            raise StoreFull(what)

        network = self._network
        away = running_process() in network.cut_off
        return await network.call(
            what,
            action,
            refused=_unreachable(what) if away else lambda: StoreFailing(what),
            unknown=lambda: StoreFailing(what),
            full=no_room if what.startswith("put") else None,
        )


def _unreachable(what: str) -> Callable[[], Exception]:
    return lambda: StoreUnreachable(what)


def _now(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits for nothing."""
    try:
        call.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waited")
