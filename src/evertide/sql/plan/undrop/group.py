"""What comes back with a dropped item, and what keeps one from coming back."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evertide.catalog.builtin.registry import builtin_of
from evertide.catalog.objects import Cluster, Database, DroppedItem, Index, Schema
from evertide.catalog.snapshot import Snapshot
from evertide.vocab.errors import (
    DuplicateObject,
    InsufficientPrivilege,
    ObjectNotInPrerequisiteState,
    SqlError,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
)
from evertide.vocab.ids import ItemId, RoleId


@dataclass(frozen=True, slots=True)
class Destination:
    """Where an item comes back to."""

    database: Database
    schema: Schema
    name: str
    cluster: Cluster | None  # None: none works for it

    @property
    def parts(self) -> tuple[str, ...]:
        return self.database.name, self.schema.name, self.name


def destination(
    dropped: DroppedItem,
    snapshot: Snapshot,
    coming: Mapping[ItemId, Destination],
    new_name: str | None = None,
) -> Destination:
    """Where it was, or in what has the names of that now; raises why it cannot come back there."""
    _refuse_missing_inputs(dropped, snapshot, coming)
    database, schema = _place(dropped, snapshot, coming)
    name = dropped.name if new_name is None else new_name
    along = {(one.schema.schema_id, one.name) for one in coming.values()}
    if (schema.schema_id, name) in along or _is_taken(schema, name, snapshot):
        words = dropped.kind.sql_words.upper()
        raise DuplicateObject(
            f"{_cannot(dropped)}: catalog item '{name}' already exists",
            hint=f"Give it another name: UNDROP {words} ... AS new_name.",
        )
    return Destination(database, schema, name, _cluster(dropped, snapshot))


def _is_taken(schema: Schema, name: str, snapshot: Snapshot) -> bool:
    """Relations, indexes, secrets and types keep out of each other's way."""
    found = (
        snapshot.item_named(schema.schema_id, name),
        snapshot.secret_named(schema.schema_id, name),
        snapshot.type_named(schema.schema_id, name),
    )
    return any(one is not None for one in found)


def group(root: DroppedItem, snapshot: Snapshot, *, restrict: bool) -> Iterator[DroppedItem]:
    """What was dropped by the same statement and depends on the item, inputs before users.

    With `restrict` the item's own indexes alone.
    """
    dropped = [one for one in snapshot.dropped_items.values() if one.drop_id == root.drop_id]
    if restrict:
        dropped = [one for one in dropped if isinstance(one.item.definition, Index)]
        dropped = [one for one in dropped if root.item_id in one.item.reads]
    left = {one.item_id: one for one in sorted(dropped, key=_age) if one is not root}
    reached = {root.item_id}
    while True:
        # Those whose inputs among the dropped ones have all been given, or do not depend on root.
        ready = [one for one in left.values() if not any(r in left for r in one.item.reads)]
        if not ready:
            return
        for one in ready:
            del left[one.item_id]
            if reached.intersection(one.item.reads):
                reached.add(one.item_id)
                yield one


def _age(dropped: DroppedItem) -> tuple[int, str]:
    """Ids grow, but as text u10 comes before u9."""
    return len(dropped.item_id), dropped.item_id


def _cannot(dropped: DroppedItem) -> str:
    return f"cannot undrop {_shown(dropped)}"


def _shown(dropped: DroppedItem) -> str:
    return f'{dropped.kind.sql_words} "{dropped.name}"'


def _refuse_missing_inputs(
    dropped: DroppedItem, snapshot: Snapshot, coming: Mapping[ItemId, Destination]
) -> None:
    names = {named.item_id: named.name[-1] for named in dropped.names}
    for item_id in dropped.item.reads:
        if item_id in snapshot.items or item_id in coming or builtin_of(item_id) is not None:
            continue
        below = snapshot.dropped_items.get(item_id)
        if below is None:
            raise ObjectNotInPrerequisiteState(
                f'{_cannot(dropped)}: it depends on "{names.get(item_id, item_id)}", which is gone'
                " for good"
            )
        raise below_is_dropped(dropped, below)


def below_is_dropped(dropped: DroppedItem, below: DroppedItem) -> SqlError:
    """Why an item cannot come back while something that it reads has not."""
    together = below.drop_id == dropped.drop_id
    words, name = below.kind.sql_words.upper(), below.name
    return ObjectNotInPrerequisiteState(
        f"{_cannot(dropped)}: it depends on {_shown(below)}, which is dropped, too",
        hint=f'UNDROP {words} "{name}" brings back what was dropped along with it.'
        if together
        else f'Use UNDROP {words} "{name}" first.',
    )


def refuse_ownerless(dropped: DroppedItem, role_id: RoleId | None, snapshot: Snapshot) -> None:
    """What comes along becomes nobody's own but a superuser's: it may show what its owner was
    allowed to read, and whoever brings it back is not."""
    role = None if role_id is None else snapshot.roles.get(role_id)
    if dropped.owner in snapshot.roles or (role is not None and role.superuser):
        return
    raise InsufficientPrivilege(
        f"{_cannot(dropped)}: it belonged to a role that is gone",
        hint="Superusers can bring it back.",
    )


def _place(
    dropped: DroppedItem, snapshot: Snapshot, coming: Mapping[ItemId, Destination]
) -> tuple[Database, Schema]:
    """An index is where its relation is, which may have gone elsewhere."""
    if not isinstance(dropped.item.definition, Index):
        return _schema(dropped, snapshot)
    on_id = dropped.item.definition.on_id
    if on_id in coming:
        return coming[on_id].database, coming[on_id].schema
    if on_id not in snapshot.items:
        return _schema(dropped, snapshot)  # the system's relations are in no database
    schema = snapshot.schemas[snapshot.items[on_id].schema_id]
    assert schema.database_id is not None, "what users make is in a database"
    return snapshot.databases[schema.database_id], schema


def _schema(dropped: DroppedItem, snapshot: Snapshot) -> tuple[Database, Schema]:
    """Its schema; if that is gone, the one that has its name now."""
    schema = snapshot.schemas.get(dropped.item.schema_id)
    if schema is not None and schema.database_id is not None:
        return snapshot.databases[schema.database_id], schema
    database_name, schema_name = dropped.place
    database = snapshot.database_named(database_name)
    if database is None:
        raise UndefinedDatabase(
            f'{_cannot(dropped)}: its database "{database_name}" was dropped',
            hint=f'Create a database and in it a schema of their names, "{database_name}" and'
            f' "{schema_name}", first.',
        )
    again = snapshot.schema_named(database.database_id, schema_name)
    if again is None:
        raise UndefinedSchema(
            f'{_cannot(dropped)}: its schema "{database_name}.{schema_name}" was dropped',
            hint="Create a schema of that name first.",
        )
    return database, again


def _cluster(dropped: DroppedItem, snapshot: Snapshot) -> Cluster | None:
    """The cluster that worked for it; if that is gone, the one that has its name now."""
    cluster_id, name = dropped.item.cluster_id, dropped.cluster
    if cluster_id is None:
        return None
    assert name is not None, "it is kept with the id"
    found = snapshot.clusters.get(cluster_id) or snapshot.cluster_named(name)
    if found is None:
        raise UndefinedObject(
            f'{_cannot(dropped)}: its cluster "{name}" was dropped',
            hint="Create a cluster of that name first.",
        )
    return found


def staying(dropped: DroppedItem, reason: SqlError) -> str:
    """Why something that was dropped along stays so, in a sentence."""
    _, _, why = reason.message.partition(": ")
    return f"{_shown(dropped)} stays dropped: {why}"
