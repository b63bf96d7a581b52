"""EXPLAIN REPLACEMENT: what applying it would do, in few words."""

from collections.abc import Iterator, Sequence

from evertide.adapter.client import RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import run_read
from evertide.adapter.session import Session
from evertide.catalog.objects import Item
from evertide.catalog.snapshot import Snapshot
from evertide.controller.readiness import Readiness, hindrance, target_of
from evertide.sql.plan.plans import ExplainReplacementPlan, SelectPlan
from evertide.vocab.datum import Row
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT


async def run_explain_replacement(
    plan: ExplainReplacementPlan, session: Session, env: Environment, snapshot: Snapshot
) -> RowsResponse:
    """One row with the whole text. Counts and rows may be a moment apart."""
    replacement = snapshot.items[plan.replacement_id]
    state = await _state(replacement, env, snapshot)
    ((added, removed),) = await _rows(plan.totals, session, env, snapshot)
    assert isinstance(added, int), "a count"
    assert isinstance(removed, int), "a count"
    rows = await _rows(plan.rows, session, env, snapshot)
    lines = [
        *_headings(replacement, snapshot),
        f"State: {state}",
        *_asked_for(replacement),
        f"Rows that come: {added}",
        f"Rows that go: {removed}",
        *_changes(rows),
    ]
    if len(rows) == plan.rows.finishing.limit:
        name = replacement.name
        lines.append(f"and more, perhaps: SHOW REPLACEMENT CHANGES FOR {name} tells all")
    return RowsResponse(relation_desc(("Explain", TEXT)), [("\n".join(lines),)], tag="EXPLAIN")


def _headings(replacement: Item, snapshot: Snapshot) -> Iterator[str]:
    target = target_of(replacement, snapshot)
    yield f"Replacement: {snapshot.qualified_name(replacement)}"
    yield f"Target: {snapshot.qualified_name(target)}"
    added = replacement.desc.columns[target.desc.arity :]
    new = ", ".join(f"{column.name} {column.type}" for column in added)
    yield f"New columns: {new or 'none'}"
    indexes = snapshot.indexes_on(target.item_id) if added else []
    if indexes:
        names = ", ".join(index.name for index in indexes)
        yield f"Indexes that lack them, and serve no queries any more: {names}"
    clusters = [_cluster(item, snapshot) for item in (target, replacement)]
    moved = clusters[0] != clusters[1]
    yield f"Cluster: {f'{clusters[0]}, then {clusters[1]}' if moved else clusters[0]}"


def _cluster(item: Item, snapshot: Snapshot) -> str:
    assert item.cluster_id is not None, "a materialized view runs in a cluster"
    return snapshot.clusters[item.cluster_id].name


async def _state(replacement: Item, env: Environment, snapshot: Snapshot) -> str:
    """Whether it can be applied, and what it waits for if not."""
    hindered = hindrance(replacement, snapshot, forward_time=False)
    if hindered is not None:
        return hindered.message
    readiness = Readiness(env.storage, env.compute, env.oracle)
    waits = await readiness.waits_for(replacement, snapshot, forward_time=False)
    return waits or "ready to be applied"


def _asked_for(replacement: Item) -> Iterator[str]:
    """What WHEN READY has left to be done."""
    staged = replacement.replacement
    assert staged is not None, "a replacement"
    if staged.apply_when_ready:
        how = " with FORWARD TIME" if staged.forward_time else ""
        yield f"Applied: by itself{how}, as soon as it is ready"


async def _rows(
    plan: SelectPlan, session: Session, env: Environment, snapshot: Snapshot
) -> Sequence[Row]:
    return await run_read(Question(plan.relation, plan.finishing, ()), session, env, snapshot)


def _changes(rows: Sequence[Row]) -> Iterator[str]:
    for diff, *values in rows:
        assert isinstance(diff, int), "a count"
        times = "" if abs(diff) == 1 else f" ({abs(diff)} times)"
        shown = ", ".join("NULL" if value is None else str(value) for value in values)
        yield f"{'+' if diff > 0 else '-'} {shown}{times}"
