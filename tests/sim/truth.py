"""What truly happened, from the log of the store: each shard's states, and what came in when.

Nobody in the simulation sees this. It is what all that they saw is compared with, and it must make
sense by itself: frontiers that never go back, appends that touch, merges that change nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from evertide.persist.purge import is_purged
from evertide.persist.state import Batch, BlobPart, Part, ShardState, decode_state
from evertide.vocab.datum import Row
from evertide.vocab.ids import GlobalId, ShardId
from evertide.vocab.timestamp import MIN_TS, Timestamp
from tests.sim.decode import decode_part_of, desc_of
from tests.sim.history import Rows, require
from tests.sim.node import MAX_SKEW_MS, START_MS
from tests.sim.store import Done, Raised, SimBlob, SimStore

# (row, timestamp) to the sum of diffs.
Changes: TypeAlias = Counter[tuple[Row, Timestamp]]


@dataclass(frozen=True, slots=True)
class Version:
    """A state that a shard had, from this moment on."""

    moment: int
    now_s: float
    state: ShardState


@dataclass(slots=True)
class ShardTruth:
    """One shard from its beginning to its end."""

    shard_id: ShardId
    versions: list[Version] = field(default_factory=list)
    changes: Changes = field(default_factory=Counter)
    # (lower, upper, writer) of every append, in order.
    appends: list[tuple[Timestamp, Timestamp, GlobalId | None]] = field(default_factory=list)

    @property
    def state(self) -> ShardState:
        """The last one."""
        return self.versions[-1].state

    def at(self, timestamps: Sequence[Timestamp]) -> Iterator[tuple[Timestamp, Rows]]:
        """Contents at each of these, which must be in order; the same counter, moved on."""
        coming = sorted(self.changes.items(), key=lambda change: change[0][1], reverse=True)
        rows: Rows = Counter()
        for as_of in timestamps:
            while coming and coming[-1][0][1] <= as_of:
                (row, _), diff = coming.pop()
                rows[row] += diff
                if not rows[row]:
                    del rows[row]
            yield as_of, rows


class Truth:
    """All shards of a store. Raises Violation where its log makes no sense."""

    def __init__(self, store: SimStore, blob: SimBlob) -> None:
        self.shards: dict[ShardId, ShardTruth] = {}
        self._blob = blob
        self._decoded: dict[Part, Changes] = {}
        self._read(store.log)

    def by_timestamp(self, shard_id: ShardId) -> dict[Timestamp, Rows]:
        """A shard's changes, grouped."""
        grouped: defaultdict[Timestamp, Rows] = defaultdict(Counter)
        for (row, ts), diff in self.shards[shard_id].changes.items():
            grouped[ts][row] = diff
        return grouped

    def _read(self, log: Sequence[Done | Raised]) -> None:
        check_epochs(log)
        for entry in (entry for entry in log if isinstance(entry, Done)):
            for change in entry.sets:
                shard = self.shards.setdefault(change.shard_id, ShardTruth(change.shard_id))
                require(
                    change.next_seqno == len(shard.versions) + 1,
                    f"{change.shard_id} went from seqno {len(shard.versions)} to"
                    f" {change.next_seqno}",
                )
                version = Version(entry.moment, entry.now_s, decode_state(change.value))
                self._follow(shard, version)
                shard.versions.append(version)

    def _follow(self, shard: ShardTruth, version: Version) -> None:
        after = version.state
        if not shard.versions:
            # A shard may come with its first append, in one change.
            require(len(after.batches) <= 1, f"{shard.shard_id} begins with one append at most")
            for batch in after.batches:
                self._append(shard, MIN_TS, batch)
            return
        before = shard.state
        name = shard.shard_id
        if is_purged(after):
            require(before.forgotten and not after.batches, f"{name}: purged without a drop")
            return
        _check_live_holds(name, before, version)
        require(after.since >= before.since, f"{name}: since went back")
        require(after.upper >= before.upper, f"{name}: upper went back")
        require(
            after.since < after.upper or after.since == before.since,
            f"{name}: since {after.since} reached the upper {after.upper}",
        )
        appended = after.upper > before.upper
        if appended:
            require(not (before.forgotten and after.forgotten), f"{name}: written after a drop")
            shard.appends.append((before.upper, after.upper, after.writer))
        if after.batches == before.batches:
            return
        count = len(before.batches)
        if appended and after.batches[:count] == before.batches:
            require(len(after.batches) == count + 1, f"{name}: one append, one batch")
            self._append(shard, before.upper, after.batches[count])
        else:
            require(not appended, f"{name}: a merge is not an append")
            self._merge(shard, after)

    def _append(self, shard: ShardTruth, upper: Timestamp, batch: Batch) -> None:
        require(batch.lower == upper, f"{shard.shard_id}: appends touch")
        changes = self._changes_of(shard, batch)
        for (_, ts), _ in changes.items():
            require(batch.lower <= ts < batch.upper, f"{shard.shard_id}: updates lie in the batch")
        _add(shard.changes, changes)

    def _merge(self, shard: ShardTruth, after: ShardState) -> None:
        """At every time from since on, the merged batches hold what was there before."""
        merged: Changes = Counter()
        for batch in after.batches:
            _add(merged, raised(self._changes_of(shard, batch), after.since))
        _drop_zeros(merged)
        wanted = raised(shard.changes, after.since)
        _drop_zeros(wanted)
        require(
            merged == wanted,
            f"{shard.shard_id}: a merge to since {after.since} changed what may be read:"
            f" {_difference(merged, wanted)}",
        )

    def _changes_of(self, shard: ShardTruth, batch: Batch) -> Changes:
        changes: Changes = Counter()
        for part in batch.parts:
            if part not in self._decoded:
                value = self._blob.ever.get(part.key) if isinstance(part, BlobPart) else None
                require(
                    not isinstance(part, BlobPart) or value is not None,
                    "a state refers to a part that was never stored",
                )
                self._decoded[part] = Counter()
                for update in decode_part_of(desc_of(shard.shard_id), part, value):
                    self._decoded[part][update.row, update.ts] += update.diff
            _add(changes, self._decoded[part])
        return changes


