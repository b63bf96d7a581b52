"""Texts of temporary views, when what they name is called otherwise.

A rename rewrites the texts of whatever is stored and of its own session's views. Those of other
sessions follow when they next look at the catalog.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeAlias

import msgspec

from evertide.catalog.objects import Item, View
from evertide.catalog.snapshot import Snapshot
from evertide.sql.kept_meaning import keeps_meaning
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.names_of_today import renamings
from evertide.sql.pretty import to_sql
from evertide.sql.renaming import with_relations
from evertide.sql.resolve import name_of
from evertide.sql.syntax.definition import CreateViewStatement
from evertide.vocab.ids import ItemId

# What everything that is depended upon is called in the texts.
KnownNames: TypeAlias = Mapping[ItemId, tuple[str, ...]]


def names_now(items: Iterable[Item], snapshot: Snapshot) -> KnownNames:
    """What the dependencies of these items are called."""
    read = {item_id: snapshot.items.get(item_id) for item in items for item_id in item.depends_on}
    return {i: name_of(found, snapshot).parts for i, found in read.items() if found is not None}


def with_names(item: Item, before: KnownNames, now: KnownNames) -> Item | None:
    """The item with what its text names under the names of now; None: they would not tell what it
    meant."""
    read = {old: item_id for item_id, old in before.items() if item_id in item.depends_on}
    same = all(now.get(item_id, old) == old for old, item_id in read.items())
    if same or not isinstance(item.definition, View):
        return item
    relation, column = renamings(read, lambda item_id: now.get(item_id, before[item_id]))
    statement = parse_statement(item.create_sql)
    assert isinstance(statement, CreateViewStatement), "it defines a view"
    renamed = replace(statement, query=with_relations(statement.query, relation, column))
    if not keeps_meaning(statement, renamed):
        return None
    return msgspec.structs.replace(item, create_sql=to_sql(renamed))
