"""COMMENT ON: whose object it is may say what it is for."""

from evertide.catalog.naming import Named, full_name
from evertide.catalog.objects import Item, ItemKind, NamedType, ObjectKey, Role, Schema, object_key
from evertide.catalog.ops import SetCommentOp
from evertide.sql.plan.clusters.profile import named_profile
from evertide.sql.plan.clusters.replica import resolve_replica
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.drop import ITEM_KINDS, item_of_kind
from evertide.sql.plan.named.secret import resolve_secret
from evertide.sql.plan.roles.names import resolve_role
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs, on_system
from evertide.sql.resolve import (
    no_connection,
    position_of,
    resolve_cluster,
    resolve_database,
    resolve_item,
    resolve_schema,
)
from evertide.sql.syntax.comment import CommentStatement
from evertide.sql.syntax.definition import ObjectKind
from evertide.sql.syntax.expression import Name
from evertide.vocab.errors import (
    FeatureNotSupported,
    InsufficientPrivilege,
    UndefinedColumn,
    WrongObjectType,
)


def plan_comment(statement: CommentStatement, query: QueryContext) -> RolePlan:
    """A comment put in the place of the one before, or with NULL taken away."""
    if statement.kind is None:
        target, column = _column(statement.name, query)
    else:
        found = _found(statement.kind, statement.name, query)
        target, column = object_key(found), None
        if isinstance(found, Role):
            return _plan(statement, target, None, Needs(privileges=(on_system("R"),)))
    return _plan(statement, target, column, Needs(owner_of=(target,)))


def _plan(
    statement: CommentStatement, target: ObjectKey, column: int | None, needs: Needs
) -> RolePlan:
    op = SetCommentOp(target=target, column=column, comment=statement.comment)
    return RolePlan("COMMENT", (op,), needs)


def _column(name: Name, query: QueryContext) -> tuple[ObjectKey, int]:
    relation = Name(name.parts[:-1], at=name.at)
    item = resolve_item(relation, query.plan.names)
    if not _has_columns(item):
        shown = full_name(item, query.plan.snapshot)
        raise WrongObjectType(
            f'{item.kind.sql_words} "{shown}" does not have columns', position=position_of(name.at)
        )
    if name.parts[-1] not in item.desc.names:
        raise UndefinedColumn(
            f'column "{".".join(name.parts)}" does not exist', position=position_of(name.at)
        )
    return object_key(item), item.desc.names.index(name.parts[-1]) + 1


def _has_columns(item: Item) -> bool:
    """Fields of a record type are columns; lists and maps have none."""
    if isinstance(item.definition, NamedType):
        return item.definition.type.fields is not None
    return item.kind not in (ItemKind.INDEX, ItemKind.SINK)


def _found(kind: ObjectKind, name: Name, query: QueryContext) -> Named:
    names, snapshot = query.plan.names, query.plan.snapshot
    match kind:
        case ObjectKind.CLUSTER:
            return resolve_cluster(name.parts[0], snapshot, at=name.at)
        case ObjectKind.CLUSTER_REPLICA:
            return resolve_replica(name, snapshot)[1]
        case ObjectKind.CLUSTER_PROFILE:
            return named_profile(name, snapshot)
        case ObjectKind.DATABASE:
            return resolve_database(name.parts[0], snapshot, at=name.at)
        case ObjectKind.SCHEMA:
            refuse_temporary(name)
            return _own_schema(resolve_schema(name.parts, names, at=name.at))
        case ObjectKind.SECRET:
            return resolve_secret(name, names)
        case ObjectKind.CONNECTION:
            no_connection(name, names)
        case ObjectKind.ROLE:
            return resolve_role(name.parts[0], snapshot, at=name.at)
        case _:
            return _item(kind, name, query)


def refuse_temporary(name: Name) -> None:
    """What is there for one session only has nobody to read its comment."""
    if name.parts[-1] in ("mz_temp", "pg_temp"):
        raise FeatureNotSupported(
            f"cannot comment on schema {name.parts[-1]} because it is a temporary schema",
            position=position_of(name.at),
        )


def _own_schema(schema: Schema) -> Schema:
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    return schema


def _item(kind: ObjectKind, name: Name, query: QueryContext) -> Item:
    return item_of_kind(name, ITEM_KINDS[kind], query.plan.names, use="COMMENT ON {} for {}")
