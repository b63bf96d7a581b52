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
from evertide.vocab.ids import ItemId
from evertide.vocab.timestamp import Timestamp


@dataclass(frozen=True, slots=True)
class Uppers:
    """Where a target begins, and how far it is: as its shard says, and as is known of it."""

    as_of: Timestamp
    stored: Timestamp
    known: Timestamp


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
    have come to where the replacement begins: between the two there would be no contents.
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

    def __init__(self, storage: Storage, compute: Introspecting) -> None:
        self._storage = storage
        self._compute = compute

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
        """How far a target is."""
        collection = _collection(target, snapshot)
        stored = await self._storage.following.stored_upper(collection)
        assert isinstance(target.definition, MaterializedView), "only views are replaced"
        known = await self._storage.upper(collection)
        return Uppers(target.definition.as_of, stored, known)

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


def _collection(item: Item, snapshot: Snapshot) -> Import:
    found = collection_of(item, snapshot)
    assert found is not None, "a view that is no replacement is stored"
    return found
