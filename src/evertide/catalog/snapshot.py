"""All objects of the catalog at one catalog timestamp, indexed; immutable.

A change gives a new snapshot that shares with the old one all that it did not touch, so it costs
as much in a large catalog as in a small one, and sessions keep the snapshot they planned with for
as long as they like.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeVar, cast

import msgspec

from evertide.catalog.faults import BrokenCatalog
from evertide.catalog.indexes import Indexes
from evertide.catalog.layered import LayeredMap
from evertide.catalog.objects import (
    OBJECT_TYPES,
    CatalogObject,
    CatalogUpdate,
    Cluster,
    ClusterItem,
    ClusterProfile,
    ClusterReplica,
    Comment,
    Database,
    DroppedItem,
    Index,
    Item,
    ObjectKey,
    ObjectKind,
    Role,
    Schema,
    Secret,
    object_key,
    record_types,
)
from evertide.catalog.references import (
    CLUSTER_NAME,
    DATABASE_NAME,
    GLOBAL_ID,
    ITEM_NAME,
    MEMBER_NAME,
    REPLACEMENT,
    ROLE_NAME,
    SCHEMA_NAME,
    TYPE_NAME,
    NameKey,
)
from evertide.catalog.variants import VariantView
from evertide.vocab.ids import (
    ClusterId,
    ClusterItemId,
    DatabaseId,
    GlobalId,
    ItemId,
    ProfileId,
    ReplicaId,
    RoleId,
    SchemaId,
)
from evertide.vocab.timestamp import MIN_TS, Timeline, Timestamp, step_back

ObjectT = TypeVar("ObjectT", bound=CatalogObject)
T = TypeVar("T")

# Only ever added and seldom read, so they stay in the store.
NOT_KEPT: Final = frozenset({ObjectKind.AUDIT_EVENT, ObjectKind.STORAGE_USAGE})

# Kinds of one fact each: the snapshot keeps the fact, not the record around it.
_FACTS: Final[Mapping[ObjectKind, str]] = {
    ObjectKind.CONFIG: "value",
    ObjectKind.ID_ALLOCATOR: "next_number",
    ObjectKind.SETTING: "value",
    ObjectKind.SYSTEM_CONFIGURATION: "value",
    ObjectKind.TIMESTAMP: "ts",
}

# What is referred to comes before what refers to it, as far as kinds can tell.
_ORDER: Final = (
    ObjectKind.CONFIG,
    ObjectKind.SETTING,
    ObjectKind.SYSTEM_CONFIGURATION,
    ObjectKind.ID_ALLOCATOR,
    ObjectKind.TIMESTAMP,
    ObjectKind.SYSTEM_OBJECT_MAPPING,
    ObjectKind.ROLE,
    ObjectKind.ROLE_MEMBERSHIP,
    ObjectKind.ROLE_PASSWORD,
    ObjectKind.SYSTEM_PRIVILEGE,
    ObjectKind.DATABASE,
    ObjectKind.SCHEMA,
    ObjectKind.DEFAULT_PRIVILEGE,
    ObjectKind.CLUSTER,
    ObjectKind.CLUSTER_ITEM,
    ObjectKind.INTROSPECTION_SOURCE_INDEX,
    ObjectKind.ITEM,
    ObjectKind.SECRET,
    ObjectKind.DROPPED_ITEM,
    ObjectKind.COMMENT,
)


def _no_objects() -> Mapping[ObjectKind, LayeredMap[object, object]]:
    return {kind: LayeredMap() for kind in _ORDER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every object but audit events and storage usage.

    Equal snapshots hold equal objects at the same upper.
    """

    upper: Timestamp = MIN_TS
    # What a session has put over the catalog's own objects, by a number; 0: nothing.
    overlay: int = 0
    # By the object's key: its one field, or all of them as a tuple.
    _tables: Mapping[ObjectKind, LayeredMap[object, object]] = field(default_factory=_no_objects)
    _indexes: Indexes = field(default_factory=Indexes, compare=False, repr=False)
    # What others have worked out from it; gone with it.
    _followed: dict[Hashable, object] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @property
    def databases(self) -> Mapping[DatabaseId, Database]:
        return cast("Mapping[DatabaseId, Database]", self._tables[ObjectKind.DATABASE])

    @property
    def schemas(self) -> Mapping[SchemaId, Schema]:
        return cast("Mapping[SchemaId, Schema]", self._tables[ObjectKind.SCHEMA])

    @property
    def roles(self) -> Mapping[RoleId, Role]:
        return cast("Mapping[RoleId, Role]", self._tables[ObjectKind.ROLE])

    @property
    def clusters(self) -> Mapping[ClusterId, Cluster]:
        return cast("Mapping[ClusterId, Cluster]", self._tables[ObjectKind.CLUSTER])

    @property
    def cluster_items(self) -> Mapping[ClusterItemId, ClusterItem]:
        """Replicas and profiles of all clusters."""
        return cast("Mapping[ClusterItemId, ClusterItem]", self._tables[ObjectKind.CLUSTER_ITEM])

    @property
    def profiles(self) -> Mapping[ProfileId, ClusterProfile]:
        return VariantView(self._tables[ObjectKind.CLUSTER_ITEM], ClusterProfile)

    @property
    def replicas(self) -> Mapping[ReplicaId, ClusterReplica]:
        return VariantView(self._tables[ObjectKind.CLUSTER_ITEM], ClusterReplica)

    @property
    def items(self) -> Mapping[ItemId, Item]:
        return cast("Mapping[ItemId, Item]", self._tables[ObjectKind.ITEM])

    @property
    def secrets(self) -> Mapping[ItemId, Secret]:
        return cast("Mapping[ItemId, Secret]", self._tables[ObjectKind.SECRET])

    @property
    def dropped_items(self) -> Mapping[ItemId, DroppedItem]:
        """What was dropped and can be brought back; nothing of it is an item any more."""
        return cast("Mapping[ItemId, DroppedItem]", self._tables[ObjectKind.DROPPED_ITEM])

    @property
    def next_numbers(self) -> Mapping[str, int]:
        """Of the id allocators."""
        return cast("Mapping[str, int]", self._tables[ObjectKind.ID_ALLOCATOR])

    @property
    def configs(self) -> Mapping[str, int]:
        return cast("Mapping[str, int]", self._tables[ObjectKind.CONFIG])

    @property
    def settings(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._tables[ObjectKind.SETTING])

    @property
    def system_configurations(self) -> Mapping[str, str]:
        return cast("Mapping[str, str]", self._tables[ObjectKind.SYSTEM_CONFIGURATION])

    @property
    def timestamps(self) -> Mapping[Timeline, Timestamp]:
        return cast("Mapping[Timeline, Timestamp]", self._tables[ObjectKind.TIMESTAMP])

    @property
    def version(self) -> tuple[int, int]:
        """Snapshots of one process that have the same are the same."""
        return self.upper, self.overlay

    def recall(self, key: Hashable, work_out: Callable[[], T]) -> T:
        """What follows from this snapshot alone, worked out by the first who asks.

        A key names what is asked for and objects of the snapshot, of which there are so many.
        """
        if key not in self._followed:
            self._followed[key] = work_out()
        return cast("T", self._followed[key])

    def over(self, updates: Sequence[CatalogUpdate], overlay: int) -> "Snapshot":
        """This snapshot as a session sees it which has such objects of its own."""
        return replace(self.apply(updates, self.upper), overlay=overlay)

    @property
    def catalog_ts(self) -> Timestamp:
        """The last catalog timestamp whose changes are in here; commands carry it."""
        return step_back(self.upper)

    def apply(self, updates: Sequence[CatalogUpdate], upper: Timestamp) -> "Snapshot":
        """The snapshot after these changes; `upper` is the frontier they brought the catalog to."""
        assert upper >= self.upper, "the catalog's upper only moves forward"
        keyed = [
            (object_key(update.object), update)
            for update in sorted(updates, key=_diff)
            if update.object.KIND not in NOT_KEPT
        ]
        by_kind: dict[ObjectKind, list[tuple[ObjectKey, CatalogUpdate]]] = {}
        for key, update in keyed:
            by_kind.setdefault(update.object.KIND, []).append((key, update))
        changed = {kind: _changed(self._tables[kind], some) for kind, some in by_kind.items()}
        return Snapshot(
            upper=upper,
            _tables={**self._tables, **changed} if changed else self._tables,
            _indexes=self._indexes.apply(keyed) if changed else self._indexes,
        )

    def find(self, key: ObjectKey) -> CatalogObject | None:
        """The object with this key, if the snapshot holds it."""
        kind = ObjectKind(str(key[0]))
        if kind in NOT_KEPT:
            return None
        table_key = key[1] if len(key) == 2 else key[1:]
        record = self._tables[kind].get(table_key)
        return None if record is None else _object_of(kind, table_key, record)

    def of_type(self, object_type: type[ObjectT]) -> Iterator[ObjectT]:
        """All objects of one type; of a kind that has variants, those of that variant."""
        kind = object_type.KIND
        assert kind not in NOT_KEPT, f"a snapshot holds no {kind.value}"
        for key, record in self._tables[kind].items():
            found = _object_of(kind, key, record)
            assert isinstance(found, record_types(kind)), f"no {kind.value}: {found!r}"
            if isinstance(found, object_type):
                yield found

    def named(self, name: NameKey) -> tuple[ObjectKey, ...]:
        """Keys of the objects with this name: none, one, or more if the catalog is broken."""
        return self._indexes.named(name)

    def shared_names(self) -> Iterator[tuple[NameKey, tuple[ObjectKey, ...]]]:
        """Names that more than one object has, although none may."""
        return self._indexes.shared_names()

    def referrers(self, referring: type[ObjectT], target: ObjectKey) -> list[ObjectT]:
        """The objects of one type that refer to the object with this key."""
        keys = self._indexes.referrers(referring.KIND, target)
        found = (self.find(key) for key in keys)
        return [referrer for referrer in found if isinstance(referrer, referring)]

    def referring_keys(self, kind: ObjectKind, target: ObjectKey) -> Collection[ObjectKey]:
        """Keys of the objects of one kind that refer to the object with this key."""
        return self._indexes.referrers(kind, target)

    def database_named(self, name: str) -> Database | None:
        return self._named(Database, (DATABASE_NAME, name))

    def schema_named(self, database_id: DatabaseId | None, name: str) -> Schema | None:
        """A schema of this database; a system schema when the database is None."""
        return self._named(Schema, (SCHEMA_NAME, database_id, name))

    def role_named(self, name: str) -> Role | None:
        return self._named(Role, (ROLE_NAME, name))

    def cluster_named(self, name: str) -> Cluster | None:
        return self._named(Cluster, (CLUSTER_NAME, name))

    def replica_named(self, cluster_id: ClusterId, name: str) -> ClusterReplica | None:
        return self._named(ClusterReplica, (MEMBER_NAME, cluster_id, name))

    def profile_named(self, cluster_id: ClusterId, name: str) -> ClusterProfile | None:
        return self._named(ClusterProfile, (MEMBER_NAME, cluster_id, name))

    def item_named(self, schema_id: SchemaId, name: str) -> Item | None:
        """A user's item that is no type; builtins are found in builtin/registry.py."""
        return self._named(Item, (ITEM_NAME, schema_id, name))

    def type_named(self, schema_id: SchemaId, name: str) -> Item | None:
        """A user's type."""
        return self._named(Item, (TYPE_NAME, schema_id, name))

    def secret_named(self, schema_id: SchemaId, name: str) -> Secret | None:
        return self._named(Secret, (ITEM_NAME, schema_id, name))

    def item_of(self, global_id: GlobalId) -> Item | None:
        """The item that this collection is, or was, a version of."""
        return self._named(Item, (GLOBAL_ID, global_id))

    def replacement_of(self, item_id: ItemId) -> Item | None:
        """What is staged to replace this view."""
        return self._named(Item, (REPLACEMENT, item_id))

    def dependants(self, item_id: ItemId) -> list[Item]:
        """Items that name this one directly, oldest first."""
        return sorted(self.referrers(Item, (ObjectKind.ITEM.value, item_id)), key=_age)

    def indexes_on(self, item_id: ItemId, cluster_id: ClusterId | None = None) -> list[Item]:
        """Indexes of this relation, oldest first; of one cluster if it is given."""
        return [
            item
            for item in self.dependants(item_id)
            if isinstance(item.definition, Index)
            and item.definition.on_id == item_id
            and cluster_id in (None, item.definition.cluster_id)
        ]

    def stored_inputs(self, depends_on: Iterable[ItemId]) -> list[Item]:
        """The tables and materialized views that a query over these items reads, oldest first.

        Views are looked through; builtins are not stored.
        """
        found: dict[ItemId, Item] = {}
        seen: set[ItemId] = set()
        waiting = list(depends_on)
        while waiting:
            item = self.items.get(waiting.pop())
            if item is None or item.item_id in seen:
                continue
            seen.add(item.item_id)
            if item.shard_id is None:
                waiting.extend(item.reads)
            else:
                found[item.item_id] = item
        return sorted(found.values(), key=_age)

    def items_in_cluster(self, cluster_id: ClusterId) -> list[Item]:
        """Items that this cluster works for, oldest first; also those it did until they have
        been handed over to another."""
        return sorted(self.referrers(Item, (ObjectKind.CLUSTER.value, cluster_id)), key=_age)

    def items_in_schema(self, schema_id: SchemaId) -> list[Item]:
        """A schema's items, oldest first."""
        return sorted(self.referrers(Item, (ObjectKind.SCHEMA.value, schema_id)), key=_age)

    def secrets_in_schema(self, schema_id: SchemaId) -> list[Secret]:
        """A schema's secrets by name."""
        found = self.referrers(Secret, (ObjectKind.SCHEMA.value, schema_id))
        return sorted(found, key=lambda secret: secret.name)

    def schemas_in(self, database_id: DatabaseId) -> list[Schema]:
        """A database's schemas by name."""
        found = self.referrers(Schema, (ObjectKind.DATABASE.value, database_id))
        return sorted(found, key=lambda schema: schema.name)

    def replicas_of(self, cluster_id: ClusterId) -> list[ClusterReplica]:
        """A cluster's replicas by name."""
        found = self.referrers(ClusterReplica, (ObjectKind.CLUSTER.value, cluster_id))
        return sorted(found, key=lambda replica: replica.name)

    def profiles_of(self, cluster_id: ClusterId) -> list[ClusterProfile]:
        """A cluster's profiles by name; the implicit one is no object."""
        found = self.referrers(ClusterProfile, (ObjectKind.CLUSTER.value, cluster_id))
        return sorted(found, key=lambda profile: profile.name)

    def comments_on(self, kind: ObjectKind, object_id: str) -> list[Comment]:
        """The object's own comment, then its columns'."""
        found = self.referrers(Comment, (kind.value, object_id))
        return sorted(found, key=lambda comment: comment.sub_id or 0)

    def qualified_name(self, item: Item | Secret) -> str:
        """database.schema.item, unquoted, for messages and audit events."""
        schema = self.schemas[item.schema_id]
        names = [schema.name, item.name]
        if schema.database_id is not None:
            names.insert(0, self.databases[schema.database_id].name)
        return ".".join(names)

    def _named(self, object_type: type[ObjectT], name: NameKey) -> ObjectT | None:
        for key in self._indexes.named(name):
            if key[0] == object_type.KIND:
                found = self.find(key)
                known = record_types(object_type.KIND)
                assert isinstance(found, known), f"{name!r} leads to {found!r}"
                return found if isinstance(found, object_type) else None
        return None


