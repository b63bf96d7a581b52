"""pg_catalog: a snapshot to the rows that PostgreSQL's clients look for."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from evertide.catalog.acl import acting_roles, system_letters
from evertide.catalog.builtin.postgres import constant_rows, pg_template
from evertide.catalog.builtin.relation import Builtin, Projection, Viewpoint
from evertide.catalog.builtin.rights import acl_texts
from evertide.catalog.builtin.text import query_text
from evertide.catalog.builtin.types import pg_type_rows, type_storages
from evertide.catalog.objects import (
    Comment,
    Database,
    Index,
    IndexKey,
    Item,
    ItemKind,
    Role,
    RoleMembership,
    Schema,
)
from evertide.catalog.passwords import mask_of
from evertide.vocab.datum import Datum, Row
from evertide.vocab.ids import RoleId
from evertide.vocab.relation_desc import RelationDesc
from evertide.vocab.sql_type import Kind, SqlType

SYSTEM_ROLE_OID: Final = 10
_HEAP: Final = 2
_BTREE: Final = 403
_UTF8: Final = 6
_DEFAULT_TABLESPACE: Final = 1663

# The oids of the relations that list things one may comment on, and which of them all share.
_CATALOG_OIDS: Final = {
    "pg_class": 1259, "pg_type": 1247, "pg_namespace": 2615, "pg_database": 1262,
    "pg_authid": 1260,
}  # fmt: skip
# What everyone is shown instead of a password, whether there is one or not.
_BLANK: Final = "********"
SHARED_CATALOGS: Final = ("pg_database", "pg_authid")

_RELKINDS: Final = {
    ItemKind.TABLE: "r",
    ItemKind.VIEW: "v",
    ItemKind.MATERIALIZED_VIEW: "m",
    ItemKind.INDEX: "i",
    ItemKind.SOURCE: "r",
}
_ACCESS_METHODS: Final = {"r": _HEAP, "v": 0, "m": _HEAP, "i": _BTREE}


def namespaces(at: Viewpoint) -> Iterable[Row]:
    template = pg_template("pg_namespace")
    for schema_id in sorted(at.visible_schemas()):
        schema = at.snapshot.schemas[schema_id]
        owner = role_oid(at, schema.owner)
        acl = acl_texts(schema, at.snapshot)
        yield template.row(oid=schema.oid, nspname=schema.name, nspowner=owner, nspacl=acl)


def classes(at: Viewpoint) -> Iterable[Row]:
    namespace_oids = system_namespaces(at)
    for b in at.builtins:
        yield _class_row(
            oid=b.oid,
            relname=b.name,
            relnamespace=namespace_oids[b.schema],
            relowner=SYSTEM_ROLE_OID,
            relkind="v" if b.is_view else "r",
            relnatts=b.desc.arity,
        )
    for i in at.visible_items():
        if i.kind not in _RELKINDS:
            continue  # a sink is nothing that could be read
        yield _class_row(
            oid=i.oid,
            relname=i.name,
            relnamespace=at.snapshot.schemas[i.schema_id].oid,
            relowner=role_oid(at, i.owner),
            relkind=_RELKINDS[i.kind],
            relnatts=i.desc.arity,
            relhasindex=bool(at.snapshot.indexes_on(i.item_id)),
            relacl=acl_texts(i, at.snapshot) or None,
        )


def _class_row(*, relkind: str, **values: Datum) -> Row:
    return pg_template("pg_class").row(
        relkind=relkind,
        relam=_ACCESS_METHODS[relkind],
        reltuples=-1.0,
        relpersistence="p",
        relhasrules=relkind == "v",
        relispopulated=True,
        relreplident="d" if relkind in ("r", "m") else "n",
        **values,
    )


def attributes(at: Viewpoint) -> Iterable[Row]:
    for builtin in at.builtins:
        yield from _builtin_attributes(builtin)
    for item in at.visible_items():
        if item.kind is ItemKind.TYPE:
            continue
        defaults = [column.default is not None for column in item.columns]
        yield from _attribute_rows(item.oid, item.desc, defaults)


@cache
def _builtin_attributes(builtin: Builtin) -> tuple[Row, ...]:
    """Kept, because there are thousands and they never change."""
    return tuple(_attribute_rows(builtin.oid, builtin.desc, [False] * builtin.desc.arity))


def _dimensions(sql_type: SqlType) -> int:
    count, inner = 0, sql_type
    while inner.kind is Kind.ARRAY and inner.element is not None:
        count, inner = count + 1, inner.element
    return count


def _attribute_rows(oid: int, desc: RelationDesc, has_defaults: Iterable[bool]) -> Iterator[Row]:
    template = pg_template("pg_attribute")
    described = zip(desc.columns, has_defaults, strict=True)
    for number, (column, has_default) in enumerate(described, 1):
        storage = type_storages()[column.type.oid]
        yield template.row(
            attrelid=oid,
            attname=column.name,
            atttypid=column.type.oid,
            attlen=column.type.type_length,
            attnum=number,
            attcacheoff=-1,
            atttypmod=column.type.type_modifier,
            attndims=_dimensions(column.type),
            attbyval=storage.by_value,
            attalign=storage.align,
            attstorage=storage.storage,
            attnotnull=not column.nullable,
            atthasdef=has_default,
            attislocal=True,
            attstattarget=-1,
            attcollation=storage.collation,
        )


def attribute_defaults(at: Viewpoint) -> Iterable[Row]:
    template = pg_template("pg_attrdef")
    for item in at.visible_items():
        for number, column in enumerate(item.columns, 1):
            if column.default is not None:
                oid = _derived_oid(item.oid, number)
                yield template.row(oid=oid, adrelid=item.oid, adnum=number, adbin=column.default)


def _derived_oid(oid: int, number: int) -> int:
    """An oid for a part of an object; in the half of the numbers that no object has."""
    return 2**31 + (oid * 1_600 + number) % 2**31


def indexes(at: Viewpoint) -> Iterable[Row]:
    template = pg_template("pg_index")
    relation_oids, storages = _relation_oids(at), type_storages()
    for item, index in _visible_indexes(at):
        count = len(index.keys)
        yield template.row(
            indexrelid=item.oid,
            indrelid=relation_oids[index.on_id],
            indnatts=count,
            indnkeyatts=count,
            indimmediate=True,
            indisvalid=True,
            indisready=True,
            indislive=True,
            indkey=tuple(0 if key.position is None else key.position + 1 for key in index.keys),
            indcollation=tuple(storages[c.type.oid].collation for c in item.desc.columns),
            indclass=(0,) * count,
            indoption=(0,) * count,
            indexprs=_expressions(index.keys),
        )


def _expressions(keys: tuple[IndexKey, ...]) -> str | None:
    texts = [key.expression for key in keys if key.expression is not None]
    return ", ".join(texts) or None


def descriptions(at: Viewpoint) -> Iterable[Row]:
    """Comments on what is in the session's database, by the catalog it is listed in."""
    template = pg_template("pg_description")
    for comment, (catalog, oid) in _commented(at):
        if catalog not in SHARED_CATALOGS:
            yield template.row(
                objoid=oid,
                classoid=_CATALOG_OIDS[catalog],
                objsubid=comment.sub_id or 0,
                description=comment.comment,
            )


