"""CREATE SOURCE: a load generator, its tables, and the indexes of CREATE MATERIALIZED SOURCE."""

from collections.abc import Sequence
from dataclasses import replace

from evertide.catalog.load_tables import AUCTION, COUNTER
from evertide.catalog.objects import Cluster
from evertide.sql.normalize import normal_index
from evertide.sql.plan.context import QueryContext
from evertide.sql.plan.define import existing_item
from evertide.sql.plan.external.options import load_of
from evertide.sql.plan.external.plans import (
    CreateSourcePlan,
    NewIndexPlan,
    NewTablePlan,
    Placed,
)
from evertide.sql.plan.free_name import free_destination
from evertide.sql.plan.history import history_option
from evertide.sql.plan.index_keys import column_keys
from evertide.sql.pretty import to_sql
from evertide.sql.resolve import (
    Destination,
    RelationName,
    position_of,
    resolve_cluster,
    resolve_destination,
)
from evertide.sql.syntax.definition import CreateIndexStatement
from evertide.sql.syntax.expression import Name
from evertide.sql.syntax.external import (
    CreateSourceStatement,
    CreateSubsourceStatement,
    LoadTable,
)
from evertide.vocab.errors import DuplicateTable, SqlSyntaxError, UndefinedTable
from evertide.vocab.relation_desc import RelationDesc


def plan_create_source(statement: CreateSourceStatement, query: QueryContext) -> CreateSourcePlan:
    """A source, in the session's cluster if none is named."""
    load = load_of(statement.generator, statement.load_options)
    chosen = _chosen_tables(statement)
    destination = free_destination(statement.name, query, statement.if_not_exists)
    cluster = resolve_cluster(
        query.plan.cluster if statement.cluster is None else statement.cluster,
        query.plan.snapshot,
        at=statement.at,
    )
    places = _places(chosen, destination, statement, query)
    desc = COUNTER if statement.tables is None else RelationDesc(())
    item = _placed(destination, _source_sql(statement, destination, cluster, places))
    tables = tuple(
        NewTablePlan(_placed(place, _table_sql(place, destination, table)), table, AUCTION[table])
        for table, place in places.items()
    )
    relations = [(item, destination, desc)] if statement.tables is None else []
    relations += [
        (table.item, place, table.desc)
        for table, place in zip(tables, places.values(), strict=True)
    ]
    return CreateSourcePlan(
        item=item,
        cluster_id=cluster.cluster_id,
        load=load,
        desc=desc,
        tables=tables,
        indexes=_indexes(relations, cluster, query) if statement.materialized else (),
        history_ms=history_option(statement.options),
        if_not_exists=statement.if_not_exists,
    )


def _chosen_tables(statement: CreateSourceStatement) -> Sequence[LoadTable]:
    """The tables that are wanted; none of a generator that has none to choose from."""
    if statement.generator == "COUNTER":
        if statement.tables is not None:
            raise SqlSyntaxError(
                "load generator COUNTER has no tables to choose from",
                hint="Leave FOR out: the source itself holds the rows.",
                position=position_of(statement.at),
            )
        return ()
    if statement.tables is None:
        raise SqlSyntaxError(
            f"load generator {statement.generator} needs FOR ALL TABLES or FOR TABLES (...)",
            hint=f"It has {', '.join(AUCTION)}.",
            position=position_of(statement.at),
        )
    chosen = statement.tables or tuple(LoadTable(table, at=statement.at) for table in AUCTION)
    for table in chosen:
        if table.table not in AUCTION:
            raise UndefinedTable(
                f"load generator {statement.generator} has no table '{table.table}'",
                hint=f"It has {', '.join(AUCTION)}.",
                position=position_of(table.at),
            )
        if sum(other.table == table.table for other in chosen) > 1:
            raise SqlSyntaxError(
                f"table '{table.table}' specified more than once", position=position_of(table.at)
            )
    return chosen


def _places(
    chosen: Sequence[LoadTable],
    source: Destination,
    statement: CreateSourceStatement,
    query: QueryContext,
) -> dict[str, Destination]:
    """Where each table goes: beside its source unless another name is given."""
    # If the source is there already and that is as well, so are its tables.
    exists_ok = statement.if_not_exists and existing_item(source, query) is not None
    places: dict[str, Destination] = {}
    taken = {source.parts}
    for table in chosen:
        name = table.name or Name((*source.parts[:2], table.table), at=table.at)
        place = free_destination(name, query, exists_ok)
        if place.parts in taken:
            raise DuplicateTable(
                f"catalog item '{place.name}' already exists", position=position_of(table.at)
            )
        taken.add(place.parts)
        places[table.table] = place
    return places


def _placed(destination: Destination, create_sql: str) -> Placed:
    return Placed(destination.schema.schema_id, destination.name, create_sql)


def _source_sql(
    statement: CreateSourceStatement,
    destination: Destination,
    cluster: Cluster,
    places: dict[str, Destination],
) -> str:
    """The stored text: every table under its full name, and the cluster that writes them."""
    tables = tuple(LoadTable(table, Name(place.parts)) for table, place in places.items())
    normal = replace(
        statement,
        name=Name(destination.parts),
        tables=tables or None,
        cluster=cluster.name,
        materialized=False,
        if_not_exists=False,
    )
    return to_sql(normal)


def _table_sql(place: Destination, source: Destination, table: str) -> str:
    return to_sql(CreateSubsourceStatement(Name(place.parts), Name(source.parts), table))


def _indexes(
    relations: Sequence[tuple[Placed, Destination, RelationDesc]],
    cluster: Cluster,
    query: QueryContext,
) -> tuple[NewIndexPlan, ...]:
    """What CREATE DEFAULT INDEX would make of each relation."""
    found = []
    for on, place, desc in relations:
        wanted = _free_index_name(place, query)
        statement = CreateIndexStatement(None, Name(place.parts), default=True)
        keys = tuple(key.node for key in column_keys(desc))
        text = normal_index(statement, wanted.name, RelationName(*place.parts), keys, cluster.name)
        found.append(NewIndexPlan(_placed(wanted, text), on, desc))
    return tuple(found)


def _free_index_name(on: Destination, query: QueryContext) -> Destination:
    stem, number = f"{on.name}_primary_idx", 0
    while True:
        name = stem if number == 0 else f"{stem}{number}"
        place = resolve_destination(Name((*on.parts[:2], name)), query.plan.names)
        if existing_item(place, query) is None:
            return place
        number += 1
