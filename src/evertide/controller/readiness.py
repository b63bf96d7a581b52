"""When a replacement may be applied: told by replicas, shards and the catalog."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from evertide.catalog.objects import Item, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.orchestrator import process_name
from evertide.controller.reconfiguration import FRONTIERS, HYDRATION, Introspecting, Told
from evertide.controller.storage import Storage, collection_of
from evertide.dataflow.description import Import
from evertide.oracle.protocol import TimestampOracle
from evertide.vocab.ids import ItemId
from evertide.vocab.timestamp import EMPTY_FRONTIER, Timeline, Timestamp, step_back


@dataclass(frozen=True, slots=True)
class Uppers:
    """Where a target begins, and how far it is: as its shard says, and as is known of it.

    `asked` is a time at which reads were when its progress was first asked for.
    """

    as_of: Timestamp
    stored: Timestamp
    known: Timestamp
    asked: Timestamp


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replacement is, told by the replica of its cluster that is furthest."""

    hydrated: bool
    upper: float  # infinite where nothing more will come


# There is nothing yet that the new contents could differ from.
EMPTY_TARGET: Final = "the target is not hydrated"
NOWHERE: Final = Progress(hydrated=False, upper=0)


def staged(snapshot: Snapshot) -> Iterator[Item]:
    """All replacements."""
    return (item for item in snapshot.items.values() if item.replacement is not None)


def handing_over(snapshot: Snapshot) -> Iterator[Item]:
    """All views that have a new definition, while the old one may still have the shard."""
    for item in snapshot.items.values():
        if isinstance(item.definition, MaterializedView) and item.definition.handing_over:
            yield item


def target_of(replacement: Item, snapshot: Snapshot) -> Item:
    """The view that a replacement is for."""
    assert replacement.replacement is not None, "asked of a replacement"
    return snapshot.items[replacement.replacement.target]


def sealed(collection: Import, upper: Timestamp) -> bool:
    """Whether a view is finished, or will be in a moment: it has no time left to change at."""
    return upper == EMPTY_FRONTIER or cannot_change(collection)


def cannot_change(collection: Import) -> bool:
    """Whether it follows from nothing that changes."""
    derived = collection.derived
    if derived is None or derived.by_time:
        return False
    return all(cannot_change(below) for below in derived.inputs)


def sealed_message(target: Item) -> str:
    """Why it keeps the definition that it has."""
    return f"materialized view {target.name} is sealed and thus cannot be replaced"


def progress_of(
    replacement: Item, snapshot: Snapshot, hydration: Told, frontiers: Told
) -> Progress:
    """Told are, by process, rows of (object, cluster, …) as replicas give them."""
    best = NOWHERE
    cluster_id, global_id = replacement.cluster_id, replacement.global_id
    assert cluster_id is not None, "a materialized view runs in a cluster"
    for replica in snapshot.replicas_of(cluster_id):
        process = process_name(replica)
        hydrated = any(
            row[:3] == (global_id, cluster_id, True) for row in hydration.get(process, ())
        )
        for row in frontiers.get(process, ()):
            if row[:2] == (global_id, cluster_id):
                upper = row[2] if isinstance(row[2], int) else float("inf")
                found = Progress(hydrated, upper)
                best = max(best, found, key=lambda one: (one.hydrated, one.upper))
    return best


def waits_for(
    replacement: Item, progress: Progress, target: Uppers, *, forward_time: bool
) -> str | None:
    """Why a replacement cannot be applied yet; None: it can.

    It must have caught up with the shard it is to write. Unless a gap is allowed, its target must
    have come to where the replacement begins: between the two there would be no contents. And it
    must still go on: nobody takes over from a view that stands still, and once the catalog has
    changed there is no way back.
    """
    assert isinstance(replacement.definition, MaterializedView), "only views replace"
    if target.stored <= target.as_of:
        return EMPTY_TARGET
    if not progress.hydrated:
        return "the replacement is not hydrated"
    if progress.upper < target.stored:
        return "the replacement has not caught up with its target"
    if not forward_time and target.known < replacement.definition.as_of:
        return "the target has not reached the time at which the replacement begins"
    if not forward_time and target.known <= target.asked:
        return "the target makes no progress"
    return None