def shared_descriptions(at: Viewpoint) -> Iterable[Row]:
    """Comments on what every database shares."""
    template = pg_template("pg_shdescription")
    for comment, (catalog, oid) in _commented(at):
        if catalog in SHARED_CATALOGS:
            yield template.row(
                objoid=oid, classoid=_CATALOG_OIDS[catalog], description=comment.comment
            )


def _commented(at: Viewpoint) -> Iterator[tuple[Comment, tuple[str, int]]]:
    """Comments with the catalog and the oid of what they are on; clusters are in no catalog."""
    visible = at.visible_schemas()
    for comment in at.snapshot.of_type(Comment):
        match at.snapshot.find((comment.object_kind.value, comment.object_id)):
            case Item(schema_id=schema_id, oid=oid, kind=kind) if schema_id in visible:
                yield comment, ("pg_type" if kind is ItemKind.TYPE else "pg_class", oid)
            case Schema(schema_id=schema_id, oid=oid) if schema_id in visible:
                yield comment, ("pg_namespace", oid)
            case Database(oid=oid):
                yield comment, ("pg_database", oid)
            case Role(oid=oid):
                yield comment, ("pg_authid", oid)
            case _:
                pass


def role_members(at: Viewpoint) -> Iterable[Row]:
    template = pg_template("pg_auth_members")
    for number, member in enumerate(at.snapshot.of_type(RoleMembership), 1):
        yield template.row(
            oid=_derived_oid(role_oid(at, member.role_id), number),
            roleid=role_oid(at, member.role_id),
            member=role_oid(at, member.member_id),
            grantor=role_oid(at, member.grantor),
            inherit_option=True,
            set_option=True,
        )


def databases(at: Viewpoint) -> Iterable[Row]:
    template = pg_template("pg_database")
    for database in at.snapshot.databases.values():
        yield template.row(
            oid=database.oid,
            datname=database.name,
            datdba=role_oid(at, database.owner),
            encoding=_UTF8,
            datlocprovider="c",
            datallowconn=True,
            datconnlimit=-1,
            dattablespace=_DEFAULT_TABLESPACE,
            datcollate="C",
            datctype="C",
            datacl=acl_texts(database, at.snapshot),
        )


def roles(at: Viewpoint) -> Iterable[Row]:
    return _roles(at, "pg_roles", lambda _: _BLANK)


def authids(at: Viewpoint) -> Iterable[Row]:
    return _roles(at, "pg_authid", lambda role: mask_of(at.snapshot, role.role_id))


def _roles(at: Viewpoint, relation: str, password: Callable[[Role], Datum]) -> Iterator[Row]:
    template = pg_template(relation)
    for role in at.snapshot.roles.values():
        letters = system_letters(at.snapshot, acting_roles(at.snapshot, role.role_id))
        yield template.row(
            oid=role.oid,
            rolname=role.name,
            rolsuper=role.superuser,
            rolinherit=True,
            rolcreaterole=role.superuser or "R" in letters,
            rolcreatedb=role.superuser or "B" in letters,
            rolcanlogin=role.login is not False,
            rolreplication=False,
            rolbypassrls=role.superuser,
            rolconnlimit=-1,
            rolpassword=password(role),
        )