def check_epochs(log: Sequence[Done | Raised]) -> None:
    """Once a generation is open, no older one changes anything."""
    epoch = 0
    for entry in log:
        if isinstance(entry, Raised):
            epoch = entry.epoch
        else:
            require(
                entry.epoch == epoch,
                f"a process of epoch {entry.epoch} wrote after epoch {epoch} had begun",
            )


def _check_live_holds(name: ShardId, before: ShardState, version: Version) -> None:
    """Since does not pass a hold that is live by everybody's clock."""
    latest_ms = START_MS + version.now_s * 1_000 + MAX_SKEW_MS
    for hold in before.holds:
        if hold.expires_ms is None or hold.expires_ms > latest_ms:
            require(
                version.state.since <= max(hold.hold_ts, before.since),
                f"{name}: since {version.state.since} passed the hold of {hold.owner} on"
                f" {hold.hold_ts}",
            )


def raised(changes: Changes, since: Timestamp) -> Changes:
    """The same with times before since at since."""
    result: Changes = Counter()
    for (row, ts), diff in changes.items():
        result[row, max(ts, since)] += diff
    return result


def _add(changes: Changes, more: Changes) -> None:
    for key, diff in more.items():
        changes[key] += diff


def _drop_zeros(changes: Changes) -> None:
    for key in [key for key, diff in changes.items() if not diff]:
        del changes[key]


def _difference(found: Changes, wanted: Changes) -> str:
    keys = sorted(
        (key for key in {*found, *wanted} if found[key] != wanted[key]), key=lambda key: key[1]
    )
    shown = [f"{key}: {found[key]} instead of {wanted[key]}" for key in keys[:5]]
    return "; ".join(shown)
