"""Stored definitions back to relations.

The catalog keeps text; whoever runs something plans that text again. Stored text names everything
in full, so one snapshot gives the same relation in every process.
"""

from collections import OrderedDict
from collections.abc import Container
from typing import Final, TypeAlias

from evertide.catalog.objects import (
    Index,
    Item,
    ItemKind,
    MaterializedView,
    Sink,
    Source,
    Subsource,
    Table,
    View,
)
from evertide.catalog.snapshot import Snapshot
from evertide.expr.relation import Get, Relation
from evertide.expr.relation_walk import rewrite_up
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.context import PlanContext, QueryContext
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.planned import fold_finishing
from evertide.sql.plan.query import plan_query
from evertide.sql.syntax.definition import CreateMaterializedViewStatement, CreateViewStatement
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import RelationDesc

# A definition means the same as long as its text and the versions it reads are the same.
_Meaning: TypeAlias = tuple[GlobalId, str, tuple[GlobalId, ...]]
_KEPT: Final = 2_048
_known: "OrderedDict[_Meaning, Relation]" = OrderedDict()


def inline_views(relation: Relation, snapshot: Snapshot, keep: Container[GlobalId]) -> Relation:
    """The relation with every view it reads put in its place, but for those in `keep`."""

    def inlined(node: Relation) -> Relation:
        if not isinstance(node, Get) or node.global_id in keep:
            return node
        item = snapshot.item_of(node.global_id)
        if item is None or item.kind is not ItemKind.VIEW:
            return node
        return inline_views(planned_definition(item, snapshot), snapshot, keep)

    return rewrite_up(relation, inlined)


def plan_item(item: Item, snapshot: Snapshot) -> tuple[Relation, RelationDesc]:
    """What an item computes, over durable collections only, and the shape of its rows.

    An index gives all columns of its relation.
    """
    match item.definition:
        case View() | MaterializedView():
            return inline_views(planned_definition(item, snapshot), snapshot, ()), item.desc
        case Index(on_id=on_id):
            on = snapshot.items[on_id]
            return inline_views(Get(on.global_id, on.desc.types), snapshot, ()), on.desc
        case Table() | Source() | Subsource():
            return Get(item.global_id, item.desc.types), item.desc
        case Sink(from_id=from_id):
            written = snapshot.items[from_id]
            return Get(written.global_id, written.desc.types), written.desc


def planned_definition(item: Item, snapshot: Snapshot) -> Relation:
    """The query of a view or materialized view; views it reads are still Gets."""
    meaning = _meaning(item, snapshot)
    relation = _known.pop(meaning, None)
    if relation is None:
        relation = _plan_definition(item, snapshot)
    _known[meaning] = relation
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    return relation


def _meaning(item: Item, snapshot: Snapshot) -> _Meaning:
    read = (snapshot.items.get(item_id) for item_id in item.depends_on)
    versions = tuple(found.global_id for found in read if found is not None)
    return item.global_id, item.create_sql, versions


def _plan_definition(item: Item, snapshot: Snapshot) -> Relation:
    statement = parse_statement(item.create_sql)
    assert isinstance(statement, CreateViewStatement | CreateMaterializedViewStatement)
    context = PlanContext(snapshot=snapshot, database="", search_path=(), cluster="", user="")
    query = QueryContext(plan=context, parameters=Parameters(), plan_query=plan_query, stored=True)
    return fold_finishing(plan_query(statement.query, query))