def all_objects(snapshot: Snapshot) -> Iterator[CatalogObject]:
    """Every object of the snapshot, kind by kind."""
    for kind in _ORDER:
        for object_type in record_types(kind):
            yield from snapshot.of_type(object_type)


def _age(item: Item) -> tuple[int, str]:
    """Ids grow, but as text u10 comes before u9."""
    return len(item.item_id), item.item_id


def _object_of(kind: ObjectKind, key: object, record: object) -> CatalogObject:
    fact = _FACTS.get(kind)
    if fact is None:
        return cast("CatalogObject", record)
    object_type = OBJECT_TYPES[kind]
    return msgspec.convert({object_type.KEY[0]: key, fact: record}, object_type)


def _diff(update: CatalogUpdate) -> int:
    return update.diff


def _changed(
    table: LayeredMap[object, object], updates: Sequence[tuple[ObjectKey, CatalogUpdate]]
) -> LayeredMap[object, object]:
    """The table after updates of its kind; a change of an object is two, the old one gone first."""
    gone: set[object] = set()
    came: dict[object, object] = {}
    for identity, update in updates:
        key = identity[1] if len(identity) == 2 else identity[1:]
        fact = _FACTS.get(update.object.KIND)
        record: object = update.object if fact is None else getattr(update.object, fact)
        if update.diff < 0:
            if table.look(key, None) != record:
                raise BrokenCatalog([f"retraction of what is not there: {update.object!r}"])
            gone.add(key)
        elif key in came or (key in table and key not in gone):
            raise BrokenCatalog([f"two objects with one key: {identity!r}"])
        else:
            came[key] = record
    return table.changed(gone, came)
