"""What of a read can be worked out once, for as long as the catalog stays as it is.

A statement that is run again and again differs only in its parameters and in what the session says.
Views are put into its relation, which is optimised with those left open; they are put into the
result, which is then folded.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final, TypeAlias

from evertide.adapter.reading.leaves import IndexedViews
from evertide.catalog.objects import MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.controller.storage import collection_of
from evertide.dataflow.description import Import
from evertide.expr.functions.row import Knowledge
from evertide.expr.heavy import has_heavy, may_become_heavy
from evertide.expr.relation import Constant, Filter, Relation
from evertide.expr.relation_walk import in_order_of_use, scalars_of
from evertide.expr.scalar import Call, ColumnRef, Parameter, Scalar, SessionCall
from evertide.expr.scalar_walk import children
from evertide.expr.transform.passes import optimize
from evertide.expr.traverse import gets
from evertide.sql.plan.pause import is_pause
from evertide.sql.views import inline_views
from evertide.vocab.ids import ClusterId

_Key: TypeAlias = tuple[int, tuple[int, int], ClusterId | None]

KEPT_PLANS: Final = 512
# Relations with more constant rows are not kept: they are not run again as they are. Nor are those
# with very large values.
MOST_ROWS: Final = 100
_COMPARISONS: Final = {"=", "<", "<=", ">", ">="}


@dataclass(frozen=True, slots=True, eq=False)
class ReadPlan:
    """A relation with its views put in.

    `asked` is what was asked for: as long as it is kept here, its id is no other's.
    """

    asked: Relation
    relation: Relation
    # Whose indexes may be used.
    cluster_id: ClusterId | None
    # It asks the catalog's functions, and is not optimised before they are bound to a statement.
    asks_catalog: bool
    has_session_calls: bool
    # Calls that make the statement wait.
    pauses: frozenset[SessionCall]
    has_parameters: bool
    # Columns are compared with them and nothing else: once values, unless NULL, are put in, there
    # is nothing to fold.
    only_compares: bool
    # Some of it may take long to work out.
    may_be_heavy: bool
    # A materialized view that is all it reads, and not by an index.
    view: Import | None
    # It is the same at every timestamp: constants, computed from parameters.
    is_timeless: bool


class ReadPlans:
    """One adapter's, shared by its sessions; those used least recently go first."""

    def __init__(self) -> None:
        self._plans: OrderedDict[_Key, ReadPlan] = OrderedDict()

    def plan(
        self, relation: Relation, snapshot: Snapshot, cluster_id: ClusterId | None
    ) -> ReadPlan:
        """For a snapshot, and the cluster whose indexes may be used."""
        key = (id(relation), snapshot.version, cluster_id)
        known = self._plans.get(key)
        if known is None:
            known = _plan(relation, snapshot, cluster_id)
            if max(_constant_rows(relation), _constant_rows(known.relation)) > MOST_ROWS:
                return known
            if known.may_be_heavy and has_heavy(known.relation):
                return known
            self._plans[key] = known
            if len(self._plans) > KEPT_PLANS:
                self._plans.popitem(last=False)
        else:
            self._plans.move_to_end(key)
        return known


def _plan(relation: Relation, snapshot: Snapshot, cluster_id: ClusterId | None) -> ReadPlan:
    inlined = inline_views(relation, snapshot, IndexedViews(snapshot, cluster_id))
    parts = [
        part
        for node in in_order_of_use(inlined)
        for scalar in scalars_of(node)
        for part in _parts(scalar)
    ]
    asks_catalog = any(
        isinstance(part, Call) and part.function.knowledge is Knowledge.CATALOG for part in parts
    )
    has_session_calls = any(isinstance(part, SessionCall) for part in parts)
    optimized = inlined if asks_catalog else optimize(inlined)
    return ReadPlan(
        relation,
        optimized,
        cluster_id,
        asks_catalog,
        has_session_calls,
        frozenset(p for p in parts if isinstance(p, SessionCall) and is_pause(p)),
        any(isinstance(part, Parameter) for part in parts),
        _only_compares(optimized),
        may_become_heavy(optimized),
        _only_view(optimized, snapshot, cluster_id),
        not asks_catalog and not has_session_calls and not gets(optimized),
    )


def _only_compares(relation: Relation) -> bool:
    return not any(
        isinstance(part, Parameter)
        for node in in_order_of_use(relation)
        for scalar in scalars_of(node)
        if not (isinstance(node, Filter) and _is_comparison(scalar))
        for part in _parts(scalar)
    )


def _is_comparison(predicate: Scalar) -> bool:
    match predicate:
        case Call(
            function=function, arguments=(ColumnRef(), Parameter()) | (Parameter(), ColumnRef())
        ):
            return function.name in _COMPARISONS
        case _:
            return False


def _only_view(
    relation: Relation, snapshot: Snapshot, cluster_id: ClusterId | None
) -> Import | None:
    match gets(relation):
        case [global_id]:
            item = snapshot.item_of(global_id)
        case _:
            return None
    if item is None or not isinstance(item.definition, MaterializedView):
        return None
    if cluster_id is not None and snapshot.indexes_on(item.item_id, cluster_id):
        return None
    return collection_of(item, snapshot, global_id)


def _constant_rows(relation: Relation) -> int:
    return sum(len(n.rows) for n in in_order_of_use(relation) if isinstance(n, Constant))


def _parts(scalar: Scalar) -> list[Scalar]:
    found = [scalar]
    for part in found:  # grows while it is gone through
        found.extend(children(part))
    return found
