"""ALTER SCHEMA and ALTER DATABASE ... RENAME TO, and ALTER SCHEMA ... SWAP WITH."""

from evertide.catalog.create import is_reserved
from evertide.catalog.objects import Schema, object_key
from evertide.catalog.ops import RenameObjectOp
from evertide.catalog.snapshot import Snapshot
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.renames.texts import OfSchemas
from evertide.sql.plan.roles.plans import RolePlan
from evertide.sql.plan.roles.rights import Needs
from evertide.sql.resolve import position_of, resolve_database, resolve_schema
from evertide.sql.syntax.definition import RenameStatement, SwapStatement
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidName,
)

# What is said to be each session's own.
_TEMPORARY = ("mz_temp", "pg_temp")


def plan_rename_schema(statement: RenameStatement, query: QueryContext) -> RolePlan:
    """The schema under its new name, and every definition that names it."""
    snapshot, name = query.plan.snapshot, statement.name
    if name.parts[-1] in _TEMPORARY:
        raise FeatureNotSupported(
            f'cannot rename schemas in the ambient database: "{name.parts[-1]}"',
            position=position_of(name.at),
        )
    schema = resolve_schema(name.parts, query.plan.names, at=name.at)
    if schema.database_id is None:
        raise FeatureNotSupported(
            f"renaming the {schema.name} schema is not supported", position=position_of(name.at)
        )
    wanted = statement.new_name
    if is_reserved(wanted) or snapshot.schema_named(None, wanted) is not None:
        raise InvalidName(
            f"unacceptable schema name '{wanted}'",
            detail='The prefixes "mz_" and "pg_" are reserved for system schemas.',
            position=position_of(statement.at),
        )
    taken = snapshot.schema_named(schema.database_id, wanted)
    if taken is not None and taken != schema:
        raise DuplicateObject(
            f"schema '{wanted}' already exists", position=position_of(statement.at)
        )
    database = snapshot.databases[schema.database_id].name
    texts = OfSchemas(database, {schema.name: wanted}).texts({schema.schema_id}, snapshot)
    key = object_key(schema)
    op = RenameObjectOp(target=key, new_name=wanted, items_sql=texts)
    return RolePlan("ALTER SCHEMA", (op,), Needs(owner_of=(key,)))


def plan_rename_database(statement: RenameStatement, query: QueryContext) -> RolePlan:
    """The database under its new name, and every definition that names it."""
    snapshot, wanted = query.plan.snapshot, statement.new_name
    database = resolve_database(statement.name.parts[0], snapshot, at=statement.name.at)
    taken = snapshot.database_named(wanted)
    if taken is not None and taken != database:
        raise DuplicateObject(
            f"database '{wanted}' already exists", position=position_of(statement.at)
        )
    moved = {schema.schema_id for schema in snapshot.schemas_in(database.database_id)}
    texts = OfSchemas(database.name, {}, wanted).texts(moved, snapshot)
    key = object_key(database)
    op = RenameObjectOp(target=key, new_name=wanted, items_sql=texts)
    return RolePlan("ALTER DATABASE", (op,), Needs(owner_of=(key,)))


def plan_swap_schemas(statement: SwapStatement, query: QueryContext) -> RolePlan:
    """Both schemas under each other's name, and every definition that names one of them."""
    *database, _ = statement.name.parts
    first = _own(resolve_schema(statement.name.parts, query.plan.names, at=statement.name.at))
    second = _own(resolve_schema((*database, statement.other), query.plan.names, at=statement.at))
    snapshot = query.plan.snapshot
    keys = (object_key(first), object_key(second))
    ops: tuple[RenameObjectOp, ...] = ()
    if first != second:
        assert first.database_id is not None, "system schemas are refused"
        swapped = {first.name: second.name, second.name: first.name}
        renaming = OfSchemas(snapshot.databases[first.database_id].name, swapped)
        texts = renaming.texts({first.schema_id, second.schema_id}, snapshot)
        ops = (
            RenameObjectOp(target=keys[0], new_name=_spare(first, snapshot)),
            RenameObjectOp(target=keys[1], new_name=first.name),
            RenameObjectOp(target=keys[0], new_name=second.name, items_sql=texts),
        )
    return RolePlan("ALTER SCHEMA", ops, Needs(owner_of=tuple(dict.fromkeys(keys))))


def _own(schema: Schema) -> Schema:
    if schema.database_id is None:
        raise InsufficientPrivilege(f"system schema '{schema.name}' cannot be modified")
    return schema


def _spare(schema: Schema, snapshot: Snapshot) -> str:
    """A name that is free for a moment: two objects never have one name, not even in between."""
    number = 1
    while snapshot.schema_named(schema.database_id, f"{schema.name}_swap_{number}") is not None:
        number += 1
    return f"{schema.name}_swap_{number}"
