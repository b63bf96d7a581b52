"""EXPLAIN: what a statement would do, without doing it.

Each form gives a text and the same as facts for JSON. The keys of the facts stay: programs read
them.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from evertide.adapter.client import RowsResponse
from evertide.adapter.environment import Environment
from evertide.adapter.explain.names import Names
from evertide.adapter.explain.partitions import partitions_of
from evertide.adapter.explain.read import choices_of
from evertide.adapter.explain.spark import spark_text
from evertide.adapter.reading.question import Question
from evertide.adapter.reading.read import plan_read
from evertide.adapter.session import Session
from evertide.catalog.objects import Index, MaterializedView
from evertide.catalog.snapshot import Snapshot
from evertide.dataflow.build import describe, maintenance, plan_or_reason, show_nodes
from evertide.dataflow.delta_plan import DeltaPlan
from evertide.dataflow.show_stages import describe_stages, node_lines
from evertide.dataflow.stages import cut
from evertide.expr.relation import Finishing, Relation, TopK
from evertide.expr.relation_walk import in_order_of_use, inputs_of
from evertide.expr.scalar import Literal
from evertide.expr.show import show_node, show_relation
from evertide.expr.transform.decorrelate import decorrelate
from evertide.expr.transform.lower_outer_join import lower_outer_join
from evertide.expr.transform.passes import optimize
from evertide.expr.transform.substitute import substitute
from evertide.sql.plan.planned import project
from evertide.sql.plan.plans import ExplainPlan, SelectPlan
from evertide.sql.views import inline_views, plan_item, planned_definition
from evertide.vocab.ids import GlobalId
from evertide.vocab.relation_desc import relation_desc
from evertide.vocab.sql_type import TEXT
from evertide.vocab.timestamp import Timeline


@dataclass(frozen=True, slots=True)
class Explained:
    """The answer in both forms."""

    text: str
    facts: dict[str, object]


@dataclass(frozen=True, slots=True)
class Maintained:
    """What a cluster keeps, or would keep. `note` says how; `more` is for JSON only."""

    relation: Relation
    raw: Relation
    note: str
    more: dict[str, object]
    # The columns that an index keeps it by; None: it is none.
    index_key: tuple[int, ...] | None = None


async def run_explain(
    plan: ExplainPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> RowsResponse:
    """The plan of a query, or of what a cluster maintains: one row with the whole text."""
    names = Names(snapshot, session)
    if plan.select is None:
        subject = _maintained(plan, snapshot)
        item = None if plan.item_id is None else snapshot.items[plan.item_id]
        partitions = partitions_of(item, session, env, snapshot)
        found = _of_maintained(plan.stage, subject, names, snapshot, partitions)
    elif plan.stage in ("optimized", "physical"):
        found = await _of_read(plan.stage, plan.select, parameters, session, env, snapshot)
    else:
        bound = _with_parameters(plan.select, parameters)
        query = Maintained(bound, plan.select.relation, "If it were materialized", {})
        partitions = partitions_of(None, session, env, snapshot)
        found = _of_maintained(plan.stage, query, names, snapshot, partitions)
    text = found.text
    if plan.as_json:
        text = json.dumps({"stage": plan.stage, **found.facts}, indent=2)
    return RowsResponse(relation_desc(("Explain", TEXT)), [(text,)], tag="EXPLAIN")


async def _of_read(
    stage: str,
    select: SelectPlan,
    parameters: tuple[Literal, ...],
    session: Session,
    env: Environment,
    snapshot: Snapshot,
) -> Explained:
    """A query as it would run now; its physical plan shows how each collection is read."""
    names = Names(snapshot, session)
    question = Question(select.relation, select.finishing, parameters)
    read_ts = await env.oracle.read_ts(Timeline.EPOCH_MS)
    read = plan_read(question, session, env, snapshot, as_of=read_ts)
    choices = await choices_of(read, env, names)
    how = {source.id: source.short() for source in choices.sources}
    shown = _tree(read.relation, how.__getitem__ if stage == "physical" else names)
    text = "\n".join([shown.text, "", *choices.lines()])
    return Explained(text, shown.facts | choices.facts())


def _of_maintained(
    stage: str, subject: Maintained, names: Names, snapshot: Snapshot, partitions: int
) -> Explained:
    if stage == "raw":
        return _tree(subject.raw, names)
    inlined = inline_views(subject.relation, snapshot, ())
    if stage == "decorrelated":
        return _tree(decorrelate(lower_outer_join(inlined)), names)
    optimized = optimize(inlined)
    made = plan_or_reason(optimized)
    if stage == "spark":
        return _spark(made, names)
    delta = _delta(made, subject, names)
    if stage in ("delta", "physical"):
        return _in_stages(delta, made, subject, names, partitions)
    tree = _tree(optimized, names)
    return Explained(f"{tree.text}\n\n{delta.text}", tree.facts | delta.facts)


def _tree(relation: Relation, name: Callable[[GlobalId], str]) -> Explained:
    """In JSON a list, in which each operator stands after its inputs and only once."""
    ordered = in_order_of_use(relation)
    places = {id(node): place for place, node in enumerate(ordered)}
    nodes = [
        {
            "node": places[id(node)],
            "operator": type(node).__name__,
            "inputs": [places[id(source)] for source in inputs_of(node)],
            "text": show_node(node, name),
        }
        for node in ordered
    ]
    facts = {"nodes": nodes, "output": len(nodes) - 1}
    return Explained(show_relation(relation, name), {"plan": facts})


def _delta(made: DeltaPlan | str, subject: Maintained, names: Names) -> Explained:
    """How changes are followed, node by node, or why they cannot be."""
    if isinstance(made, str):
        refused: dict[str, object] = {"maintained": f"not maintainable: {made}", "delta_plan": None}
        return Explained(f"{subject.note}: not maintainable: {made}", refused | subject.more)
    nodes = [
        {
            "node": position,
            "operator": node.operator,
            "inputs": list(node.inputs),
            "keeps": node.keeps,
            "text": list(node.lines),
        }
        for position, node in enumerate(show_nodes(made, names))
    ]
    facts: dict[str, object] = {
        "maintained": maintenance(made),
        "delta_plan": {"nodes": nodes, "output": made.output},
    }
    return Explained(
        f"{describe(made, names)}\n\n{subject.note}: {maintenance(made)}", facts | subject.more
    )


def _in_stages(
    delta: Explained, made: DeltaPlan | str, subject: Maintained, names: Names, partitions: int
) -> Explained:
    """How several tasks run it, where the cluster's size has several."""
    if isinstance(made, str) or partitions == 1:
        return delta
    staged = cut(made, subject.index_key)
    nodes = [
        {"node": position, "stage": stage, "text": list(node_lines(node, names))}
        for position, (node, stage) in enumerate(zip(staged.nodes, staged.stages, strict=True))
    ]
    facts: dict[str, object] = {"partitions": partitions, "stages": nodes}
    text = f"{delta.text}\n\n{describe_stages(staged, partitions, names)}"
    return Explained(text, delta.facts | facts)


