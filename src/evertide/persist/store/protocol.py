"""What a store must offer: small values changed by compare-and-set, and large ones written once.

A `Store` is a place (one SQLite file, one PostgreSQL database). It knows one epoch. The handles a
process works with carry the epoch that it believes in, and every change checks it in the very store
transaction that makes it, so that a process which outlived its generation can write nothing.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from evertide.persist.news import News
from evertide.vocab.ids import Epoch, ShardId
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp

# Under this key a blob store says whose it is. Unlike all others it is written again and again.
OWNER_KEY: Final = "environment"
# What is longer is no owner record.
OWNER_BYTES: Final = 4096

# The name under which watchers hear of an append to the stash. No shard is called so.
STASH_SHARD: Final = ShardId("stash")


@dataclass(frozen=True, slots=True)
class Head:
    """The newest value of a shard's state. `seqno` starts at 1 and grows by 1 with each change."""

    seqno: int
    value: bytes


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The head still has the seqno that the caller knows, so its value was not read again."""


class CompareAndSet(NamedTuple):
    """Set `value` if the head has this seqno; None: if there is no head."""

    shard_id: ShardId
    expected_seqno: int | None
    value: bytes
    # What other processes may be told of it once it is done; None: that they must read it.
    news: News | None = None

    @property
    def next_seqno(self) -> int:
        """The seqno the head has once this is done."""
        return 1 if self.expected_seqno is None else self.expected_seqno + 1


@dataclass(frozen=True, slots=True)
class AppliedWrite:
    """An oracle's apply_write that rides along in a shard's store transaction."""

    timeline: Timeline
    write_ts: Timestamp


@dataclass(frozen=True, slots=True)
class ClaimedWrite:
    """A write timestamp taken and applied in the very transaction of the write.

    Refused unless it is beyond every timestamp that the timeline handed out before: the same
    promise as OracleRows.allocate followed by AppliedWrite, for one durable commit instead of two.
    """

    timeline: Timeline
    write_ts: Timestamp


@dataclass(frozen=True, slots=True)
class AllSet:
    """Every set was done."""


@dataclass(frozen=True, slots=True)
class SetMismatch:
    """These shards' heads were not the expected ones; all-or-nothing: so nothing changed."""

    shard_ids: tuple[ShardId, ...]


@dataclass(frozen=True, slots=True)
class ClaimLost:
    """The timeline has handed out `write_ts`: a claim must be beyond it. Nothing changed."""

    write_ts: Timestamp


class StashRow(NamedTuple):
    """One update of the stash. `kind` names the table: small letters and underscores."""

    kind: str
    key: str
    value: str
    ts: Timestamp
    diff: int


@dataclass(frozen=True, slots=True)
class StashAppend:
    """Rows for the stash, all with ts = write_ts; its upper becomes write_ts + 1."""

    expected_upper: Timestamp
    write_ts: Timestamp
    rows: Sequence[StashRow]
    # History up to here may be merged, which is done now and then: rows with ts <= since then
    # count as being at since, equal ones added up and zeros dropped.
    since: Timestamp


@dataclass(frozen=True, slots=True)
class StashMismatch:
    """The stash has this upper, not the expected one. Nothing changed."""

    upper: Timestamp


@dataclass(frozen=True, slots=True)
class StashPage:
    """Rows as of one moment, ordered by ts. History up to `since` has been merged."""

    rows: list[StashRow]
    since: Timestamp
    upper: Timestamp


SetOutcome: TypeAlias = AllSet | SetMismatch
ChangeOutcome: TypeAlias = SetOutcome | ClaimLost | StashMismatch


@dataclass(frozen=True, slots=True)
class OracleRow:
    """A timeline's state: the largest applied write, and the largest timestamp handed out."""

    read_ts: Timestamp
    write_ts: Timestamp


def check_distinct(sets: Sequence[CompareAndSet]) -> None:
    """Each shard is set once: what twice would mean, no store could say."""
    if len(sets) > 1:
        assert len({one.shard_id for one in sets}) == len(sets), "each shard is set once"


