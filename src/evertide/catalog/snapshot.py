"""All objects of the catalog at one catalog timestamp, indexed; immutable.

A change gives a new snapshot that shares every table the change did not touch, so sessions keep
the one they planned with for as long as they like.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from evertide.catalog.objects import (
    CatalogObject,
    CatalogUpdate,
    Cluster,
    ClusterReplica,
    Config,
    Database,
    IdAllocator,
    Index,
    Item,
    Role,
    Schema,
    Setting,
    SystemConfiguration,
)
from evertide.vocab.ids import (
    ClusterId,
    DatabaseId,
    GlobalId,
    ItemId,
    ReplicaId,
    RoleId,
    SchemaId,
)
from evertide.vocab.timestamp import MIN_TS, Timestamp, step_back

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT", bound=Hashable)
RecordT = TypeVar("RecordT")
ObjectT = TypeVar("ObjectT", bound=CatalogObject)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Indexes:
    """Names and references to ids; derived from the objects, so not part of what they are."""

    database_ids: Mapping[str, DatabaseId] = field(default_factory=dict)
    schema_ids: Mapping[tuple[DatabaseId | None, str], SchemaId] = field(default_factory=dict)
    role_ids: Mapping[str, RoleId] = field(default_factory=dict)
    cluster_ids: Mapping[str, ClusterId] = field(default_factory=dict)
    replica_ids: Mapping[tuple[ClusterId, str], ReplicaId] = field(default_factory=dict)
    item_ids: Mapping[tuple[SchemaId, str], ItemId] = field(default_factory=dict)
    item_ids_by_global_id: Mapping[GlobalId, ItemId] = field(default_factory=dict)
    dependants: Mapping[ItemId, frozenset[ItemId]] = field(default_factory=dict)

    def apply(self, updates: Sequence[CatalogUpdate]) -> "_Indexes":
        return _Indexes(
            database_ids=_changed(
                self.database_ids, updates, Database, lambda d: [(d.name, d.database_id)]
            ),
            schema_ids=_changed(
                self.schema_ids, updates, Schema, lambda s: [((s.database_id, s.name), s.schema_id)]
            ),
            role_ids=_changed(self.role_ids, updates, Role, lambda r: [(r.name, r.role_id)]),
            cluster_ids=_changed(
                self.cluster_ids, updates, Cluster, lambda c: [(c.name, c.cluster_id)]
            ),
            replica_ids=_changed(
                self.replica_ids,
                updates,
                ClusterReplica,
                lambda r: [((r.cluster_id, r.name), r.replica_id)],
            ),
            item_ids=_changed(
                self.item_ids, updates, Item, lambda i: [((i.schema_id, i.name), i.item_id)]
            ),
            item_ids_by_global_id=_changed(
                self.item_ids_by_global_id,
                updates,
                Item,
                lambda i: [(version.global_id, i.item_id) for version in i.versions],
            ),
            dependants=_changed_sets(
                self.dependants,
                updates,
                Item,
                lambda i: [(dependency, i.item_id) for dependency in i.depends_on],
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Every object but audit events. Equal snapshots hold equal objects at the same upper."""

    upper: Timestamp = MIN_TS
    databases: Mapping[DatabaseId, Database] = field(default_factory=dict)
    schemas: Mapping[SchemaId, Schema] = field(default_factory=dict)
    roles: Mapping[RoleId, Role] = field(default_factory=dict)
    clusters: Mapping[ClusterId, Cluster] = field(default_factory=dict)
    replicas: Mapping[ReplicaId, ClusterReplica] = field(default_factory=dict)
    items: Mapping[ItemId, Item] = field(default_factory=dict)
    next_numbers: Mapping[str, int] = field(default_factory=dict)  # of the id allocators
    configs: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    system_configurations: Mapping[str, str] = field(default_factory=dict)
    _indexes: _Indexes = field(default_factory=_Indexes, compare=False, repr=False)

    @property
    def catalog_ts(self) -> Timestamp:
        """The last catalog timestamp whose changes are in here; commands carry it."""
        return step_back(self.upper)

    def apply(self, updates: Sequence[CatalogUpdate], upper: Timestamp) -> "Snapshot":
        """The snapshot after these changes; `upper` is the frontier they brought the catalog to."""
        assert upper >= self.upper, "the catalog's upper only moves forward"
        return Snapshot(
            upper=upper,
            databases=_changed(self.databases, updates, Database, lambda d: [(d.database_id, d)]),
            schemas=_changed(self.schemas, updates, Schema, lambda s: [(s.schema_id, s)]),
            roles=_changed(self.roles, updates, Role, lambda r: [(r.role_id, r)]),
            clusters=_changed(self.clusters, updates, Cluster, lambda c: [(c.cluster_id, c)]),
            replicas=_changed(
                self.replicas, updates, ClusterReplica, lambda r: [(r.replica_id, r)]
            ),
            items=_changed(self.items, updates, Item, lambda i: [(i.item_id, i)]),
            next_numbers=_changed(
                self.next_numbers, updates, IdAllocator, lambda a: [(a.name, a.next_number)]
            ),
            configs=_changed(self.configs, updates, Config, lambda c: [(c.name, c.value)]),
            settings=_changed(self.settings, updates, Setting, lambda s: [(s.name, s.value)]),
            system_configurations=_changed(
                self.system_configurations,
                updates,
                SystemConfiguration,
                lambda s: [(s.name, s.value)],
            ),
            _indexes=self._indexes.apply(updates),
        )

    def database_named(self, name: str) -> Database | None:
        return _found(self.databases, self._indexes.database_ids.get(name))

    def schema_named(self, database_id: DatabaseId | None, name: str) -> Schema | None:
        """A schema of this database; a system schema when the database is None."""
        return _found(self.schemas, self._indexes.schema_ids.get((database_id, name)))

    def role_named(self, name: str) -> Role | None:
        return _found(self.roles, self._indexes.role_ids.get(name))

    def cluster_named(self, name: str) -> Cluster | None:
        return _found(self.clusters, self._indexes.cluster_ids.get(name))

    def replica_named(self, cluster_id: ClusterId, name: str) -> ClusterReplica | None:
        return _found(self.replicas, self._indexes.replica_ids.get((cluster_id, name)))

    def item_named(self, schema_id: SchemaId, name: str) -> Item | None:
        """A user's item; builtins are found in builtin/registry.py."""
        return _found(self.items, self._indexes.item_ids.get((schema_id, name)))

    def item_of(self, global_id: GlobalId) -> Item | None:
        """The item that this collection is, or was, a version of."""
        return _found(self.items, self._indexes.item_ids_by_global_id.get(global_id))

    def dependants(self, item_id: ItemId) -> list[Item]:
        """Items that name this one directly, oldest first."""
        found = self._indexes.dependants.get(item_id, frozenset())
        return sorted((self.items[dependant] for dependant in found), key=_age)

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
                waiting.extend(item.depends_on)
            else:
                found[item.item_id] = item
        return sorted(found.values(), key=_age)

    def items_in_cluster(self, cluster_id: ClusterId) -> list[Item]:
        """Materialized views and indexes that this cluster runs, oldest first."""
        return sorted((i for i in self.items.values() if i.cluster_id == cluster_id), key=_age)

    def items_in_schema(self, schema_id: SchemaId) -> list[Item]:
        """A schema's items, oldest first."""
        return sorted((i for i in self.items.values() if i.schema_id == schema_id), key=_age)

    def replicas_of(self, cluster_id: ClusterId) -> list[ClusterReplica]:
        """A cluster's replicas by name."""
        found = (r for r in self.replicas.values() if r.cluster_id == cluster_id)
        return sorted(found, key=lambda replica: replica.name)

    def qualified_name(self, item: Item) -> str:
        """database.schema.item, unquoted, for messages and audit events."""
        schema = self.schemas[item.schema_id]
        names = [schema.name, item.name]
        if schema.database_id is not None:
            names.insert(0, self.databases[schema.database_id].name)
        return ".".join(names)


