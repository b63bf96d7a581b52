"""Stored definitions that name a cluster, under another name of it."""

from dataclasses import replace

from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.sql.parser.entry import parse_statement
from evertide.sql.pretty import to_sql
from evertide.sql.syntax.definition import CreateIndexStatement, CreateMaterializedViewStatement
from evertide.sql.syntax.external import CreateSinkStatement, CreateSourceStatement
from evertide.vocab.ids import ClusterId, ItemId


def moved_texts(
    cluster_id: ClusterId, name: str, snapshot: Snapshot
) -> tuple[tuple[ItemId, str], ...]:
    """The new definition of everything that runs in a cluster, once this is its name."""
    items = snapshot.items_in_cluster(cluster_id)
    # One that is being handed over to another cluster names that one already.
    own = (item for item in items if item.cluster_id == cluster_id)
    return tuple((item.item_id, in_cluster(item, name)) for item in own)


def in_cluster(item: Item, cluster: str) -> str:
    """An item's definition with another cluster in it."""
    definition = parse_statement(item.create_sql)
    match definition:
        case (
            CreateIndexStatement()
            | CreateMaterializedViewStatement()
            | CreateSourceStatement()
            | CreateSinkStatement()
        ):
            return to_sql(replace(definition, cluster=cluster))
        case _:
            return item.create_sql
