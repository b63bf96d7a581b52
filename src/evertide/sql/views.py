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
    MaterializedView,
    NamedType,
    Sink,
    Source,
    Subsource,
    Table,
    View,
)
from evertide.catalog.snapshot import Snapshot
from evertide.expr.relation import Get, Map, Relation
from evertide.expr.relation_walk import rewrite_up
from evertide.expr.scalar import Scalar
from evertide.sql.parser.entry import parse_statement
from evertide.sql.plan.assertions import asserted_columns, with_assertions
from evertide.sql.plan.context import PlanContext, QueryContext
from evertide.sql.plan.index_keys import plan_key, with_expressions
from evertide.sql.plan.parameters import Parameters
from evertide.sql.plan.planned import fold_finishing
from evertide.sql.plan.query import plan_query
from evertide.sql.resolve import Recall
from evertide.sql.syntax.definition import (
    CreateIndexStatement,
    CreateMaterializedViewStatement,
    CreateViewStatement,
)
from evertide.vocab.ids import GlobalId, ItemId
from evertide.vocab.relation_desc import RelationDesc, renamed

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
        if item is None or not _is_computed(item):
            return node
        return inline_views(planned_definition(item, snapshot), snapshot, keep)

    return rewrite_up(relation, inlined)


def _is_computed(item: Item) -> bool:
    """Whether its rows are stored nowhere. Those of a replacement are not yet: it is read as a
    plain view would be."""
    return isinstance(item.definition, View) or item.replacement is not None


def plan_item(item: Item, snapshot: Snapshot) -> tuple[Relation, RelationDesc]:
    """What an item computes, over durable collections only, and the shape of its rows.

    An index holds all columns of its relation, which are what it shows, and behind them the values
    of expressions that it is kept by.
    """
    match item.definition:
        case View() | MaterializedView():
            return inline_views(planned_definition(item, snapshot), snapshot, ()), item.desc
        case Index(on_id=on_id):
            on = snapshot.items[on_id].version_among(item.planned_against)
            return inline_views(_indexed(item, snapshot), snapshot, ()), on.desc
        case Table() | Source() | Subsource():
            return Get(item.global_id, item.desc.types), item.desc
        case Sink(from_id=from_id):
            written = snapshot.items[from_id].version_among(item.planned_against)
            return Get(written.global_id, written.desc.types), written.desc
        case NamedType():
            raise AssertionError("a type has no rows")


def index_expressions(index: Item, snapshot: Snapshot) -> tuple[Scalar, ...]:
    """The expressions that an index is kept by, over the columns of its relation."""
    held = _indexed(index, snapshot)
    return held.scalars if isinstance(held, Map) else ()


def _indexed(index: Item, snapshot: Snapshot) -> Relation:
    """What an index holds; a view that it is on is still a Get."""
    assert isinstance(index.definition, Index), "other items hold nothing else"
    if any(key.position is None for key in index.definition.keys):
        return planned_definition(index, snapshot)
    on = snapshot.items[index.definition.on_id].version_among(index.planned_against)
    return Get(on.global_id, on.desc.types)


def planned_definition(item: Item, snapshot: Snapshot) -> Relation:
    """The query of a view or materialized view, or what an index holds; views that are read are
    still Gets."""
    meaning = _meaning(item, snapshot)
    relation = _known.pop(meaning, None)
    if relation is None:
        relation = _plan_definition(item, snapshot)
    _known[meaning] = relation
    if len(_known) > _KEPT:
        _known.popitem(last=False)
    return relation


def recall_of(item: Item, snapshot: Snapshot) -> Recall:
    """How an item's text is meant; the item may be as it was under an earlier version.

    What runs depends on what it names, so those names are kept up. Those in an earlier version's
    text are not: what they meant is told with it.
    """
    stored = snapshot.items.get(item.item_id)
    names: dict[tuple[str, ...], ItemId] = {}
    if stored is not None and isinstance(stored.definition, MaterializedView):
        for past in stored.definition.past:
            if past.global_id == item.global_id:
                names = {named.name: named.item_id for named in past.names}
    return Recall(item.planned_against, names)


def _meaning(item: Item, snapshot: Snapshot) -> _Meaning:
    read = (snapshot.items.get(item_id) for item_id in item.reads)
    meant = (found.version_among(item.planned_against) for found in read if found is not None)
    return item.global_id, item.create_sql, tuple(version.global_id for version in meant)


def _plan_definition(item: Item, snapshot: Snapshot) -> Relation:
    statement = parse_statement(item.create_sql)
    context = PlanContext(
        snapshot=snapshot,
        database="",
        search_path=(),
        cluster="",
        user="",
        recall=recall_of(item, snapshot),
    )
    query = QueryContext(plan=context, parameters=Parameters(), plan_query=plan_query, stored=True)
    if isinstance(item.definition, Index):
        assert isinstance(statement, CreateIndexStatement)
        on = snapshot.items[item.definition.on_id].version_among(item.planned_against)
        keys = zip(statement.keys, item.definition.keys, strict=True)
        expressions = [
            plan_key(node, on.desc, query).scalar for node, key in keys if key.position is None
        ]
        return with_expressions(Get(on.global_id, on.desc.types), expressions)
    assert isinstance(statement, CreateViewStatement | CreateMaterializedViewStatement)
    planned = plan_query(statement.query, query)
    relation = fold_finishing(planned)
    if isinstance(statement, CreateViewStatement):
        return relation
    desc = renamed(planned.desc, statement.columns)
    return with_assertions(relation, asserted_columns(statement.options, desc), desc)
