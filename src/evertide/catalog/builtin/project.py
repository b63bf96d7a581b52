"""mz_catalog and mz_internal: a snapshot to the rows of each relation."""

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from evertide.catalog.builtin.external import writing_cluster
from evertide.catalog.builtin.notes import (
    introspection_index_rows,
    introspection_indexes,
    secrets,
)
from evertide.catalog.builtin.postgres import pg_desc
from evertide.catalog.builtin.relation import OWNER_OF_BUILTINS, Builtin, Viewpoint
from evertide.catalog.builtin.rights import (
    OF_SYSTEM_TABLES,
    OF_SYSTEM_VIEWS,
    OF_TYPES,
    acl_texts,
)
from evertide.catalog.builtin.text import query_text, redacted
from evertide.catalog.builtin.types import pg_types
from evertide.catalog.builtin.user_types import type_rows
from evertide.catalog.objects import (
    AuditEvent,
    Index,
    Item,
    ItemKind,
)
from evertide.vocab.datum import Row
from evertide.vocab.ids import SchemaId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import Kind, SqlType


def databases(at: Viewpoint) -> Iterable[Row]:
    for d in at.snapshot.databases.values():
        yield d.database_id, d.oid, d.name, d.owner, acl_texts(d, at.snapshot)


def schemas(at: Viewpoint) -> Iterable[Row]:
    for s in at.snapshot.schemas.values():
        privileges = acl_texts(s, at.snapshot)
        yield s.schema_id, s.oid, s.database_id, s.name, s.owner, privileges


def roles(at: Viewpoint) -> Iterable[Row]:
    for r in at.snapshot.roles.values():
        yield r.role_id, r.oid, r.name, True, r.login is not False, r.superuser


def tables(at: Viewpoint) -> Iterable[Row]:
    nothing = (None, None, None)
    for b, schema_id in _builtins(at, is_view=False):
        yield b.item_id, b.oid, schema_id, b.name, OWNER_OF_BUILTINS, OF_SYSTEM_TABLES, *nothing
    for i in _items(at, ItemKind.TABLE):
        shown = (i.item_id, i.oid, i.schema_id, i.name, i.owner, acl_texts(i, at.snapshot))
        yield *shown, i.create_sql, redacted(i.create_sql), None


def views(at: Viewpoint) -> Iterable[Row]:
    for b, schema_id in _builtins(at, is_view=True):
        shown = (b.item_id, b.oid, schema_id, b.name, None, OWNER_OF_BUILTINS, OF_SYSTEM_VIEWS)
        yield *shown, None, None
    for i in _items(at, ItemKind.VIEW):
        named = (i.item_id, i.oid, i.schema_id, i.name)
        created = (i.create_sql, redacted(i.create_sql))
        guarded = (i.owner, acl_texts(i, at.snapshot))
        yield *named, query_text(i.create_sql), *guarded, *created


def materialized_views(at: Viewpoint) -> Iterable[Row]:
    for i in _items(at, ItemKind.MATERIALIZED_VIEW):
        named = (i.item_id, i.oid, i.schema_id, i.name, i.cluster_id)
        created = (i.create_sql, redacted(i.create_sql))
        guarded = (i.owner, acl_texts(i, at.snapshot))
        replaces = None if i.replacement is None else i.replacement.target
        yield *named, query_text(i.create_sql), *guarded, *created, replaces


def indexes(at: Viewpoint) -> Iterable[Row]:
    yield from introspection_index_rows(at)
    for i, index in _indexes(at):
        named = (i.item_id, i.oid, i.name, index.on_id, index.cluster_id, i.owner)
        yield *named, i.create_sql, redacted(i.create_sql)


def index_columns(at: Viewpoint) -> Iterable[Row]:
    for i, index in _indexes(at):
        for number, (key, column) in enumerate(zip(index.keys, i.columns, strict=True), 1):
            on_position = None if key.position is None else key.position + 1
            yield i.item_id, number, on_position, key.expression, column.nullable


def columns(at: Viewpoint) -> Iterable[Row]:
    for builtin in at.builtins:
        nobody: Sequence[str | None] = [None] * builtin.desc.arity
        yield from _columns(builtin.item_id, builtin.desc, nobody)
    for item in at.snapshot.items.values():
        if item.kind not in (ItemKind.INDEX, ItemKind.SINK, ItemKind.TYPE):
            defaults = [column.default for column in item.columns]
            yield from _columns(item.item_id, item.desc, defaults)


def _columns(relation_id: str, desc: RelationDesc, defaults: Sequence[str | None]) -> Iterator[Row]:
    for number, (column, default) in enumerate(zip(desc.columns, defaults, strict=True), 1):
        sql_type = column.type
        described = (type_name(sql_type), default, sql_type.oid, sql_type.type_modifier)
        yield relation_id, column.name, number, column.nullable, *described


def type_name(sql_type: SqlType) -> str:
    """A type without its modifiers, as SQL spells it."""
    match sql_type.kind:
        case Kind.LIST | Kind.MAP:
            return sql_type.kind.value
        case Kind.ARRAY:
            assert sql_type.element is not None, "an array has an element type"
            shown = type_name(sql_type.element)
            return shown if sql_type.element.kind is Kind.ARRAY else f"{shown}[]"
        case _:
            return str(SqlType(sql_type.kind))


def relations(at: Viewpoint) -> Iterable[Row]:
    return (row for row in objects(at) if row[4] not in ("index", "secret", "sink", "type"))


