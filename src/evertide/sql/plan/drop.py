"""DROP: what goes, dependants first, or why it must stay."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar, assert_never

from evertide.catalog.drop import CASCADE_HINT, with_dependants, with_parts
from evertide.catalog.objects import (
    Cluster,
    Item,
    ItemKind,
    Schema,
    Secret,
)
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.clusters.plans import ChangePlan
from evertide.sql.plan.clusters.profile import plan_drop_profiles
from evertide.sql.plan.clusters.replica import own_replica
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.plans import DropPlan
from evertide.sql.plan.skipped import cascades, skipped
from evertide.sql.resolve import (
    NameContext,
    find_type,
    no_connection,
    position_of,
    resolve_cluster,
    resolve_database,
    resolve_item,
    resolve_schema,
)
from evertide.sql.syntax.definition import DropStatement, ObjectKind
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import (
    DependentObjectsStillExist,
    FeatureNotSupported,
    InsufficientPrivilege,
    Notice,
    ObjectNotInPrerequisiteState,
    UndefinedDatabase,
    UndefinedObject,
    UndefinedSchema,
    UndefinedTable,
    WrongObjectType,
)
from evertide.vocab.ids import ItemId

ObjectT = TypeVar("ObjectT")

ITEM_KINDS: Final[dict[ObjectKind, ItemKind]] = {
    ObjectKind.TABLE: ItemKind.TABLE,
    ObjectKind.VIEW: ItemKind.VIEW,
    ObjectKind.MATERIALIZED_VIEW: ItemKind.MATERIALIZED_VIEW,
    ObjectKind.INDEX: ItemKind.INDEX,
    ObjectKind.SOURCE: ItemKind.SOURCE,
    ObjectKind.SINK: ItemKind.SINK,
    ObjectKind.TYPE: ItemKind.TYPE,
}
# What looking up a name says when it is not there.
_MISSING = (UndefinedTable, UndefinedSchema, UndefinedDatabase, UndefinedObject)


def plan_drop(statement: DropStatement, query: QueryContext) -> DropPlan | ChangePlan:
    """Everything that a DROP takes away."""
    names = query.plan.names
    match statement.kind:
        case (
            ObjectKind.TABLE
            | ObjectKind.VIEW
            | ObjectKind.MATERIALIZED_VIEW
            | ObjectKind.INDEX
            | ObjectKind.SOURCE
            | ObjectKind.SINK
            | ObjectKind.TYPE
        ):
            return _drop_items(statement, names)
        case ObjectKind.SECRET:
            secrets, notices = _found(statement, lambda name: resolve_secret(name, names))
            gone = tuple(secret.secret_id for secret in secrets)
            return DropPlan(_tag(statement), secrets=gone, notices=notices)
        case ObjectKind.CONNECTION:
            _, notices = _found(statement, lambda name: no_connection(name, names))
            return DropPlan(_tag(statement), notices=notices)
        case ObjectKind.SCHEMA:
            return _drop_schemas(statement, names)
        case ObjectKind.DATABASE:
            return _drop_databases(statement, names)
        case ObjectKind.CLUSTER:
            return _drop_clusters(statement, names, query.plan.cluster)
        case ObjectKind.CLUSTER_REPLICA:
            replicas, notices = _found(
                statement, lambda name: own_replica(name, names.snapshot, "drop")
            )
            ids = tuple(replica.replica_id for replica in replicas)
            return DropPlan(_tag(statement), replicas=ids, notices=notices)
        case ObjectKind.CLUSTER_PROFILE:
            return plan_drop_profiles(statement, query)
        case ObjectKind.ROLE:
            raise FeatureNotSupported(
                f"{_tag(statement)} is not supported", position=position_of(statement.at)
            )
        case _:
            assert_never(statement.kind)


def _tag(statement: DropStatement) -> str:
    return f"DROP {statement.kind}"


def _found(
    statement: DropStatement, find: Callable[[Name], ObjectT]
) -> tuple[list[ObjectT], tuple[Notice, ...]]:
    """What the names mean; with IF EXISTS those that mean nothing become notices."""
    found: list[ObjectT] = []
    notices: list[Notice] = []
    for name in statement.names:
        try:
            one = find(name)
            if one not in found:  # who is named twice goes once
                found.append(one)
        except _MISSING:
            if not statement.if_exists:
                raise
            notices.append(skipped(statement.kind, name))
    return found, tuple(notices)


def item_of_kind(
    name: Name, kind: ItemKind, names: NameContext, *, use: str = "DROP {} to remove {}"
) -> Item:
    """The item of this name, which must be of this kind.

    `use` is what the hint says should be done with one of another kind.
    """
    item = (find_type(name.parts, names) if kind is ItemKind.TYPE else None) or resolve_item(
        name, names
    )
    if item.kind is not kind:
        found, wanted = item.kind.sql_words, _with_article(kind)
        if (kind, item.kind) == (ItemKind.VIEW, ItemKind.MATERIALIZED_VIEW):
            message = f"{item.name} is not {wanted}"
        else:
            message = f"{item.name} is {_with_article(item.kind)} not {wanted}"
        raise WrongObjectType(
            message,
            hint=f"Use {use.format(found.upper(), _with_article(item.kind))}.",
            position=position_of(name.at),
        )
    return item


def _with_article(kind: ItemKind) -> str:
    return f"{'an' if kind is ItemKind.INDEX else 'a'} {kind.sql_words}"


def _drop_items(statement: DropStatement, names: NameContext) -> DropPlan:
    kind = ITEM_KINDS[statement.kind]
    items, notices = _found(statement, lambda name: item_of_kind(name, kind, names))
    going = [item.item_id for item in items]
    if not statement.cascade:
        _refuse_dependants(names.snapshot, going)
    return DropPlan(_tag(statement), items=with_dependants(names.snapshot, going), notices=notices)


def _refuse_dependants(snapshot: Snapshot, item_ids: Sequence[ItemId]) -> None:
    """Parts go with their item; anything else that depends on an item or a part keeps it."""
    going = with_parts(snapshot, item_ids)
    for item_id in (*item_ids, *sorted(going.difference(item_ids))):
        who = [one for one in snapshot.dependants(item_id) if one.item_id not in going]
        if who:
            item = snapshot.items[item_id]
            what = _shown(item)
            raise DependentObjectsStillExist(
                f"cannot drop {what}: still depended upon by {_shown(who[0])}",
                detail="\n".join(f"{_shown(one)} depends on {what}" for one in who),
                hint=CASCADE_HINT,
            )


def _shown(item: Item | Secret) -> str:
    kind = item.kind.sql_words if isinstance(item, Item) else "secret"
    return f'{kind} "{item.name}"'


def _drop_schemas(statement: DropStatement, names: NameContext) -> DropPlan:
    snapshot = names.snapshot
    schemas, notices = _found(statement, lambda name: resolve_schema(name.parts, names, at=name.at))
    for schema in schemas:
        if schema.database_id is None:
            raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
        contents: list[Item | Secret] = [
            *snapshot.items_in_schema(schema.schema_id),
            *snapshot.secrets_in_schema(schema.schema_id),
        ]
        if contents and not statement.cascade:
            database = snapshot.databases[schema.database_id].name
            raise DependentObjectsStillExist(
                f"schema '{database}.{schema.name}' cannot be dropped without CASCADE while it"
                " contains objects",
                detail=_contents(contents, schema),
                hint=CASCADE_HINT,
            )
    return DropPlan(
        _tag(statement),
        items=_items_in(schemas, snapshot),
        secrets=_secrets_in(schemas, snapshot),
        schemas=tuple(schema.schema_id for schema in schemas),
        notices=notices,
    )


def _contents(items: Sequence[Item | Secret], schema: Schema) -> str:
    return "\n".join(f'{_shown(item)} is in schema "{schema.name}"' for item in items)


def _items_in(schemas: Sequence[Schema], snapshot: Snapshot) -> tuple[ItemId, ...]:
    items = [item for schema in schemas for item in snapshot.items_in_schema(schema.schema_id)]
    return with_dependants(snapshot, [item.item_id for item in items])


def _secrets_in(schemas: Sequence[Schema], snapshot: Snapshot) -> tuple[ItemId, ...]:
    return tuple(
        secret.secret_id
        for schema in schemas
        for secret in snapshot.secrets_in_schema(schema.schema_id)
    )


def _drop_databases(statement: DropStatement, names: NameContext) -> DropPlan:
    """A database without items goes with its schemas; items need CASCADE."""
    snapshot = names.snapshot
    databases, notices = _found(
        statement, lambda name: resolve_database(name.parts[0], snapshot, at=name.at)
    )
    ids = {database.database_id for database in databases}
    schemas = [schema for schema in snapshot.schemas.values() if schema.database_id in ids]
    items, secrets = _items_in(schemas, snapshot), _secrets_in(schemas, snapshot)
    contents: list[Item | Secret] = [
        *(snapshot.items[item_id] for item_id in items),
        *(snapshot.secrets[secret_id] for secret_id in secrets),
    ]
    if contents and not statement.cascade:
        raise DependentObjectsStillExist(
            f"database '{databases[0].name}' cannot be dropped with RESTRICT while it contains"
            " objects",
            detail="\n".join(map(_shown, contents)),
            hint=CASCADE_HINT,
        )
    return DropPlan(
        _tag(statement),
        items=items,
        secrets=secrets,
        schemas=tuple(schema.schema_id for schema in schemas),
        databases=tuple(database.database_id for database in databases),
        notices=(
            *notices,
            *cascades(len(schemas) + len(items)),
            *_active_dropped("database", [one.name for one in databases], names.database),
        ),
    )


def _drop_clusters(statement: DropStatement, names: NameContext, active: str) -> DropPlan:
    """Replicas go with their cluster; what it runs needs CASCADE."""
    snapshot = names.snapshot
    clusters, notices = _found(
        statement, lambda name: resolve_cluster(name.parts[0], snapshot, at=name.at)
    )
    running: list[Item] = []
    for cluster in clusters:
        items = snapshot.items_in_cluster(cluster.cluster_id)
        if items and not statement.cascade:
            raise DependentObjectsStillExist(
                f'cannot drop cluster "{cluster.name}" because other objects depend on it',
                detail="\n".join(
                    f'{_shown(item)} runs in cluster "{cluster.name}"' for item in items
                ),
                hint=CASCADE_HINT,
            )
        running += items
    refuse_halfway(clusters, running, snapshot)
    return DropPlan(
        _tag(statement),
        items=with_dependants(snapshot, [item.item_id for item in running]),
        clusters=tuple(cluster.cluster_id for cluster in clusters),
        notices=(*notices, *_active_dropped("cluster", [one.name for one in clusters], active)),
    )


def refuse_halfway(
    clusters: Sequence[Cluster], running: Sequence[Item], snapshot: Snapshot
) -> None:
    """A view that is leaving a cluster is not dropped with it, and still needs it for a moment."""
    going = {cluster.cluster_id for cluster in clusters}
    leaving = [one for one in running if one.cluster_id not in going]
    if leaving:
        assert leaving[0].outgoing is not None, "else it would run elsewhere only"
        before = leaving[0].outgoing.cluster_id
        assert before is not None, "a materialized view runs in a cluster"
        raise ObjectNotInPrerequisiteState(
            f'cannot drop cluster "{snapshot.clusters[before].name}" while materialized views are'
            " being handed over to others",
            detail="\n".join(
                f"{_shown(one)} is still being handed over to its last replacement"
                for one in leaving
            ),
            hint="Try again in a moment.",
        )


def _active_dropped(kind: str, names: Sequence[str], active: str) -> list[Notice]:
    """The session goes on without one until it chooses another."""
    if active not in names:
        return []
    code = {"database": "MZ002", "cluster": "MZ003"}[kind]
    hint = f"Choose a new active {kind} by executing SET {kind.upper()} = <name>."
    return [Notice("NOTICE", code, f'active {kind} "{active}" has been dropped', hint=hint)]