def all_objects(snapshot: Snapshot) -> Iterator[CatalogObject]:
    """Every object of the snapshot, kind by kind."""
    yield from (Config(name=name, value=value) for name, value in snapshot.configs.items())
    yield from (Setting(name=name, value=value) for name, value in snapshot.settings.items())
    for name, value in snapshot.system_configurations.items():
        yield SystemConfiguration(name=name, value=value)
    for name, number in snapshot.next_numbers.items():
        yield IdAllocator(name=name, next_number=number)
    yield from snapshot.roles.values()
    yield from snapshot.databases.values()
    yield from snapshot.schemas.values()
    yield from snapshot.clusters.values()
    yield from snapshot.replicas.values()
    yield from snapshot.items.values()


def _age(item: Item) -> tuple[int, str]:
    """Ids grow, but as text u10 comes before u9."""
    return len(item.item_id), item.item_id


def _found(table: Mapping[KeyT, RecordT], key: KeyT | None) -> RecordT | None:
    return None if key is None else table[key]


def _changed(
    table: Mapping[KeyT, RecordT],
    updates: Iterable[CatalogUpdate],
    object_type: type[ObjectT],
    entries: Callable[[ObjectT], Iterable[tuple[KeyT, RecordT]]],
) -> Mapping[KeyT, RecordT]:
    """The table after the updates of one type; itself if there are none.

    Entries go before any come: a change is both, in no particular order.
    """
    gone, came = _entries(updates, object_type, entries)
    if not gone and not came:
        return table
    copy = dict(table)
    for key, record in gone:
        assert copy.pop(key, None) == record, f"retraction of what is not there: {key!r}"
    for key, record in came:
        assert key not in copy, f"two objects with one key: {key!r}"
        copy[key] = record
    return copy


def _changed_sets(
    table: Mapping[KeyT, frozenset[ValueT]],
    updates: Iterable[CatalogUpdate],
    object_type: type[ObjectT],
    entries: Callable[[ObjectT], Iterable[tuple[KeyT, ValueT]]],
) -> Mapping[KeyT, frozenset[ValueT]]:
    """Like `_changed` where a key has any number of values; keys without one are absent."""
    gone, came = _entries(updates, object_type, entries)
    if not gone and not came:
        return table
    copy = dict(table)
    for key, value in gone:
        copy[key] = copy[key] - {value}
    for key, value in came:
        copy[key] = copy.get(key, frozenset()) | {value}
    return {key: values for key, values in copy.items() if values}


def _entries(
    updates: Iterable[CatalogUpdate],
    object_type: type[ObjectT],
    entries: Callable[[ObjectT], Iterable[tuple[KeyT, RecordT]]],
) -> tuple[list[tuple[KeyT, RecordT]], list[tuple[KeyT, RecordT]]]:
    gone: list[tuple[KeyT, RecordT]] = []
    came: list[tuple[KeyT, RecordT]] = []
    for update in updates:
        if isinstance(update.object, object_type):
            (came if update.diff > 0 else gone).extend(entries(update.object))
    return gone, came
