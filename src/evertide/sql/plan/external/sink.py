"""CREATE SINK: a file that all changes of a collection are written into."""

from dataclasses import replace
from pathlib import PurePosixPath
from typing import Final

from evertide.catalog.objects import Item, Sink
from evertide.catalog.replacements import refuse_staged
from evertide.catalog.temporary import refuse_lasting
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.define import existing_item
from evertide.sql.plan.external.plans import CreateSinkPlan, Placed
from evertide.sql.plan.free_name import free_destination
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import Destination, position_of, resolve_cluster, resolve_readable
from evertide.sql.syntax.expression import BooleanLiteral, Name
from evertide.sql.syntax.external import CreateSinkStatement
from evertide.sql.syntax.option import Option
from evertide.vocab.errors import (
    DuplicateObject,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidParameterValue,
    SqlSyntaxError,
    WrongObjectType,
)

# Beside each file lies one whose name is a little longer; file systems allow 255 bytes.
MOST_NAME_BYTES: Final = 200
MOST_PATH_BYTES: Final = 1_024


def plan_create_sink(statement: CreateSinkStatement, query: QueryContext) -> CreateSinkPlan:
    """A sink, in the session's cluster if none is named."""
    path = sink_path(statement.path, query.plan.sink_directory, statement.path_at)
    snapshot = _snapshot_option(statement.options)
    destination = free_destination(statement.name, query, statement.if_not_exists)
    cluster = resolve_cluster(
        query.plan.cluster if statement.cluster is None else statement.cluster,
        query.plan.snapshot,
        at=statement.at,
    )
    item = _stored(statement.from_, destination, query)
    if existing_item(destination, query) is None:
        _refuse_taken_path(path, statement, query)
    normal = replace(
        statement,
        name=Name(destination.parts),
        from_=Name(resolve_readable(statement.from_, query.plan.names).name.parts),
        path=path,
        cluster=cluster.name,
        if_not_exists=False,
    )
    return CreateSinkPlan(
        item=Placed(destination.schema.schema_id, destination.name, to_sql(normal)),
        cluster_id=cluster.cluster_id,
        from_id=item.item_id,
        path=path,
        snapshot=snapshot,
        if_not_exists=statement.if_not_exists,
    )


def _stored(name: Name, destination: Destination, query: QueryContext) -> Item:
    """Only what is stored has changes that can be followed and gone back to."""
    found = resolve_readable(name, query.plan.names)
    if found.item is None:
        raise FeatureNotSupported(
            f"sink from system relation {'.'.join(found.name.parts)} is not supported",
            position=position_of(name.at),
        )
    refuse_staged(query.plan.snapshot, (found.item_id,))
    refuse_lasting(destination.schema.schema_id, (found.item_id,), query.plan.snapshot)
    if found.item.shard_id is None:
        raise WrongObjectType(
            f'"{found.item.name}" is a {found.item.kind.sql_words}, and only tables, materialized'
            " views and sources can be written into a sink",
            hint="Create a materialized view over it.",
            position=position_of(name.at),
        )
    return found.item


def _refuse_taken_path(path: str, statement: CreateSinkStatement, query: QueryContext) -> None:
    for other in query.plan.snapshot.items.values():
        if isinstance(other.definition, Sink) and other.definition.path == path:
            raise DuplicateObject(
                f"sink \"{other.name}\" writes into file '{path}' already",
                position=position_of(statement.path_at),
            )


def _snapshot_option(options: tuple[Option, ...]) -> bool:
    if not options:
        return True
    if len(options) > 1:
        raise SqlSyntaxError(
            "SNAPSHOT specified more than once", position=position_of(options[1].at)
        )
    match options[0].value:
        case None:
            return True
        case BooleanLiteral(value=value):
            return value
        case _:
            raise InvalidParameterValue(
                "invalid SNAPSHOT: expected a boolean", position=position_of(options[0].at)
            )


def sink_path(text: str, directory: str | None, at: int) -> str:
    """The path below the directory of sinks, its parts with single slashes between them.

    Whoever may create a sink writes files as the server: nowhere but where the operator said.

    >>> sink_path("a//b.json", "/srv/sinks", 0), sink_path("/srv/sinks/c", "/srv/sinks", 0)
    ('a/b.json', 'c')
    """
    if directory is None:
        raise FeatureNotSupported(
            "there is no directory for sinks",
            hint="Start the server with --sink-dir DIR, or with --data DIR.",
            position=position_of(at),
        )
    path = PurePosixPath(text)
    if ".." in path.parts or (path.is_absolute() and not path.is_relative_to(directory)):
        raise InsufficientPrivilege(
            f"file '{text}' is outside the directory of sinks",
            detail=f"The directory is '{directory}'.",
            hint="Name a file below it, without '..'.",
            position=position_of(at),
        )
    if path.is_absolute():
        path = path.relative_to(directory)
    _check_parts(text, path, at)
    return str(path)


def _check_parts(text: str, path: PurePosixPath, at: int) -> None:
    reason = None
    if not path.parts or text.endswith("/"):
        reason = "it names no file"
    elif any(part.startswith(".") for part in path.parts):
        reason = "names that begin with a dot are kept for the system"
    elif not text.isprintable():
        reason = "it holds characters that cannot be printed"
    elif max(len(part.encode()) for part in path.parts) > MOST_NAME_BYTES:
        reason = f"a name of more than {MOST_NAME_BYTES} bytes is too long"
    elif len(str(path).encode()) > MOST_PATH_BYTES:
        reason = f"it is longer than {MOST_PATH_BYTES} bytes"
    if reason is not None:
        raise InvalidParameterValue(f"invalid file of a sink: {reason}", position=position_of(at))
