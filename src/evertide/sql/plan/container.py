"""CREATE SCHEMA and CREATE DATABASE."""

from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.plans import CreateDatabasePlan, CreateSchemaPlan
from evertide.sql.resolve import position_of, resolve_database, too_many_parts
from evertide.sql.syntax.definition import CreateDatabaseStatement, CreateSchemaStatement
from evertide.vocab.errors import DuplicateObject


def plan_create_schema(statement: CreateSchemaStatement, query: QueryContext) -> CreateSchemaPlan:
    """A schema in the database named, or in the session's."""
    match statement.name.parts:
        case (schema,):
            database_name = query.plan.database
        case (database_name, schema):
            pass
        case _:
            raise too_many_parts(statement.name, most=2)
    snapshot = query.plan.snapshot
    database = resolve_database(database_name, snapshot, at=statement.name.at)
    taken = snapshot.schema_named(database.database_id, schema) is not None
    if taken and not statement.if_not_exists:
        raise DuplicateObject(
            f"schema '{schema}' already exists", position=position_of(statement.name.at)
        )
    return CreateSchemaPlan(database.database_id, schema, statement.if_not_exists)


def plan_create_database(
    statement: CreateDatabaseStatement, query: QueryContext
) -> CreateDatabasePlan:
    """A database, which gets a schema `public`."""
    taken = query.plan.snapshot.database_named(statement.name) is not None
    if taken and not statement.if_not_exists:
        raise DuplicateObject(
            f"database '{statement.name}' already exists", position=position_of(statement.at)
        )
    return CreateDatabasePlan(statement.name, statement.if_not_exists)
