"""Definitions as they are stored: every name in full, every implied clause written out.

A stored definition is planned again later, by other processes, in sessions with another search
path, database and cluster: it must not depend on any of them.
"""

from dataclasses import replace
from typing import TypeVar, cast

from evertide.sql.pretty import to_sql
from evertide.sql.rebuild import with_changed_parts
from evertide.sql.resolve import (
    Destination,
    NameContext,
    RelationName,
    find_type,
    name_of,
    resolve_readable,
)
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateTableStatement,
    CreateViewStatement,
)
from evertide.sql.syntax.expression import Expression, Name, TypeName
from evertide.sql.syntax.named import CreateTypeStatement
from evertide.sql.syntax.query import Query, TableRef
from evertide.sql.type_words import is_system_type

NodeT = TypeVar("NodeT")


def normal_table(
    statement: CreateTableStatement, destination: Destination, names: NameContext
) -> str:
    """The stored text of a table."""
    columns = with_full_types(statement.columns, names)
    named = replace(statement, name=Name(destination.parts), columns=columns)
    return to_sql(replace(named, if_not_exists=False))


def normal_type(
    statement: CreateTypeStatement, destination: Destination, names: NameContext
) -> str:
    """The stored text of a type."""
    form = with_full_types(statement.form, names)
    return to_sql(replace(statement, name=Name(destination.parts), form=form))


def with_full_types(node: NodeT, names: NameContext) -> NodeT:
    """The tree with every user's type that it names under its full name."""
    if isinstance(node, TypeName):
        return cast(NodeT, _full_type(node, names))
    return with_changed_parts(node, lambda part: with_full_types(part, names))


def _full_type(node: TypeName, names: NameContext) -> TypeName:
    found = None if is_system_type(node.parts) else find_type(node.parts, names)
    return node if found is None else replace(node, parts=name_of(found, names.snapshot).parts)


def normal_view(
    statement: CreateViewStatement, destination: Destination, names: NameContext
) -> str:
    """The stored text of a view."""
    return to_sql(
        replace(
            statement,
            name=Name(destination.parts),
            query=qualified(statement.query, names),
            or_replace=False,
            if_not_exists=False,
        )
    )


def normal_materialized_view(
    statement: CreateMaterializedViewStatement,
    destination: Destination,
    cluster: str,
    names: NameContext,
) -> str:
    """The stored text of a materialized view, with the cluster that runs it.

    That a replacement is to be applied by itself may change while it waits: the text is silent.
    """
    replacing = None
    if statement.replacing is not None:
        replacing = Name(resolve_readable(statement.replacing, names).name.parts)
    return to_sql(
        replace(
            statement,
            replacing=replacing,
            options=tuple(o for o in statement.options if o.name != "APPLY WHEN HYDRATED"),
            name=Name(destination.parts),
            query=qualified(statement.query, names),
            cluster=cluster,
            or_replace=False,
            if_not_exists=False,
        )
    )


def normal_index(
    statement: CreateIndexStatement,
    name: str,
    on: RelationName,
    keys: tuple[Expression, ...],
    cluster: str,
) -> str:
    """The stored text of an index: a default index has its keys written out."""
    return to_sql(
        replace(
            statement,
            name=name,
            on=Name(on.parts),
            keys=keys,
            cluster=cluster,
            default=False,
            if_not_exists=False,
        )
    )


def qualified(query: Query, names: NameContext) -> Query:
    """The query with every relation it reads under its full name."""
    return _qualified(query, names, frozenset())


def _qualified(node: NodeT, names: NameContext, local: frozenset[str]) -> NodeT:
    """`local` are the names of WITH queries in sight, which are no relations."""
    if isinstance(node, Query) and node.with_ is not None:
        return cast(NodeT, _qualified_with(node, names, local))
    if isinstance(node, TableRef):
        return cast(NodeT, _qualified_table(node, names, local))
    if isinstance(node, TypeName):
        return cast(NodeT, _full_type(node, names))
    return with_changed_parts(node, lambda part: _qualified(part, names, local))


def _qualified_with(query: Query, names: NameContext, local: frozenset[str]) -> Query:
    """Each query of the list sees those before it; all of them, if they are mutually recursive."""
    assert query.with_ is not None
    tables = []
    if query.with_.mutually:
        local |= {table.name for table in query.with_.tables}
    for table in query.with_.tables:
        types = _qualified(table.types, names, local)
        tables.append(replace(table, query=_qualified(table.query, names, local), types=types))
        local |= {table.name}
    rest = _qualified(replace(query, with_=None), names, local)
    return replace(rest, with_=replace(query.with_, tables=tuple(tables)))


def _qualified_table(table: TableRef, names: NameContext, local: frozenset[str]) -> TableRef:
    parts = table.name.parts
    if len(parts) == 1 and parts[0] in local:
        return table
    return replace(table, name=Name(resolve_readable(table.name, names).name.parts))
