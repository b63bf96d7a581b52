"""Which rows a text gives with positive multiplicities only, and how an input comes to have such.

A result is added up before anybody sees it, which moves every row through a shuffle, sorts whole
rows and forgets no column. That is for rows that were taken back: where none were, multiplicities
are right as they are; where few were, only rows that look like one of these are added up.
"""

from typing import assert_never

from evertide.dataflow.delta_plan import (
    ArrangeNode,
    ConstantNode,
    DeltaPlan,
    FlatMapNode,
    InputNode,
    JoinNode,
    LinearNode,
    NegateNode,
    RecomputeNode,
    ReduceNode,
    TemporalFilterNode,
    ThresholdNode,
    TopKNode,
    UnionNode,
    WindowNode,
    inputs_of,
)
from evertide.expr.relation import Types
from evertide.persist.coding.encoding import spark_type_name
from evertide.spark.render.keys import identities, regained
from evertide.spark.render.relation import ImportView
from evertide.spark.render.text import TextBuilder, select_list
from evertide.vocab.ids import GlobalId
from evertide.vocab.sql_type import SqlType
from evertide.vocab.timestamp import Timestamp


def linear_inputs(plan: DeltaPlan) -> frozenset[GlobalId] | None:
    """The inputs that must have positive multiplicities for the output to have such.

    None: they do not decide it, for something between takes rows away.
    """
    wanted: set[GlobalId] = set()
    ahead = [plan.output]
    while ahead:
        node = plan.nodes[ahead.pop()]
        match node:
            case InputNode(global_id=global_id):
                wanted.add(global_id)
            case LinearNode() | FlatMapNode() | TemporalFilterNode() | ArrangeNode():
                ahead += inputs_of(node)
            case JoinNode() | UnionNode():
                ahead += inputs_of(node)
            case ConstantNode(rows=rows):
                if any(count < 0 for _, count in rows):
                    return None
            case ReduceNode() | TopKNode() | WindowNode() | ThresholdNode():
                pass  # they give rows that are there
            case NegateNode() | RecomputeNode():
                return None
            case _:
                assert_never(node)
    return frozenset(wanted)


def retractions_text(builder: TextBuilder, view: ImportView, as_of: Timestamp) -> str:
    """A SELECT of how many rows the view takes back."""
    until = builder.bind(as_of, "bigint")
    return f"SELECT count(*) AS n FROM {view.name} WHERE t <= {until} AND d < 0"


def render_netted(
    builder: TextBuilder,
    view: ImportView,
    types: Types,
    read: frozenset[int],
    as_of: Timestamp,
    *,
    few: bool,
) -> ImportView:
    """The view at `as_of` in the columns that are read, without what was taken back.

    Rows that hash like one that was taken back are added up; the others pass. `few`: the hashes of
    what was taken back fit in every task's memory.
    """
    columns = [f"c{i}" if i in read else _null(t, i) for i, t in enumerate(types)]
    seen = sorted(read)
    looks = identities(tuple(types[i] for i in seen), [f"c{i}" for i in seen])
    until = builder.bind(as_of, "bigint")
    hint = "/*+ BROADCAST(g) */ " if few else ""
    hashed = f"xxhash64({', '.join([*looks, 'e'])})"
    gone = f"SELECT DISTINCT {hashed} AS h FROM {view.name} WHERE t <= {until} AND d < 0"
    held = f"SELECT *, {hashed} AS h FROM {view.name} WHERE t <= {until}"
    passing = (
        f"SELECT {hint}{select_list(columns, ['e', 't', 'd'])} FROM ({held}) a"
        f" LEFT ANTI JOIN ({gone}) g ON a.h = g.h"
    )
    kept = [regained(t, f"c{i}") if i in read else _null(t, i) for i, t in enumerate(types)]
    touched = (
        f"SELECT {hint}{select_list(kept, ['e', f'{until} AS t', 'sum(d) AS d'])} FROM ({held}) a"
        f" LEFT SEMI JOIN ({gone}) g ON a.h = g.h"
        f" GROUP BY {', '.join([*looks, 'e'])} HAVING sum(d) <> 0"
    )
    name = f"r{len(builder.expressions)}"
    builder.expressions.append((name, f"{passing} UNION ALL {touched}"))
    return ImportView(name, view.may_fail, may_retract=False)


def _null(sql_type: SqlType, position: int) -> str:
    return f"CAST(NULL AS {spark_type_name(sql_type)}) AS c{position}"
