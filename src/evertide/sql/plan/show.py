"""SHOW lists: queries over system relations, written in SQL and planned like any other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, assert_never

from evertide.catalog.objects import Index, Schema
from evertide.expr.relation import Constant
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.clusters.show import (
    CLUSTER_PROFILES_COLUMNS,
    CLUSTER_PROFILES_SQL,
    REPLICAS_DESC,
    replicas_of_clusters,
    replicas_of_profiles,
)
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.planned import NamedQuery, PlannedQuery
from evertide.sql.plan.plans import SelectPlan
from evertide.sql.plan.roles.show import role_listing
from evertide.sql.plan.undrop.show import DROPPED_COLUMNS, DROPPED_SQL
from evertide.sql.pretty import quote_literal
from evertide.sql.resolve import (
    current_schema,
    resolve_cluster,
    resolve_database,
    resolve_readable,
    resolve_schema,
)
from evertide.sql.syntax.command import (
    LikeFilter,
    SelectStatement,
    ShowKind,
    ShowObjectsStatement,
    WhereFilter,
)
from evertide.sql.syntax.expression import Expression, Name, PatternMatch, StringLiteral
from evertide.sql.syntax.query import OrderItem, Query, Select, SelectItem, Subquery, TableAlias
from evertide.vocab.datum import Row
from evertide.vocab.errors import SqlSyntaxError, UndefinedDatabase, UndefinedSchema
from evertide.vocab.relation_desc import RelationDesc, relation_desc
from evertide.vocab.sql_type import TEXT, array_of


@dataclass(frozen=True, slots=True)
class Listing:
    """A query, those of its columns that are shown, and what its rows are ordered by.

    LIKE looks at `like`.
    """

    sql: str
    columns: tuple[str, ...]
    order: tuple[str, ...]
    like: str = "name"


def plan_show(statement: ShowObjectsStatement, query: QueryContext) -> SelectPlan:
    """A SHOW statement."""
    planned = plan_listing(statement, query)
    return SelectPlan(planned.relation, planned.finishing, planned.desc)


def plan_listing(statement: ShowObjectsStatement, query: QueryContext) -> PlannedQuery:
    """The rows of a SHOW statement, with its LIKE or WHERE applied to what is shown."""
    listing = _listing(statement, query)
    parsed = parse_statement(listing.sql)
    assert isinstance(parsed, SelectStatement), "listings are queries"
    shown = Subquery(parsed.query, TableAlias("shown"))
    body = Select(
        tuple(SelectItem(Name((column,))) for column in listing.columns),
        (shown,),
        where=_condition(statement.filter_, listing),
    )
    order = tuple(OrderItem(Name((column,))) for column in listing.order)
    context = replace(query, named_queries=_texts(query))
    return query.plan_query(Query(body, order_by=order), context)


def _condition(filter_: LikeFilter | WhereFilter | None, listing: Listing) -> Expression | None:
    match filter_:
        case None:
            return None
        case LikeFilter(pattern=pattern):
            return PatternMatch(Name((listing.like,)), StringLiteral(pattern), "LIKE")
        case WhereFilter(condition=condition):
            return condition
        case _:
            assert_never(filter_)


def _noted(object_type: str, object_id: str) -> str:
    """A join that gives the comment on each listed object itself."""
    return (
        f"LEFT JOIN mz_internal.mz_comments AS noted ON noted.id = {object_id}"
        f" AND noted.object_type = {object_type} AND noted.object_sub_id IS NULL"
    )


# Ids are unique among objects of one type only, so each join names the type.
_COMMENT: Final = "coalesce(noted.comment, '') AS comment"
_IN_SCHEMA: Final[Mapping[ShowKind, str]] = {
    ShowKind.TABLES: f"""
        SELECT t.name, {_COMMENT}, t.schema_id
        FROM mz_catalog.mz_tables t {_noted("'table'", "t.id")}
    """,
    ShowKind.VIEWS: f"""
        SELECT v.name, {_COMMENT}, v.schema_id
        FROM mz_catalog.mz_views v {_noted("'view'", "v.id")}
    """,
    ShowKind.OBJECTS: f"""
        SELECT o.name, o.type, {_COMMENT}, o.schema_id
        FROM mz_catalog.mz_objects o {_noted("o.type", "o.id")}
    """,
    ShowKind.MATERIALIZED_VIEWS: f"""
        SELECT m.name, c.name AS cluster, {_COMMENT}, m.schema_id
        FROM mz_catalog.mz_materialized_views m JOIN mz_catalog.mz_clusters c ON c.id = m.cluster_id
        {_noted("'materialized-view'", "m.id")}
    """,
    ShowKind.SOURCES: f"""
        SELECT s.name, s.type, c.name AS cluster, {_COMMENT}, s.schema_id
        FROM mz_catalog.mz_sources s LEFT JOIN mz_catalog.mz_clusters c ON c.id = s.cluster_id
        {_noted("'source'", "s.id")}
    """,
    ShowKind.SINKS: f"""
        SELECT s.name, s.type, c.name AS cluster, {_COMMENT}, s.schema_id
        FROM mz_catalog.mz_sinks s JOIN mz_catalog.mz_clusters c ON c.id = s.cluster_id
        {_noted("'sink'", "s.id")}
    """,
    ShowKind.TYPES: f"""
        SELECT t.name, {_COMMENT}, t.schema_id
        FROM mz_catalog.mz_types t {_noted("'type'", "t.id")}
    """,
    ShowKind.SECRETS: f"""
        SELECT s.name, {_COMMENT}, s.schema_id
        FROM mz_catalog.mz_secrets s {_noted("'secret'", "s.id")}
    """,
    ShowKind.CONNECTIONS: f"""
        SELECT c.name, c.type, {_COMMENT}, c.schema_id
        FROM mz_catalog.mz_connections c {_noted("'connection'", "c.id")}
    """,
    ShowKind.INDEXES: f"""
        SELECT i.name, o.name AS "on", c.name AS cluster, k.key, {_COMMENT}, o.schema_id,
            i.on_id
        FROM mz_catalog.mz_indexes i
        JOIN mz_catalog.mz_objects o ON o.id = i.on_id
        JOIN mz_catalog.mz_clusters c ON c.id = i.cluster_id
        JOIN index_keys k ON k.id = i.id
        {_noted("'index'", "i.id")}
    """,
}
_COLUMNS: Final[Mapping[ShowKind, tuple[str, ...]]] = {
    ShowKind.TABLES: ("name", "comment"),
    ShowKind.VIEWS: ("name", "comment"),
    ShowKind.OBJECTS: ("name", "type", "comment"),
    ShowKind.MATERIALIZED_VIEWS: ("name", "cluster", "comment"),
    ShowKind.SOURCES: ("name", "type", "cluster", "comment"),
    ShowKind.SINKS: ("name", "type", "cluster", "comment"),
    ShowKind.TYPES: ("name", "comment"),
    ShowKind.SECRETS: ("name", "comment"),
    ShowKind.CONNECTIONS: ("name", "type", "comment"),
    ShowKind.INDEXES: ("name", "on", "cluster", "key", "comment"),
}


def _listing(statement: ShowObjectsStatement, query: QueryContext) -> Listing:
    match statement.kind:
        case ShowKind.COLUMNS:
            return _columns(statement, query)
        case ShowKind.CLUSTERS:
            return Listing(
                f"SELECT c.name, t.replicas, NULL::text AS activity, {_COMMENT}"
                " FROM mz_catalog.mz_clusters c JOIN cluster_replicas t ON t.id = c.id "
                + _noted("'cluster'", "c.id"),
                ("name", "replicas", "activity", "comment"),
                ("name",),
            )
        case ShowKind.CLUSTER_REPLICAS:
            return Listing(
                "SELECT c.name AS cluster, r.name AS replica, r.size,"
                f" coalesce(s.status = 'online', false) AS ready, {_COMMENT}"
                " FROM mz_catalog.mz_cluster_replicas r"
                " JOIN mz_catalog.mz_clusters c ON c.id = r.cluster_id"
                " LEFT JOIN mz_internal.mz_cluster_replica_statuses s ON s.replica_id = r.id "
                + _noted("'cluster-replica'", "r.id"),
                ("cluster", "replica", "size", "ready", "comment"),
                ("cluster", "replica"),
                like="replica",
            )
        case ShowKind.CLUSTER_PROFILES:
            return Listing(
                CLUSTER_PROFILES_SQL,
                CLUSTER_PROFILES_COLUMNS,
                ("cluster", "profile"),
                like="profile",
            )
        case ShowKind.DATABASES:
            sql = f"SELECT d.name, {_COMMENT} FROM mz_catalog.mz_databases d "
            return Listing(sql + _noted("'database'", "d.id"), ("name", "comment"), ("name",))
        case ShowKind.ROLES:
            sql = (
                f"SELECT r.name, {_COMMENT} FROM mz_catalog.mz_roles r "
                + _noted("'role'", "r.id")
                + " WHERE r.id NOT LIKE 's%'"
            )
            return Listing(sql, ("name", "comment"), ("name",))
        case ShowKind.SCHEMAS:
            return _schemas(statement, query)
        case ShowKind.DROPPED_OBJECTS:
            return Listing(DROPPED_SQL, DROPPED_COLUMNS, ("dropped_at", "name", "id"))
        case ShowKind.PRIVILEGES | ShowKind.DEFAULT_PRIVILEGES | ShowKind.ROLE_MEMBERSHIP:
            return Listing(*role_listing(statement, query))
        case _:
            return _in_schema(statement, query)


def _columns(statement: ShowObjectsStatement, query: QueryContext) -> Listing:
    assert statement.from_ is not None, "the grammar asks for a relation"
    relation = resolve_readable(statement.from_, query.plan.names)
    return Listing(
        f"SELECT c.name, c.nullable, c.type, {_COMMENT}, c.position"
        " FROM mz_catalog.mz_columns c LEFT JOIN mz_internal.mz_comments AS noted"
        " ON noted.id = c.id AND noted.object_sub_id = c.position"
        f" WHERE c.id = {quote_literal(relation.item_id)}",
        ("name", "nullable", "type", "comment"),
        ("position",),
    )


def _schemas(statement: ShowObjectsStatement, query: QueryContext) -> Listing:
    """A database's schemas, and the system's, which every database sees."""
    name = query.plan.database if statement.from_ is None else ".".join(statement.from_.parts)
    database = resolve_database(name, query.plan.snapshot, at=statement.at)
    sql = (
        f"SELECT s.name, {_COMMENT} FROM mz_catalog.mz_schemas s "
        + _noted("'schema'", "s.id")
        + f" WHERE s.database_id = {quote_literal(database.database_id)} OR s.database_id IS NULL"
    )
    return Listing(sql, ("name", "comment"), ("name",))


def _in_schema(statement: ShowObjectsStatement, query: QueryContext) -> Listing:
    """Items of one schema; indexes also of one relation, or of a cluster wherever they are."""
    schema, on = _place(statement, query)
    conditions = []
    if schema is not None:
        conditions.append(f"schema_id = {quote_literal(schema.schema_id)}")
    if on is not None:
        relation = resolve_readable(on, query.plan.names)
        conditions.append(f"on_id = {quote_literal(relation.item_id)}")
    if statement.cluster is not None:
        cluster = resolve_cluster(statement.cluster, query.plan.snapshot, at=statement.at)
        conditions.append(f"cluster = {quote_literal(cluster.name)}")
    source = f"SELECT * FROM ({_IN_SCHEMA[statement.kind]}) AS listed"
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return Listing(source + where, _COLUMNS[statement.kind], ("name",))


def _place(
    statement: ShowObjectsStatement, query: QueryContext
) -> tuple[Schema | None, Name | None]:
    """The schema or, for indexes, the relation that is meant; FROM may name either."""
    names, from_ = query.plan.names, statement.from_
    if from_ is None:
        anywhere = statement.on is not None or (
            statement.cluster is not None and statement.kind is ShowKind.INDEXES
        )
        return (None if anywhere else current_schema(names, at=statement.at)), statement.on
    try:
        return resolve_schema(from_.parts, names, at=from_.at), statement.on
    except (UndefinedSchema, UndefinedDatabase, SqlSyntaxError):
        if statement.kind is not ShowKind.INDEXES or statement.on is not None:
            raise
        return None, from_


def _texts(query: QueryContext) -> dict[str, NamedQuery | None]:
    """Lists within a row, which SQL could only make by aggregates that keep an order."""
    snapshot = query.plan.snapshot
    keys: list[Row] = [
        (item.item_id, _key_texts(item.definition, item.desc.names))
        for item in snapshot.items.values()
        if isinstance(item.definition, Index)
    ]
    return {
        "cluster_replicas": _constant(REPLICAS_DESC, replicas_of_clusters(snapshot)),
        "profile_replicas": _constant(REPLICAS_DESC, replicas_of_profiles(snapshot)),
        "index_keys": _constant(relation_desc(("id", TEXT), ("key", array_of(TEXT))), keys),
    }


def _key_texts(index: Index, names: Sequence[str]) -> tuple[str, ...]:
    """Columns by their names, expressions as they are written."""
    return tuple(
        name if key.expression is None else key.expression
        for key, name in zip(index.keys, names, strict=True)
    )


def _constant(desc: RelationDesc, rows: list[Row]) -> NamedQuery:
    return NamedQuery(Constant(tuple((row, 1) for row in rows), desc.types), desc)