def users(at: Viewpoint) -> Iterable[Row]:
    return _users(at, "pg_user", lambda _: _BLANK)


def shadow(at: Viewpoint) -> Iterable[Row]:
    return _users(at, "pg_shadow", lambda role: mask_of(at.snapshot, role.role_id))


def _users(at: Viewpoint, relation: str, password: Callable[[Role], Datum]) -> Iterator[Row]:
    template = pg_template(relation)
    for role in at.snapshot.roles.values():
        yield template.row(
            usename=role.name,
            usesysid=role.oid,
            usecreatedb=role.superuser,
            usesuper=role.superuser,
            userepl=False,
            usebypassrls=role.superuser,
            passwd=password(role),
        )


def tables(at: Viewpoint) -> Iterable[Row]:
    for b in at.builtins:
        if not b.is_view:
            yield _table_row(b.schema, b.name, "mz_system", has_indexes=False)
    for i in _visible(at, ItemKind.TABLE):
        schema, owner = at.snapshot.schemas[i.schema_id], at.snapshot.roles[i.owner]
        has_indexes = bool(at.snapshot.indexes_on(i.item_id))
        yield _table_row(schema.name, i.name, owner.name, has_indexes=has_indexes)


def _table_row(schema: str, name: str, owner: str, *, has_indexes: bool) -> Row:
    return pg_template("pg_tables").row(
        schemaname=schema,
        tablename=name,
        tableowner=owner,
        hasindexes=has_indexes,
        hasrules=False,
        hastriggers=False,
        rowsecurity=False,
    )


def views(at: Viewpoint) -> Iterable[Row]:
    for b in at.builtins:
        if b.is_view:
            yield b.schema, b.name, "mz_system", None
    for i in _visible(at, ItemKind.VIEW):
        schema, owner = at.snapshot.schemas[i.schema_id], at.snapshot.roles[i.owner]
        yield schema.name, i.name, owner.name, query_text(i.create_sql)


def materialized_views(at: Viewpoint) -> Iterable[Row]:
    for i in _visible(at, ItemKind.MATERIALIZED_VIEW):
        schema, owner = at.snapshot.schemas[i.schema_id], at.snapshot.roles[i.owner]
        has_indexes = bool(at.snapshot.indexes_on(i.item_id))
        definition = query_text(i.create_sql)
        yield schema.name, i.name, owner.name, None, has_indexes, True, definition


def index_definitions(at: Viewpoint) -> Iterable[Row]:
    names = {b.item_id: b.name for b in at.builtins}
    names.update((i.item_id, i.name) for i in at.snapshot.items.values())
    for item, index in _visible_indexes(at):
        schema = at.snapshot.schemas[item.schema_id]
        yield schema.name, names[index.on_id], item.name, None, item.create_sql


def system_namespaces(at: Viewpoint) -> Mapping[str, int]:
    """Oids of the system schemas by name."""
    return {s.name: s.oid for s in at.snapshot.schemas.values() if s.database_id is None}


def role_oid(at: Viewpoint, role_id: RoleId) -> int:
    return at.snapshot.roles[role_id].oid


def _relation_oids(at: Viewpoint) -> dict[str, int]:
    return {
        **{b.item_id: b.oid for b in at.builtins},
        **{i.item_id: i.oid for i in at.snapshot.items.values()},
    }


def _visible(at: Viewpoint, kind: ItemKind) -> Iterator[Item]:
    return (item for item in at.visible_items() if item.kind is kind)


def _visible_indexes(at: Viewpoint) -> Iterator[tuple[Item, Index]]:
    for item in at.visible_items():
        if isinstance(item.definition, Index):
            yield item, item.definition


def _constant(relation: str) -> Projection:
    return lambda _viewpoint: constant_rows(relation)


PROJECTIONS: Final[Mapping[str, Projection]] = {
    "pg_am": _constant("pg_am"),
    "pg_attrdef": attribute_defaults,
    "pg_attribute": attributes,
    "pg_auth_members": role_members,
    "pg_authid": authids,
    "pg_class": classes,
    "pg_collation": _constant("pg_collation"),
    "pg_database": databases,
    "pg_description": descriptions,
    "pg_index": indexes,
    "pg_indexes": index_definitions,
    "pg_language": _constant("pg_language"),
    "pg_matviews": materialized_views,
    "pg_namespace": namespaces,
    "pg_roles": roles,
    "pg_shadow": shadow,
    "pg_shdescription": shared_descriptions,
    "pg_tables": tables,
    "pg_tablespace": _constant("pg_tablespace"),
    "pg_type": pg_type_rows,
    "pg_user": users,
    "pg_views": views,
}
# Rows that only the process which serves the session knows.
DYNAMIC: Final = frozenset({"pg_cast", "pg_operator", "pg_proc", "pg_settings"})