def _spark(made: DeltaPlan | str, names: Names) -> Explained:
    if isinstance(made, DeltaPlan) and made.recomputes:
        made = "recursion is not one SQL text"
    if isinstance(made, str):
        return Explained(f"No Spark plan: {made}", {"text": None, "reason": made})
    spark = spark_text(made, names)
    facts = {
        "text": spark.text,
        "parameters": spark.parameters,
        "inputs": spark.inputs,
        "constants": list(spark.constants),
        "functions": list(spark.functions),
    }
    return Explained("\n".join(spark.lines()), dict(facts))


def _maintained(plan: ExplainPlan, snapshot: Snapshot) -> Maintained:
    if plan.relation is not None:
        return Maintained(plan.relation, plan.relation, "Maintained", {})
    assert plan.item_id is not None, "EXPLAIN has something to explain"
    item = snapshot.items[plan.item_id]
    relation, desc = plan_item(item, snapshot)
    match item.definition:
        case MaterializedView(as_of=as_of):
            raw = planned_definition(item, snapshot)
            return Maintained(relation, raw, "Maintained", {"as_of": as_of})
        case Index(keys=keys) as index:
            shown = ", ".join(k.expression or f"#{k.position}" for k in keys)
            note = f"Maintained in memory, all rows by [{shown}]"
            places = index.key_places(desc.arity)
            return Maintained(relation, relation, note, {"key": places}, places)
        case _:
            note = "Not maintained, computed when read; if it were"
            return Maintained(relation, planned_definition(item, snapshot), note, {})


def _with_parameters(select: SelectPlan, parameters: tuple[Literal, ...]) -> Relation:
    """The query as a materialized view would hold it: cut, but in no order."""
    finishing: Finishing = select.finishing
    bindings = Question(select.relation, finishing, parameters).bindings
    relation = substitute(select.relation, bindings)
    if finishing.limit is not None or finishing.offset:
        relation = TopK(relation, (), finishing.order, finishing.limit, finishing.offset)
    return relation if finishing.project is None else project(relation, finishing.project)
