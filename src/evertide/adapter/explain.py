"""EXPLAIN: what a statement would do, without doing it."""

import json

from evertide.adapter.client import RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.leaves import BuiltinLeaf, IndexLeaf, Leaf, ShardLeaf
from evertide.adapter.read import Question, Read, choose_as_of, large, plan_read
from evertide.adapter.session import Session
from evertide.catalog.objects import Index, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.dataflow.build import describe
from evertide.dataflow.delta import delta_plan
from evertide.expr.relation import Finishing, Relation
from evertide.expr.scalar import Literal
from evertide.expr.show import show_relation
from evertide.expr.transform.passes import optimize
from evertide.sql.plan.plans import ExplainPlan, ExplainTimestampPlan, SelectPlan
from evertide.sql.views import inline_views, plan_item
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timeline, Timestamp


async def run_explain(
    plan: ExplainPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> RowsResponse:
    """The plan of a query, or the delta plan of what a cluster maintains."""
    if plan.select is not None:
        text = await _explain_select(plan, plan.select, parameters, session, env, snapshot)
    else:
        text = _explain_maintained(plan, snapshot)
    if plan.as_json:
        text = json.dumps({"plan": text.split("\n")})
    return _text_response("Explain", text)


async def _explain_select(
    plan: ExplainPlan,
    select: SelectPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> str:
    if plan.stage == "raw":
        return show_relation(select.relation)
    question = Question(select.relation, select.finishing, parameters)
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    read = plan_read(question, session, env, snapshot, as_of=read_ts)
    lines = [show_relation(read.relation), ""]
    lines += _show_finishing(read.finishing)
    lines += [_show_leaf(leaf) for leaf in read.leaves.values()]
    lines.append(f"Executor: {await executor_of(read, env)}")
    return "\n".join(lines)


async def executor_of(read: Read, env: Environment) -> str:
    """Which executor answers, in words."""
    if await large(read, env):
        return "Spark SQL job on a replica (many rows)"
    if any(isinstance(leaf, IndexLeaf) for leaf in read.leaves.values()):
        return "index on a replica, finished in the adapter (no Spark job)"
    if read.shard_leaves:
        return "direct read of shards, interpreted in the adapter (no Spark job)"
    return "interpreted in the adapter (constant)"


def _show_leaf(leaf: Leaf) -> str:
    match leaf:
        case BuiltinLeaf(builtin=builtin):
            return f"Source {builtin.global_id}: system relation {builtin.schema}.{builtin.name}"
        case ShardLeaf(collection=collection, name=name):
            return f"Source {collection.global_id}: {name}, read from its shard"
        case IndexLeaf(index_id=index_id, name=name, keys=keys):
            how = "all rows" if keys is None else f"lookup of {len(keys)} key"
            return f"Source {index_id}: index {name}, {how}"


def _show_finishing(finishing: Finishing) -> list[str]:
    lines = []
    if finishing.order:
        keys = [f"#{k.column}{' desc' if k.descending else ''}" for k in finishing.order]
        lines.append(f"Finish order_by=[{', '.join(keys)}]")
    if finishing.limit is not None or finishing.offset:
        lines.append(f"Finish limit={finishing.limit} offset={finishing.offset}")
    return lines


def _explain_maintained(plan: ExplainPlan, snapshot: Snapshot) -> str:
    """How a materialized view or index is kept up to date."""
    relation, note = _maintained_relation(plan, snapshot)
    if plan.stage == "raw":
        return show_relation(relation)
    optimized = optimize(inline_views(relation, snapshot, ()))
    return "\n\n".join([show_relation(optimized), describe(delta_plan(optimized)), note])


def _maintained_relation(plan: ExplainPlan, snapshot: Snapshot) -> tuple[Relation, str]:
    if plan.relation is not None:
        return plan.relation, "Maintained: incrementally"
    assert plan.item_id is not None, "EXPLAIN has something to explain"
    item = snapshot.items[plan.item_id]
    relation, _ = plan_item(item, snapshot)
    match item.definition:
        case MaterializedView(as_of=as_of):
            return relation, f"Maintained: incrementally, from {as_of} on"
        case Index():
            return relation, "Maintained: incrementally, in memory"
        case _:
            return relation, "Not maintained: computed when read"


async def run_explain_timestamp(
    plan: ExplainTimestampPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> RowsResponse:
    """Which timestamp a query would read at, and why."""
    question = Question(plan.select.relation, plan.select.finishing, parameters)
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    read = plan_read(question, session, env, snapshot, as_of=read_ts)
    as_of = await choose_as_of(read, env, read_ts, fixed=None, wanted=plan.select.as_of)
    sources = [
        (
            leaf.name,
            await env.storage.since(leaf.collection),
            await env.storage.upper(leaf.collection),
        )
        for leaf in read.shard_leaves
    ]
    if plan.as_json:
        return _text_response("Timestamp", _timestamp_json(as_of, read_ts, sources))
    return _text_response("Timestamp", _timestamp_text(as_of, read_ts, sources))


def _timestamp_text(
    as_of: Timestamp, read_ts: Timestamp, sources: list[tuple[str, Timestamp, Timestamp]]
) -> str:
    ready = all(upper > as_of for _, _, upper in sources)
    lines = [
        f"                query timestamp: {as_of:>13}",
        f"          oracle read timestamp: {read_ts:>13}",
        f"        can respond immediately: {str(ready).lower()}",
        "                       timeline: epoch_ms",
    ]
    for name, since, upper in sources:
        lines += [
            "",
            f"source {name}:",
            f"                  read frontier: [{since:>13}]",
            f"                 write frontier: [{upper:>13}]",
        ]
    return "\n".join(lines)


def _timestamp_json(
    as_of: Timestamp, read_ts: Timestamp, sources: list[tuple[str, Timestamp, Timestamp]]
) -> str:
    return json.dumps(
        {
            "query_timestamp": as_of,
            "oracle_read_timestamp": read_ts,
            "timeline": "epoch_ms",
            "can_respond_immediately": all(upper > as_of for _, _, upper in sources),
            "sources": [
                {"name": name, "read_frontier": since, "write_frontier": upper}
                for name, since, upper in sources
            ],
        }
    )


def _text_response(column: str, text: str) -> RowsResponse:
    """One row with the whole text."""
    return RowsResponse(relation_desc((column, TEXT)), [(text,)], tag="EXPLAIN")