@dataclass(frozen=True, slots=True)
class Hindrance:
    """What keeps a replacement from being applied, and does not pass by itself."""

    message: str
    hint: str


def hindrance(replacement: Item, snapshot: Snapshot, *, forward_time: bool) -> Hindrance | None:
    """None: there is nothing that waiting would not mend.

    The old definition must still run, to bring its contents to the time of the change.
    """
    target = target_of(replacement, snapshot)
    for item, needed in ((replacement, True), (target, not forward_time)):
        assert item.cluster_id is not None, "a materialized view runs in a cluster"
        if needed and not snapshot.replicas_of(item.cluster_id):
            cluster = snapshot.clusters[item.cluster_id].name
            hint = f'Give cluster "{cluster}" a replica.'
            if item is target:
                hint += (
                    " Or apply the replacement WITH (FORWARD TIME), which leaves the interval since"
                    " then unreadable."
                )
            return Hindrance(
                f'materialized view "{item.name}" makes no progress because cluster "{cluster}"'
                " has no replicas",
                hint,
            )
    return None


class Readiness:
    """Looks at replicas and shards."""

    def __init__(self, storage: Storage, compute: Introspecting, oracle: TimestampOracle) -> None:
        self._storage = storage
        self._compute = compute
        self._oracle = oracle
        # When each target's progress was asked for, until it is seen to have come there.
        self._asked: dict[ItemId, Timestamp] = {}

    async def progress(
        self, replacements: Sequence[Item], snapshot: Snapshot
    ) -> Mapping[ItemId, Progress]:
        """How far each of these is."""
        hydration = await self._compute.introspect(snapshot, HYDRATION)
        frontiers = await self._compute.introspect(snapshot, FRONTIERS)
        return {
            one.item_id: progress_of(one, snapshot, hydration, frontiers) for one in replacements
        }

    async def uppers(self, target: Item, snapshot: Snapshot) -> Uppers:
        """How far a target is.

        One that is written to without end is always behind the present, so what counts is that it
        came to where the present was when it was looked at before.
        """
        asked = self._asked.pop(target.item_id, None)
        if asked is None:
            asked = await self._oracle.read_ts(Timeline.EPOCH_MS)
        collection = _collection(target, snapshot)
        stored = await self._storage.following.stored_upper(collection)
        assert isinstance(target.definition, MaterializedView), "only views are replaced"
        known = await self._storage.upper(collection)
        if known <= asked:
            self._asked = {one: ts for one, ts in self._asked.items() if one in snapshot.items}
            self._asked[target.item_id] = asked
        return Uppers(target.definition.as_of, stored, known, asked)

    async def is_sealed(self, target: Item, snapshot: Snapshot) -> bool:
        """Whether a view has no time left at which it could change."""
        collection = _collection(target, snapshot)
        return sealed(collection, await self._storage.upper(collection))

    async def waits_for(
        self, replacement: Item, snapshot: Snapshot, *, forward_time: bool
    ) -> str | None:
        """Why it cannot be applied yet. The target is looked at first: a replacement that keeps up
        is always as far as its target was a moment ago."""
        uppers = await self.uppers(target_of(replacement, snapshot), snapshot)
        progress = await self.progress([replacement], snapshot)
        return waits_for(
            replacement, progress[replacement.item_id], uppers, forward_time=forward_time
        )

    async def taken(self, item: Item, snapshot: Snapshot) -> Timestamp | None:
        """How far the shard is once the view's new definition has it; None: not yet."""
        collection = _collection(item, snapshot)
        return await self._storage.following.written_by(collection, item.global_id)

    async def let_reads_reach(self, upper: Timestamp) -> None:
        """From now on reads are at a time at which a view that is so far has its new contents."""
        if upper == EMPTY_FRONTIER:
            # It is finished: any time from now on is one at which it has them.
            changed_at = await self._oracle.write_ts(Timeline.EPOCH_MS)
        else:
            changed_at = step_back(upper)
        await self._oracle.apply_write(Timeline.EPOCH_MS, changed_at)


def _collection(item: Item, snapshot: Snapshot) -> Import:
    found = collection_of(item, snapshot)
    assert found is not None, "a view that is no replacement is stored"
    return found