def objects(at: Viewpoint) -> Iterable[Row]:
    for is_view, kind in ((False, "table"), (True, "view")):
        for b, schema_id in _builtins(at, is_view=is_view):
            named = (b.item_id, b.oid, schema_id, b.name, kind)
            yield *named, OWNER_OF_BUILTINS, None, OF_SYSTEM_VIEWS if is_view else OF_SYSTEM_TABLES
    for row in _system_types(at):
        yield *row[:4], "type", row[5], None, OF_TYPES
    internal = {b.name: schema_id for b, schema_id in _builtins(at, is_view=False)}
    for index, relation, name in introspection_indexes(at):
        shown = (index.index_id, index.oid, internal[relation.name], name, "index")
        yield *shown, OWNER_OF_BUILTINS, index.cluster_id, None
    for row in secrets(at):
        yield *row[:4], "secret", row[4], None, row[5]
    for i in at.snapshot.items.values():
        named = (i.item_id, i.oid, i.schema_id, i.name, i.kind.value)
        cluster_id = writing_cluster(i, at.snapshot)
        unguarded = i.kind in (ItemKind.INDEX, ItemKind.SINK)
        privileges = None if unguarded else acl_texts(i, at.snapshot)
        yield *named, i.owner, cluster_id, privileges


# pg_type.typcategory in the peer's words.
_CATEGORIES = {
    "A": "array",
    "B": "boolean",
    "D": "date-time",
    "N": "numeric",
    "P": "pseudo",
    "R": "range",
    "S": "string",
    "T": "timespan",
    "U": "user-defined",
    "X": "pseudo",
    "Z": "internal",
}


def types(at: Viewpoint) -> Iterable[Row]:
    yield from _system_types(at)
    yield from type_rows(at)


def _system_types(at: Viewpoint) -> Iterator[Row]:
    schema_ids = {s.oid: s.schema_id for s in at.snapshot.schemas.values()}
    for row in pg_types(at):
        oid, name, namespace, category = row[0], row[1], row[2], str(row[7])
        assert isinstance(oid, int), "an oid is a number"
        assert isinstance(namespace, int), "an oid is a number"
        named = (f"s{oid}", oid, schema_ids[namespace], name, _CATEGORIES[category])
        yield *named, OWNER_OF_BUILTINS, OF_TYPES, None, None


def base_types(at: Viewpoint) -> Iterable[Row]:
    """Neither arrays nor pseudo-types, nor what users have named."""
    return ((row[0],) for row in _system_types(at) if row[4] not in ("array", "pseudo"))


def pseudo_types(at: Viewpoint) -> Iterable[Row]:
    return ((row[0],) for row in _system_types(at) if row[4] == "pseudo")


def array_types(at: Viewpoint) -> Iterable[Row]:
    element = pg_desc("pg_type").names.index("typelem")
    for row in pg_types(at):
        if row[7] == "A":
            yield f"s{row[0]!r}", f"s{row[element]!r}"


def object_dependencies(at: Viewpoint) -> Iterable[Row]:
    for item in at.snapshot.items.values():
        for dependency in item.depends_on:
            yield item.item_id, dependency


def transitive_dependencies(at: Viewpoint) -> Iterable[Row]:
    for item in at.snapshot.items.values():
        seen: set[str] = set()
        waiting = list(item.depends_on)
        while waiting:
            dependency = waiting.pop()
            if dependency not in seen:
                seen.add(dependency)
                yield item.item_id, dependency
                below = at.snapshot.items.get(dependency)
                waiting.extend(() if below is None else below.depends_on)


def object_global_ids(at: Viewpoint) -> Iterable[Row]:
    for builtin in at.builtins:
        yield builtin.item_id, builtin.global_id
    for item in at.snapshot.items.values():
        for version in item.versions:
            yield item.item_id, version.global_id


def storage_shards(at: Viewpoint) -> Iterable[Row]:
    for item in at.snapshot.items.values():
        if item.shard_id is not None:
            yield item.item_id, item.shard_id


def history_retention_strategies(at: Viewpoint) -> Iterable[Row]:
    for item in at.snapshot.items.values():
        if item.history_ms is not None:
            yield item.item_id, "FOR", str(item.history_ms)


def fully_qualified_names(at: Viewpoint) -> Iterable[Row]:
    for row in objects(at):
        item_id, name, kind, schema_id, cluster_id = row[0], row[3], row[4], row[2], row[6]
        schema = at.snapshot.schemas[SchemaId(str(schema_id))]
        database_id = schema.database_id
        database = None if database_id is None else at.snapshot.databases[database_id].name
        named = (item_id, name, kind, schema_id, schema.name)
        yield *named, database_id, database, cluster_id


def overridden_system_parameters(at: Viewpoint) -> Iterable[Row]:
    return at.snapshot.system_configurations.items()


def audit_event_rows(events: Iterable[AuditEvent]) -> Iterator[Row]:
    """Rows of mz_audit_events, which is dynamic: snapshots do not keep events."""
    for e in events:
        details = msgspec.json.encode(e.details, order="sorted").decode()
        occurred_at_micros = e.occurred_at_ms * 1_000
        yield e.event_id, e.event_type, e.object_type, details, e.user, occurred_at_micros


def _items(at: Viewpoint, kind: ItemKind) -> Iterator[Item]:
    return (item for item in at.snapshot.items.values() if item.kind is kind)


def _indexes(at: Viewpoint) -> Iterator[tuple[Item, Index]]:
    for item in at.snapshot.items.values():
        if isinstance(item.definition, Index):
            yield item, item.definition


def _builtins(at: Viewpoint, *, is_view: bool) -> Iterator[tuple[Builtin, str]]:
    """With the id of their schema."""
    ids = {s.name: s.schema_id for s in at.snapshot.schemas.values() if s.database_id is None}
    return ((b, ids[b.schema]) for b in at.builtins if b.is_view is is_view)