class Consensus(Protocol):
    """Shard states. Changes raise Fenced under an old epoch, StoreUnreachable without an answer.

    An outcome that a fault left unknown is found out by reading, inside the call; it is never
    repeated blindly.
    """

    async def head(
        self, shard_id: ShardId, known_seqno: int | None = None
    ) -> Head | Unchanged | None:
        """The newest state; None if the shard does not exist. Linearizable."""
        ...

    async def heads(
        self, known_seqnos: Mapping[ShardId, int | None]
    ) -> dict[ShardId, Head | Unchanged | None]:
        """Several heads as of one moment, keyed by the shards asked for."""
        ...

    async def shard_ids(self) -> list[ShardId]:
        """Every shard there is, in order."""
        ...

    async def compare_and_set_all(
        self,
        sets: Sequence[CompareAndSet],
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> ChangeOutcome:
        """All of them in one store transaction with the oracle writes and the stash, or nothing.

        Of several that stand in the way the stash is reported first, then shards, then the claim.
        `raises_epoch`: the same transaction opens the next generation, so the epoch becomes this
        handle's plus one and this handle is fenced; only if everything else was done. What
        Store.raise_epoch promises about clients that hold it up is promised here, too.
        """
        ...

    async def compare_and_set_each(self, sets: Sequence[CompareAndSet]) -> SetOutcome:
        """Each for itself in one store transaction; a mismatch names those that were not done."""
        ...


@runtime_checkable
class TellingConsensus(Protocol):
    """The same of a store that tells what came of a change, also when nobody waits for it any more.

    Where a change goes on without whoever asked for it, this spares a task around each. `tell` is
    called before the call returns.
    """

    @property
    def rings(self) -> bool:
        """Whether it tells other processes of changes by itself."""
        ...

    def set_all_telling(
        self,
        sets: Sequence[CompareAndSet],
        tell: Callable[[ChangeOutcome], None] | None,
        *,
        applied: Sequence[AppliedWrite] = (),
        claimed: ClaimedWrite | None = None,
        stash: StashAppend | None = None,
        raises_epoch: bool = False,
    ) -> Awaitable[ChangeOutcome]:
        """As Consensus.compare_and_set_all."""
        ...

    def set_each_telling(
        self, sets: Sequence[CompareAndSet], tell: Callable[[SetOutcome], None] | None
    ) -> Awaitable[SetOutcome]:
        """As Consensus.compare_and_set_each."""
        ...


class OracleRows(Protocol):
    """Timelines' states. Every call checks the epoch together with what it reads or changes."""

    async def read(self, timeline: Timeline) -> OracleRow:
        """The state as of one moment within the call; zeros for a timeline never used."""
        ...

    async def allocate(self, timeline: Timeline, at_least: Timestamp, count: int = 1) -> Timestamp:
        """Hand out `count` consecutive timestamps and return the first.

        The first is max(write_ts + 1, at_least); write_ts becomes the last.
        """
        ...

    async def apply(self, timeline: Timeline, write_ts: Timestamp) -> None:
        """Raise read_ts, and write_ts with it, to at least `write_ts`."""
        ...


class Stash(Protocol):
    """The store's tables for rows of text, one table for each kind. Appended to by Consensus."""

    async def ensure(self, kinds: Collection[str]) -> None:
        """Make the tables that are missing; for whoever opens the stash for writing."""
        ...

    async def upper(self) -> Timestamp:
        """MIN_TS: nothing was ever written."""
        ...

    async def read(
        self, lower: Timestamp = MIN_TS, kinds: Collection[str] | None = None
    ) -> StashPage:
        """Every row with ts >= lower, of these kinds or of all, as of one moment.

        Raises BelowSince if MIN_TS < lower <= since, as shards do: at since itself earlier
        history may have been merged. A kind without a table has no rows.
        """
        ...


class Store(Protocol):
    """One place that holds an environment's shard states and timelines."""

    async def raise_epoch(self) -> Epoch:
        """Open a generation: from now on handles of smaller epochs are fenced."""
        ...

    async def current_epoch(self) -> Epoch:
        """The epoch that handles must carry; 0 before the first generation."""
        ...

    def consensus(self, epoch: Epoch) -> Consensus:
        """Shard states, written under this epoch."""
        ...

    def oracle_rows(self, epoch: Epoch) -> OracleRows:
        """Timelines, read and written under this epoch."""
        ...

    def stash(self) -> Stash:
        """Rows of text beside the shard states."""
        ...

    async def find_note(self, name: str) -> str | None:
        """The short text kept under this name; None if there is none. Changes nothing."""
        ...

    async def note(self, name: str, text: str) -> str:
        """The short text kept under this name; `text` becomes it if there is none yet."""
        ...

    async def set_note(
        self, epoch: Epoch, name: str, text: str, *, raises_epoch: bool = False
    ) -> None:
        """Keep another text under this name; raises Fenced under an old epoch.

        `raises_epoch`: the same transaction opens the next generation, so that whoever read the
        note under this epoch can change nothing any more.
        """
        ...

    async def close(self) -> None:
        """Finish what is queued and let go of the place."""
        ...


class Blob(Protocol):
    """Large values, written once under keys that are never reused.

    Whoever has no more than this deletes nothing: persist/owned_blob.py does.
    """

    async def put(self, key: str, value: bytes) -> None:
        """Durable, and visible whole or not at all, once this returns."""
        ...

    async def get(self, key: str) -> bytes:
        """Raises BlobMissing."""
        ...

    async def keys(self, prefix: str = "") -> list[str]:
        """Every key that starts so, in order."""
        ...

    def local_path(self, key: str) -> Path | None:
        """The file that holds the value, for readers such as Spark; None where there is none."""
        ...

    def localize(self, keys: Sequence[str]) -> AbstractAsyncContextManager[Mapping[str, Path]]:
        """Files that hold these values, by key; values that have none are left out: get them.

        A store that makes files for its readers keeps these as long as the context lasts. Where
        values are files themselves, whoever deletes a key takes its file away. Raises BlobMissing
        where the store has to look for a value and finds none.
        """
        ...


class BlobStore(Blob, Protocol):
    """One place for large values, which says whose it is. It deletes for whoever asks: only
    OwnedBlob does, which looks first."""

    async def delete(self, key: str) -> None:
        """Nothing happens if there is no such key."""
        ...

    async def remove_unfinished(self, before_ms: int) -> int:
        """Remove what puts that never ended left behind before this time of day; how many.

        Their processes are dead, or have been silent for so long that their put may fail. Stores
        in which an unfinished put leaves nothing, or that see to it themselves, have none.
        """
        ...

    async def read_owner(self) -> bytes | None:
        """What lies under OWNER_KEY at this moment, read from the place itself and not from a copy.

        None: nothing does. Raises Corrupt for more than OWNER_BYTES, without reading it all.
        """
        ...

    async def write_owner(self, value: bytes) -> None:
        """Put it in the place of what was there: readers see the one or the other, whole."""
        ...
